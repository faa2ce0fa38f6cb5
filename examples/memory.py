"""A memory of texts: remembers documents, retrieves passages within a token budget, and links facts in a graph."""

import basalt

TEXTS = {
    "notes/ada.md": ("Ada Lovelace", "Ada Lovelace was a mathematician in London. She translated a paper about the "
                     "Analytical Engine and added notes that are longer than the paper."),
    "notes/engine.md": ("Analytical Engine", "Charles Babbage designed the Analytical Engine. It had a mill and a "
                        "store, and was to be driven by steam. It was never finished."),
    "notes/jacquard.md": ("Jacquard loom", "Joseph Jacquard built a loom that read its pattern from punched cards. "
                          "The Analytical Engine was to read its programs from such cards."),
}

with basalt.open("memory-py.db") as db:
    memory = db.corpus("memory")
    for source, (title, text) in TEXTS.items():
        memory.ingest(source, text, title=title)  # A known source is replaced.

    found = memory.retrieve("Who wrote notes about the engine?", k=3, max_tokens=100, explain=True)
    for passage in found:
        print(f"{passage.score:6.2f} {passage.source} [{passage.begin}:{passage.end}] {passage.text[:40]}...")
    print(found.tokens, "tokens; more was left out:", found.truncated)

    # Facts are nodes and edges. The change is one transaction.
    facts = db.graph("facts")
    with db.transaction() as tx:
        change = tx.graph(facts)
        change.put_node("ada", "Person", {"born": 1815})
        change.put_node("babbage", "Person", {"born": 1791})
        change.put_node("engine", "Machine")
        change.put_edge("ada", "wrote about", "engine", properties={"source": "notes/ada.md"})
        change.put_edge("babbage", "designed", "engine")
    print([neighbor.id for neighbor in facts.neighbors("engine", direction="in")])
    print(facts.shortest_path("ada", "babbage", direction="both").nodes)
    print(list(facts.traverse("ada").out("wrote about").in_("designed").has_label("Person")))

    # Vectors of your own model, found by nearness. These have three dimensions.
    topics = db.collection("topics", dim=3)
    topics.add("notes/ada.md", [0.9, 0.1, 0.0], lang="en", year=1843)
    topics.add("notes/engine.md", [0.2, 0.9, 0.1], lang="en", year=1837)
    for hit in topics.search([1.0, 0.0, 0.0], k=1, filter="lang == 'en' and year >= 1840"):
        print(hit.id, round(hit.score, 3), hit.attributes)

    memory.forget("notes/jacquard.md")
