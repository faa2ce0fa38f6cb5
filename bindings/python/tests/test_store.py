"""What every store does, on a database, a memtable and a keyspace of a database."""

import datetime
import math
import threading
import time
from collections.abc import Mapping, MutableMapping

import basalt
import pytest


@pytest.fixture(params=["db", "memory", "memtable", "keyspace"])
def store(request, tmp_path):
    if request.param == "db":
        with basalt.open(tmp_path / "db", memory_budget=16 << 20) as db:
            yield db
    elif request.param == "memory":
        with basalt.open(":memory:") as db:
            yield db
    elif request.param == "memtable":
        with basalt.MemTable(memory_budget=32 << 20) as table:
            yield table
    else:
        with basalt.open(":memory:") as db:
            yield db.keyspace("users")


def test_is_a_mutable_mapping(store):
    assert isinstance(store, MutableMapping)
    assert not store and len(store) == 0
    store["b"] = b"2"
    store[b"a"] = "1"
    store[bytearray(b"c")] = memoryview(b"3")
    assert store and len(store) == 3
    assert store[b"a"] == b"1" and store["c"] == b"3"
    assert b"a" in store and "x" not in store
    assert store.get("x") is None and store.get("x", 7) == 7
    assert list(store) == [b"a", b"b", b"c"] and list(reversed(store)) == [b"c", b"b", b"a"]
    assert list(store.keys()) == [b"a", b"b", b"c"]
    assert list(store.values()) == [b"1", b"2", b"3"]
    assert list(store.items()) == [(b"a", b"1"), (b"b", b"2"), (b"c", b"3")]
    assert list(reversed(store.items())) == [(b"c", b"3"), (b"b", b"2"), (b"a", b"1")]
    assert (b"a", b"1") in store.items()
    assert store == {b"a": b"1", b"b": b"2", b"c": b"3"}
    with pytest.raises(KeyError):
        store["x"]
    with pytest.raises(KeyError):
        del store["x"]
    del store["a"]
    assert store.pop("b") == b"2" and store.pop("b", None) is None
    with pytest.raises(KeyError):
        store.pop("b")
    assert store.popitem() == (b"c", b"3")
    with pytest.raises(KeyError):
        store.popitem()
    assert store.setdefault("d", "4") == b"4" and store.setdefault("d", "5") == b"4"
    store.update({"e": b"5"}, f=b"6")
    store.update([("g", b"7")])
    assert list(store) == [b"d", b"e", b"f", b"g"]
    store.clear()
    assert not store


def test_bytes_of_any_kind(store):
    large = bytes(range(256)) * 1000
    store[b""] = b"of the empty key"
    store[b"\x00\xff"] = large
    store["empty"] = b""
    store["ä"] = "ö"
    assert store[b""] == b"of the empty key" and store[b"\x00\xff"] == large
    assert store["empty"] == b"" and store["ä".encode()] == "ö".encode()
    for wrong in (1, None, 1.5, ["a"]):
        with pytest.raises(TypeError):
            store[wrong] = b""
        with pytest.raises(TypeError):
            store["a"] = wrong
        with pytest.raises(TypeError):
            store.get(wrong)
    with pytest.raises(ValueError) as caught:
        store[b"x" * 70000] = b""
    assert isinstance(caught.value, basalt.InvalidArgument) and caught.value.code == "InvalidArgument"


def test_scan(store):
    for i in range(3000):
        store[f"k/{i:04d}"] = str(i)
    store["a"] = store["z"] = b""
    assert [int(v) for _, v in store.scan(prefix="k/")] == list(range(3000))
    assert [int(v) for _, v in store.scan(prefix="k/", reverse=True)] == list(range(2999, -1, -1))
    assert [k for k in store.scan_keys(lower="k/0010", upper="k/0013")] == [b"k/0010", b"k/0011", b"k/0012"]
    assert list(store.scan_values(lower="k/2999", upper="y")) == [b"2999"]
    assert list(store.scan(prefix="nothing")) == []
    with pytest.raises(basalt.InvalidArgument):
        store.scan(prefix="a", lower="b")
    # A scan shows the moment at which it began.
    scan = store.scan(prefix="k/")
    assert next(scan)[0] == b"k/0000"
    store.delete_range("k/", "k0")
    assert sum(1 for _ in scan) == 2999
    assert len(store) == 2


def test_ttl(store):
    store.put("soon", b"v", ttl=0.05)
    store.put("later", b"v", ttl=datetime.timedelta(hours=1))
    store.put("never", b"v", ttl=math.inf)
    deadline = time.monotonic() + 30
    while "soon" in store:
        assert time.monotonic() < deadline
    later = store.get_entry("later")
    assert later.value == b"v" and later.version > 0 and 3500 < later.expiry - time.time() < 3700
    assert store.get_entry("never").expiry is None and store.get_entry("absent") is None
    for wrong in (0, -1, math.nan, 1e300):
        with pytest.raises(ValueError):
            store.put("x", b"", ttl=wrong)
    with pytest.raises(TypeError):
        store.put("x", b"", ttl="1")


def test_merge(store):
    store.merge("n", "add", 5)
    store.merge("n", "add", -7)
    assert basalt.counter(store["n"]) == -2
    store.merge("n", "max", 40)
    store.merge("n", "min", 30)
    assert basalt.counter(store["n"]) == 30
    store.merge("list", "append", b"x")
    store.merge("list", "append", "y")
    assert store["list"] == b"xy"
    with pytest.raises(ValueError):
        store.merge("n", "divide", 1)
    with pytest.raises(OverflowError):
        store.merge("n", "add", 1 << 80)


def test_batch(store):
    store["old"] = b"1"
    with store.batch() as batch:
        batch["a"] = b"1"
        batch.put("b", b"2", ttl=60)
        batch.delete("old")
        batch.merge("n", "add", 1)
        assert len(batch) == 4 and "a" not in store
    assert list(store) == [b"a", b"b", b"n"]
    with pytest.raises(basalt.FailedPrecondition):
        batch["c"] = b"3"
    with pytest.raises(RuntimeError), store.batch() as batch:
        batch["lost"] = b""
        raise RuntimeError
    assert "lost" not in store
    version = store.get_entry("a").version
    batch = store.batch()
    batch.require_unchanged("a", version)
    batch.require_present("b")
    batch.require_absent("c")
    batch["c"] = b"3"
    batch.commit()
    batch = store.batch()
    batch.require_absent("c")
    batch["c"] = b"4"
    with pytest.raises(basalt.Aborted) as caught:
        batch.commit()
    assert caught.value.sub_code == "Condition" and store["c"] == b"3"


def test_get_many_and_put_if_absent(store):
    assert store.put_if_absent("a", b"1") and not store.put_if_absent("a", b"2")
    assert store.get_many(["a", b"x", "a"]) == [b"1", None, b"1"]
    assert store.get_many([], default=b"") == []


def test_snapshot(store):
    store["a"] = b"1"
    with store.snapshot() as snapshot:
        store["a"] = b"2"
        store["b"] = b"3"
        assert isinstance(snapshot, Mapping)
        assert snapshot["a"] == b"1" and "b" not in snapshot and dict(snapshot) == {b"a": b"1"}
        assert list(snapshot.scan(reverse=True)) == [(b"a", b"1")] and len(snapshot) == 1
    with pytest.raises(basalt.FailedPrecondition):
        snapshot["a"]


def test_transaction(store):
    store["x"] = b"100"
    with store.transaction() as tx:
        tx["x"] = str(int(tx["x"]) - 30)
        tx.put("y", b"30", ttl=60)
        assert tx["y"] == b"30" and list(tx) == [b"x", b"y"] and "y" not in store
        assert tx.put_if_absent("z", b"") and not tx.put_if_absent("z", b"")
        tx.merge("n", "add", 1)
        del tx["z"]
        with pytest.raises(KeyError):
            del tx["z"]
    assert store["x"] == b"70" and store["y"] == b"30" and "z" not in store
    with pytest.raises(basalt.FailedPrecondition) as caught:
        tx["x"]
    assert caught.value.sub_code == "Closed"
    with pytest.raises(RuntimeError), store.transaction() as tx:
        tx["x"] = b"0"
        raise RuntimeError
    assert store["x"] == b"70"
    first, second = store.transaction(), store.transaction()
    first["x"] = first["x"] + b"1"
    second["x"] = second["x"] + b"2"
    first.commit()
    with pytest.raises(basalt.Aborted) as caught:
        second.commit()
    assert caught.value.sub_code == "Conflict" and store["x"] == b"701"


def test_transact_counts_each_call(store):
    store["n"] = b"0"

    def add(tx):
        tx["n"] = str(int(tx["n"]) + 1)
        return int(tx["n"])

    def work():
        for _ in range(50):
            store.transact(add, attempts=10000)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store["n"] == b"200"


def test_threads(store):
    failures = []

    def work(name):
        try:
            for i in range(300):
                store[f"{name}/{i}"] = str(i)
                assert store[f"{name}/{i}"] == str(i).encode()
                if i % 50 == 0:
                    with store.batch() as batch:
                        batch[f"{name}/b"] = b""
                    sum(1 for _ in store.scan(prefix=f"{name}/"))
        except BaseException as error:  # A thread's own would be printed, and lost.
            failures.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(store) == 4 * 301


def test_a_scan_of_two_threads_gives_each_record_once(store):
    for i in range(5000):
        store[f"{i:05d}"] = b""
    scan, seen, lock = store.scan_keys(), [], threading.Lock()

    def work():
        while True:
            try:
                key = next(scan)
            except ValueError:  # The other thread fills the buffer.
                continue
            except StopIteration:
                return
            with lock:
                seen.append(key)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == list(store)


def test_stats_and_care(store):
    store["a"] = b"1"
    store.sync()
    store.compact()
    assert store["a"] == b"1" and isinstance(store.stats(), dict) and store.stats()["memory_budget"] > 0
