"""Basalt: an embedded storage engine.

    import basalt

    with basalt.open("/var/lib/app/db") as db:      # or ":memory:"
        db["user/42"] = b"Ada"
        for key, value in db.scan(prefix="user/"):
            ...

Keys and values are bytes. A str is taken as its UTF-8, and what is read is always bytes.
"""

import random as _random
import time as _time
from collections.abc import (ItemsView as _ItemsView, KeysView as _KeysView, Mapping as _Mapping,
                             MutableMapping as _MutableMapping, ValuesView as _ValuesView)
from typing import NamedTuple as _NamedTuple, Optional as _Optional

from . import _native
from ._native import (Aborted, AlreadyExists, Batch, Busy, Cache, Cancelled, Collection, Corpus,
                      Corruption, DB, DeadlineExceeded, Error, FailedPrecondition, Graph,
                      InvalidArgument, IoError, Keyspace,
                      MemTable, NotFound, OutOfRange, PermissionDenied, ResourceExhausted, SharedMap,
                      Snapshot, Store, Transaction, TypeMismatch, Unavailable, Unsupported, WouldBlock,
                      destroy, open)
from ._types import (Edge, Hit, Ingested, Item, Neighbor, Node, NodeDistance, NodeScore, Passage,
                     Passages, Path, ReadLimits, Results, ScoreParts, Traversal)

__all__ = ["Aborted", "AlreadyExists", "Batch", "Busy", "Cache", "Cancelled", "CheckReport",
           "Collection", "Corpus", "Corruption", "DB", "DeadlineExceeded", "Edge", "Entry",
           "Error", "FailedPrecondition", "Graph", "Hit", "Ingested", "InvalidArgument", "IoError",
           "Item", "Keyspace", "MemTable", "Neighbor", "Node", "NodeDistance", "NodeScore",
           "NotFound", "OutOfRange", "Passage", "Passages", "Path", "PermissionDenied",
           "ReadLimits", "ResourceExhausted", "Results", "ScoreParts", "SharedMap", "Snapshot",
           "Store", "Transaction", "Traversal", "TypeMismatch", "Unavailable", "Unsupported",
           "WouldBlock", "check", "counter", "destroy", "open"]


class Entry(_NamedTuple):
    """A value with what the store knows of its record."""

    value: bytes
    version: int  # Changes with each write; for Batch.require_unchanged.
    expiry: _Optional[float]  # Seconds since 1970 UTC, as time.time().


class CheckReport(_NamedTuple):
    """What check() found; `figures` has the counts, `findings` what is damaged."""

    ok: bool
    findings: list
    figures: dict


def check(path) -> CheckReport:
    """Reads every byte of a database that nobody has open."""
    report = _native._check(path)
    return CheckReport(report.pop("ok"), report.pop("findings"), report)


def counter(value: bytes) -> int:
    """The number that merges of "add", "min" and "max" have left."""
    if len(value) != 8:
        raise ValueError("a counter has 8 bytes")
    return int.from_bytes(value, "little", signed=True)


class _StoreItems(_ItemsView):
    def __iter__(self):
        return self._mapping.scan()

    def __reversed__(self):
        return self._mapping.scan(reverse=True)


class _StoreValues(_ValuesView):
    def __iter__(self):
        return self._mapping.scan_values()

    def __reversed__(self):
        return self._mapping.scan_values(reverse=True)


_MISSING = object()


def _get_entry(self, key):
    found = self._get_entry(key)
    return None if found is None else Entry(*found)


def _pop(self, key, default=_MISSING):
    """Removes the key and gives its value, as one atomic step."""
    value = self._take(key, default)
    if value is _MISSING:
        raise KeyError(key)
    return value


def _popitem(self):
    """Removes and gives the first record."""
    while True:
        for key in self.scan_keys():
            value = self._take(key, _MISSING)
            if value is not _MISSING:
                return key, value
            break
        else:
            raise KeyError("the store is empty")


def _setdefault(self, key, default):
    """The value; where the key is absent, `default`, which is put then."""
    while True:
        if self.put_if_absent(key, default):
            return default.encode() if isinstance(default, str) else bytes(default)
        value = self.get(key)
        if value is not None:
            return value


def _update(self, other=(), /, **pairs):
    """Puts many records, as one batch."""
    with self.batch() as batch:
        records = ((key, other[key]) for key in other.keys()) if hasattr(other, "keys") else other
        for key, value in records:
            batch[key] = value
        for key, value in pairs.items():
            batch[key] = value


def _clear(self):
    """Removes all records."""
    with self.batch() as batch:
        last = next(self.scan_keys(reverse=True), None)
        if last is not None:
            batch.delete_range(b"", last)
            batch.delete(last)


def _clear_map(self):
    """Removes all records, one by one."""
    for key in self:
        self.delete(key)


def _transact(self, fn, *, attempts=32):
    """Calls `fn(transaction)` and commits; again while another writer was faster.

    Gives what `fn` returned. `fn` may be called several times.
    """
    pause = 50e-6
    while True:
        try:
            with self.transaction() as transaction:
                return fn(transaction)
        except Aborted:
            attempts -= 1
            if attempts <= 0:
                raise
        _time.sleep(_random.random() * pause)
        pause = min(pause * 2, 0.02)


def _as_mapping(cls):
    cls.keys = lambda self: _KeysView(self)
    cls.items = lambda self: _StoreItems(self)
    cls.values = lambda self: _StoreValues(self)
    cls.__eq__ = _Mapping.__eq__
    cls.__hash__ = None
    _Mapping.register(cls)


for _cls in (Store, Snapshot, Transaction):
    _as_mapping(_cls)
Store.get_entry = _get_entry
Store.pop = _pop
Store.popitem = _popitem
Store.setdefault = _setdefault
Store.update = _update
Store.clear = _clear
Store.transact = _transact
_MutableMapping.register(Store)


def _traversal(self, start):
    """A traversal that begins at a node."""
    return Traversal(self, start)


Graph.traverse = _traversal

for _name in ("keys", "values", "pop", "popitem", "setdefault", "update"):
    setattr(SharedMap, _name, getattr(_MutableMapping, _name))
SharedMap.clear = _clear_map
SharedMap.items = lambda self: self._items()
_MutableMapping.register(SharedMap)
