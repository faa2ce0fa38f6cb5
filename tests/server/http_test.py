"""HTTP on the same port."""

import base64
import http.client
import json
import os
import shutil
import sys
import threading
import time
import unittest

from harness import Basalt, ServerTest

try:
    from openapi_spec_validator import validate
except ImportError:
    validate = None


class Http(ServerTest):
    def setUp(self):
        self.http = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        self.addCleanup(self.http.close)

    def ask(self, method, path, body=None, **headers):
        self.http.request(method, path, body, {k.replace("_", "-"): v for k, v in headers.items()})
        response = self.http.getresponse()
        return response.status, response.read(), response

    def problem(self, status, method, path, body=None, **headers):
        got, text, response = self.ask(method, path, body, **headers)
        self.assertEqual(got, status)
        self.assertEqual(response.getheader("Content-Type"), "application/problem+json")
        self.assertEqual(json.loads(text)["status"], status)

    def test_a_key_is_put_read_and_deleted(self):
        self.problem(404, "GET", "/v1/keys/a%2Fb")
        status, _, put = self.ask("PUT", "/v1/keys/a%2Fb", b"\x00bytes\xff")
        self.assertEqual(status, 204)
        status, body, got = self.ask("GET", "/v1/keys/a%2Fb")
        self.assertEqual((status, body), (200, b"\x00bytes\xff"))
        self.assertEqual(put.getheader("ETag"), got.getheader("ETag"))
        self.assertEqual(self.server.client().get("a/b"), b"\x00bytes\xff")
        self.assertEqual(self.ask("HEAD", "/v1/keys/a%2Fb")[:2], (200, b""))
        self.assertEqual(self.ask("DELETE", "/v1/keys/a%2Fb")[0], 204)
        self.problem(404, "DELETE", "/v1/keys/a%2Fb")

    def test_conditions_go_by_the_version(self):
        tag = self.ask("PUT", "/v1/keys/c", b"1", If_None_Match="*")[2].getheader("ETag")
        self.problem(412, "PUT", "/v1/keys/c", b"2", If_None_Match="*")
        self.assertEqual(self.ask("GET", "/v1/keys/c", If_None_Match=tag)[0], 304)
        self.assertEqual(self.ask("PUT", "/v1/keys/c", b"2", If_Match=tag)[0], 204)
        self.problem(412, "PUT", "/v1/keys/c", b"3", If_Match=tag)
        self.problem(412, "DELETE", "/v1/keys/c", If_Match=tag)
        self.server.client().set("c", "4")
        self.assertEqual(self.ask("DELETE", "/v1/keys/c", If_Match="*")[0], 204)

    def test_parameters_choose_database_and_lifetime(self):
        self.assertEqual(self.ask("PUT", "/v1/keys/p?db=2&ttl_ms=60000", b"x")[0], 204)
        client = self.server.client(db=2)
        self.assertEqual(client.get("p"), b"x")
        self.assertGreater(client.pttl("p"), 0)
        self.problem(400, "PUT", "/v1/keys/p?nosuch=1", b"x")
        self.problem(400, "GET", "/v1/keys/%zz")

    def test_other_types_and_addresses_are_refused(self):
        self.server.client().rpush("list", "x")
        self.problem(409, "GET", "/v1/keys/list")
        self.problem(405, "POST", "/v1/keys/list", b"x")
        self.problem(404, "GET", "/nothing")
        self.problem(421, "GET", "/healthz", Host="evil.example")

    def test_the_openapi_document_is_valid(self):
        status, text, response = self.ask("GET", "/openapi.json")
        self.assertEqual((status, response.getheader("Content-Type")), (200, "application/json"))
        document = json.loads(text)
        self.assertEqual(document["openapi"], "3.1.0")
        if validate is None:
            self.skipTest("there is no openapi-spec-validator")
        validate(document)
        document["paths"]["/healthz"]["get"]["responses"] = []
        with self.assertRaises(Exception):
            validate(document)

    def test_web_pages_of_other_origins_change_nothing(self):
        client = self.server.client()
        client.set("origin", "1")
        own = f"127.0.0.1:{self.server.port}"
        batch = json.dumps({"operations": [{"op": "delete", "key": "origin"}]})
        for origin in ("http://evil.example", "null", "http://127.0.0.1:1", own):
            self.problem(403, "POST", "/", '["DEL", "origin"]', Origin=origin)
            self.problem(403, "POST", "/pipeline", '[["DEL", "origin"]]', Origin=origin)
            self.problem(403, "POST", "/v1/batch", batch, Origin=origin)
            self.problem(403, "DELETE", "/v1/keys/origin", Origin=origin)
            self.assertEqual(self.ask("GET", "/v1/keys/origin", Origin=origin)[:2], (200, b"1"))
        self.assertEqual(self.ask("POST", "/v1/batch", batch, Origin="http://" + own)[0], 200)
        self.assertIsNone(client.get("origin"))

    def test_health_and_metrics(self):
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)
        self.assertEqual(self.ask("GET", "/readyz")[0], 200)
        status, text, _ = self.ask("GET", "/metrics")
        self.assertEqual(status, 200)
        lines = text.decode().splitlines()
        self.assertIn("# TYPE basalt_http_requests_total counter", lines)
        values = {l.split()[0]: float(l.split()[1]) for l in lines if not l.startswith("#")}
        self.assertGreaterEqual(values["basalt_http_requests_total"], 1)

    def lines(self, query, **headers):
        status, text, response = self.ask("GET", "/v1/keys" + query, **headers)
        self.assertEqual((status, response.getheader("Content-Type")),
                         (200, "application/x-ndjson"))
        return [json.loads(line) for line in text.decode().splitlines()]

    def test_a_range_of_keys_is_read_in_pages(self):
        client = self.server.client(db=3)
        client.flushdb()
        for key in ("a", "b1", "b2", "b3", "c"):
            client.set(key, "v" + key)
        client.set(b"\xff", b"\xfe\x00")
        client.rpush("b4", "x")
        client.expire("b2", 1000)
        records = self.lines("?db=3")
        self.assertEqual([line.get("key") for line in records],
                         ["a", "b1", "b2", "b3", "b4", "c", {"base64": "/w=="}, None])
        self.assertEqual(records[0], {"key": "a", "type": "string", "value": "va"})
        self.assertAlmostEqual(records[2]["expiry_ms"] / 1000, time.time() + 1000, delta=100)
        self.assertEqual(records[4], {"key": "b4", "type": "list"})
        self.assertEqual(records[6]["value"], {"base64": "/gA="})
        self.assertEqual(records[7], {"cursor": None})
        self.assertEqual(self.lines("?db=3&prefix=b&limit=2&values=0&start=b2"),
                         [{"key": "b2", "type": "string", "expiry_ms": records[2]["expiry_ms"]},
                          {"key": "b3", "type": "string"}, {"cursor": "6233"}])
        self.assertEqual(self.lines("?db=3&prefix=b&limit=2&cursor=6233"),
                         [{"key": "b4", "type": "list"}, {"cursor": None}])
        self.assertEqual(self.lines("?db=3&end=b1"), [records[0], {"cursor": None}])
        self.assertEqual(self.lines("?db=3&prefix=%ff")[0], records[6])
        self.assertEqual(self.lines("?db=3&limit=1&start=%ff")[1], {"cursor": None})
        self.assertEqual(self.lines("?db=4"), [{"cursor": None}])
        self.assertEqual(self.ask("HEAD", "/v1/keys?db=3")[:2], (200, b""))
        for query in ("?db=16", "?limit=0", "?limit=x", "?nosuch=1", "?start", "?cursor=6",
                      "?cursor=zz", "?start=%z", "?db=1&db=2", "?" + "&".join(map(str, range(40)))):
            self.problem(400, "GET", "/v1/keys" + query)
        self.problem(405, "PUT", "/v1/keys", b"x")

    def test_every_cursor_fits_into_the_next_request(self):
        client = self.server.client(db=7)
        prefix = b"\xff" * 3500
        keys = [prefix + b"%d" % i for i in range(3)]
        client.mset({key: "" for key in keys})
        query = "?db=7&values=0&limit=1&prefix=" + "%ff" * 3500
        found, cursor = [], ""
        while cursor is not None:
            *records, last = self.lines(query + (cursor and "&cursor=" + cursor))
            found += [base64.b64decode(record["key"]["base64"]) for record in records]
            cursor = last["cursor"]
        self.assertEqual(found, keys)

    def test_a_large_range_is_streamed(self):
        client = self.server.client(db=5)
        value = "x" * 1000
        for first in range(0, 20_000, 1000):
            client.mset({f"{i:06}": value for i in range(first, first + 1000)})
        raw = self.server.raw()  # Reads nothing at first, and asks for something else behind it.
        raw.sendall(b"GET /v1/keys?db=5&limit=20000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
                    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        client.flushdb()
        with raw.makefile("rb") as file:
            text = file.read()
        head, rest = text.split(b"\r\n\r\n", 1)
        self.assertIn(b"Transfer-Encoding: chunked", head)
        body = b""
        while size := int(rest.split(b"\r\n", 1)[0], 16):
            rest = rest.split(b"\r\n", 1)[1]
            body += rest[:size]
            self.assertEqual(rest[size:size + 2], b"\r\n")
            rest = rest[size + 2:]
        self.assertTrue(rest.startswith(b"0\r\n\r\nHTTP/1.1 200 OK\r\n"), rest[:100])
        keys = [json.loads(line).get("key") for line in body.splitlines()]
        # It shows one state: that before FLUSHDB, or that after it.
        self.assertIn(keys, ([f"{i:06}" for i in range(20_000)] + [None], [None]))
        raw.close()

    def test_http_1_0_gets_no_chunks(self):
        self.server.client(db=6).set("k", "v")
        raw = self.server.raw()
        raw.sendall(b"GET /v1/keys?db=6 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
        head, body = raw.makefile("rb").read().split(b"\r\n\r\n", 1)
        self.assertNotIn(b"chunked", head)
        self.assertIn(b"Connection: close", head)
        self.assertEqual(body, b'{"key":"k","type":"string","value":"v"}\n{"cursor":null}\n')
        raw.close()

    def batch(self, status, operations, **more):
        got, text, response = self.ask("POST", "/v1/batch",
                                       json.dumps({"operations": operations, **more}))
        answer = json.loads(text)
        self.assertEqual(got, status, answer)
        return answer["results"] if status == 200 else answer

    def test_a_batch_is_one_transaction(self):
        client = self.server.client()
        client.set("ba", "1")
        client.rpush("bl", *range(100))
        tag = self.ask("GET", "/v1/keys/ba")[2].getheader("ETag")
        results = self.batch(200, [
            {"op": "put", "key": "b1", "value": "one", "if_none_match": "*"},
            {"op": "get", "key": "ba", "if_match": tag},
            {"op": "put", "key": {"base64": "/w=="}, "value": {"base64": "AP8="}},
            {"op": "get", "key": "none"},
            {"op": "delete", "key": "none2"},
            {"op": "put", "key": "bl", "value": "no list", "ttl_ms": 60_000.0},
            {"op": "check", "key": "bc", "if_none_match": "*"},
        ])
        self.assertEqual([result["status"] for result in results],
                         [204, 200, 204, 404, 404, 204, 404])
        self.assertEqual(results[1], {"status": 200, "etag": tag, "value": "1"})
        for path, place in (("b1", 0), ("%ff", 2), ("bl", 5)):
            status, _, response = self.ask("GET", "/v1/keys/" + path)
            self.assertEqual((status, response.getheader("ETag")), (200, results[place]["etag"]))
        self.assertEqual(client.get(b"\xff"), b"\x00\xff")
        self.assertGreater(client.pttl("bl"), 0)
        self.assertEqual(self.batch(200, [{"op": "delete", "key": "bl"}, {"op": "get", "key": "b1"}],
                                    db=1), [{"status": 404}, {"status": 404}])

    def test_a_condition_that_does_not_hold_leaves_all_as_it_was(self):
        client = self.server.client()
        client.set("ca", "1")
        client.delete("cb", "cc")
        for condition in ({"key": "ca", "if_match": '"1"'}, {"key": "cc", "if_match": "*"},
                          {"key": "ca", "if_none_match": "*"}):
            for op in ("check", "delete", "get"):
                problem = self.batch(412, [{"op": "put", "key": "cb", "value": "x"},
                                           {"op": op, **condition}])
                self.assertEqual(problem["operation"], 1)
        self.assertEqual((client.get("ca"), client.get("cb")), (b"1", None))

    def test_a_batch_does_not_keep_the_values_of_its_keys(self):
        server = Basalt("--scripts", "off")
        self.addCleanup(server.remove)
        client = server.client()
        keys = [f"large{i}" for i in range(200)]
        for key in keys:
            client.set(key, "x" * 1_000_000)

        def memory(name):
            with open(f"/proc/{server.process.pid}/status") as file:
                return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))

        before = memory("VmHWM")
        operations = [{"op": ("check", "delete", "put")[i % 3], "key": key,
                       **({"value": ""} if i % 3 == 2 else {})} for i, key in enumerate(keys)]
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
        self.addCleanup(connection.close)
        connection.request("POST", "/v1/batch", json.dumps({"operations": operations}))
        self.assertEqual(connection.getresponse().status, 200)
        self.assertLess(memory("VmHWM") - before, 100_000_000)

    def test_what_is_too_large_is_413(self):
        # Above the largest record of this memory budget, and above what a transaction may write.
        for size in (9 << 20, 40 << 20):
            self.problem(413, "PUT", "/v1/keys/large", b"x" * size)
        batch = {"operations": [{"op": "put", "key": "large", "value": "x" * (8 << 20)}]}
        self.problem(413, "POST", "/v1/batch", json.dumps(batch))
        self.assertEqual(self.ask("GET", "/v1/keys/large")[0], 404)

    def test_malformed_batches_are_refused(self):
        put = {"op": "put", "key": "mm", "value": "x"}
        for operations in ([], {}, [1], [{}], [{"op": "put", "key": "mm"}], [{**put, "op": "no"}],
                           [{**put, "ttl_ms": 0}], [{**put, "ttl_ms": 2**60}],
                           [{**put, "ttl_ms": 1.5}], [{**put, "ttl_ms": 2**64}],
                           [{**put, "if_match": 1}], [{**put, "x": 1}],
                           [{**put, "key": {"base64": "?"}}], [put, put],
                           [{"op": "get", "key": "mm", "value": "x"}],
                           [{"op": "get", "key": str(i)} for i in range(10_001)]):
            self.batch(400, operations)
        self.batch(400, [put], db=16)
        self.batch(400, [put], more=1)
        for body in ("", "[1", "1", "{}", "[" * 1000, b"\xff"):
            self.problem(400, "POST", "/v1/batch", body)
        self.assertIsNone(self.server.client().get("mm"))
        self.server.client().rpush("ml", "x")
        self.assertEqual(self.batch(200, [{"op": "get", "key": "ml"}]),
                         [{"status": 409, "type": "list"}])
        for i in range(4):
            self.server.client().set(f"large{i}", b"x" * 5_000_000)
        self.batch(413, [{"op": "get", "key": f"large{i}"} for i in range(4)])

    def test_batches_that_conflict_lose_no_update(self):
        self.server.client().set("n", "0")

        def add(count):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
            added = 0
            while added < count:
                connection.request("GET", "/v1/keys/n")
                response = connection.getresponse()
                number, tag = int(response.read()), response.getheader("ETag")
                connection.request("POST", "/v1/batch", json.dumps({"operations": [
                    {"op": "put", "key": "n", "value": str(number + 1), "if_match": tag},
                    {"op": "put", "key": f"n{number + 1}", "value": "x", "if_none_match": "*"}]}))
                response = connection.getresponse()
                response.read()
                added += response.status == 200
            connection.close()

        threads = [threading.Thread(target=add, args=(25,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.server.client().get("n"), b"100")
        self.assertEqual(self.server.client().exists(*[f"n{i}" for i in range(1, 101)]), 100)

    def command(self, path, body, **headers):
        status, text, _ = self.ask("POST", path, json.dumps(body), **headers)
        return status, json.loads(text)

    def test_commands_in_the_form_of_upstash(self):
        self.assertEqual(self.command("/", ["SET", "u", "v\u00e9", "EX", 100]),
                         (200, {"result": "OK"}))
        self.assertEqual(self.command("/", ["GET", "u"]), (200, {"result": "v\u00e9"}))
        self.assertEqual(self.command("/", ["GET", "u"], Upstash_Encoding="base64"),
                         (200, {"result": "dsOp"}))
        self.assertEqual(self.command("/", ["GET", "none"]), (200, {"result": None}))
        self.server.client().set("bytes", b"\xff\x00")
        self.assertIn("UTF-8", self.command("/", ["GET", "bytes"])[1]["error"])
        self.assertEqual(self.command("/", ["GET", "bytes"], Upstash_Encoding="base64")[1],
                         {"result": "/wA="})
        self.assertEqual(
            self.command("/pipeline", [["RPUSH", "ul", 1, 2.5, True], ["INCR", "ul"],
                                       ["LRANGE", "ul", 0, -1], ["BLPOP", "none", 0],
                                       ["EVAL", "return {1, 'x'}", 0]])[1],
            [{"result": 3},
             {"error": "WRONGTYPE Operation against a key holding the wrong kind of value"},
             {"result": ["1", "2.5", "true"]},
             {"error": "ERR the command 'blpop' needs a connection"}, {"result": [1, "x"]}])
        self.assertEqual(
            self.command("/multi-exec", [["SET", "m", 1], ["INCR", "m"], ["LPUSH", "m", 1]]),
            (200, [{"result": "OK"}, {"result": 2},
                   {"error": "WRONGTYPE Operation against a key holding the wrong kind of value"}]))
        status, answer = self.command("/multi-exec", [["SET", "m", 9], ["NOSUCH"]])
        self.assertEqual((status, answer["error"][:9]), (400, "EXECABORT"))
        self.assertEqual(self.command("/", ["GET", "m"])[1], {"result": "2"})
        for path, body in (("/", {}), ("/", []), ("/", [[]]), ("/pipeline", [1]), ("/pipeline", []),
                           ("/", ["SUBSCRIBE", "x"]), ("/", ["MULTI", "x"]), ("/", ["NOSUCH"])):
            status, answer = self.command(path, body)
            self.assertEqual((status, list(answer)), (400, ["error"]), body)
        self.assertEqual(self.ask("POST", "/", "[1")[0], 400)
        # An error may repeat a part of what the client sent; it is cut between any two bytes.
        for length in range(4):
            status, text, _ = self.ask("POST", "/pipeline",
                                       json.dumps([["NOSUCH", "x" * length, "\u00e9" * 200], ["GET", "u"]]))
            self.assertEqual(status, 200)
            self.assertIn("unknown command", json.loads(text.decode("utf-8"))[0]["error"])

    def test_large_bodies_with_expect(self):
        body = b"x" * 3_000_000
        status, _, _ = self.ask("PUT", "/v1/keys/big", body)
        self.assertEqual(status, 204)
        self.assertEqual(self.ask("GET", "/v1/keys/big")[1], body)
        raw = self.server.raw()
        raw.sendall(b"PUT /v1/keys/e HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
                    b"Expect: 100-continue\r\n\r\n")
        self.assertEqual(raw.recv(100), b"HTTP/1.1 100 Continue\r\n\r\n")
        raw.sendall(b"ok")
        self.assertIn(b" 204 ", raw.recv(1000))
        raw.close()

    def test_malformed_requests_end_the_connection(self):
        for request in (b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
                        b"PUT /v1/keys/a HTTP/1.1\r\nContent-Length: 1\r\n"
                        b"Transfer-Encoding: chunked\r\n\r\n",
                        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 10_000 + b"\r\n"):
            raw = self.server.raw()
            try:
                raw.sendall(request)
                answer = raw.recv(1000)
            except ConnectionError:
                continue
            self.assertRegex(answer, rb"^HTTP/1\.1 4\d\d ")
            raw.close()
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)


class Manual(ServerTest):
    """The sessions of docs/http.md, with curl."""

    @unittest.skipUnless(shutil.which("curl"), "curl is not here (scripts/bootstrap server)")
    def test_the_sessions_of_the_manual(self):
        root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
        sys.path.insert(0, os.path.join(root, "tests", "docs"))
        import console

        with open(os.path.join(root, "docs", "http.md")) as page:
            sessions = list(console.sessions(page.read().split("\n")))
        self.assertGreater(len(sessions), 2)
        ours = f"http://127.0.0.1:{self.server.port}/"
        for line, _, commands in sessions:
            for command, expected in commands:
                while expected and expected[0].startswith("> "):
                    command += "\n" + expected.pop(0)[2:]
                command = command.replace("curl", "curl -sS").replace("http://127.0.0.1:6379/", ours)
                output, _ = console.run(command, self.server.home, os.environ)
                if expected and not output.endswith("\n"):
                    output += "\n"
                wanted = "".join(console.pattern(line) for line in expected)
                self.assertRegex(output, f"^{wanted}$", f"line {line}: {command}")


class Password(ServerTest):
    def setUp(self):
        file = self.server.home + "/password"
        with open(file, "w") as out:
            out.write("secret\n")
        self.guarded = Basalt("--password-file", file, in_memory=True)
        self.addCleanup(self.guarded.remove)

    def test_a_token_is_needed(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.guarded.port, timeout=30)
        for token, status in (("Bearer secret", 404), ("Bearer wrong", 401), ("", 401),
                              ("Basic ZGVmYXVsdDpzZWNyZXQ=", 404)):
            connection.request("GET", "/v1/keys/x", headers={"Authorization": token})
            response = connection.getresponse()
            response.read()
            self.assertEqual(response.status, status, token)
        connection.close()

    def test_the_redis_protocol_asks_for_it_too(self):
        raw = self.guarded.raw()
        file = raw.makefile("rb")
        for command, reply in ((b"GET x", b"-NOAUTH Authentication required.\r\n"),
                               (b"AUTH wrong", b"-WRONGPASS invalid username-password pair or user "
                                               b"is disabled.\r\n"),
                               (b"AUTH secret", b"+OK\r\n"), (b"GET x", b"$-1\r\n")):
            raw.sendall(command + b"\r\n")
            self.assertEqual(file.readline(), reply)
        raw.close()
