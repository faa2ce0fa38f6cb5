"""A server that is killed loses nothing that it has acknowledged, and no part of a transaction."""

import threading
import unittest

import redis

from harness import Basalt

ROUNDS = 4
WRITERS = 4


class Writer(threading.Thread):
    """Writes under keys of its own until the server dies. `asked` and `acknowledged` are the greatest numbers that it has
    sent, and that were answered."""

    def __init__(self, server, name):
        super().__init__()
        self.client = server.client(retry=None)
        self.name_ = name
        self.acknowledged = 0
        self.asked = 0

    def run(self):
        try:
            while True:
                self.write()
                self.acknowledged = self.asked
        except (redis.ConnectionError, redis.TimeoutError, OSError):
            pass
        finally:
            self.client.close()


class TransactionWriter(Writer):
    """Writes one of each type in a transaction."""

    def write(self):
        i = self.asked = self.acknowledged + 1
        pipe = self.client.pipeline(transaction=True)
        pipe.set(f"{self.name_}:s", i)
        pipe.hset(f"{self.name_}:h", f"f{i}", i)
        pipe.rpush(f"{self.name_}:l", i)
        pipe.sadd(f"{self.name_}:t", i)
        pipe.zadd(f"{self.name_}:z", {f"m{i}": i})
        pipe.execute()


class PipelineWriter(Writer):
    """Sends pipelines of SET, HSET, a failing command and INCR."""

    NUMBERS = 16

    def write(self):
        self.asked += self.NUMBERS
        pipe = self.client.pipeline(transaction=False)
        for i in range(self.acknowledged + 1, self.asked + 1):
            pipe.set(f"{self.name_}:{i}", i)
            pipe.hset(f"{self.name_}:h", f"f{i}", i)
            pipe.lpush(f"{self.name_}:{i}", "not a list")
            pipe.incr(f"{self.name_}:n")
        replies = pipe.execute(raise_on_error=False)
        if any(isinstance(reply, redis.ConnectionError) for reply in replies) or len(replies) != 4 * self.NUMBERS:
            raise redis.ConnectionError


class Durability(unittest.TestCase):
    def kill_beside_writers(self, kind, each_round, check, before_kill=lambda client: None):
        server = Basalt()
        self.addCleanup(server.remove)
        for round_ in range(ROUNDS):
            writers = [kind(server, f"r{round_}w{i}") for i in range(WRITERS)]
            for writer in writers:
                writer.start()
            while min(writer.acknowledged for writer in writers) < each_round * (round_ + 1):
                threading.Event().wait(0.005)
            with server.client() as client:
                before_kill(client)
            server.kill()
            for writer in writers:
                writer.join()
            server.start()
            with server.client(decode_responses=True) as client:
                for writer in writers:
                    check(client, writer)

    def test_kill_loses_no_acknowledged_write_and_no_part_of_a_transaction(self):
        self.kill_beside_writers(TransactionWriter, 20, self.check_transactions)

    def check_transactions(self, client, writer):
        name = writer.name_
        last = int(client.get(f"{name}:s"))
        self.assertIn(last, (writer.acknowledged, writer.asked))
        numbers = [str(i) for i in range(1, last + 1)]
        self.assertEqual(client.lrange(f"{name}:l", 0, -1), numbers)
        self.assertEqual(client.hgetall(f"{name}:h"), {f"f{i}": i for i in numbers})
        self.assertEqual(client.smembers(f"{name}:t"), set(numbers))
        self.assertEqual(client.zcard(f"{name}:z"), last)
        self.assertEqual(client.zrange(f"{name}:z", 0, -1), [f"m{i}" for i in numbers])

    def test_kill_loses_nothing_of_an_acknowledged_pipeline(self):
        def commands_share_transactions(client):
            self.assertGreater(client.info()["basalt_pipelines"], 0)

        self.kill_beside_writers(PipelineWriter, 160, self.check_pipelines, commands_share_transactions)

    def check_pipelines(self, client, writer):
        last = int(client.get(f"{writer.name_}:n"))
        self.assertGreaterEqual(last, writer.acknowledged)
        self.assertLessEqual(last, writer.asked)
        numbers = range(1, writer.asked + 1)
        values = client.mget([f"{writer.name_}:{i}" for i in numbers])
        # Commands take effect in their order, so the log may end between any two of them.
        known = sum(value is not None for value in values)
        self.assertEqual(values[:known], [str(i) for i in range(1, known + 1)])
        self.assertIn(known, (last, last + 1))
        self.assertIn(client.hlen(f"{writer.name_}:h"), (last, known))

    def test_power_durability_takes_commands_and_pipelines(self):
        server = Basalt("--durability", "power")
        self.addCleanup(server.remove)
        client = server.client(decode_responses=True)
        self.assertTrue(client.set("k", "v"))
        pipe = client.pipeline(transaction=False)
        for i in range(50):
            pipe.incr("n")
            pipe.lpush("k", i)
        replies = pipe.execute(raise_on_error=False)
        self.assertEqual(replies[0::2], list(range(1, 51)))
        self.assertTrue(all(isinstance(reply, redis.ResponseError) for reply in replies[1::2]))
        # All commands wait for the disk together, or nearly: not each for itself.
        self.assertIn(client.info()["basalt_pipelines"], range(1, 10))
        server.kill()
        server.start()
        self.assertEqual((client.get("k"), client.get("n")), ("v", "50"))

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
