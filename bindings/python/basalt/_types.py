"""What collections, graphs and corpora return."""

from typing import NamedTuple, Optional


class Item(NamedTuple):
    """A vector of a collection."""

    id: str
    vector: object  # An array.array of float32; numpy.asarray(item.vector) makes no copy.
    attributes: dict


class Hit(NamedTuple):
    """A vector that a search found."""

    id: str
    distance: float  # Small is near.
    score: float  # Large is near.
    attributes: dict


class Results(list):
    """A list of answers. `truncated`: a limit left something out."""

    truncated = False


class Node(NamedTuple):
    id: str
    labels: tuple
    properties: dict


class Edge(NamedTuple):
    source: str
    type: str
    target: str
    discriminator: str
    weight: float
    properties: dict
    valid_from: object
    valid_to: object
    expiry: object


class Neighbor(NamedTuple):
    """An edge as it is seen from one of its nodes; `id` is the other one."""

    id: str
    type: str
    direction: str  # "out" or "in"
    discriminator: str
    weight: float


class NodeDistance(NamedTuple):
    id: str
    hops: int


class NodeScore(NamedTuple):
    id: str
    score: float


class Path(NamedTuple):
    """A way through a graph: edges[i] leads from nodes[i] to nodes[i + 1]."""

    nodes: list
    edges: list
    cost: float  # Edges, or the sum of their weights.
    truncated: bool  # A limit was reached: there may be a shorter path.


class ReadLimits(NamedTuple):
    """Bounds of one search in a graph."""

    visited_max: int = 1_000_000  # Nodes.
    fan_out_max: int = 1_000_000  # Edges that are followed from one node.
    bytes_max: int = 256 << 20
    time_max: Optional[float] = None  # Seconds, or a timedelta.


class Traversal:
    """A traversal, step by step; run() reads it. Each method gives a new one."""

    def __init__(self, graph, start, steps=(), time=None, limits=None):
        self._graph, self._start, self._steps, self._time, self._limits = graph, start, steps, time, limits

    def _then(self, kind, argument):
        return Traversal(self._graph, self._start, (*self._steps, (kind, argument)), self._time, self._limits)

    def out(self, *types):
        """Goes on to the nodes behind edges of these types; without types, of all."""
        return self._then("out", types)

    def in_(self, *types):
        """The same against the direction of the edges."""
        return self._then("in", types)

    def both(self, *types):
        """The same in both directions."""
        return self._then("both", types)

    def has_label(self, label):
        """Keeps nodes with a label."""
        return self._then("has_label", label)

    def limit(self, count):
        """Keeps the first `count` nodes."""
        return self._then("limit", count)

    def as_of(self, time):
        """Follows only edges that were valid at this time; for all steps."""
        return Traversal(self._graph, self._start, self._steps, time, self._limits)

    def within(self, limits):
        """Bounds the whole traversal."""
        return Traversal(self._graph, self._start, self._steps, self._time, limits)

    def run(self):
        """The ids of the nodes, each once, in the order in which they were found."""
        return self._graph._traverse(self._start, self._steps, self._time, self._limits)

    def __iter__(self):
        return iter(self.run())


class Ingested(NamedTuple):
    passages: int
    entities: int  # Distinct entities that the document names.


class ScoreParts(NamedTuple):
    """What a passage's score is made of; docs/retrieval.md has the formulas."""

    bm25: Optional[float]
    dense: Optional[float]
    hybrid: float
    page_rank: float
    links: float


class Passage(NamedTuple):
    source: str
    title: str
    text: str
    begin: int  # The bytes [begin, end) of the document's UTF-8.
    end: int
    score: float
    parts: ScoreParts
    tokens: int
    evidence: list


class Passages(Results):
    """Passages, best first, with the sum of their tokens."""

    tokens = 0
    duplicates = 0  # Passages left out because a better one has almost the same words.
