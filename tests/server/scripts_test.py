"""Scripts give the replies that redis-server gives; frameworks that live on scripts do their jobs."""

import threading
import time
import unittest

import redis
from redis.lock import Lock

from harness import Basalt, RedisServer, ServerTest

# Each is compared with redis-server. KEYS is {"h"}, a hash; ARGV is {"z"}.
SCRIPTS = """
return {1, 2, {3, 'x', nil, 5}}
return {3.99, -1.5, 1e20, true, false}
return {ok = 'fine'}
return {err = 'bad thing'}
return {err = 'ERR bad\\nthing'}
return {double = 3.5}
return {map = {a = 1}}
return {a = 1}
redis.setresp(3) return redis.call('hgetall', KEYS[1])
redis.setresp(3) return {set = {a = true}}
redis.setresp(3) return {true, false}
return function() end
return redis.call('nosuch')
return redis.pcall('nosuch')
return redis.call('get')
return redis.call()
return redis.call({})
return redis.call('incr', KEYS[1])
return redis.pcall('incr', KEYS[1])
return redis.pcall('get').err
return redis.call('eval', 'return 1', 0)
return redis.call('subscribe', 'x')
return redis.call('blpop', 'nolist', 0)
return redis.call('multi')
return {redis.call('set', 'a', 1.5), redis.call('get', 'a'), redis.call('set', 'a', 10)}
return redis.call('set', 'a', true)
return redis.call('ping').ok
return redis.error_reply('my err')
return redis.error_reply('-MY err')
return redis.status_reply('S')
return redis.sha1hex('abc')
return redis.log(1, 'x')
return redis.setresp(5)
return redis.acl_check_cmd('get', 'x')
return pcall(redis.call, 'nosuch')
local ok, e = pcall(redis.call, 'nosuch') return {type(e), e}
foo = 1
return foo
string.x = 1
_G.x = 1
error('boom')
error({err = 'X y'})
local x = nil; return x.y
this is no script
return {type(load), type(loadstring), type(unpack), type(next)}
return loadstring('return 5')()
return select(2, pcall(error, 'x'))
return {tostring(nil), tostring(1e15), tostring(2^53), tostring(0.1), 10 / 3 .. ''}
#!lua flags=no-writes\\nreturn redis.call('set', 'x', 1)
#!lua flags=bad\\nreturn 1
#!py\\nreturn 1
return cjson.encode({1, 2, {a = 1.5}, 'a/b\\\\n', true})
return {cjson.encode({}), cjson.encode({[1] = 1, [5] = 5}), cjson.encode(1e100)}
return cjson.encode({[1] = 1, [50] = 5})
return cjson.encode(12345678901234567)
return cjson.encode({a = function() end})
return cjson.decode('{"a": [1, 2, null, "\\\\u00e9\\\\ud83d\\\\ude00"]}').a
return cjson.decode('[1, 2.5e3, -7, true, false, {}]')
return cjson.decode('{bad')
return cjson.decode('[1')
return cjson.decode('"x')
return cjson.decode('')
return tostring(cjson.decode('null') == cjson.null)
return cmsgpack.pack({1, 2, 3.5, 'x', true, {a = 1}, -1, -200, 70000, 2^40, 1.1})
return cmsgpack.pack({[1] = 1, [3] = 3})
return {cmsgpack.unpack(cmsgpack.pack(1, 'two', {3}))}
return {cmsgpack.unpack_one(cmsgpack.pack(1, 2, 3), 0)}
return {cmsgpack.unpack_limit(cmsgpack.pack(1, 2, 3), 2, 0)}
return cmsgpack.unpack('\\\\221')
return {struct.unpack('>I2<i4hs', struct.pack('>I2<i4hs', 258, -2, -3, 'z'))}
return struct.pack('!8bi8d', 1, 2, 3.5)
return {struct.size('!4bi4'), struct.unpack('Bc0', struct.pack('Bc0', 3, 'abc'))}
return struct.unpack('i4', 'x')
return {bit.band(7, 3), bit.bor(1, 8), bit.bxor(5, 1), bit.bnot(0), bit.lshift(1, 31)}
return {bit.tohex(255, 4), bit.tohex(255, -4), bit.rol(1, 33), bit.arshift(-8, 1), bit.bswap(1)}
return {('hello world'):find('o w'), ('key=val'):match('(%w+)=(%w+)')}
return {('abc'):gsub('%w', '%0%0'), ('hello'):gsub('l+', string.upper), ('abc'):gsub('', '-')}
return {('x'):rep(3), ('THE (quick) fox'):find('%((%a+)%)'), ('a.b'):find('.', 1, true)}
return {('  trim '):match('^%s*(.-)%s*$'), ('f(a(b)c)'):match('%b()'), ('THE END'):find('%f[%a]%a+')}
return ('x'):find('[a')
return ('x'):find('%')
return ('x'):gsub('(', '')
local t = {5, 2, 8} table.sort(t) table.insert(t, 1, 0) table.remove(t, 2) return t
local t = {} for w in ('one two'):gmatch('%a+') do t[#t + 1] = w end return t
return {math.floor(3.7), math.max(1, 5), table.concat({1, 2, 3}, ',')}
return {KEYS[1], ARGV[1], #KEYS, #ARGV}
redis.call('select', 3) redis.call('set', 'in3', 1) return redis.call('get', 'in3')
return redis.call('exists', 'in3')
return {redis.call('lrange', 'nolist', 0, -1), redis.call('get', 'none')}
""".strip().split("\n")

OTHERS = [
    ["EVAL", "return 1"], ["EVAL", "return 1", "x"], ["EVAL", "return 1", "-1"],
    ["EVAL", "return 1", "2", "a"], ["EVALSHA", "x", "0"], ["EVALSHA", "f" * 40, "0"],
    ["SCRIPT", "LOAD", "bad bad"], ["SCRIPT", "LOAD", "return 1"],
    ["EVALSHA", "E0E1F9FABFC9D4800C877A703B823AC0578FF8DB", "0"],
    ["SCRIPT", "EXISTS", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "x"],
    ["EVAL_RO", "return redis.call('get', 'nokey')", "0"],
    ["EVAL_RO", "return redis.call('set', 'a', 1)", "0"],
    ["SCRIPT", "FLUSH", "x"], ["SCRIPT", "FLUSH", "ASYNC"], ["SCRIPT", "NOSUCH"],
    ["EVALSHA", "e0e1f9fabfc9d4800c877a703b823ac0578ff8db", "0"], ["SCRIPT", "KILL"],
    ["FUNCTION", "LIST"], ["FUNCTION", "FLUSH"], ["FUNCTION", "STATS"], ["FCALL", "x", "0"],
]


class Differential(unittest.TestCase):
    def setUp(self):
        self.connections = []
        for server in (Basalt(in_memory=True), RedisServer()):
            self.addCleanup(server.remove)
            connection = redis.connection.UnixDomainSocketConnection(path=server.socket)
            self.addCleanup(connection.disconnect)
            self.connections.append(connection)

    def run_on(self, connection, command):
        connection.send_command(*command)
        try:
            return connection.read_response()
        except redis.RedisError as error:
            return f"{type(error).__name__}: {error}"

    def test_scripts_give_the_same_replies(self):
        commands = [["HSET", "h", "f", "v"]]
        for script in SCRIPTS:
            commands.append(["EVAL", script.replace("\\n", "\n").replace("\\\n", "\\n"),
                             "1", "h", "z"])
        for command in commands + OTHERS:
            with self.subTest(command=command):
                ours, theirs = (self.run_on(c, command) for c in self.connections)
                self.assertEqual(ours, theirs)


class Scripts(ServerTest):
    def setUp(self):
        self.client = self.server.client(decode_responses=True)
        self.client.flushall()

    def test_a_script_that_fails_changes_nothing(self):
        with self.assertRaises(redis.ResponseError):
            self.client.eval("redis.call('set', 'a', 1) redis.call('incr', KEYS[1]) "
                             "error('no')", 1, "n")
        self.assertEqual(self.client.exists("a", "n"), 0)
        # An error that it returns is a reply, and an error that it catches undoes one command.
        with self.assertRaises(redis.ResponseError):
            self.client.eval("redis.call('set', 'a', 1) redis.pcall('incr', KEYS[1], 'x') "
                             "return redis.error_reply('known')", 1, "n")
        self.assertEqual(self.client.get("a"), "1")

    def test_scripts_beside_each_other_lose_no_update(self):
        increment = self.client.register_script(
            "local n = tonumber(redis.call('get', KEYS[1]) or 0) "
            "redis.call('set', KEYS[1], n + 1) redis.call('lpush', KEYS[2], n) return n")

        def add():
            client = self.server.client()
            for _ in range(50):
                increment(keys=["n", "l"], client=client)

        threads = [threading.Thread(target=add) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(self.client.get("n"), "200")
        self.assertEqual(self.client.lrange("l", 0, -1), [str(n) for n in range(199, -1, -1)])

    def test_scripts_run_in_transactions_and_pipelines(self):
        with self.client.pipeline() as pipe:
            pipe.set("a", 1)
            pipe.eval("return redis.call('incr', KEYS[1])", 1, "a")
            pipe.get("a")
            self.assertEqual(pipe.execute(), [True, 2, "2"])
        with self.client.pipeline(transaction=False) as pipe:
            for _ in range(20):
                pipe.eval("return redis.call('incr', KEYS[1])", 1, "a")
            self.assertEqual(pipe.execute(), list(range(3, 23)))

    def test_a_blocked_client_wakes_by_a_script(self):
        popped = []
        thread = threading.Thread(
            target=lambda: popped.append(self.server.client().blpop("queue", timeout=30)))
        thread.start()
        while self.client.info("clients")["blocked_clients"] < 1:
            time.sleep(0.01)
        self.client.eval("redis.call('rpush', KEYS[1], 'x')", 1, "queue")
        thread.join()
        self.assertEqual(popped, [(b"queue", b"x")])

    def test_a_script_can_be_killed(self):
        failed = []

        def spin():
            try:
                self.server.client().eval("redis.call('set', 'a', 1) while true do end", 0)
            except redis.ResponseError as error:
                failed.append(str(error))

        thread = threading.Thread(target=spin)
        thread.start()
        while thread.is_alive():
            try:
                self.client.script_kill()
            except redis.ResponseError:
                time.sleep(0.01)
        self.assertIn("Script killed by user", failed[0])
        self.assertEqual(self.client.exists("a"), 0)

    def test_scripts_may_be_forbidden(self):
        server = Basalt("--scripts", "off", in_memory=True)
        self.addCleanup(server.remove)
        with self.assertRaisesRegex(redis.ResponseError, "scripts are not allowed"):
            server.client().eval("return 1", 0)


class Frameworks(ServerTest):
    def test_locks_of_redis_py(self):
        client = self.server.client()
        lock = Lock(client, "lock", timeout=30)
        self.assertTrue(lock.acquire(blocking=False))
        other = Lock(client, "lock", timeout=30)
        self.assertFalse(other.acquire(blocking=False))
        self.assertTrue(lock.extend(10))
        self.assertTrue(lock.reacquire())
        lock.release()
        self.assertTrue(other.acquire(blocking=False))
        with self.assertRaises(redis.exceptions.LockError):
            lock.release()
        other.release()

    def test_jobs_of_rq(self):
        try:
            import rq
        except ImportError:
            self.skipTest("python3-rq is not here (scripts/bootstrap server)")
        client = self.server.client()
        queue = rq.Queue("jobs", connection=client)
        good = [queue.enqueue("operator.add", n, 1) for n in range(5)]
        bad = queue.enqueue("operator.truediv", 1, 0)
        after = queue.enqueue("operator.mul", 2, 3, depends_on=good[0])
        worker = rq.SimpleWorker([queue], connection=client)
        worker.work(burst=True, logging_level="CRITICAL")
        self.assertEqual([job.result for job in good], [1, 2, 3, 4, 5])
        self.assertEqual(after.result, 6)
        self.assertTrue(bad.is_failed)

    def test_rate_limits_of_limits(self):
        try:
            import limits
        except ImportError:
            self.skipTest("python3-limits is not here (scripts/bootstrap server)")
        storage = limits.storage.RedisStorage(f"redis://127.0.0.1:{self.server.port}")
        for strategy in (limits.strategies.FixedWindowRateLimiter,
                         limits.strategies.MovingWindowRateLimiter):
            limiter = strategy(storage)
            rate = limits.parse("3 per hour")
            hits = [limiter.hit(rate, strategy.__name__) for _ in range(5)]
            self.assertEqual(hits, [True, True, True, False, False])
