"""A server that is killed loses nothing that it has acknowledged, and no part of a transaction."""

import threading
import unittest

import redis

from harness import Basalt

ROUNDS = 4
WRITERS = 4


class Writer(threading.Thread):
    """Writes one of each type under keys of its own until the server dies; counts what was
    acknowledged."""

    def __init__(self, server, name):
        super().__init__()
        self.client = server.client(retry=None)
        self.name_ = name
        self.acknowledged = 0
        self.asked = 0

    def run(self):
        try:
            while True:
                i = self.asked = self.acknowledged + 1
                pipe = self.client.pipeline(transaction=True)
                pipe.set(f"{self.name_}:s", i)
                pipe.hset(f"{self.name_}:h", f"f{i}", i)
                pipe.rpush(f"{self.name_}:l", i)
                pipe.sadd(f"{self.name_}:t", i)
                pipe.zadd(f"{self.name_}:z", {f"m{i}": i})
                pipe.execute()
                self.acknowledged = i
        except (redis.ConnectionError, redis.TimeoutError, OSError):
            pass
        finally:
            self.client.close()


class Durability(unittest.TestCase):
    def test_kill_loses_no_acknowledged_write_and_no_part_of_a_transaction(self):
        server = Basalt()
        self.addCleanup(server.remove)
        for round_ in range(ROUNDS):
            writers = [Writer(server, f"r{round_}w{i}") for i in range(WRITERS)]
            for writer in writers:
                writer.start()
            while min(writer.acknowledged for writer in writers) < 20 * (round_ + 1):
                threading.Event().wait(0.005)
            server.kill()
            for writer in writers:
                writer.join()
            server.start()
            client = server.client(decode_responses=True)
            for writer in writers:
                self.check(client, writer)

    def check(self, client, writer):
        name = writer.name_
        last = int(client.get(f"{name}:s"))
        self.assertIn(last, (writer.acknowledged, writer.asked))
        numbers = [str(i) for i in range(1, last + 1)]
        self.assertEqual(client.lrange(f"{name}:l", 0, -1), numbers)
        self.assertEqual(client.hgetall(f"{name}:h"), {f"f{i}": i for i in numbers})
        self.assertEqual(client.smembers(f"{name}:t"), set(numbers))
        self.assertEqual(client.zcard(f"{name}:z"), last)
        self.assertEqual(client.zrange(f"{name}:z", 0, -1), [f"m{i}" for i in numbers])

    def test_an_orderly_end_keeps_everything_and_exits_with_zero(self):
        server = Basalt()
        self.addCleanup(server.remove)
        client = server.client(decode_responses=True)
        client.set("k", "v", px=1_000_000)
        blocked = server.raw()
        blocked.sendall(b"BLPOP nothing 0\r\n")
        while client.info("clients")["blocked_clients"] < 1:
            threading.Event().wait(0.01)
        self.assertEqual(server.stop(), 0)
        self.assertEqual(blocked.recv(100), b"")
        blocked.close()
        server.start()
        self.assertEqual(client.get("k"), "v")
        self.assertGreater(client.pttl("k"), 0)

    def test_ids_of_collections_are_not_used_twice(self):
        server = Basalt()
        self.addCleanup(server.remove)
        client = server.client(decode_responses=True)
        client.sadd("first", "x")
        server.kill()
        server.start()
        client.sadd("second", "y")
        self.assertEqual((client.smembers("first"), client.smembers("second")), ({"x"}, {"y"}))
