"""Random sequences of commands give the same replies as redis-server gives."""

import random
import unittest

import redis

from harness import Basalt, RedisServer

SEEDS = range(8)
COMMANDS_PER_SEED = 1500
PIPELINES_PER_SEED = 60

KEYS = ["a", "b", "c", "d", "k:1", "k:2"]
FIELDS = ["f1", "f2", "f3", "long field"]
VALUES = ["", "x", "10", "-3", "3.5", "hello world", "\x00\xff", "9223372036854775807", "007"]
SCORES = ["0", "1", "-2.5", "3e2", "inf", "-inf", "1.5"]
INDEXES = ["0", "1", "-1", "2", "-3", "100", "-100"]
LEX = ["-", "+", "[a", "(b", "[x", "(f1"]
SCORE_ENDS = ["-inf", "+inf", "0", "(1", "-2.5", "300", "(300"]


class Sequence:
    """Makes commands from a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def one(self, choices):
        return self.random.choice(choices)

    def some(self, choices, most=3):
        return [self.one(choices) for _ in range(self.random.randint(1, most))]

    def maybe(self, *words):
        return list(words) if self.random.random() < 0.4 else []

    def command(self):
        make = self.one([self.string, self.string, self.key, self.hash, self.list, self.set,
                         self.zset, self.zset_range, self.bits, self.stream, self.odd])
        return make()

    def string(self):
        k, v, r = self.one(KEYS), self.one(VALUES), self.random
        return self.one([
            lambda: ["SET", k, v, *self.one([[], ["NX"], ["XX"], ["GET"], ["EX", "100"],
                                             ["PX", "100000", "NX"], ["KEEPTTL"], ["EX", "0"],
                                             ["XX", "GET"], ["NX", "XX"], ["EX"], ["EX", "x"]])],
            lambda: ["GET", k], lambda: ["GETDEL", k], lambda: ["STRLEN", k],
            lambda: ["GETEX", k, *self.one([[], ["PERSIST"], ["EX", "50"], ["EX", "-1"]])],
            lambda: ["APPEND", k, v], lambda: ["GETSET", k, v], lambda: ["SETNX", k, v],
            lambda: ["SETEX", k, self.one(["100", "0", "-1", "x"]), v],
            lambda: ["MGET", *self.some(KEYS)],
            lambda: ["MSET", *sum([[self.one(KEYS), self.one(VALUES)] for _ in range(2)], [])],
            lambda: ["MSETNX", *sum([[self.one(KEYS), self.one(VALUES)] for _ in range(2)], [])],
            lambda: ["GETRANGE", k, self.one(INDEXES), self.one(INDEXES)],
            lambda: ["SETRANGE", k, self.one(["0", "3", "10", "-1"]), v],
            lambda: [self.one(["INCR", "DECR"]), k],
            lambda: [self.one(["INCRBY", "DECRBY"]), k,
                     self.one(["1", "-5", "9223372036854775807", "-9223372036854775808", "x"])],
            lambda: ["INCRBYFLOAT", k, self.one(["1", "0.5", "-3.25", "x", "inf", "1e3"])],
        ])()

    def key(self):
        k, other = self.one(KEYS), self.one(KEYS)
        return self.one([
            lambda: ["DEL", *self.some(KEYS, 2)], lambda: ["UNLINK", k],
            lambda: ["EXISTS", *self.some(KEYS)], lambda: ["TYPE", k],
            lambda: ["TOUCH", *self.some(KEYS)], lambda: ["DBSIZE"],
            lambda: [self.one(["EXPIRE", "PEXPIRE"]), k, self.one(["100000", "-1", "0", "x"]),
                     *self.one([[], ["NX"], ["XX"], ["GT"], ["LT"], ["NX", "XX"], ["GT", "LT"],
                                ["ZZ"]])],
            lambda: ["EXPIREAT", k, self.one(["33177117420", "1"])],
            lambda: [self.one(["TTL", "EXPIRETIME"]), k], lambda: ["PERSIST", k],
            lambda: ["RENAME", k, other], lambda: ["RENAMENX", k, other],
            lambda: ["COPY", k, other, *self.maybe("REPLACE")],
            lambda: ["KEYS", self.one(["*", "k:*", "[ab]", "?", "k\\:1"])],
        ])()

    def hash(self):
        k, f, v = self.one(KEYS), self.one(FIELDS), self.one(VALUES)
        return self.one([
            lambda: ["HSET", k, f, v, *self.maybe(self.one(FIELDS), v)], lambda: ["HGET", k, f],
            lambda: ["HSET", k, f], lambda: ["HMSET", k, f, v], lambda: ["HSETNX", k, f, v],
            lambda: ["HMGET", k, *self.some(FIELDS)], lambda: ["HDEL", k, *self.some(FIELDS)],
            lambda: ["HLEN", k], lambda: ["HSTRLEN", k, f], lambda: ["HEXISTS", k, f],
            lambda: [self.one(["HGETALL", "HKEYS", "HVALS"]), k],
            lambda: ["HINCRBY", k, f, self.one(["1", "-7", "x", "9223372036854775807"])],
            lambda: ["HINCRBYFLOAT", k, f, self.one(["1.5", "x", "-2"])],
        ])()

    def list(self):
        k, v, other = self.one(KEYS), self.one(VALUES), self.one(KEYS)
        side = lambda: self.one(["LEFT", "RIGHT", "left"])
        return self.one([
            lambda: [self.one(["LPUSH", "RPUSH", "LPUSHX", "RPUSHX"]), k, *self.some(VALUES, 4)],
            lambda: [self.one(["LPUSH", "RPUSH"]), k, *self.some(VALUES, 6)],
            lambda: [self.one(["LPOP", "RPOP"]), k, *self.maybe(self.one(["0", "2", "-1", "x"]))],
            lambda: ["LLEN", k], lambda: ["LRANGE", k, self.one(INDEXES), self.one(INDEXES)],
            lambda: ["LINDEX", k, self.one(INDEXES)], lambda: ["LSET", k, self.one(INDEXES), v],
            lambda: ["LTRIM", k, self.one(INDEXES), self.one(INDEXES)],
            lambda: ["LINSERT", k, self.one(["BEFORE", "AFTER"]), v, "inserted"],
            lambda: ["LREM", k, self.one(["0", "1", "-1", "2", "-2"]), v],
            lambda: ["LPOS", k, v, *self.one([[], ["RANK", "-1"], ["COUNT", "0"], ["RANK", "0"],
                                              ["RANK", "2", "COUNT", "2"], ["MAXLEN", "2"]])],
            lambda: ["LMOVE", k, other, side(), side()], lambda: ["RPOPLPUSH", k, other],
            lambda: ["LMPOP", "2", k, other, side(), *self.maybe("COUNT", "2")],
        ])()

    def set(self):
        k, v = self.one(KEYS), self.one(VALUES)
        combined = self.one(["SINTER", "SUNION", "SDIFF"])
        return self.one([
            lambda: ["SADD", k, *self.some(VALUES, 5)], lambda: ["SREM", k, *self.some(VALUES)],
            lambda: ["SCARD", k], lambda: ["SISMEMBER", k, v], lambda: ["SMEMBERS", k],
            lambda: ["SMISMEMBER", k, *self.some(VALUES)],
            lambda: ["SMOVE", k, self.one(KEYS), v], lambda: [combined, *self.some(KEYS)],
            lambda: [combined + "STORE", k, *self.some(KEYS)],
            lambda: ["SINTERCARD", "2", k, self.one(KEYS), *self.maybe("LIMIT", "1")],
        ])()

    def zset(self):
        k, m = self.one(KEYS), self.one(FIELDS)
        combined = self.one(["ZUNION", "ZINTER", "ZDIFF"])
        return self.one([
            lambda: ["ZADD", k, *self.one([[], ["NX"], ["XX"], ["GT"], ["LT", "CH"], ["CH"],
                                           ["NX", "XX"], ["NX", "GT"]]),
                     *sum([[self.one(SCORES), self.one(FIELDS)] for _ in range(3)], [])],
            lambda: ["ZADD", k, "INCR", self.one(SCORES[:4]), m],
            lambda: ["ZADD", k, "x", m], lambda: ["ZADD", k, "1"],
            lambda: ["ZINCRBY", k, self.one(["1", "-0.5", "x"]), m],
            lambda: ["ZREM", k, *self.some(FIELDS)], lambda: ["ZSCORE", k, m],
            lambda: ["ZMSCORE", k, *self.some(FIELDS)], lambda: ["ZCARD", k],
            lambda: [self.one(["ZRANK", "ZREVRANK"]), k, m],
            lambda: [self.one(["ZPOPMIN", "ZPOPMAX"]), k, *self.maybe(self.one(["0", "2"]))],
            lambda: [combined, "2", k, self.one(KEYS), *self.maybe("WITHSCORES")],
            lambda: ["ZUNIONSTORE", k, "2", self.one(KEYS), self.one(KEYS),
                     *self.one([[], ["WEIGHTS", "2", "0.5"], ["AGGREGATE", "MAX"], ["WEIGHTS"]])],
            lambda: ["ZINTERSTORE", k, "2", self.one(KEYS), self.one(KEYS),
                     *self.maybe("AGGREGATE", "MIN")],
        ])()

    def zset_range(self):
        k = self.one(KEYS)
        low, high = self.one(SCORE_ENDS), self.one(SCORE_ENDS)
        limit = self.maybe("LIMIT", self.one(["0", "1", "-1"]), self.one(["1", "2", "-1"]))
        return self.one([
            lambda: ["ZRANGE", k, self.one(INDEXES), self.one(INDEXES), *self.maybe("REV"),
                     *self.maybe("WITHSCORES")],
            lambda: ["ZRANGE", k, low, high, "BYSCORE", *self.maybe("REV"), *limit],
            lambda: ["ZREVRANGE", k, self.one(INDEXES), self.one(INDEXES)],
            lambda: [self.one(["ZRANGEBYSCORE", "ZREVRANGEBYSCORE"]), k, low, high,
                     *self.maybe("WITHSCORES"), *limit],
            lambda: ["ZCOUNT", k, low, high], lambda: ["ZCOUNT", k, "x", high],
            lambda: ["ZRANGESTORE", self.one(KEYS), k, self.one(INDEXES), self.one(INDEXES)],
            lambda: ["ZREMRANGEBYSCORE", k, low, high],
            lambda: ["ZREMRANGEBYRANK", k, self.one(INDEXES), self.one(INDEXES)],
            lambda: ["ZRANGE", k, "0", "1", "LIMIT", "0", "1"],
            lambda: ["ZRANGEBYLEX", k, "a", "b"],
        ])()

    def bits(self):
        k, r = self.one(KEYS), self.one(INDEXES)
        return self.one([
            lambda: ["SETBIT", k, self.one(["0", "7", "20", "-1", "x"]), self.one(["0", "1", "2"])],
            lambda: ["GETBIT", k, self.one(["0", "3", "100"])],
            lambda: ["BITCOUNT", k, *self.one([[], [r, "-1"], [r, self.one(INDEXES), "BIT"], ["0"]])],
            lambda: ["BITPOS", k, self.one(["0", "1"]),
                     *self.one([[], [r], [r, self.one(INDEXES)], [r, self.one(INDEXES), "BIT"]])],
            lambda: ["BITOP", self.one(["AND", "OR", "XOR"]), k, *self.some(KEYS)],
            lambda: ["BITOP", "NOT", k, self.one(KEYS)],
        ])()

    def stream(self):
        k = self.one(KEYS)
        id_ = lambda: self.one(["1-1", "2", "5-3", "0-0", "7-1", "x"])
        return self.one([
            lambda: ["XADD", k, *self.one([[], ["MAXLEN", "3"], ["NOMKSTREAM"], ["MINID", "2"]]),
                     self.one(["1-1", "2-*", "5-3", "6", "0-0", "7-*", "x"]), "f", self.one(VALUES)],
            lambda: ["XADD", k, "*"], lambda: ["XLEN", k], lambda: ["XDEL", k, id_()],
            lambda: [*self.one([["XRANGE", k, "-", "+"], ["XREVRANGE", k, "+", "-"],
                                ["XRANGE", k, "(1-1", "5"], ["XRANGE", k, id_(), id_()]]),
                     *self.maybe("COUNT", "1")],
            lambda: ["XTRIM", k, "MAXLEN", self.one(["2", "0", "-1"])],
            lambda: ["XREAD", "COUNT", "2", "STREAMS", k, self.one(KEYS), "0", id_()],
            lambda: ["XREAD", "STREAMS", k],
        ])()

    def odd(self):
        """Commands that fail, and some that are no commands."""
        return self.one([
            ["GET"], ["NOSUCH", "a", "b"], ["SET", "a"], ["HSET", "a", "f"], ["LRANGE", "a", "0"],
            ["ZADD", "a", "1"], ["SELECT", "x"], ["SELECT", "16"], ["EXEC"], ["DISCARD"],
            ["CLIENT", "NOSUCH"], ["CLIENT", "SETNAME"], ["ECHO"], ["ECHO", "x"], ["PING"],
            ["PING", "y"], ["PING", "a", "b"], ["LINSERT", "a", "x", "y", "z"], ["HELLO", "9"],
            ["AUTH", "x"], ["BLPOP", "a", "x"], ["BLPOP", "a", "-1"], ["SCAN", "x"],
            ["LMPOP", "0", "a", "LEFT"],
        ])


# Inside MULTI these are executed at once, or their subcommands are checked at EXEC here.
NOT_QUEUED = {"EXEC", "DISCARD", "HELLO", "AUTH", "CLIENT"}
UNORDERED = {"KEYS", "SMEMBERS", "SINTER", "SUNION", "SDIFF", "HKEYS", "HVALS"}


def is_number(text):
    try:
        float(text)
        return True
    except ValueError:
        return False


def comparable(command, reply):
    """The reply without what may differ: the order of sets, digits of floats, a second of TTL."""
    name = command[0]
    if isinstance(reply, redis.ResponseError):
        return "error " + str(reply)
    if name in UNORDERED and isinstance(reply, list):
        return sorted(reply)
    if name == "HGETALL" and isinstance(reply, list):
        return dict(zip(reply[::2], reply[1::2]))
    if name in ("TTL", "EXPIRETIME") and isinstance(reply, int) and reply > 0:
        return "some time"
    if name.startswith("Z") and isinstance(reply, list):
        return [comparable(["Z"], item) for item in reply]
    if name.startswith("Z") and isinstance(reply, bytes) and is_number(reply):
        return float(reply)
    return reply


class Raw:
    """A connection whose replies are not changed by callbacks of the client library."""

    def __init__(self, socket):
        self.connection = redis.connection.UnixDomainSocketConnection(path=socket)

    def run(self, command):
        encoded = [word.encode("latin-1") for word in command]
        self.connection.send_command(*encoded)
        try:
            return self.connection.read_response()
        except redis.ResponseError as error:
            return error

    def run_all(self, commands):
        """Sends all commands before it reads the first reply."""
        encoded = [[word.encode("latin-1") for word in command] for command in commands]
        self.connection.send_packed_command(self.connection.pack_commands(encoded))
        replies = []
        for _ in commands:
            try:
                replies.append(self.connection.read_response())
            except redis.ResponseError as error:
                replies.append(error)
        return replies

    def close(self):
        self.connection.disconnect()


class Differential(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.basalt = Basalt(in_memory=True)
        cls.redis = RedisServer()

    @classmethod
    def tearDownClass(cls):
        cls.basalt.remove()
        cls.redis.remove()

    def compare(self, ours, theirs, command, seed, step):
        mine, other = ours.run(command), theirs.run(command)
        self.assertEqual(comparable(command, mine), comparable(command, other),
                         f"seed {seed}, step {step}: {command}")

    def run_seed(self, seed, in_multi):
        ours, theirs = Raw(self.basalt.socket), Raw(self.redis.socket)
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        self.compare(ours, theirs, ["FLUSHALL"], seed, -1)
        sequence = Sequence(seed)
        for step in range(COMMANDS_PER_SEED):
            command = sequence.command()
            if not in_multi or command[0] in NOT_QUEUED:
                self.compare(ours, theirs, command, seed, step)
                continue
            self.compare(ours, theirs, ["MULTI"], seed, step)
            queued = [command] + [sequence.command() for _ in range(3)]
            queued = [c for c in queued if c[0] not in NOT_QUEUED]
            for one in queued:
                self.compare(ours, theirs, one, seed, step)
            mine, other = ours.run(["EXEC"]), theirs.run(["EXEC"])
            if isinstance(mine, list) and isinstance(other, list):
                self.assertEqual(len(mine), len(other), f"seed {seed}, step {step}: {queued}")
                for one, a, b in zip(queued, mine, other):
                    self.assertEqual(comparable(one, a), comparable(one, b),
                                     f"seed {seed}, step {step}: {one} of {queued}")
            else:
                self.assertEqual(str(mine), str(other), f"seed {seed}, step {step}: {queued}")

    def test_commands_one_by_one(self):
        for seed in SEEDS:
            with self.subTest(seed=seed):
                self.run_seed(seed, False)

    def test_commands_in_transactions(self):
        for seed in range(100, 102):
            with self.subTest(seed=seed):
                self.run_seed(seed, True)

    def test_commands_in_pipelines(self):
        for seed in range(200, 204):
            with self.subTest(seed=seed):
                self.run_pipelines(seed)

    def run_pipelines(self, seed):
        ours, theirs = Raw(self.basalt.socket), Raw(self.redis.socket)
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        self.compare(ours, theirs, ["FLUSHALL"], seed, -1)
        sequence = Sequence(seed)
        for step in range(PIPELINES_PER_SEED):
            commands = [sequence.command() for _ in range(sequence.random.randint(2, 40))]
            if step % 4 == 0:  # A MULTI block, SELECT and WATCH among them.
                commands[1:1] = [["MULTI"], ["INCR", "k:1"], ["SET", "a", "in block"], ["EXEC"],
                                 ["SELECT", "3"], ["SET", "a", "3"], ["GET", "a"], ["SELECT", "0"],
                                 ["WATCH", "a"], ["SET", "a", "1"], ["INCR", "a"], ["MULTI"],
                                 ["SET", "a", "9"], ["EXEC"], ["GET", "a"], ["NOSUCH"], ["INCR"]]
            mine, other = ours.run_all(commands), theirs.run_all(commands)
            for place, (one, a, b) in enumerate(zip(commands, mine, other)):
                if one == ["EXEC"]:
                    a, b = str(a), str(b)
                self.assertEqual(comparable(one, a), comparable(one, b),
                                 f"seed {seed}, step {step}, place {place}: {commands}")
        client = self.basalt.client()
        self.assertGreater(client.info()["basalt_pipelines"], 0)
        client.close()

    def test_lexical_ranges_of_equal_scores(self):
        ours, theirs = Raw(self.basalt.socket), Raw(self.redis.socket)
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        pick = random.Random(7)
        for connection in (ours, theirs):
            connection.run(["FLUSHALL"])
            connection.run(["ZADD", "z"] + sum([["0", m] for m in "a b c d f1 x y".split()], []))
        for step in range(300):
            low, high = pick.choice(LEX), pick.choice(LEX)
            name = pick.choice(["ZRANGEBYLEX", "ZREVRANGEBYLEX", "ZLEXCOUNT"])
            limit = [] if name == "ZLEXCOUNT" else pick.choice([[], ["LIMIT", "1", "2"]])
            self.compare(ours, theirs, [name, "z", low, high, *limit], 7, step)
