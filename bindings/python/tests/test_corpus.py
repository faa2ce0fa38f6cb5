"""Corpora: documents found by their passages."""

import gc
import threading

import basalt
import numpy
import pytest

PAGES = {
    "ada.md": ("Ada Lovelace", """\
Ada Lovelace was born in London in 1815. Her mother had her taught mathematics, so that she would not become a poet
like Lord Byron, her father.

In 1833 she met Charles Babbage at a party. He showed her a small part of the Difference Engine, which impressed her –
“as it should”, he said.

She translated an article by Luigi Menabrea about the Analytical Engine. Her notes are three times as long as the
article, and Note G has the steps by which the machine would compute Bernoulli numbers.
"""),
    "babbage.md": ("Charles Babbage", """\
Charles Babbage held the chair of mathematics in Cambridge from 1828 to 1839, and never gave a lecture.

The British government paid for the Difference Engine, which was to print tables of logarithms without errors. The
work ended after a quarrel with Joseph Clement, the engineer who made its parts.

He fought against street musicians in his old age, because organ grinders cost him a quarter of his working time.
"""),
    "loom.md": ("Jacquard loom", """\
Joseph Marie Jacquard showed his loom in 1801. Punched cards, laced into a chain, raise the threads of the warp.

A woven portrait of Jacquard took 24,000 cards. Charles Babbage owned one, and meant to give programs to the
Analytical Engine in the same way.
"""),
}


@pytest.fixture
def db():
    with basalt.open(":memory:") as opened:
        yield opened


@pytest.fixture
def pages(db):
    corpus = db.corpus()
    for source, (title, text) in PAGES.items():
        assert corpus.ingest(source, text, title).passages >= 1
    return corpus


def test_retrieve_finds_the_passage_that_answers(pages):
    for query, source, words in (("Who translated the article of Menabrea?", "ada.md", "Luigi Menabrea"),
                                 ("street musicians and organ grinders", "babbage.md", "organ grinders"),
                                 ("How many cards for the woven portrait?", "loom.md", "24,000")):
        found = pages.retrieve(query, k=2)
        assert 1 <= len(found) <= 2 and found[0].source == source and words in found[0].text
        for passage in found:
            title, text = PAGES[passage.source]
            assert passage.title == title and passage.text == text.encode()[passage.begin:passage.end].decode()
            assert passage.score == pytest.approx(passage.parts.hybrid + passage.parts.links)
            assert passage.parts.dense is None and passage.evidence == []
        assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
        assert found.tokens == sum(each.tokens for each in found)


def test_the_token_budget_holds(pages):
    everything = pages.retrieve("Charles Babbage", k=50)
    assert len(everything) >= 3 and not everything.truncated and everything.duplicates == 0
    for max_tokens in (0, 150, everything.tokens - 1):
        found = pages.retrieve("Charles Babbage", k=50, max_tokens=max_tokens)
        assert found.tokens <= max_tokens and found.truncated and len(found) < len(everything)


def test_links_explain(db):
    corpus = db.corpus()
    corpus.ingest("a", "Ada Lovelace wrote to Charles Babbage about poetry.", title="Ada Lovelace")
    corpus.ingest("b", "Charles Babbage lived in Dorset Street.", title="Charles Babbage")
    corpus.ingest("c", "Cats sleep.")
    found = corpus.retrieve("poetry", explain=True)
    assert [each.source for each in found][:2] == ["a", "b"] and found[1].parts.bm25 is None
    assert found[1].parts.links > 0 and found[1].evidence[0].startswith("passage/a")
    assert [each.source for each in corpus.retrieve("poetry", link_weight=0)] == ["a"]
    assert corpus.graph.node("entity/charles babbage").labels == ("Entity",) and corpus.graph.verify() == []
    with pytest.raises(ValueError):
        corpus.retrieve("poetry", link_weight=-1)


def test_replace_and_forget(db):
    corpus = db.corpus("notes")
    corpus.ingest("a", "the old text speaks of whales")
    corpus.ingest("a", "the new text speaks of lions")
    assert corpus.retrieve("whales") == [] and [each.source for each in corpus.retrieve("lions")] == ["a"]
    assert corpus.forget("a") and not corpus.forget("a") and corpus.retrieve("lions") == []
    assert corpus.graph.stats()["nodes"] == 0


def test_stemmer(db):
    try:
        stemmed = db.corpus("stemmed", "english")
    except basalt.InvalidArgument as error:
        pytest.skip(str(error))
    plain = db.corpus("plain", stemmer="")
    for corpus in (stemmed, plain):
        corpus.ingest("a", "foxes were jumping")
    assert stemmed.retrieve("jumps") and not plain.retrieve("jumps")
    assert db.corpus("stemmed").retrieve("jumps")
    with pytest.raises(basalt.InvalidArgument):
        db.corpus("stemmed", stemmer="german")
    with pytest.raises(basalt.InvalidArgument):
        db.corpus("other", stemmer="klingon")


def test_errors(db):
    corpus = db.corpus()
    for source, title in (("", ""), ("a" * 901, ""), ("a", "t" * 1001)):
        with pytest.raises(basalt.InvalidArgument):
            corpus.ingest(source, "text", title)
    with pytest.raises(TypeError):
        corpus.ingest("a", 7)
    with pytest.raises(basalt.NotFound):
        db.corpus("none", create=False)


def test_texts_that_are_no_utf8_are_kept(db):
    corpus = db.corpus()
    corpus.ingest("a", b"caf\xe9 noir and naive words", title="Café")
    passage, = corpus.retrieve("noir")
    assert passage.text == "caf\udce9 noir and naive words" and passage.title == "Café"
    assert passage.text.encode(errors="surrogateescape") == b"caf\xe9 noir and naive words"


def test_a_transaction_ingests_with_keys(db):
    corpus = db.corpus()
    with pytest.raises(RuntimeError), db.transaction() as tx:
        tx.corpus(corpus).ingest("a", "a text about whales")
        raise RuntimeError
    assert corpus.retrieve("whales") == []
    with db.transaction() as tx:
        inside = tx.corpus(corpus)
        inside.ingest("a", "a text about whales")
        inside.ingest("b", "a text about lions")
        assert inside.forget("b") and inside.graph.node("document/a") and corpus.graph.node("document/a") is None
        tx["seen/a"] = b"today"
        for refused in (lambda: inside.retrieve("whales"), inside.tidy):
            with pytest.raises(basalt.Unsupported):
                refused()
    corpus.tidy()
    assert [each.source for each in corpus.retrieve("whales lions")] == ["a"] and db["seen/a"] == b"today"


TOPICS = (("cat", "feline", "tiger"), ("car", "vehicle", "lorry"), ("bread", "baker", "flour"))


def embed(texts):
    """How often each topic is named: a model whose answers are known."""
    return [[0.1 + sum(text.lower().count(word) for word in topic) for topic in TOPICS] for text in texts]


def test_vectors_find_other_words_for_the_same_thing(tmp_path):
    texts = {"a": "The tiger sleeps.", "b": "A lorry stood there.", "c": "Flour and water."}
    with basalt.open(tmp_path / "db") as db:
        corpus = db.corpus(embed=embed, dim=3, model="topics")
        for source, text in texts.items():
            corpus.ingest(source, text)
    with basalt.open(tmp_path / "db") as db:
        corpus = db.corpus(embed=lambda texts: numpy.array(embed(texts)), dim=3)
        for query, source in (("feline", "a"), ("vehicle", "b"), ("baker", "c")):
            best = corpus.retrieve(query)[0]
            assert best.source == source and best.parts.dense > 0.9 and best.parts.bm25 is None
        with db.transaction() as tx:
            tx.corpus(corpus).ingest("d", "A baker drives a cat.")
            assert tx.corpus(corpus).forget("c")
        assert corpus.retrieve("flour")[0].source == "d"
        with pytest.raises(ValueError):
            db.corpus(embed=embed, dim=4)
        with pytest.raises(ValueError):
            db.corpus(embed=embed, dim=3, model="other")
        for arguments in ({"embed": embed}, {"dim": 3}):
            with pytest.raises(ValueError):
                db.corpus(**arguments)
        graph, corpus = corpus.graph, None
        gc.collect()
        assert graph.node("document/a")


def test_what_embed_raises_is_raised(db):
    answers = {}
    corpus = db.corpus(embed=lambda texts: answers["now"](texts), dim=3)

    def fail(texts):
        raise LookupError("no model")

    for answer, error in ((fail, LookupError), (lambda texts: 7, TypeError), (lambda texts: [], ValueError),
                          (lambda texts: [[1, 2]] * len(texts), ValueError), (lambda texts: ["abc"], TypeError),
                          (lambda texts: [[float("nan")] * 3], ValueError)):
        answers["now"] = answer
        for call in (lambda: corpus.ingest("a", "text"), lambda: corpus.retrieve("text")):
            with pytest.raises(error):
                call()
    with pytest.raises(basalt.InvalidArgument), db.transaction() as tx:
        tx.corpus(corpus).ingest("", "text")
    answers["now"] = embed
    assert corpus.graph.stats()["nodes"] == 0 and corpus.retrieve("text") == []
    corpus.ingest("a", "text")
    assert [each.source for each in corpus.retrieve("text")] == ["a"]


def test_lifetime(tmp_path):
    db = basalt.open(tmp_path / "db")
    corpus = db.corpus()
    corpus.ingest("a", "a text about whales")
    graph = corpus.graph
    del db, corpus
    gc.collect()
    assert graph.node("document/a").labels == ("Document",)
    del graph
    gc.collect()
    with basalt.open(tmp_path / "db") as db:
        corpus = db.corpus(create=False)
        assert len(corpus.retrieve("whales")) == 1
    for use in (lambda: corpus.retrieve("whales"), lambda: corpus.ingest("a", "b"), lambda: corpus.graph.node("a")):
        with pytest.raises(basalt.FailedPrecondition) as caught:
            use()
        assert caught.value.sub_code == "Closed"


def test_threads(db):
    corpus, failures = db.corpus(embed=embed, dim=3), []

    def work(thread):
        try:
            for i in range(20):
                corpus.ingest(f"{thread}/{i}", f"Thread{thread} writes word{i} about Moby Dick.")
                assert any(each.source == f"{thread}/{i}" for each in corpus.retrieve(f"thread{thread} word{i}"))
                if i % 4 == 0:
                    assert corpus.forget(f"{thread}/{i}")
        except BaseException as error:  # A thread's own would be printed, and lost.
            failures.append(error)

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures
    assert corpus.graph.stats()["removals"] == 0 and corpus.graph.verify() == []
