"""Random operations on a store and on a dict, with reopening; and what they leave in memory."""

import array
import datetime
import gc
import os
import pathlib
import subprocess
import sys
import tempfile

import basalt
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

keys = st.binary(max_size=3)
values = st.binary(max_size=200)


class StoreAgainstDict(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self.folder.name, "db")
        self.db = basalt.open(self.path, memory_budget=4 << 20)
        self.model = {}
        self.snapshots = []

    def teardown(self):
        if hasattr(self, "db"):
            self.db.close()
            self.folder.cleanup()

    @rule(key=keys, value=values)
    def put(self, key, value):
        self.db[key] = self.model[key] = value

    @rule(key=keys)
    def pop(self, key):
        assert self.db.pop(key, None) == self.model.pop(key, None)

    @rule(key=keys, value=values)
    def setdefault(self, key, value):
        assert self.db.setdefault(key, value) == self.model.setdefault(key, value)

    @rule(key=keys, value=values)
    def append(self, key, value):
        self.db.merge(key, "append", value)
        self.model[key] = self.model.get(key, b"") + value

    @rule(begin=keys, end=keys)
    def delete_range(self, begin, end):
        self.db.delete_range(begin, end)
        self.model = {key: value for key, value in self.model.items() if not begin <= key < end}

    @rule(records=st.dictionaries(keys, st.none() | values), keep=st.booleans())
    def transaction(self, records, keep):
        changed = dict(self.model)
        transaction = self.db.transaction()
        for key, value in records.items():
            if value is None:
                transaction.delete(key)
                changed.pop(key, None)
            else:
                transaction[key] = changed[key] = value
        assert dict(transaction) == changed
        if not keep:
            transaction.rollback()
            return
        transaction.commit()
        self.model = changed

    @rule(prefix=keys, reverse=st.booleans())
    def scan(self, prefix, reverse):
        expected = sorted((item for item in self.model.items() if item[0].startswith(prefix)), reverse=reverse)
        assert list(self.db.scan(prefix=prefix, reverse=reverse)) == expected

    @rule(lower=keys, upper=keys)
    def scan_range(self, lower, upper):
        expected = sorted(key for key in self.model if lower <= key < upper)
        assert list(self.db.scan_keys(lower=lower, upper=upper)) == expected

    @rule()
    def take_snapshot(self):
        self.snapshots.append((self.db.snapshot(), dict(self.model)))

    @rule()
    def flush_and_compact(self):
        self.db.flush()
        self.db.compact()

    @rule()
    def reopen(self):
        self.snapshots.clear()
        self.db.close()
        self.db = basalt.open(self.path, memory_budget=4 << 20)

    @invariant()
    def same(self):
        if not hasattr(self, "db"):
            return
        assert dict(self.db.items()) == self.model
        for snapshot, expected in self.snapshots:
            assert dict(snapshot.items()) == expected


StoreAgainstDict.TestCase.settings = settings(max_examples=25, stateful_step_count=30, deadline=None, database=None,
                                              suppress_health_check=list(HealthCheck))
TestStoreAgainstDict = StoreAgainstDict.TestCase


def resident_kib():
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def use_collections(db):
    docs, graph = db.collection("docs", dim=2), db.graph()
    corpus = db.corpus(embed=lambda texts: [[len(text), 1] for text in texts], dim=2)
    docs.add_many(["a", "b"], [[1, 2], array.array("d", [3, 4])], [None, {"x": "y"}])
    assert next(docs.items()).id == "a" and docs.search([1, 2], filter="exists x")[0].attributes == {"x": "y"}
    with db.transaction() as tx:
        tx.graph(graph).put_node("a", "A", {"time": datetime.datetime.now(), "list": [1, b"b", None]})
        tx.graph(graph).put_edge("a", "to", "a", valid_to=1e9)
        tx.collection(docs).remove("b")
        tx.corpus(corpus).ingest("a", "Ada Lovelace met Charles Babbage.")
    assert graph.node("a") and graph.khop("a", 1) and graph.traverse("a").out().run() and graph.page_rank("a")
    assert graph.shortest_path("a", "a") and graph.neighbors("a") and corpus.retrieve("Ada") and corpus.graph.nodes()
    for wrong in (lambda: docs.add("a", [1]), lambda: docs.add("a", b"ab"), lambda: graph.put_node("b", 7),
                  lambda: corpus.ingest("", "")):
        try:
            wrong()
        except (basalt.Error, TypeError):
            pass


def use_everything():
    with basalt.open(":memory:", memory_budget=1 << 20) as db:
        for i in range(50):
            db[str(i)] = b"x" * 1000
        assert db.get("absent") is None and db["7"] and db.get_many(["1", "2"]) and len(db) == 50
        with db.batch() as batch:
            batch["b"] = b""
        with db.transaction() as tx:
            tx["t"] = tx["b"]
        with db.snapshot() as snapshot:
            dict(snapshot)
        next(db.scan())
        users = db.keyspace("users")
        users["a"] = b""
        try:
            db["absent"]
        except KeyError:
            pass
        try:
            db.scan(prefix="a", lower="b")
        except basalt.Error:
            pass
        use_collections(db)
    cache = basalt.Cache(1 << 17)
    cache.get_or_compute("k", lambda: b"v")
    map = basalt.SharedMap.create(":memory:")
    map["a"] = b"x" * 1000
    view = map.view("a")
    assert bytes(view) == map["a"]


def test_nothing_leaks():
    for _ in range(30):
        use_everything()
    gc.collect()
    before, descriptors = resident_kib(), len(os.listdir("/proc/self/fd"))
    for _ in range(150):
        use_everything()
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == descriptors
    # One leaked store of the 150 is at least 50 KiB.
    assert resident_kib() - before < 150 * 50


def test_no_object_is_left_at_exit():
    code = "import test_model; test_model.use_everything()"
    ended = subprocess.run([sys.executable, "-c", code], cwd=os.path.dirname(__file__), capture_output=True,
                           text=True, check=True)
    assert ended.stderr == ""
