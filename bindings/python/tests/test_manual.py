"""What docs/python.md shows of collections, graphs, corpora and transactions, run as it stands there."""

import basalt
import numpy
import pytest


@pytest.fixture
def db():
    with basalt.open(":memory:") as opened:
        yield opened


def test_collections(db):
    vector, query = numpy.ones(384), numpy.ones(384)
    docs = db.collection("docs", dim=384, model="all-MiniLM-L6-v2")
    docs.add("doc/7", vector, lang="en", year=2024)
    docs.add_many(["doc/8", "doc/9"], numpy.eye(2, 384), attributes=[{"lang": "en"}, {"lang": "de"}])
    for hit in docs.search(query, k=10, filter="lang == 'en' and year >= 2020"):
        print(hit.id, hit.distance, hit.score, hit.attributes)
    assert len(docs) == 3


def test_graphs(db):
    graph = db.graph()
    graph.put_node("ada", ["Person"], {"born": 1815})
    graph.put_node("engine", "Machine")
    graph.put_edge("ada", "wrote about", "engine", weight=0.5)
    found = graph.traverse("ada").out("wrote about").has_label("Machine").run()
    assert found == ["engine"]


def test_corpora_with_vectors(db):
    class model:
        encode = staticmethod(lambda texts: [[float(len(text)), 1.0] for text in texts])

    notes = db.corpus("notes", embed=model.encode, dim=2, model="lengths")
    notes.ingest("ada.md", "Ada Lovelace wrote notes about the engine.")
    assert notes.retrieve("notes about the engine", k=1)[0].source == "ada.md"


def test_transactions(db):
    vector = numpy.ones(3)
    docs, graph = db.collection("docs", dim=3), db.graph()
    with db.transaction() as tx:
        tx.collection(docs).add("doc/7", vector, lang="en")
        tx.graph(graph).put_node("doc/7")
        tx["seen/doc/7"] = "today"
    assert (len(docs), db["seen/doc/7"]) == (1, b"today")
