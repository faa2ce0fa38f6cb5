"""Keyspace notifications are those of redis-server."""

import time
import unittest

import redis

from harness import Basalt, RedisServer

COMMANDS = """
SET a 1|SET a 2 EX 100|SETEX a 100 x|SETNX b 1|SETNX b 2|MSET c 1 d 2|APPEND c x|INCR d|DECRBY d 2
INCRBYFLOAT d 1.5|SETRANGE c 1 y|GETSET c z|GETDEL c|GETEX b EX 100|GETEX b PERSIST|DEL a b nokey
EXPIRE d 100|PERSIST d|EXPIRE d -1|SETBIT bits 3 1|BITOP NOT bits2 bits|RENAME bits bits3
COPY bits3 bits4|MOVE bits4 1|RPUSH l a b c|LPUSH l z|LPUSHX l y|LPOP l|RPOP l|LSET l 0 q
LINSERT l BEFORE q p|LREM l 1 p|LTRIM l 0 0|LMOVE l m LEFT RIGHT|RPUSH l x y|RPOPLPUSH l l
LMPOP 1 m LEFT|BLPOP l 0|BRPOP l 0|SADD s a b c|SREM s a|SMOVE s t b|SPOP s|SINTERSTORE u t t
SDIFFSTORE u t t|HSET h f v|HSETNX h g v|HINCRBY h n 1|HINCRBYFLOAT h n 0.5|HDEL h f g n
ZADD z 1 a 2 b 3 c 4 d|ZADD z INCR 1 a|ZINCRBY z 1 b|ZREM z a|ZPOPMIN z|ZUNIONSTORE y 1 z
ZRANGESTORE w z 0 0|ZREMRANGEBYRANK z 0 0|ZREMRANGEBYSCORE z -inf +inf|XADD x 1-1 f v|XADD x 2-1 f v
XDEL x 1-1|XTRIM x MAXLEN 0|MSETNX n1 1 n2 2|UNLINK n1|EVAL "redis.call('set','e',1)" 0
"""


def words(line):
    if line.startswith("EVAL "):
        return ["EVAL", line[6:line.rindex('"')], "0"]
    return line.split()


class Notifications(unittest.TestCase):
    def events_of(self, server, commands):
        client = server.client() if isinstance(server, Basalt) else redis.Redis(
            unix_socket_path=server.socket)
        client.flushall()
        client.config_set("notify-keyspace-events", "KEA")
        pubsub = client.pubsub()
        pubsub.psubscribe("__key*@*__:*")
        pubsub.get_message(timeout=10)
        found = []
        for command in commands:
            client.execute_command(*command)
            client.publish("__key@0__:end", "")
            events = []
            while True:
                message = pubsub.get_message(timeout=10)
                if message["channel"] == b"__key@0__:end":
                    break
                events.append((message["channel"], message["data"]))
            found.append(events)
        pubsub.close()
        client.close()
        return found

    def test_events_are_those_of_redis(self):
        commands = [words(one) for line in COMMANDS.strip().split("\n") for one in line.split("|")]
        ours, theirs = Basalt(in_memory=True), RedisServer()
        self.addCleanup(ours.remove)
        self.addCleanup(theirs.remove)
        for command, mine, other in zip(commands, self.events_of(ours, commands),
                                        self.events_of(theirs, commands)):
            with self.subTest(command=command):
                self.assertEqual(mine, other)

    def test_expired_keys_are_told_of(self):
        server = Basalt(in_memory=True)
        self.addCleanup(server.remove)
        client = server.client(decode_responses=True)
        self.assertEqual(client.config_get("notify-keyspace-events"),
                         {"notify-keyspace-events": ""})
        client.config_set("notify-keyspace-events", "Ex")
        pubsub = client.pubsub()
        pubsub.subscribe("__keyevent@0__:expired")
        pubsub.get_message(timeout=10)
        client.set("kept", 1, px=50)
        client.persist("kept")
        client.set("deleted", 1, px=50)
        client.delete("deleted")
        client.set("short", 1, px=60)
        client.rpush("list", 1)
        client.pexpire("list", 70)
        names = [pubsub.get_message(timeout=20)["data"] for _ in range(2)]
        self.assertEqual(names, ["short", "list"])
        time.sleep(0.6)
        self.assertIsNone(pubsub.get_message())
        client.config_set("notify-keyspace-events", "")
        with self.assertRaises(redis.ResponseError):
            client.config_set("notify-keyspace-events", "Q")
        pubsub.close()
