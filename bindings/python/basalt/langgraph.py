"""A checkpointer and a store for LangGraph, in keyspaces of a database.

    db = basalt.open("agent.db")
    graph = builder.compile(checkpointer=BasaltSaver(db), store=BasaltStore(db))

It needs the package langgraph-checkpoint: pip install basalt-store[langgraph]. Both may be used by several threads.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Optional, cast

from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.checkpoint.serde.base import SerializerProtocol

    from basalt import DB

__all__ = ["BasaltSaver", "BasaltStore"]


def _key(*parts: str) -> bytes:
    """Joins texts to a key: keys are in the order of their parts. A byte 0 becomes 0 255; a part ends with 0 1."""
    return b"".join(part.encode().replace(b"\0", b"\0\xff") + b"\0\1" for part in parts)


def _parts(key: bytes) -> list[str]:
    return [part.replace(b"\0\xff", b"\0").decode() for part in key.split(b"\0\1")[:-1]]


def _pack(*fields: bytes) -> bytes:
    """Joins byte strings, each behind its size in 4 bytes."""
    return b"".join(len(field).to_bytes(4, "big") + field for field in fields)


def _unpack(record: bytes) -> list[bytes]:
    fields = []
    at = 0
    while at < len(record):
        end = at + 4 + int.from_bytes(record[at : at + 4], "big")
        fields.append(record[at + 4 : end])
        at = end
    return fields


def _config(thread: str, namespace: str, checkpoint: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint}}


class BasaltSaver(BaseCheckpointSaver[int]):
    """Keeps the checkpoints of threads in a keyspace. The keys, whose parts _key joins:

    checkpoint THREAD NAMESPACE CHECKPOINT          the checkpoint without values, its metadata, its parent
    value THREAD NAMESPACE CHANNEL VERSION          the value of a channel
    write THREAD NAMESPACE CHECKPOINT TASK INDEX    a pending write

    A checkpoint and its values are one transaction. After delete_for_runs and prune, a DeltaChannel may miss the writes
    of what was deleted: its history ends there.
    """

    def __init__(self, db: DB, *, keyspace: str = "langgraph/checkpoints",
                 serde: Optional[SerializerProtocol] = None) -> None:
        super().__init__(serde=serde)
        self._db = db
        self._records = db.keyspace(keyspace)

    def put(self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata,
            new_versions: ChannelVersions) -> RunnableConfig:
        place = config["configurable"]
        thread, namespace = str(place["thread_id"]), place.get("checkpoint_ns", "")
        kept: dict[str, Any] = {**checkpoint}
        values = kept.pop("channel_values")
        record = _pack(*self._dump(kept), *self._dump(get_checkpoint_metadata(config, metadata)),
                       (place.get("checkpoint_id") or "").encode())
        with self._db.batch() as batch:
            records = batch.keyspace(self._records)
            for channel, version in new_versions.items():
                if channel in values:
                    key = _key("value", thread, namespace, channel, repr(version))
                    records[key] = _pack(*self._dump(values[channel]))
            records[_key("checkpoint", thread, namespace, checkpoint["id"])] = record
        return _config(thread, namespace, checkpoint["id"])

    def put_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str,
                   task_path: str = "") -> None:
        place = config["configurable"]
        prefix = ("write", str(place["thread_id"]), place.get("checkpoint_ns", ""), place["checkpoint_id"], task_id)
        packed = [(channel, _pack(channel.encode(), *self._dump(value), task_path.encode()))
                  for channel, value in writes]

        def change(tx: Any) -> None:
            records = tx.keyspace(self._records)
            for i, (channel, record) in enumerate(packed):
                index = WRITES_IDX_MAP.get(channel, i)
                key = _key(*prefix, str(index))
                # Special writes replace each other; a task that is done again keeps its first ones.
                if index < 0 or key not in records:
                    records[key] = record

        self._db.transact(change)

    def get_tuple(self, config: RunnableConfig) -> Optional[CheckpointTuple]:
        place = config["configurable"]
        thread, namespace = str(place["thread_id"]), place.get("checkpoint_ns", "")
        checkpoint = get_checkpoint_id(config)
        if not checkpoint:
            latest = next(self._records.scan_keys(prefix=_key("checkpoint", thread, namespace), reverse=True), None)
            if latest is None:
                return None
            checkpoint = _parts(latest)[-1]
        return self._tuple(thread, namespace, checkpoint)

    def list(self, config: Optional[RunnableConfig], *, filter: Optional[dict[str, Any]] = None,
             before: Optional[RunnableConfig] = None, limit: Optional[int] = None) -> Iterator[CheckpointTuple]:
        prefix = ["checkpoint"]
        only = end = None
        if config:
            prefix.append(str(config["configurable"]["thread_id"]))
            if config["configurable"].get("checkpoint_ns") is not None:
                prefix.append(config["configurable"]["checkpoint_ns"])
            only = get_checkpoint_id(config)
        if before:
            end = get_checkpoint_id(before)
        keys = [_parts(key)[1:] for key in self._records.scan_keys(prefix=_key(*prefix))]
        count = 0
        for thread, namespace, checkpoint in sorted(keys, key=lambda parts: parts[2], reverse=True):
            if limit is not None and count >= limit:
                return
            if (only and checkpoint != only) or (end and checkpoint >= end):
                continue
            found = self._tuple(thread, namespace, checkpoint, filter)
            if found:
                count += 1
                yield found

    def delete_thread(self, thread_id: str) -> None:
        with self._db.batch() as batch:
            self._delete_below(batch, thread_id)

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        runs = set(run_ids)
        self._delete_checkpoints(lambda _, metadata: metadata.get("run_id") in runs)

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        with self._db.batch() as batch:
            records = batch.keyspace(self._records)
            for kind in ("checkpoint", "value", "write"):
                for key, record in self._records.scan(prefix=_key(kind, source_thread_id)):
                    _, _, *rest = _parts(key)
                    records[_key(kind, target_thread_id, *rest)] = record

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        if strategy == "delete":
            for thread in thread_ids:
                self.delete_thread(thread)
        elif strategy == "keep_latest":
            latest: dict[tuple[str, str], str] = {}
            for thread in thread_ids:
                for key in self._records.scan_keys(prefix=_key("checkpoint", thread)):
                    _, _, namespace, checkpoint = _parts(key)
                    latest[thread, namespace] = checkpoint  # The keys are in order.
            self._delete_checkpoints(lambda parts, _: parts[2] != latest.get((parts[0], parts[1]), parts[2]))
        else:
            raise ValueError(f"the strategy is {strategy!r}, and must be 'keep_latest' or 'delete'")

    async def aget_tuple(self, config: RunnableConfig) -> Optional[CheckpointTuple]:
        return await asyncio.to_thread(self.get_tuple, config)

    async def alist(self, config: Optional[RunnableConfig], *, filter: Optional[dict[str, Any]] = None,
                    before: Optional[RunnableConfig] = None,
                    limit: Optional[int] = None) -> AsyncIterator[CheckpointTuple]:
        found = self.list(config, filter=filter, before=before, limit=limit)
        while (item := await asyncio.to_thread(next, found, None)) is not None:
            yield item

    async def aput(self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata,
                   new_versions: ChannelVersions) -> RunnableConfig:
        return await asyncio.to_thread(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str,
                          task_path: str = "") -> None:
        await asyncio.to_thread(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        await asyncio.to_thread(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        await asyncio.to_thread(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        await asyncio.to_thread(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        await asyncio.to_thread(self.prune, thread_ids, strategy=strategy)

    def _dump(self, value: Any) -> tuple[bytes, bytes]:
        kind, data = self.serde.dumps_typed(value)
        return kind.encode(), data

    def _load(self, kind: bytes, data: bytes) -> Any:
        return self.serde.loads_typed((kind.decode(), data))

    def _tuple(self, thread: str, namespace: str, checkpoint: str,
               filter: Optional[dict[str, Any]] = None) -> Optional[CheckpointTuple]:
        """Gives a checkpoint as of one moment; None: it is absent, or the filter does not fit its metadata."""
        with self._db.snapshot() as snapshot:
            records = snapshot.keyspace(self._records)
            record = records.get(_key("checkpoint", thread, namespace, checkpoint))
            if record is None:
                return None
            *fields, parent = _unpack(record)
            metadata = self._load(*fields[2:])
            if filter and any(metadata.get(name) != value for name, value in filter.items()):
                return None
            kept = self._load(*fields[:2])
            values = {}
            for channel, version in kept["channel_versions"].items():
                value = records.get(_key("value", thread, namespace, channel, repr(version)))
                if value is not None:
                    values[channel] = self._load(*_unpack(value))
            writes = []
            for key, write in records.scan(prefix=_key("write", thread, namespace, checkpoint)):
                task, index = _parts(key)[-2:]
                name, kind, data, path = _unpack(write)
                order = writes_sort_key(path.decode(), task, int(index))
                writes.append((order, (task, name.decode(), self._load(kind, data))))
        writes.sort(key=lambda write: write[0])
        return CheckpointTuple(
            config=_config(thread, namespace, checkpoint),
            checkpoint=cast(Checkpoint, {**kept, "channel_values": values}),
            metadata=metadata, parent_config=_config(thread, namespace, parent.decode()) if parent else None,
            pending_writes=[write for _, write in writes])

    def _delete_below(self, batch: Any, *parts: str, kinds: tuple[str, ...] = ("checkpoint", "value", "write")) -> None:
        records = batch.keyspace(self._records)
        for kind in kinds:
            prefix = _key(kind, *parts)
            records.delete_range(prefix, prefix[:-1] + b"\2")

    def _delete_checkpoints(self, chosen: Any) -> None:
        """Deletes the checkpoints that `chosen` takes, by their place and metadata, with what only they need."""
        with self._db.batch() as batch:
            records = batch.keyspace(self._records)
            changed: set[tuple[str, str]] = set()
            for key, record in self._records.scan(prefix=_key("checkpoint")):
                place = _parts(key)[1:]
                fields = _unpack(record)
                if chosen(place, self._load(*fields[2:4])):
                    changed.add((place[0], place[1]))
                    del records[key]
                    self._delete_below(batch, *place, kinds=("write",))
            for thread, namespace in changed:
                used: set[tuple[str, ...]] = set()
                for key, record in self._records.scan(prefix=_key("checkpoint", thread, namespace)):
                    fields = _unpack(record)
                    if not chosen(_parts(key)[1:], self._load(*fields[2:4])):
                        versions = self._load(*fields[:2])["channel_versions"]
                        used.update((channel, repr(version)) for channel, version in versions.items())
                for key in self._records.scan_keys(prefix=_key("value", thread, namespace)):
                    if tuple(_parts(key)[-2:]) not in used:
                        del records[key]


class BasaltStore(BaseStore):
    """Keeps items in a keyspace, as JSON, under the parts of their namespace and their key. It has no search by
    meaning: a search with a query is refused."""

    supports_ttl = True
    __slots__ = ("_db", "_records")

    def __init__(self, db: DB, *, keyspace: str = "langgraph/store") -> None:
        self._db = db
        self._records = db.keyspace(keyspace)

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Reads see what was there before; the puts are one transaction, and the last one of a key counts."""
        results: list[Result] = []
        puts: dict[bytes, PutOp] = {}
        for op in ops:
            result: Result = None
            if isinstance(op, GetOp):
                result = self._get(op)
            elif isinstance(op, SearchOp):
                result = self._search(op)
            elif isinstance(op, ListNamespacesOp):
                result = self._list_namespaces(op)
            elif isinstance(op, PutOp):
                puts[self._key_of(op.namespace, op.key)] = op
            else:
                raise ValueError(f"{type(op)} is not an operation of a store")
            results.append(result)
        if puts:
            self._db.transact(lambda tx: self._put(tx.keyspace(self._records), puts))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    @staticmethod
    def _key_of(namespace: tuple[str, ...], key: str) -> bytes:
        return _key(*namespace) + b"\0\0" + _key(key)  # \0\0 is before all parts: items before deeper namespaces.

    @staticmethod
    def _place_of(key: bytes) -> tuple[tuple[str, ...], str]:
        namespace, _, name = key.partition(b"\0\0")
        return tuple(_parts(namespace)), _parts(name)[0]

    def _put(self, records: Any, puts: dict[bytes, PutOp]) -> None:
        now = datetime.now(timezone.utc).isoformat()
        for key, op in puts.items():
            if op.value is None:
                records.delete(key)
                continue
            before = records.get(key)
            created = json.loads(before)["created_at"] if before else now
            record = {"value": op.value, "created_at": created, "updated_at": now, "ttl": op.ttl}
            records.put(key, json.dumps(record).encode(), ttl=timedelta(minutes=op.ttl) if op.ttl else None)

    def _item(self, kind: Any, key: bytes, text: bytes, refresh: bool) -> Any:
        record = json.loads(text)
        if refresh and record["ttl"]:
            self._db.transact(lambda tx: self._refresh(tx.keyspace(self._records), key))
        namespace, name = self._place_of(key)
        return kind(value=record["value"], key=name, namespace=namespace,
                    created_at=datetime.fromisoformat(record["created_at"]),
                    updated_at=datetime.fromisoformat(record["updated_at"]))

    @staticmethod
    def _refresh(records: Any, key: bytes) -> None:
        text = records.get(key)
        if text is not None and (ttl := json.loads(text)["ttl"]):
            records.put(key, text, ttl=timedelta(minutes=ttl))

    def _get(self, op: GetOp) -> Optional[Item]:
        key = self._key_of(op.namespace, op.key)
        text = self._records.get(key)
        return None if text is None else self._item(Item, key, text, op.refresh_ttl)

    def _search(self, op: SearchOp) -> list[SearchItem]:
        if op.query:
            raise NotImplementedError("this store has no search by a query: give namespace_prefix and filter")
        found: list[SearchItem] = []
        skipped = 0
        prefix = _key(*op.namespace_prefix)
        for key, text in self._records.scan(prefix=prefix) if prefix else self._records.scan():
            if op.filter and not _matches(json.loads(text)["value"], op.filter):
                continue
            if skipped < op.offset:
                skipped += 1
            elif len(found) < op.limit:
                found.append(self._item(SearchItem, key, text, op.refresh_ttl))
            else:
                break
        return found

    def _list_namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        namespaces = set()
        for key in self._records.scan_keys():
            namespace, _ = self._place_of(key)
            if all(_fits(namespace, condition) for condition in op.match_conditions or ()):
                namespaces.add(namespace if op.max_depth is None else namespace[: op.max_depth])
        return sorted(namespaces)[op.offset : op.offset + op.limit]


def _matches(value: dict[str, Any], filter: dict[str, Any]) -> bool:
    return all(_compares(value.get(name), wanted) for name, wanted in filter.items())


def _compares(value: Any, wanted: Any) -> bool:
    """Compares with a value, or with operators: {"$gt": 3}."""
    if not isinstance(wanted, dict):
        return bool(value == wanted)
    if not any(name.startswith("$") for name in wanted):
        return isinstance(value, dict) and all(_compares(value.get(name), inner) for name, inner in wanted.items())
    compare = {
        "$eq": lambda a, b: a == b, "$ne": lambda a, b: a != b, "$gt": lambda a, b: float(a) > float(b),
        "$gte": lambda a, b: float(a) >= float(b), "$lt": lambda a, b: float(a) < float(b),
        "$lte": lambda a, b: float(a) <= float(b)}
    for name, operand in wanted.items():
        if name not in compare:
            raise ValueError(f"{name} is not an operator of a filter: {', '.join(compare)}")
        ordered = name not in ("$eq", "$ne")
        if (ordered and value is None) or not compare[name](value, operand):
            return False
    return True


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = condition.path
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", got) for wanted, got in zip(path, part))
