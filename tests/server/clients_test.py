"""Real clients with their defaults."""

import subprocess
import threading
import time

import redis

from harness import ServerTest


class RedisCli(ServerTest):
    def cli(self, *args, **options):
        return subprocess.run(["redis-cli", "-p", str(self.server.port), *args], check=True,
                              capture_output=True, text=True, timeout=60, **options).stdout

    def test_it_sets_and_gets_in_both_protocols(self):
        self.assertEqual(self.cli("SET", "cli", "hello"), "OK\n")
        self.assertEqual(self.cli("GET", "cli"), "hello\n")
        self.assertEqual(self.cli("-3", "HSET", "h", "f", "v"), "1\n")
        self.assertEqual(self.cli("-3", "--json", "HGETALL", "h"), '{"f":"v"}\n')

    def test_it_scans_and_inserts_in_bulk(self):
        lines = "".join(f"SET bulk:{i} {i}\n" for i in range(1000))
        out = self.cli("--pipe", input=lines)
        self.assertIn("errors: 0, replies: 1000", out)
        found = self.cli("--scan", "--pattern", "bulk:*").split()
        self.assertEqual(sorted(found), sorted(f"bulk:{i}" for i in range(1000)))

    def test_info_has_what_clients_look_for(self):
        info = self.cli("INFO")
        for line in ("redis_version:7.", "loading:0", "role:master", "cluster_enabled:0"):
            self.assertIn(line, info)


class RedisBenchmark(ServerTest):
    def test_it_runs_its_tests(self):
        tests = "ping_inline,ping_mbulk,set,get,incr,lpush,rpush,lpop,rpop,sadd,hset,spop,zadd," \
                "zpopmin,lrange_100,mset"
        for pipeline in ("1", "16"):
            out = subprocess.run(
                ["redis-benchmark", "-s", self.server.socket, "-n", "2000", "-P", pipeline,
                 "-r", "1000", "-q", "-t", tests],
                check=True, capture_output=True, text=True, timeout=120)
            self.assertNotIn("rror", out.stdout + out.stderr)
            self.assertIn("requests per second", out.stdout)


class RedisPy(ServerTest):
    def setUp(self):
        self.client = self.server.client(decode_responses=True)
        self.client.flushall()

    def test_every_type_makes_a_round_trip(self):
        client = self.client
        client.set("s", "v", ex=100)
        self.assertEqual(client.get("s"), "v")
        client.hset("h", mapping={"a": 1, "b": 2})
        self.assertEqual(client.hgetall("h"), {"a": "1", "b": "2"})
        client.rpush("l", *"abc")
        self.assertEqual(client.lrange("l", 0, -1), ["a", "b", "c"])
        client.sadd("t", "x", "y")
        self.assertEqual(client.smembers("t"), {"x", "y"})
        client.zadd("z", {"p": 1.5, "q": -1})
        self.assertEqual(client.zrange("z", 0, -1, withscores=True), [("q", -1.0), ("p", 1.5)])
        self.assertEqual(sorted(client.scan_iter(count=2)), ["h", "l", "s", "t", "z"])
        self.assertEqual(list(client.scan_iter(_type="zset")), ["z"])

    def test_a_watched_key_that_changes_fails_the_transaction(self):
        with self.client.pipeline() as pipe:
            pipe.watch("counter")
            self.client.incr("counter")
            pipe.multi()
            pipe.set("counter", "lost")
            self.assertRaises(redis.WatchError, pipe.execute)
        self.assertEqual(self.client.get("counter"), "1")

    def test_a_change_of_an_element_counts_for_watch(self):
        self.client.hset("h", "f", "1")
        with self.client.pipeline() as pipe:
            pipe.watch("h")
            self.client.hset("h", "f", "2")
            pipe.multi()
            pipe.hset("h", "f", "lost")
            self.assertRaises(redis.WatchError, pipe.execute)

    def test_parallel_transactions_lose_no_update(self):
        def add():
            client = self.server.client()
            for _ in range(50):
                client.transaction(
                    lambda pipe: (value := int(pipe.get("sum") or 0), pipe.multi(),
                                  pipe.set("sum", value + 1)), "sum")

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.client.get("sum"), "200")

    def test_blocked_clients_are_served_in_order(self):
        popped = []

        def pop(name):
            client = self.server.client(decode_responses=True)
            popped.append((name, client.blpop(["queue", "other"], timeout=30)[1]))

        threads = []
        for name in range(3):
            threads.append(threading.Thread(target=pop, args=(name,)))
            threads[-1].start()
            while self.client.info("clients")["blocked_clients"] < name + 1:
                time.sleep(0.01)
        self.client.rpush("queue", "0", "1", "2")
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(popped), [(0, "0"), (1, "1"), (2, "2")])
        self.assertEqual(self.client.exists("queue"), 0)

    def test_a_blocking_pop_times_out(self):
        self.assertIsNone(self.client.blpop("nothing", timeout=0.1))
        self.assertIsNone(self.client.blmove("nothing", "target", timeout=0.1))
        self.assertEqual(self.client.info("clients")["blocked_clients"], 0)

    def test_a_blocked_client_that_goes_away_takes_no_element(self):
        raw = self.server.raw()
        raw.sendall(b"BLPOP gone 0\r\n")
        while self.client.info("clients")["blocked_clients"] < 1:
            time.sleep(0.01)
        raw.close()
        while self.client.info("clients")["blocked_clients"] > 0:
            time.sleep(0.01)
        self.client.rpush("gone", "kept")
        self.assertEqual(self.client.lpop("gone"), "kept")

    def test_subscribers_receive_messages(self):
        pubsub = self.client.pubsub()
        pubsub.subscribe("news")
        pubsub.psubscribe("n*")
        for _ in range(2):
            self.assertIsNotNone(pubsub.get_message(timeout=10))
        self.assertEqual(self.client.publish("news", "hello"), 2)
        received = [pubsub.get_message(timeout=10) for _ in range(2)]
        self.assertEqual(sorted(m["type"] for m in received), ["message", "pmessage"])
        self.assertEqual({m["data"] for m in received}, {"hello"})
        pubsub.close()

    def test_readers_of_a_stream_all_receive_its_entries(self):
        received = []

        def read(name):
            client = self.server.client(decode_responses=True)
            received.append((name, client.xread({"stream": "$"}, block=30_000)[0][1][0][1]))

        threads = []
        for name in range(3):
            threads.append(threading.Thread(target=read, args=(name,)))
            threads[-1].start()
            while self.client.info("clients")["blocked_clients"] < name + 1:
                time.sleep(0.01)
        self.client.xadd("stream", {"f": "v"})
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(received), [(name, {"f": "v"}) for name in range(3)])

    def test_keys_expire(self):
        self.client.set("short", "x", px=50)
        self.client.rpush("list", "x")
        self.client.pexpire("list", 50)
        time.sleep(0.2)
        self.assertEqual(self.client.exists("short", "list"), 0)
        self.assertEqual(self.client.dbsize(), 0)
        # The elements are removed in the background.
        while self.client.info("stats")["basalt_swept_collections"] < 1:
            time.sleep(0.05)

    def test_databases_are_apart(self):
        other = self.server.client(db=3, decode_responses=True)
        other.set("k", "3")
        other.hset("h", "f", "3")
        self.client.set("k", "0")
        self.assertEqual((other.get("k"), self.client.get("k")), ("3", "0"))
        self.client.flushdb()
        self.assertEqual((other.get("k"), other.hget("h", "f")), ("3", "3"))
        self.assertEqual(self.client.dbsize(), 0)

    def test_large_collections_are_read_and_removed(self):
        count = 20_000
        pipe = self.client.pipeline(transaction=False)
        for begin in range(0, count, 1000):
            pipe.sadd("large", *range(begin, begin + 1000))
        pipe.execute()
        self.assertEqual(len(self.client.smembers("large")), count)
        self.assertEqual(sum(1 for _ in self.client.sscan_iter("large", count=500)), count)
        self.client.rename("large", "renamed")
        self.assertEqual(self.client.scard("renamed"), count)
        self.client.delete("renamed")
        self.client.sadd("large", "one")
        self.assertEqual(self.client.smembers("large"), {"one"})
