"""Databases on disk: opening, closing, keyspaces, crashes, forks."""

import os
import signal
import subprocess
import sys
import textwrap

import basalt
import pytest


def run_child(code, *arguments):
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
                            stdout=subprocess.PIPE, text=True)


def test_reopen(tmp_path):
    path = tmp_path / "db"
    with basalt.open(path) as db:
        db["a"] = b"1"
        assert db.name == str(path)
    assert db.closed
    with basalt.open(str(path), create=False) as db:
        assert db["a"] == b"1"
        with pytest.raises(basalt.Busy) as caught:
            basalt.open(path)
        assert caught.value.code == "Busy" and caught.value.sub_code == "Locked" and str(path) in str(caught.value)
        with basalt.open(path, read_only=True) as reader:
            assert reader["a"] == b"1"
            with pytest.raises(basalt.FailedPrecondition) as caught:
                reader["a"] = b"2"
            assert caught.value.sub_code == "ReadOnly"
    with pytest.raises(basalt.NotFound):
        basalt.open(tmp_path / "none", create=False)
    with pytest.raises(TypeError):
        basalt.open(7)
    with pytest.raises(ValueError):
        basalt.open(path, durability="strong")


def test_what_is_closed_says_so(tmp_path):
    db = basalt.open(tmp_path / "db")
    db["a"] = b"1"
    users, snapshot, scan = db.keyspace("users"), db.snapshot(), db.scan()
    transaction, batch = db.transaction(), db.batch()
    batch["b"] = b"2"
    db.close()
    db.close()
    for use in (lambda: db["a"], lambda: db.put("a", b""), lambda: users.get("a"), lambda: snapshot["a"],
                lambda: next(scan), lambda: transaction["a"], batch.commit, db.batch, lambda: len(db),
                lambda: db.keyspace("x"), db.sync, db.stats, db.flush, lambda: list(db.scan())):
        with pytest.raises(basalt.FailedPrecondition):
            use()


def test_objects_outlive_the_database():
    db = basalt.open(":memory:")
    db["a"] = b"1"
    snapshot, scan, users = db.snapshot(), db.scan(), db.keyspace("users")
    del db
    users["u"] = b"2"
    assert snapshot["a"] == b"1" and list(scan) == [(b"a", b"1")] and users["u"] == b"2"


def test_keyspaces(tmp_path):
    with basalt.open(tmp_path / "db") as db:
        users, orders = db.keyspace("users"), db.keyspace("orders")
        db["k"], users["k"], orders["k"] = b"0", b"1", b"2"
        assert users.name == "users" and db.keyspaces() == ["users", "orders"]
        assert dict(users) == {b"k": b"1"} and dict(db) == {b"k": b"0"}
        with db.batch() as batch:
            batch["k"] = b"3"
            batch.keyspace(users)["k"] = b"4"
        with db.transaction() as tx:
            of_orders = tx.keyspace(orders)
            of_orders["k"] = of_orders["k"] + tx.keyspace(users)["k"] + tx["k"]
        assert (db["k"], users["k"], orders["k"]) == (b"3", b"4", b"243")
        snapshot = db.snapshot()
        users["k"] = b"5"
        assert snapshot.keyspace(users)["k"] == b"4"
        with pytest.raises(ValueError), basalt.open(":memory:") as other:
            db.batch().keyspace(other)
        db.drop_keyspace("orders")
        with pytest.raises(basalt.NotFound) as caught:
            orders["k"]
        assert caught.value.sub_code == "Keyspace"
        with pytest.raises(basalt.NotFound):
            db.keyspace("orders", create=False)


def test_check_and_destroy(tmp_path):
    path = tmp_path / "db"
    with basalt.open(path) as db:
        for i in range(1000):
            db[str(i)] = os.urandom(100)
        db.flush()
    report = basalt.check(path)
    assert report.ok and report.findings == [] and report.figures["records"] == 1000
    table = next(path.glob("*.tbl"))
    damaged = bytearray(table.read_bytes())
    damaged[len(damaged) // 2] ^= 1
    table.write_bytes(damaged)
    report = basalt.check(path)
    assert not report.ok and str(table) == report.findings[0]["file"]
    with basalt.open(path) as db, pytest.raises(basalt.Corruption) as caught:
        list(db.scan())
    assert caught.value.code == "Corruption" and table.name in str(caught.value)
    basalt.destroy(path)
    assert not path.exists()
    with pytest.raises(basalt.NotFound):
        basalt.destroy(path)


def test_acknowledged_writes_survive_sigkill(tmp_path):
    path = tmp_path / "db"
    for round in range(3):
        child = run_child("""
            import sys, basalt
            db, start = basalt.open(sys.argv[1]), int(sys.argv[2])
            for i in range(start, start + 1000000):
                db[f"{i:08d}"] = str(i)
                if i % 2 == 0:
                    with db.batch() as batch:
                        batch["pair/a"] = batch["pair/b"] = str(i)
                print(i, flush=True)
            """, path, round * 1000000)
        for line in child.stdout:
            last = int(line)
            if last % 1000000 == 500 + 100 * round:
                os.kill(child.pid, signal.SIGKILL)
                break
        rest = child.stdout.read().split("\n")[:-1]  # A line that was cut is not acknowledged.
        last = int(rest[-1]) if rest else last
        child.wait()
        child.stdout.close()
        assert child.returncode == -signal.SIGKILL
        with basalt.open(path) as db:
            for i in range(round * 1000000, last + 1):
                assert db[f"{i:08d}"] == str(i).encode()
            assert db["pair/a"] == db["pair/b"] and int(db["pair/a"]) >= last - 1
        assert basalt.check(path).ok


def in_child(work):
    """Runs work() in a forked child; what it raises, or False, fails the test."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0


def is_forked(use):
    try:
        use()
    except basalt.FailedPrecondition as error:
        return error.sub_code == "Forked"
    return False


def test_use_after_fork_raises(tmp_path):
    db, table, cache = basalt.open(tmp_path / "db"), basalt.MemTable(), basalt.Cache()
    db["a"] = table["a"] = cache["a"] = b"1"
    snapshot, transaction, scan, users = db.snapshot(), db.transaction(), db.scan(), db.keyspace("users")
    vectors, graph, corpus = db.collection("vectors", dim=1), db.graph(), db.corpus()
    vectors.add("a", [1])

    def work():
        own = basalt.open(":memory:")
        own["a"] = b"2"
        return own["a"] == b"2" and all(map(is_forked, (
            lambda: db["a"], lambda: db.put("a", b""), lambda: db.scan(), db.close, lambda: table["a"],
            lambda: cache["a"], lambda: cache.put("a", b""), lambda: snapshot["a"], lambda: transaction["a"],
            lambda: next(scan), lambda: users.get("a"), lambda: vectors.get("a"), lambda: vectors.search([1]),
            lambda: db.collection("vectors"), lambda: graph.node("a"), lambda: corpus.retrieve("a"))))

    in_child(work)
    assert db["a"] == b"1" and list(scan) == [(b"a", b"1")]
    db.close()


def test_durability_levels(tmp_path):
    with basalt.open(tmp_path / "db", durability="power") as db:
        db["a"] = b"1"
        db.put("b", b"2", durability="process")
        with db.batch() as batch:
            batch["c"] = b"3"
        with pytest.raises(basalt.InvalidArgument):
            db.put("d", b"4", durability="memory")
        assert dict(db) == {b"a": b"1", b"b": b"2", b"c": b"3"}
