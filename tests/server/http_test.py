"""HTTP on the same port."""

import http.client
import json

from harness import Basalt, ServerTest


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

    def test_health_and_metrics(self):
        self.assertEqual(self.ask("GET", "/healthz")[0], 200)
        self.assertEqual(self.ask("GET", "/readyz")[0], 200)
        status, text, _ = self.ask("GET", "/metrics")
        self.assertEqual(status, 200)
        lines = text.decode().splitlines()
        self.assertIn("# TYPE basalt_http_requests_total counter", lines)
        values = {l.split()[0]: float(l.split()[1]) for l in lines if not l.startswith("#")}
        self.assertGreaterEqual(values["basalt_http_requests_total"], 1)

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
