"""Collections: vectors with ids and attributes."""

import array
import gc
import threading

import basalt
import numpy
import pytest

DIM = 24


def rows(count, seed=7):
    """Unit vectors of several clusters."""
    random = numpy.random.default_rng(seed)
    centers = random.normal(size=(10, DIM))
    points = centers[numpy.arange(count) % 10] + random.normal(scale=0.4, size=(count, DIM))
    return (points / numpy.linalg.norm(points, axis=1, keepdims=True)).astype(numpy.float32)


@pytest.fixture
def db():
    with basalt.open(":memory:") as opened:
        yield opened


def filled(db, count=500, **options):
    docs = db.collection("docs", dim=DIM, **options)
    docs.add_many([f"doc/{i:04d}" for i in range(count)], rows(count),
                  [{"lang": "de" if i % 3 else "en", "year": 2000 + i % 25, "even": i % 2 == 0} for i in range(count)])
    return docs


def test_search_finds_what_numpy_finds(db):
    docs, points = filled(db), rows(500)
    assert (len(docs), docs.name, docs.dim, docs.metric, docs.model) == (500, "docs", DIM, "cosine", "")
    for query in rows(20, seed=8):
        distances = 1 - points @ query
        nearest = numpy.argsort(distances, kind="stable")[:10]
        hits = docs.search(query, k=10)
        assert [hit.id for hit in hits] == [f"doc/{i:04d}" for i in nearest]
        assert numpy.allclose([hit.distance for hit in hits], distances[nearest], atol=1e-5)
        assert hits == docs.search(query, exact=True)
        near = docs.search(query, k=500, max_distance=0.5)
        assert len(near) == (distances <= 0.5).sum() and all(hit.distance <= 0.5 for hit in near)


def test_a_filter_is_an_expression_on_attributes(db):
    docs = filled(db)
    expected = {f"doc/{i:04d}" for i in range(500) if i % 3 == 0 and i % 25 >= 20 and i % 2}
    hits = docs.search(rows(1)[0], k=500, filter="lang == 'en' and year >= 2020 and not even == true")
    assert {hit.id for hit in hits} == expected and len(hits) == len(expected)
    assert all(hit.attributes["lang"] == "en" and hit.attributes["year"] >= 2020 for hit in hits)
    with pytest.raises(ValueError, match="position|column|at "):
        docs.search(rows(1)[0], filter="lang == ")


def test_vectors_come_in_many_forms(db):
    docs = db.collection("docs", dim=4)
    row = numpy.array([1, 2, 3, 4.5], numpy.float32)
    wide = numpy.zeros((4, 3))
    wide[:, 1] = row
    for i, vector in enumerate((row, row.astype(numpy.float64), row.astype(numpy.float16), wide[:, 1],
                                wide.astype(numpy.float32)[:, 1], row[::-1].copy()[::-1], array.array("d", row),
                                memoryview(row), list(row), (1, 2, 3, 4.5), iter([1, 2, 3, 4.5]))):
        docs.add(str(i), vector)
        assert docs.get(str(i)).vector.tolist() == [1, 2, 3, 4.5], i
    assert numpy.array_equal(numpy.asarray(docs.get("0").vector), row)
    halves = numpy.array([[6e-8, -65504, 0.1, -0.0]], numpy.float16)
    docs.add_many(["halves"], halves)
    assert docs.get("halves").vector.tolist() == halves[0].astype(numpy.float32).tolist()
    docs.add_many(["a", b"b"], wide[:, 1:2].repeat(2, axis=1).T)
    docs.add_many(iter(["c"]), [row])
    assert [docs.get(id).vector.tolist() for id in "abc"] == [row.tolist()] * 3


def test_wrong_vectors_are_refused(db):
    docs = db.collection("docs", dim=3)
    for wrong, error in ((b"abcdefghijkl", TypeError), ("abc", TypeError), (numpy.arange(3), TypeError),
                         (None, TypeError), (["a", "b", "c"], TypeError), (numpy.zeros((3, 1)), ValueError),
                         ([1, 2], ValueError), ([1, 2, float("nan")], ValueError), ([0, 0, 0], ValueError),
                         (numpy.array(1.0), ValueError)):
        with pytest.raises(error):
            docs.add("a", wrong)
        with pytest.raises(error):
            docs.search(wrong)
    for ids, vectors, attributes in ((["a"], numpy.ones((2, 3)), None), (["a"], numpy.ones(3), None),
                                     (["a", "b"], [[1, 2, 3], [1, 2]], None), (["a"], [[1, 2, 3]], []),
                                     (["a"] * 2, numpy.ones((2, 3)) * [[1], [0]], None)):
        with pytest.raises(ValueError):
            docs.add_many(ids, vectors, attributes)
    for attributes in ({"a": b"1"}, {"a": [1]}, {"a": object()}):
        with pytest.raises(TypeError):
            docs.add("a", [1, 2, 3], **attributes)
    with pytest.raises(OverflowError):
        docs.add("a", [1, 2, 3], large=1 << 63)
    with pytest.raises(TypeError):
        docs.add(7, [1, 2, 3])
    with pytest.raises(ValueError):
        docs.search([1, 2, 3], k=0)
    with pytest.raises(ValueError):
        docs.search([1, 2, 3], recall=2)
    assert len(docs) == 0 and list(docs) == []


def test_get_update_remove(db):
    docs = db.collection("docs", dim=2)
    docs.add("a", [1, 2], text="naïve", year=2024, score=0.5, ok=True, none=None, count=numpy.int32(7),
             flag=numpy.bool_(True), share=numpy.float32(0.25), **{"a name": 1})
    item = docs.get("a")
    assert item.id == "a" and item.attributes == {"text": "naïve", "year": 2024, "score": 0.5, "ok": True, "count": 7,
                                                  "flag": True, "share": 0.25, "a name": 1}
    assert item.attributes["ok"] is True and isinstance(item.attributes["flag"], bool)
    docs.update("a", year=2025)
    assert docs.get("a").attributes == {"year": 2025} and docs.get("a").vector == item.vector
    with pytest.raises(basalt.NotFound):
        docs.update("b", year=2025)
    assert "a" in docs and "b" not in docs and docs.get("b") is None and docs.get("b", 1) == 1
    docs.remove("a")
    docs.remove("a")
    assert "a" not in docs and docs.search([1, 2]) == []
    docs.add(b"\xff\x00", [1, 1])
    assert docs.search([1, 1])[0].id == "\udcff\0" == next(iter(docs)) and "\udcff\0" in docs


def test_iteration_goes_by_ids(db):
    docs = filled(db, 1000)
    assert list(docs) == [f"doc/{i:04d}" for i in range(1000)]
    for item, row in zip(docs.items(), rows(1000)):
        assert numpy.array_equal(item.vector, row)
    longest = "z" * 65534
    docs.add(longest, rows(1)[0])
    ids = list(docs)
    assert len(ids) == 1001 and ids[-1] == longest


def test_collections_are_stored(tmp_path):
    with basalt.open(tmp_path / "db") as db:
        filled(db, model="words-1")
        assert db.keyspaces() == ["docs"]
    with basalt.open(tmp_path / "db") as db:
        with pytest.raises(basalt.NotFound):
            db.collection("none")
        for wrong in ({"dim": DIM + 1}, {"metric": "l2"}, {"model": "words-2"}):
            with pytest.raises(basalt.InvalidArgument):
                db.collection("docs", **wrong)
        docs = db.collection("docs")
        for wrong in ({"dim": DIM + 1}, {"metric": "l2"}, {"model": "words-2"}):
            with pytest.raises(basalt.InvalidArgument):
                db.collection("docs", **wrong)
        with pytest.raises(ValueError):
            db.collection("other", 3, metric="hamming")
        assert docs.model == "words-1" and len(docs) == 500
        query = rows(1, seed=9)[0]
        found = docs.search(query)
        docs.compact()
        docs.save_checkpoint()
        assert docs.search(query) == found
        db.drop_keyspace("docs")
        with pytest.raises(basalt.Error):
            docs.add("a", query)
        again = db.collection("docs", dim=2)
        again.add("a", [1, 2])
        assert [hit.id for hit in again.search([1, 2])] == ["a"]


def test_metrics(db):
    for metric, distance in (("l2", 4.0), ("ip", -3.0), ("cosine", 0.0)):
        docs = db.collection(metric, 1, metric)
        docs.add("a", [3])
        hit, = docs.search([1])
        assert docs.metric == metric and hit.distance == pytest.approx(distance)


def test_a_transaction_changes_vectors_and_keys_together(db):
    docs = db.collection("docs", dim=2)
    docs.add("old", [1, 0], year=1)
    with pytest.raises(RuntimeError), db.transaction() as tx:
        tx.collection(docs).remove("old")
        tx.collection(docs).add("new", [0, 1])
        raise RuntimeError
    assert list(docs) == ["old"]
    with db.transaction() as tx:
        inside = tx.collection(docs)
        inside.add("new", [0, 1], year=2)
        inside.add_many(["x", "y"], [[1, 1], [2, 1]])
        inside.update("old", year=3)
        inside.remove("x")
        tx["key"] = b"value"
        assert "new" in inside and "new" not in docs and inside.get("old").attributes == {"year": 3}
        for refused in (lambda: inside.search([1, 0]), lambda: len(inside), lambda: list(inside), inside.compact):
            with pytest.raises(basalt.Unsupported):
                refused()
    assert list(docs) == ["new", "old", "y"] and db["key"] == b"value"
    with pytest.raises(basalt.FailedPrecondition):
        inside.add("late", [1, 1])
    with basalt.open(":memory:") as other, other.transaction() as tx, pytest.raises(ValueError):
        tx.collection(docs)


def test_a_collection_outlives_its_database_object():
    docs = filled(basalt.open(":memory:"))
    ids = iter(docs)
    gc.collect()
    assert len(docs.search(rows(1)[0])) == 10
    del docs
    gc.collect()
    assert len(list(ids)) == 500


def test_a_closed_database_closes_its_collections(tmp_path):
    db = basalt.open(tmp_path / "db")
    docs = filled(db)
    ids = iter(docs)
    db.close()
    for use in (lambda: docs.search(rows(1)[0]), lambda: docs.add("a", rows(1)[0]), lambda: docs.get("a"),
                lambda: len(docs), lambda: next(ids), lambda: iter(docs), lambda: db.collection("docs")):
        with pytest.raises(basalt.FailedPrecondition) as caught:
            use()
        assert caught.value.sub_code == "Closed"
    with basalt.open(tmp_path / "db") as db:
        assert len(db.collection("docs")) == 500


def test_a_collection_is_opened_once(db):
    docs = filled(db)
    assert db.collection("docs").search(rows(1)[0]) == docs.search(rows(1)[0])
    db.collection("docs").add("one", rows(1)[0])
    assert "one" in docs


def test_threads_add_and_search(db):
    docs, points, failures = filled(db, 100), rows(400, seed=3), []

    def write(thread):
        for i in range(thread, 400, 2):
            docs.add(f"new/{i}", points[i], thread=thread)
            assert docs.search(points[i], k=1)[0].id == f"new/{i}"

    def read():
        for query in rows(150, seed=4):
            assert len(docs.search(query, k=20, filter="not thread == 1")) == 20

    def open_again():
        for _ in range(50):
            assert len(db.collection("docs")) >= 100

    def guarded(work, *arguments):
        try:
            work(*arguments)
        except BaseException as error:  # A thread's own would be printed, and lost.
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=work) for work in ((write, 0), (write, 1), (read,), (open_again,))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(docs) == 500
