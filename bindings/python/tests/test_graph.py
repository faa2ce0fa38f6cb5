"""Property graphs."""

import datetime
import gc
import random
import threading

import basalt
import pytest

UTC = datetime.timezone.utc


@pytest.fixture
def db():
    with basalt.open(":memory:") as opened:
        yield opened


@pytest.fixture
def people(db):
    graph = db.graph()
    for name, born in (("ada", 1815), ("babbage", 1791), ("byron", 1788)):
        graph.put_node(name, ["Person", "Dead"], {"born": born})
    graph.put_node("engine", "Machine")
    graph.put_edge("ada", "wrote about", "engine", weight=0.5, properties={"pages": 65})
    graph.put_edge("babbage", "designed", "engine")
    graph.put_edge("byron", "father of", "ada", weight=3)
    return graph


def test_nodes_and_edges(people):
    assert people.node("ada") == basalt.Node("ada", ("Dead", "Person"), {"born": 1815})
    assert people.node("none") is None and people.edge("ada", "knows", "byron") is None
    edge = people.edge("ada", "wrote about", "engine")
    assert edge == basalt.Edge("ada", "wrote about", "engine", "", 0.5, {"pages": 65}, None, None, None)
    assert [node.id for node in people.nodes()] == ["ada", "babbage", "byron", "engine"]
    assert [node.id for node in people.nodes("b")] == ["babbage", "byron"]
    assert [node.id for node in people.nodes(limit=1)] == ["ada"] and people.nodes(limit=0) == []
    people.put_node("ada", properties={"x": None})
    assert people.node("ada") == basalt.Node("ada", (), {"x": None})
    assert people.remove_edge("ada", "wrote about", "engine") and not people.remove_edge("ada", "wrote about", "engine")
    assert people.remove_node("ada") and not people.remove_node("ada")
    assert people.neighbors("byron") == [] and people.verify() == []
    assert (people.stats()["nodes"], people.stats()["edges"], people.stats()["removals"]) == (3, 1, 0)


def test_properties_of_every_type(db):
    graph = db.graph()
    moment = datetime.datetime(2024, 5, 1, 12, 30, 15, 250000, tzinfo=UTC)
    deep = [1]
    for _ in range(15):
        deep = [deep]
    properties = {"null": None, "yes": True, "int": -(1 << 63), "float": 0.1, "text": "naïve \udcff", "bytes": b"\xff\0",
                  "time": moment, "early": datetime.datetime(1, 1, 1, tzinfo=UTC), "list": [1, ["a", None], b"b", 2.5],
                  "deep": deep}
    graph.put_node("a", (), properties)
    found = graph.node("a").properties
    assert found == properties and found["yes"] is True and isinstance(found["float"], float)
    endless = []
    endless.append(endless)
    for wrong, error in (({"a": endless}, ValueError), ({"a": [deep]}, ValueError), ({"a": object()}, TypeError),
                         ({"a": {}}, TypeError), ({1: 1}, TypeError), (7, TypeError), ({"a": 1 << 63}, OverflowError)):
        with pytest.raises(error):
            graph.put_node("a", (), wrong)
    assert graph.node("a").properties == properties


def test_neighbors(people):
    assert people.neighbors("engine") == [] == people.neighbors("none")
    assert people.neighbors("ada") == [basalt.Neighbor("engine", "wrote about", "out", "", 0.5)]
    both = people.neighbors("ada", direction="both")
    assert [(each.id, each.direction) for each in both] == [("engine", "out"), ("byron", "in")]
    assert [each.id for each in people.neighbors("engine", direction="in", types="designed")] == ["babbage"]
    assert len(people.neighbors("engine", direction="in", types=("designed", "wrote about", "unknown"))) == 2
    people.put_node("hub")
    for i in range(2500):
        people.put_node(f"leaf/{i}")
        people.put_edge("hub", "has", f"leaf/{i}")
    assert len({each.id for each in people.neighbors("hub")}) == 2500
    assert len(people.neighbors("hub", limit=1500)) == 1500 and people.neighbors("hub", limit=0) == []
    with pytest.raises(ValueError):
        people.neighbors("ada", direction="sideways")


def test_errors(people):
    with pytest.raises(basalt.NotFound):
        people.put_edge("ada", "knows", "nobody")
    for weight in (-1, float("nan")):
        with pytest.raises(basalt.InvalidArgument):
            people.put_edge("ada", "knows", "byron", weight=weight)
    with pytest.raises(basalt.InvalidArgument):
        people.put_node("x" * 1025)
    for wrong in (lambda: people.node(7), lambda: people.put_node("a", 7), lambda: people.put_node("a", [7])):
        with pytest.raises(TypeError):
            wrong()
    with pytest.raises(ValueError):
        people.page_rank(["ada"], restart=7)
    with pytest.raises(ValueError):
        people.page_rank({"ada": -1})


def test_a_graph_is_not_made_where_it_is_not_to_be(db):
    with pytest.raises(basalt.NotFound):
        db.graph("none", create=False)
    db.keyspace("other")["a"] = b"1"
    with pytest.raises(basalt.InvalidArgument):
        db.graph("other")


def test_reads_as_of_a_time(db):
    graph = db.graph()
    for name in ("ann", "x", "y"):
        graph.put_node(name)
    moved = datetime.datetime(2020, 1, 1, tzinfo=UTC)
    graph.put_edge("ann", "lives in", "x", valid_to=moved)
    graph.put_edge("ann", "lives in", "y", valid_from=moved.timestamp())
    assert graph.edge("ann", "lives in", "x").valid_to == moved == graph.edge("ann", "lives in", "y").valid_from
    before, after = moved - datetime.timedelta(days=1), moved + datetime.timedelta(days=1)
    assert [[each.id for each in graph.neighbors("ann", as_of=time)] for time in (before, after, None)] == [
        ["x"], ["y"], ["x", "y"]]
    assert list(graph.traverse("ann").out().as_of(after)) == ["y"]
    assert graph.shortest_path("ann", "x", as_of=after) is None
    past = datetime.datetime.now(UTC) - datetime.timedelta(hours=1)
    graph.put_edge("ann", "saw", "x", expiry=past)
    assert graph.edge("ann", "saw", "x") is None
    with pytest.raises(ValueError):
        graph.neighbors("ann", as_of=float("inf"))


def random_graph(db, nodes=60, edges=150):
    chosen, graph, out = random.Random(5), db.graph("random"), {}
    with db.transaction() as tx:
        for i in range(nodes):
            tx.graph(graph).put_node(str(i))
        for _ in range(edges):
            a, b = chosen.randrange(nodes), chosen.randrange(nodes)
            out.setdefault(str(a), set()).add(str(b))
            tx.graph(graph).put_edge(str(a), "to", str(b))
    return graph, out


def breadth_first(out, start):
    distances, queue = {start: 0}, [start]
    for node in queue:
        for other in out.get(node, ()):
            if other not in distances:
                distances[other] = distances[node] + 1
                queue.append(other)
    return distances


def test_searches_find_what_a_plain_search_finds(db):
    graph, out = random_graph(db)
    for start in map(str, range(0, 60, 7)):
        distances = breadth_first(out, start)
        found = graph.khop(start, 3)
        assert dict(found) == {node: hops for node, hops in distances.items() if hops <= 3} and not found.truncated
        assert found[0] == basalt.NodeDistance(start, 0)
        for end in map(str, range(60)):
            path = graph.shortest_path(start, end)
            assert (path is None) == (end not in distances)
            if path:
                assert path.cost == distances[end] == len(path.edges) and path.nodes[0] == start
                assert all(b in out[a] for a, b in zip(path.nodes, path.nodes[1:])) and path.nodes[-1] == end
                assert [edge.id for edge in path.edges] == path.nodes[1:]
        assert set(graph.traverse(start).out().out("to")) == {
            other for node in out.get(start, ()) for other in out.get(node, ())}
        scores = graph.page_rank(start, direction="out", epsilon=1e-9)
        assert scores[0].id == start and {score.id for score in scores} <= set(distances)
        assert 0.5 <= sum(score.score for score in scores) <= 1 + 1e-9
    assert graph.verify() == []


def test_traversals(people):
    start = people.traverse("byron").out("father of")
    assert start.run() == ["ada"] and list(start.out()) == ["engine"] and start.run() == ["ada"]
    assert list(start.out().in_()) == ["ada", "babbage"] and list(start.out().in_().has_label("Machine")) == []
    assert list(start.out().in_().limit(1)) == ["ada"] and set(start.both()) == {"engine", "byron"}
    assert list(people.traverse("none").out()) == []
    assert people.page_rank({"byron": 2, "none": 1}, k=1)[0].id == "byron"
    assert people.shortest_path("byron", "engine", weighted=True).cost == 3.5
    assert people.shortest_path("engine", "byron") is None and people.shortest_path("none", "ada") is None


def test_limits_are_reported(db):
    graph, _ = random_graph(db)
    few = basalt.ReadLimits(visited_max=3)
    assert graph.khop("0", 9, direction="both", limits=few).truncated
    assert graph.traverse("0").both().both().within(few).run().truncated
    far = graph.khop("0", 9)[-1].id
    with pytest.raises(basalt.ResourceExhausted):
        graph.shortest_path("0", far, limits=few)
    assert graph.khop("0", 1, limits=basalt.ReadLimits(time_max=60)).truncated is False


def test_a_transaction_changes_graph_and_keys_together(db, people):
    with pytest.raises(RuntimeError), db.transaction() as tx:
        tx.graph(people).remove_node("ada")
        raise RuntimeError
    assert people.node("ada")
    with db.transaction() as tx:
        inside = tx.graph(people)
        inside.put_node("joseph")
        inside.put_edge("joseph", "inspired", "babbage")
        assert inside.remove_node("byron") and inside.node("byron") is None and people.node("byron")
        assert list(inside.traverse("joseph").out().out()) == ["engine"] and people.neighbors("joseph") == []
        tx["note"] = b"1"
        for refused in (inside.verify, inside.stats, inside.finish_removals):
            with pytest.raises(basalt.Unsupported):
                refused()
    people.finish_removals()
    assert [each.id for each in people.neighbors("joseph")] == ["babbage"] and db["note"] == b"1"
    assert people.verify() == []
    with pytest.raises(basalt.FailedPrecondition):
        inside.put_node("late")


def test_lifetime(tmp_path):
    db = basalt.open(tmp_path / "db")
    graph = db.graph()
    graph.put_node("a")
    del db
    gc.collect()
    graph.put_node("b")
    graph.put_edge("a", "to", "b")
    traversal = graph.traverse("a").out()
    del graph
    gc.collect()
    assert traversal.run() == ["b"]
    del traversal
    gc.collect()
    with basalt.open(tmp_path / "db") as db:
        graph = db.graph(create=False)
        assert [node.id for node in graph.nodes()] == ["a", "b"]
    for use in (lambda: graph.node("a"), lambda: graph.put_node("a"), graph.verify, graph.traverse("a").run):
        with pytest.raises(basalt.FailedPrecondition) as caught:
            use()
        assert caught.value.sub_code == "Closed"


def test_threads(people):
    failures = []

    def work(thread):
        try:
            for i in range(60):
                people.put_node(f"{thread}/{i}", f"Label {i % 7}")
                people.put_edge(f"{thread}/{i}", "knows", "ada")
                people.khop("ada", 2, direction="both")
                assert people.node(f"{thread}/{i}").labels == (f"Label {i % 7}",)
                if i % 3 == 0:
                    assert people.remove_node(f"{thread}/{i}")
        except BaseException as error:  # A thread's own would be printed, and lost.
            failures.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(people.neighbors("ada", direction="in", types="knows")) == 120
    assert people.verify() == []
