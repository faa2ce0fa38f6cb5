#!/usr/bin/env python3
"""Compares the Python package with lmdb, plyvel (LevelDB) and rocksdict (RocksDB) in one run.

    bench/python_bench.py [--records N] [--rounds N]     needs: pip install . lmdb plyvel rocksdict

Each round does the same on every engine, one after the other, in a fresh directory: 16-byte keys in random order,
100-byte values. Figures are the medians of the rounds, in nanoseconds per record, with the range of the rounds. What is
put survives a killed process: lmdb commits each put without a sync, the others write to their log without a sync. The
floor is what Python takes to call a method of the module that does nothing with a key.
"""

import argparse
import gc
import random
import shutil
import statistics
import tempfile
import time

import basalt
import lmdb
import plyvel
import rocksdict

BATCH = 1000


class Basalt:
    def __init__(self, path):
        self.db = basalt.open(path, memory_budget=1 << 30)

    def put(self, records):
        put = self.db.put
        for key, value in records:
            put(key, value)

    def batches(self, records):
        for begin in range(0, len(records), BATCH):
            with self.db.batch() as batch:
                for key, value in records[begin:begin + BATCH]:
                    batch[key] = value

    def get(self, keys):
        get = self.db.get
        for key in keys:
            get(key)

    def scan(self):
        return sum(1 for _ in self.db.scan())

    def close(self):
        self.db.close()


class Lmdb:
    def __init__(self, path):
        self.env = lmdb.open(path, map_size=4 << 30, sync=False, metasync=False)

    def put(self, records):
        for key, value in records:
            with self.env.begin(write=True) as transaction:
                transaction.put(key, value)

    def batches(self, records):
        for begin in range(0, len(records), BATCH):
            with self.env.begin(write=True) as transaction:
                for key, value in records[begin:begin + BATCH]:
                    transaction.put(key, value)

    def get(self, keys):
        with self.env.begin() as transaction:  # One for all: the best that lmdb can do.
            get = transaction.get
            for key in keys:
                get(key)

    def scan(self):
        with self.env.begin() as transaction:
            return sum(1 for _ in transaction.cursor())

    def close(self):
        self.env.close()


class Plyvel:
    def __init__(self, path):
        self.db = plyvel.DB(path, create_if_missing=True, write_buffer_size=256 << 20, lru_cache_size=512 << 20,
                            bloom_filter_bits=10)

    def put(self, records):
        put = self.db.put
        for key, value in records:
            put(key, value)

    def batches(self, records):
        for begin in range(0, len(records), BATCH):
            with self.db.write_batch() as batch:
                for key, value in records[begin:begin + BATCH]:
                    batch.put(key, value)

    def get(self, keys):
        get = self.db.get
        for key in keys:
            get(key)

    def scan(self):
        return sum(1 for _ in self.db.iterator())

    def close(self):
        self.db.close()


class RocksDict:
    def __init__(self, path):
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_write_buffer_size(256 << 20)
        self.db = rocksdict.Rdict(path, options)

    def put(self, records):
        db = self.db
        for key, value in records:
            db[key] = value

    def batches(self, records):
        for begin in range(0, len(records), BATCH):
            batch = rocksdict.WriteBatch(raw_mode=True)
            for key, value in records[begin:begin + BATCH]:
                batch.put(key, value)
            self.db.write(batch)

    def get(self, keys):
        get = self.db.get
        for key in keys:
            get(key)

    def scan(self):
        return sum(1 for _ in self.db.items())

    def close(self):
        self.db.close()


ENGINES = {"basalt": Basalt, "lmdb": Lmdb, "plyvel": Plyvel, "rocksdict": RocksDict}
FIGURES = ("put", "batch", "get", "scan")


def timed(count, fn, *arguments):
    begin = time.perf_counter_ns()
    fn(*arguments)
    return (time.perf_counter_ns() - begin) / count


def measure(engine, records, keys):
    """One round of one engine."""
    figures = {}
    for name in ("put", "batch"):
        folder = tempfile.mkdtemp()
        db = engine(folder)
        figures[name] = timed(len(records), db.put if name == "put" else db.batches, records)
        if name == "batch":
            db.get(keys[:1000])
            figures["get"] = timed(len(keys), db.get, keys)
            figures["scan"] = timed(len(records), db.scan)
        db.close()
        shutil.rmtree(folder)
    return figures


def floor(keys):
    """A call with one argument, which raises nothing and finds nothing."""
    contains = basalt.Cache(1 << 16).get

    def calls():
        for key in keys:
            contains(key)

    return timed(len(keys), calls)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rng = random.Random(1)
    records = [(b"%016x" % rng.getrandbits(64), rng.randbytes(100)) for _ in range(arguments.records)]
    keys = [rng.choice(records)[0] for _ in range(arguments.records)]
    rounds = {name: [] for name in ENGINES}
    floors = []
    gc.disable()
    for _ in range(arguments.rounds):
        for name, engine in ENGINES.items():
            rounds[name].append(measure(engine, records, keys))
        floors.append(floor(keys))

    print(f"{'ns a record':12}" + "".join(f"{figure:>24}" for figure in FIGURES))
    medians = {}
    for name, measured in rounds.items():
        line = f"{name:12}"
        for figure in FIGURES:
            values = [values[figure] for values in measured]
            medians[name, figure] = statistics.median(values)
            line += f"{medians[name, figure]:12.0f} ({min(values):.0f}-{max(values):.0f})".rjust(24)
        print(line)
    line = f"{'over best':12}"
    for figure in FIGURES:
        best = min(medians[name, figure] for name in ENGINES if name != "basalt")
        line += f"{best / medians['basalt', figure]:.2f}x".rjust(24)
    print(line)
    print(f"floor of a call: {statistics.median(floors):.0f}")


if __name__ == "__main__":
    main()
