"""The LangGraph adapters: the conformance suite of langgraph-checkpoint, and random operations against its store."""

import asyncio
import random
import time

import pytest

import basalt

pytest.importorskip("langgraph.store.memory")
from basalt.langgraph import BasaltSaver, BasaltStore  # noqa: E402
from langgraph.checkpoint.base import empty_checkpoint  # noqa: E402
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp  # noqa: E402
from langgraph.store.memory import InMemoryStore  # noqa: E402


def test_the_example_of_the_manual(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    from basalt.langgraph import BasaltSaver, BasaltStore

    with basalt.open("agent.db") as db:
        saver, store = BasaltSaver(db), BasaltStore(db)
        store.put(("users", "ada"), "city", {"name": "London"})
        print(store.get(("users", "ada"), "city").value)
    assert capsys.readouterr().out == "{'name': 'London'}\n"


def test_the_checkpointer_passes_the_conformance_suite(tmp_path):
    conformance = pytest.importorskip("langgraph.checkpoint.conformance")
    count = 0

    @conformance.checkpointer_test(name="BasaltSaver")
    async def saver():
        nonlocal count
        count += 1
        with basalt.open(tmp_path / str(count)) as db:
            yield BasaltSaver(db)

    report = asyncio.run(conformance.validate(saver))
    report.print_report()
    assert report.passed_all()


def test_checkpoints_are_there_after_a_reopen(tmp_path):
    config = {"configurable": {"thread_id": "t\0\1", "checkpoint_ns": ""}}
    checkpoint = {**empty_checkpoint(), "channel_values": {"messages": ["hello"]}, "channel_versions": {"messages": 1}}
    with basalt.open(tmp_path / "db") as db:
        saved = BasaltSaver(db).put(config, checkpoint, {"source": "input", "step": 0}, {"messages": 1})
        BasaltSaver(db).put_writes(saved, [("messages", "x"), ("messages", "y")], "task")
    with basalt.open(tmp_path / "db") as db:
        saver = BasaltSaver(db)
        found = saver.get_tuple(config)
        assert found.checkpoint == checkpoint
        assert found.config == saved
        assert found.pending_writes == [("task", "messages", "x"), ("task", "messages", "y")]
        saver.delete_thread("t\0\1")
        assert saver.get_tuple(config) is None
        assert not db.keyspace("langgraph/checkpoints")


def test_deleting_checkpoints_leaves_no_values_behind(tmp_path):
    with basalt.open(tmp_path / "db") as db:
        saver = BasaltSaver(db)
        config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        for version in range(1, 6):
            checkpoint = {**empty_checkpoint(), "channel_values": {"v": version, "same": 0},
                          "channel_versions": {"v": version, "same": 1}}
            new = {"v": version, "same": 1} if version == 1 else {"v": version}
            config = saver.put(config, checkpoint, {"run_id": str(version)}, new)
        saver.delete_for_runs(["2", "4"])
        assert [found.checkpoint["channel_values"]["v"] for found in saver.list(config and None)] == [5, 3, 1]
        saver.prune(["t"])
        assert [found.checkpoint["channel_values"] for found in saver.list(None)] == [{"v": 5, "same": 0}]
        assert len(db.keyspace("langgraph/checkpoints")) == 3


def in_order(items):
    return sorted((item.namespace, item.key, item.value) for item in items)


def test_the_store_is_what_the_store_in_memory_is(tmp_path):
    seed = time.time_ns()
    print("seed", seed)
    rand = random.Random(seed)
    names = ["a", "b", "a\0", "\0\1", "ab", "ü"]

    def namespace(least=1):
        return tuple(rand.choice(names) for _ in range(rand.randint(least, 3)))

    with basalt.open(tmp_path / "db") as db:
        ours, theirs = BasaltStore(db), InMemoryStore()
        for _ in range(300):
            kind = rand.randrange(6)
            if kind < 3:
                value = None if kind == 2 else {"n": rand.randrange(5), "s": rand.choice(names)}
                op = PutOp(namespace(), rand.choice(names), value)
            elif kind == 3:
                op = GetOp(namespace(), rand.choice(names))
            elif kind == 4:
                wanted = rand.choice([None, {"n": 2}, {"n": {"$gt": 1, "$lte": 3}}, {"s": {"$ne": "a"}}])
                op = SearchOp(namespace(0), wanted, limit=1000)
            else:
                conditions = tuple(MatchCondition(how, (rand.choice([*names, "*"]),))
                                   for how in rand.sample(["prefix", "suffix"], rand.randrange(3)))
                op = ListNamespacesOp(conditions, rand.choice([None, 1, 2]), limit=1000)
            got, want = ours.batch([op])[0], theirs.batch([op])[0]
            if isinstance(op, GetOp):
                assert in_order([got] if got else []) == in_order([want] if want else []), op
            elif isinstance(op, SearchOp):
                assert in_order(got) == in_order(want), op
            elif isinstance(op, ListNamespacesOp):
                # The store in memory also lists namespaces whose items were deleted.
                full = {item.namespace for item in ours.search((), limit=1000)}
                listed = theirs.batch([op._replace(max_depth=None)])[0]
                assert got == sorted({space[: op.max_depth] for space in listed if space in full}), op
        pages = [item for offset in range(0, 300, 7) for item in ours.search((), limit=7, offset=offset)]
        assert in_order(pages) == in_order(ours.search((), limit=1000))


def test_items_of_the_store_expire_and_keep_when_they_were_created(tmp_path):
    with basalt.open(tmp_path / "db") as db:
        store = BasaltStore(db)
        store.put(("a",), "k", {"v": 1}, ttl=0.001)
        store.put(("a",), "stays", {"v": 1})
        created = store.get(("a",), "stays").created_at
        store.put(("a",), "stays", {"v": 2})
        item = asyncio.run(store.aget(("a",), "stays"))
        assert (item.value, item.created_at) == ({"v": 2}, created) and item.updated_at >= created
        end = time.monotonic() + 60
        while store.get(("a",), "k", refresh_ttl=False) and time.monotonic() < end:
            time.sleep(0.01)
        assert [item.key for item in store.search(("a",))] == ["stays"]
        with pytest.raises(NotImplementedError):
            store.search(("a",), query="meaning")
