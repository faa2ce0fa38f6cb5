"""Users: what one may not reach it cannot read and cannot infer."""

import http.client
import os
import tempfile
import unittest

import redis

from harness import Basalt

USERS = """
user default off >unused
user root on >rootpass +@all ~*
user app on >apppass +@read +@write +@scripts ~app:* ~shared:*
user reader on >readpass +@read ~app:*
"""


class Users(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.NamedTemporaryFile("w", suffix=".acl", delete=False) as file:
            file.write(USERS)
        cls.file = file.name
        cls.server = Basalt("--users-file", cls.file, in_memory=True)

    @classmethod
    def tearDownClass(cls):
        cls.server.remove()
        os.unlink(cls.file)

    def setUp(self):
        self.root = self.client("root", "rootpass")
        self.app = self.client("app", "apppass")
        self.reader = self.client("reader", "readpass")
        self.root.flushall()

    def client(self, name, password):
        return self.server.client(username=name, password=password, decode_responses=True)

    def refused(self, call, *args, **options):
        with self.assertRaises(redis.exceptions.NoPermissionError):
            call(*args, **options)

    def test_passwords_are_asked_for(self):
        with self.assertRaises(redis.AuthenticationError):
            self.server.client().get("app:1")
        for name, password in (("app", "wrong"), ("default", "unused"), ("nobody", "x")):
            with self.assertRaisesRegex(redis.RedisError, "invalid username-password"):
                self.client(name, password).get("app:1")
        self.assertEqual(self.app.execute_command("ACL WHOAMI"), "app")
        self.assertIn("app", [client["user"] for client in self.root.client_list()])

    def test_large_bodies_of_strangers_are_refused_before_they_are_received(self):
        request = "PUT /v1/keys/app:1 HTTP/1.1\r\nHost: localhost\r\n{}\r\n"
        for fields in ("Content-Length: 65537\r\n", "Transfer-Encoding: chunked\r\n",
                       "Content-Length: 65537\r\nExpect: 100-continue\r\n",
                       "Content-Length: 65537\r\nAuthorization: Bearer wrong\r\n"):
            with self.server.raw() as raw:
                raw.sendall(request.format(fields).encode())
                answer = raw.makefile("rb").read()
            self.assertTrue(answer.startswith(b"HTTP/1.1 401 "), answer)
            self.assertIn(b"\r\nConnection: close\r\n", answer)
        for size, token, status in ((65536, "wrong", 401), (65536, "apppass", 204),
                                    (65537, "apppass", 204), (1 << 20, "apppass", 204)):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
            headers = {"Authorization": "Bearer " + token}
            connection.request("PUT", "/v1/keys/app:1", b"x" * size, headers)
            self.assertEqual(connection.getresponse().status, status, (size, token))
            connection.close()

    def test_foreign_keys_and_absent_ones_look_alike(self):
        self.root.set("secret", "x")
        for key in ("secret", "absent"):
            for call in ("get", "exists", "type", "ttl", "delete", "incr", "strlen", "lrange"):
                args = (key, 0, -1) if call == "lrange" else (key,)
                self.refused(getattr(self.app, call), *args)
            self.refused(self.app.mget, ["app:1", key])
            self.refused(self.app.rename, "app:1", key)
            self.refused(self.app.copy, key, "app:1")
            self.refused(self.app.zunionstore, "app:1", [key])
            self.refused(self.app.eval, "return redis.call('get', KEYS[1])", 1, key)
            with self.assertRaises(redis.ResponseError):
                self.app.eval(f"return redis.call('get', '{key}')", 0)
            self.assertIn("NOPERM",
                          self.app.eval(f"return redis.pcall('exists', '{key}').err", 0))
            with self.app.pipeline() as pipe:
                pipe.set("app:1", "x")
                pipe.get(key)
                with self.assertRaises(redis.ResponseError):
                    pipe.execute()
            with self.app.pipeline() as pipe:
                self.refused(pipe.watch, key)
        self.assertEqual(self.root.keys(), ["secret"])

    def test_names_of_foreign_keys_are_not_shown(self):
        for key in ("a", "app:1", "app:2", "b", "shared:1", "z"):
            self.root.set(key, "x")
        mine = ["app:1", "app:2", "shared:1"]
        self.assertEqual(self.app.keys(), mine)
        self.assertEqual(self.app.keys("a*"), mine[:2])
        self.assertEqual(self.app.keys("b*"), [])
        for count in (1, 2, 10):
            self.assertEqual(list(self.app.scan_iter(count=count)), mine)
        self.root.delete("shared:1")
        # No page tells that something follows that it may not see.
        self.assertEqual(self.app.scan(0, count=2), (0, mine[:2]))
        self.assertEqual(self.app.scan(0, match="b*"), (0, []))
        for command in ("RANDOMKEY", "DBSIZE", "FLUSHALL", "FLUSHDB", "CONFIG GET *"):
            self.refused(self.app.execute_command, command)
        self.assertNotIn("db0", self.app.info())

    def test_rights_are_needed(self):
        self.app.set("app:1", "x")
        self.assertEqual(self.reader.get("app:1"), "x")
        self.refused(self.reader.set, "app:1", "y")
        self.refused(self.reader.eval, "return 1", 0)
        self.refused(self.app.config_get, "*")
        self.refused(self.app.execute_command, "ACL LIST")
        self.assertEqual(len(self.root.execute_command("ACL LIST")), 4)
        self.assertNotIn("apppass", str(self.root.execute_command("ACL LIST")))

    def test_notifications_about_foreign_keys_are_hidden(self):
        self.root.config_set("notify-keyspace-events", "KEA")
        self.addCleanup(self.root.config_set, "notify-keyspace-events", "")
        pubsub = self.app.pubsub()
        pubsub.psubscribe("__key*")
        self.assertIsNotNone(pubsub.get_message(timeout=10))
        self.root.set("secret", "x")
        self.root.set("app:1", "x")
        got = [pubsub.get_message(timeout=10) for _ in range(2)]
        self.assertEqual(sorted((m["channel"], m["data"]) for m in got),
                         [("__keyevent@0__:set", "app:1"), ("__keyspace@0__:app:1", "set")])
        pubsub.close()

    def test_http_takes_the_password_as_token(self):
        def ask(method, path, token, body=None):
            connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
            connection.request(method, path, body, {"Authorization": "Bearer " + token})
            response = connection.getresponse()
            text = response.read()
            connection.close()
            return response.status, text

        self.root.set("secret", "x")
        self.assertEqual(ask("PUT", "/v1/keys/app:1", "apppass", "v")[0], 204)
        self.assertEqual(ask("GET", "/v1/keys/app:1", "readpass"), (200, b"v"))
        self.assertEqual(ask("PUT", "/v1/keys/app:1", "readpass", "v")[0], 403)
        for key in ("secret", "absent"):
            for method in ("GET", "DELETE", "PUT"):
                self.assertEqual(ask(method, "/v1/keys/" + key, "apppass", "v")[0], 403)
        self.assertEqual(ask("GET", "/v1/keys/app:1", "wrong")[0], 401)
        self.root.set("app:2", "w")
        line = b'{"key":"%s","type":"string","value":"%s"}\n'
        self.assertEqual(ask("GET", "/v1/keys", "apppass"),
                         (200, line % (b"app:1", b"v") + line % (b"app:2", b"w") +
                          b'{"cursor":null}\n'))
        self.assertEqual(ask("GET", "/v1/keys?limit=2", "apppass")[1],
                         ask("GET", "/v1/keys", "apppass")[1])
        self.assertEqual(ask("GET", "/v1/keys?start=s", "apppass"), (200, b'{"cursor":null}\n'))
        batch = '{"operations": [{"op": "%s", "key": "%s"}]}'
        for op, key, token, status in (("get", "app:1", "apppass", 200),
                                       ("get", "app:1", "readpass", 200),
                                       ("delete", "app:1", "readpass", 403),
                                       ("get", "secret", "apppass", 403),
                                       ("check", "absent", "apppass", 403)):
            self.assertEqual(ask("POST", "/v1/batch", token, batch % (op, key))[0], status, op)
        self.assertEqual(ask("GET", "/metrics", "apppass")[0], 403)
        self.assertEqual(ask("GET", "/metrics", "rootpass")[0], 200)
        self.assertIn(b"NOPERM", ask("POST", "/", "apppass", '["GET", "secret"]')[1])
        self.assertEqual(ask("POST", "/", "apppass", '["GET", "app:1"]'), (200, b'{"result":"v"}'))
