"""What a client can make grow has a bound, and others go on."""

import time

import redis

from harness import ServerTest


class Connections(ServerTest):
    OPTIONS = ("--max-clients", "20")

    def test_connections_above_the_limit_are_refused(self):
        open_ones = [self.server.raw() for _ in range(20)]
        for one in open_ones:
            one.sendall(b"PING\r\n")
        answers = [one.recv(100) for one in open_ones]
        self.assertTrue(all(answer == b"+PONG\r\n" for answer in answers), answers)
        extra = self.server.raw()
        self.assertEqual(extra.recv(100), b"-ERR max number of clients reached\r\n")
        for one in open_ones + [extra]:
            one.close()
        # When they are closed there is room again.
        for _ in range(1000):
            try:
                if self.server.client().ping():
                    return
            except redis.RedisError:
                time.sleep(0.01)
        self.fail("no connection is accepted")


class Limits(ServerTest):
    OPTIONS = ("--max-request", "1M", "--max-output", "2M")

    def refused(self, request):
        raw = self.server.raw()
        raw.sendall(request)
        answer = raw.recv(1000)
        raw.close()
        return answer

    def test_large_requests_are_refused(self):
        self.assertEqual(self.refused(b"*2\r\n$3\r\nGET\r\n$2000000\r\n"),
                         b"-ERR Protocol error: invalid bulk length\r\n")
        self.assertEqual(self.refused(b"*2000000000\r\n"),
                         b"-ERR Protocol error: invalid multibulk length\r\n")
        self.assertEqual(self.refused(b"x" * 100_000),
                         b"-ERR Protocol error: too big inline request\r\n")
        self.assertEqual(self.refused(b"*1\r\nx\r\n"),
                         b"-ERR Protocol error: expected '$', got 'x'\r\n")

    def test_a_client_that_reads_nothing_is_not_answered_without_end(self):
        self.server.client().set("value", "x" * 500_000)
        raw = self.server.raw()
        raw.settimeout(2)
        try:
            for _ in range(200):  # 100 MB of replies.
                raw.sendall(b"GET value\r\n" * 10)
        except OSError:
            pass
        self.assertEqual(self.server.client().get("value")[:3], b"xxx")
        raw.close()

    def test_a_subscriber_that_reads_nothing_is_closed(self):
        raw = self.server.raw()
        raw.sendall(b"SUBSCRIBE flood\r\n")
        raw.recv(1000)
        client = self.server.client()
        for _ in range(200):
            if client.publish("flood", "x" * 200_000) == 0:
                break
            time.sleep(0.005)
        else:
            self.fail("the subscriber is still there")
        raw.close()

    def test_a_reply_above_the_limit_closes_the_connection(self):
        client = self.server.client()
        for i in range(4):
            client.rpush("huge", *["x" * 200_000] * 4)
        with self.assertRaises(redis.ConnectionError):
            client.lrange("huge", 0, -1)
        self.assertEqual(client.llen("huge"), 16)

    def test_commands_that_read_much_do_not_delay_others(self):
        client = self.server.client()
        pipe = client.pipeline(transaction=False)
        for begin in range(0, 100_000, 1000):
            pipe.mset({f"many:{i}": i for i in range(begin, begin + 1000)})
        pipe.execute()
        slow = [self.server.raw() for _ in range(3)]
        for one in slow:
            one.sendall(b"KEYS *[x]y\r\n" * 20)
        worst = 0
        for _ in range(50):
            begin = time.monotonic()
            client.get("many:1")
            worst = max(worst, time.monotonic() - begin)
        self.assertLess(worst, 5)
        for one in slow:
            one.close()
        client.flushall()
