#!/usr/bin/env python3
"""Measures igraph, NetworkX, LadybugDB and SQLite on the edges that graph_bench has written.

    bench/graph_peers/peers.py DATA NODES

DATA.edges has pairs of 32-bit node numbers, DATA.queries node numbers. Prints a line "subject metric unit value" for
each figure. bench/README.md says what each figure means.
"""

import os
import shutil
import sqlite3
import statistics
import sys
import tempfile
import time
import warnings
from array import array

DURABLE_INSERTS = 200


def numbers(path):
    values = array("I")
    with open(path, "rb") as file:
        values.frombytes(file.read())
    return values


def say(subject, metric, unit, value):
    print(subject, metric, unit, value, flush=True)


def measure(subject, metric, inputs, search):
    """The median processor time of a search, in microseconds, and the median of what it finds. The first is not measured."""
    took = []
    found = []
    search(inputs[0])
    for one in inputs:
        begin = time.process_time()
        answers = search(one)
        took.append((time.process_time() - begin) * 1e6)
        found.append(answers)
    say(subject, metric, "us", statistics.median(took))
    say(subject, metric + "_found", "nodes", statistics.median(found))


def load(subject, count, put):
    begin = time.perf_counter()
    answer = put()
    say(subject, "load", "edges/s", count / (time.perf_counter() - begin))
    return answer


def run_igraph(edges, queries, nodes, directory):
    import igraph

    pairs = list(zip(edges[0::2], edges[1::2]))
    graph = load("igraph", len(pairs), lambda: igraph.Graph(n=nodes, edges=pairs, directed=True))
    del pairs
    measure("igraph", "two_hop", queries, lambda q: graph.neighborhood_size(q, order=2, mode="out") - 1)
    measure("igraph", "page_rank", queries[:5], lambda q: len(
        graph.personalized_pagerank(directed=False, damping=0.5, reset_vertices=[q])))
    pairs = list(zip(queries[:20], queries[1:21]))
    measure("igraph", "path", pairs, lambda p: max(0, len(
        graph.get_shortest_paths(p[0], p[1], mode="out", output="vpath")[0]) - 1))


def run_networkx(edges, queries, nodes, directory):
    import networkx

    graph = networkx.DiGraph()
    graph.add_nodes_from(range(nodes))
    load("networkx", len(edges) // 2, lambda: graph.add_edges_from(zip(edges[0::2], edges[1::2])))

    def path(pair):
        try:
            return len(networkx.bidirectional_shortest_path(graph, *pair)) - 1
        except networkx.NetworkXNoPath:
            return 0

    measure("networkx", "two_hop", queries[:200], lambda q: len(
        networkx.single_source_shortest_path_length(graph, q, cutoff=2)) - 1)
    measure("networkx", "path", list(zip(queries[:20], queries[1:21])), path)


def run_sqlite(edges, queries, nodes, directory):
    connection = sqlite3.connect(os.path.join(directory, "sqlite"), isolation_level=None)
    connection.execute("pragma journal_mode = wal")
    connection.execute("pragma synchronous = off")
    connection.execute("pragma cache_size = -1000000")
    connection.execute("create table edges(source integer, type text, target integer, "
                       "primary key(source, type, target)) without rowid")

    def put():
        connection.execute("begin")
        connection.executemany("insert into edges values(?, 'to', ?)", zip(edges[0::2], edges[1::2]))
        connection.execute("create index by_target on edges(target)")
        connection.execute("commit")

    load("sqlite", len(edges) // 2, put)
    two_hop = ("with recursive near(node, hops) as (values(?, 0) union "
               "select target, hops + 1 from near join edges on source = node where hops < 2) "
               "select count(distinct node) - 1 from near")
    measure("sqlite", "two_hop", queries, lambda q: connection.execute(two_hop, (q,)).fetchone()[0])
    connection.execute("pragma synchronous = full")
    begin = time.perf_counter()
    for i in range(DURABLE_INSERTS):
        connection.execute("insert or replace into edges values(?, 'new', ?)", (i % nodes, (i + 1) % nodes))
    say("sqlite", "durable_insert", "edges/s", DURABLE_INSERTS / (time.perf_counter() - begin))


def run_ladybug(edges, queries, nodes, directory):
    import real_ladybug

    with open(os.path.join(directory, "nodes.csv"), "w", encoding="ascii") as file:
        file.writelines(f"{i}\n" for i in range(nodes))
    with open(os.path.join(directory, "edges.csv"), "w", encoding="ascii") as file:
        file.writelines(f"{a},{b}\n" for a, b in zip(edges[0::2], edges[1::2]))
    database = real_ladybug.Database(os.path.join(directory, "ladybug"))
    connection = real_ladybug.Connection(database, num_threads=1)
    connection.execute("create node table N(id int64, primary key(id))")
    connection.execute("create rel table E(from N to N)")
    connection.execute(f"copy N from '{directory}/nodes.csv'")
    load("ladybug", len(edges) // 2, lambda: connection.execute(f"copy E from '{directory}/edges.csv'"))

    two_hop = connection.prepare("match (a:N {id: $id})-[:E*1..2]->(b:N) where b.id <> $id "
                                 "return count(distinct b.id)")
    path = connection.prepare("match (a:N {id: $a})-[e:E* shortest 1..20]->(b:N {id: $b}) return length(e)")

    def length(pair):
        result = connection.execute(path, {"a": pair[0], "b": pair[1]})
        return result.get_next()[0] if result.has_next() else 0

    measure("ladybug", "two_hop", queries[:200],
            lambda q: connection.execute(two_hop, {"id": q}).get_next()[0])
    measure("ladybug", "path", [p for p in zip(queries[:10], queries[1:11]) if p[0] != p[1]], length)
    insert = connection.prepare("match (a:N {id: $a}), (b:N {id: $b}) create (a)-[:E]->(b)")
    begin = time.perf_counter()
    for i in range(DURABLE_INSERTS):
        connection.execute(insert, {"a": i % nodes, "b": (i + 1) % nodes})
    say("ladybug", "durable_insert", "edges/s", DURABLE_INSERTS / (time.perf_counter() - begin))


def main():
    warnings.simplefilter("ignore")
    data, nodes = sys.argv[1], int(sys.argv[2])
    edges = numbers(data + ".edges")
    queries = list(numbers(data + ".queries"))
    failed = False
    for run in (run_igraph, run_sqlite, run_ladybug, run_networkx):
        directory = tempfile.mkdtemp(dir=os.path.dirname(data))
        try:
            run(edges, queries, nodes, directory)
        except Exception as error:  # One peer that fails leaves the others their figures.
            print(f"{run.__name__}: {error}", file=sys.stderr)
            failed = True
        finally:
            shutil.rmtree(directory, ignore_errors=True)
    sys.exit(1 if failed else 0)


main()
