"""A checkpointer of LangGraph that keeps the checkpoints of a session in its AgentRecord.

So the journal of the server has all that a task needs, in whichever server it goes on. A checkpoint is stored before
the graph takes its next step. Values in it are stored once: a list or a mapping is taken apart, so that a conversation
to which each step adds a message costs one message for each step.

Of each thread the last two checkpoints are kept, or all if the graph has channels that are stored as differences. A
value that a deleted task of the session had stored is missing: a list begins behind it, and one of messages with a
user's.
"""

# LangGraph's own types are partly unknown.
# pyright: reportUnknownMemberType=false, reportIncompatibleMethodOverride=false

import base64
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
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
from langgraph.checkpoint.serde.base import SerializerProtocol

from isthmus.a2a.frameworks.relay import Relay
from isthmus.a2a.frameworks.session_record import SessionRecord

CHECKPOINT = "langgraph:checkpoint:"
"""Beginning of the names of checkpoints; thread, namespace and id follow."""
WRITES = "langgraph:writes:"
"""Beginning of the names of what nodes have written behind a checkpoint, as the checkpoint's."""
KEPT = 2
"""Number of checkpoints that are kept of each namespace."""
INLINE_BYTES = 64
"""Maximum size in bytes of a value that is stored where it is used."""


class SessionSaver(BaseCheckpointSaver[str]):
    """The checkpointer of one run of a graph; its threads are tasks of the session."""

    def __init__(self, kept: SessionRecord, relay: Relay, serde: SerializerProtocol | None = None) -> None:
        super().__init__(serde=serde)
        self._kept = kept
        self._relay = relay

    def get_next_version(self, current: str | None, channel: None) -> str:
        """Return the version after this one; versions are compared as texts."""
        return f"{int(current or 0) + 1:032}"

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that the configuration names, or the last one of its thread; None if there is none."""
        thread, namespace = _place(config)
        names = self._names(thread, namespace)
        wanted = get_checkpoint_id(config)
        name = _name(CHECKPOINT, thread, namespace, wanted) if wanted else max(names, default="")
        return self._tuple(name) if name in names else None

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name in the base class
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints of a thread that are kept, the last one first."""
        thread, namespace = _place(config) if config is not None else ("", "")
        names = self._names(thread, namespace) if config is not None else self._kept.names(CHECKPOINT)
        end = get_checkpoint_id(before) if before is not None else None
        found = [self._tuple(name) for name in sorted(names, reverse=True)]
        for item in found[: limit if limit is not None else len(found)]:
            is_wanted = all(item.metadata.get(key) == value for key, value in (filter or {}).items())
            if is_wanted and (end is None or item.checkpoint["id"] < end):
                yield item

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint; its values are stored once."""
        kept = self._add(config, checkpoint, metadata)
        self._store_blocking()
        return kept

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a node has written."""
        self._add_writes(config, writes, task_id, task_path)
        self._store_blocking()

    def delete_thread(self, thread_id: str) -> None:
        """Forget the checkpoints of a thread."""
        for beginning in (CHECKPOINT, WRITES):
            for name in self._kept.names(f"{beginning}{thread_id}:"):
                self._kept.remove(name)
        self._store_blocking()

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return what `get_tuple` returns."""
        return self.get_tuple(config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,  # noqa: A002 - the name in the base class
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield what `list` yields."""
        for item in self.list(config, filter=filter, before=before, limit=limit):
            yield item

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Keep a checkpoint; return when the journal has it."""
        kept = self._add(config, checkpoint, metadata)
        await self._store()
        return kept

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Keep what a node has written; return when the journal has it."""
        self._add_writes(config, writes, task_id, task_path)
        await self._store()

    async def adelete_thread(self, thread_id: str) -> None:
        """Forget the checkpoints of a thread."""
        self.delete_thread(thread_id)

    def _names(self, thread: str, namespace: str) -> Sequence[str]:
        return self._kept.names(_name(CHECKPOINT, thread, namespace, ""))

    def _tuple(self, name: str) -> CheckpointTuple:
        thread, entry = name.removeprefix(CHECKPOINT).partition(":")[0], self._kept.get(name)
        namespace, checkpoint_id = entry["namespace"], entry["id"]
        writes = [self._kept.get(each) for each in self._kept.names(_name(WRITES, thread, namespace, checkpoint_id))]
        ordered = sorted(writes, key=lambda item: writes_sort_key(item["path"], item["task"], item["index"]))
        return CheckpointTuple(
            _config(thread, namespace, checkpoint_id),
            self._read(entry["checkpoint"]),
            self._read(entry["metadata"]),
            _config(thread, namespace, entry["parent"]) if entry["parent"] else None,
            [(item["task"], item["channel"], self._read(item["value"])) for item in ordered],
        )

    def _add(self, config: RunnableConfig, checkpoint: Checkpoint, metadata: CheckpointMetadata) -> RunnableConfig:
        """Add a checkpoint to what is kept, remove those that are too old, and return where it is."""
        thread, namespace = _place(config)
        described = get_checkpoint_metadata(config, metadata)
        entry = {
            "namespace": namespace,
            "id": checkpoint["id"],
            "parent": config.get("configurable", {}).get("checkpoint_id"),
            "checkpoint": self._written(dict(checkpoint)),
            "metadata": self._written(dict(described)),
        }
        self._kept.set(_name(CHECKPOINT, thread, namespace, checkpoint["id"]), entry)
        if not described.get("counters_since_delta_snapshot"):
            for name in sorted(self._names(thread, namespace))[:-KEPT]:
                self._kept.remove(name)
                for write in self._kept.names(WRITES + name.removeprefix(CHECKPOINT)):
                    self._kept.remove(write)
        return _config(thread, namespace, checkpoint["id"])

    def _add_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str
    ) -> None:
        thread, namespace = _place(config)
        name = _name(WRITES, thread, namespace, config.get("configurable", {})["checkpoint_id"])
        for position, (channel, value) in enumerate(writes):
            index = WRITES_IDX_MAP.get(channel, position)
            key = f"{name}:{task_id}:{index}"
            if index < 0 or self._kept.get(key) is None:
                written = {"task": task_id, "index": index, "channel": channel, "path": task_path}
                self._kept.set(key, {**written, "value": self._written(value)})

    async def _store(self) -> None:
        if (event := self._kept.take_changes()) is not None:
            await self._relay.emit(event)

    def _store_blocking(self) -> None:
        if (event := self._kept.take_changes()) is not None:
            self._relay.emit_blocking(event)

    def _written(self, value: object) -> object:
        """Return a value as JSON: a list, a mapping, or a name or the bytes of what LangGraph serializes."""
        if type(value) is list:
            return [self._written(item) for item in cast("Sequence[object]", value)]
        if type(value) is dict and all(type(key) is str for key in cast("Mapping[object, object]", value)):
            return {"members": {key: self._written(item) for key, item in cast("Mapping[str, object]", value).items()}}
        kind, data = self.serde.dumps_typed(value)
        whole = [kind, base64.b64encode(data).decode()]
        return {"bytes": whole} if len(data) <= INLINE_BYTES else {"name": self._kept.put(whole)}

    def _read(self, value: Any) -> Any:
        if isinstance(value, list):
            return _known([self._read(item) for item in cast("Sequence[object]", value)])
        if "members" in value:
            read = {key: self._read(item) for key, item in value["members"].items()}
            return {key: item for key, item in read.items() if item is not _MISSING}
        stored = value["bytes"] if "bytes" in value else self._kept.get(value["name"])
        return self.serde.loads_typed((stored[0], base64.b64decode(stored[1]))) if stored is not None else _MISSING


_MISSING = object()


def _known(values: list[Any]) -> list[Any]:
    """Return the values of a list behind the last one that is missing."""
    missing = [at for at, value in enumerate(values) if value is _MISSING]
    if not missing:
        return values
    rest = values[missing[-1] + 1 :]
    if any(isinstance(item, BaseMessage) for item in rest):
        first = next((at for at, item in enumerate(rest) if isinstance(item, HumanMessage)), len(rest))
        return rest[first:]
    return rest


def _place(config: RunnableConfig) -> tuple[str, str]:
    """Return the thread and the namespace that a configuration names."""
    configurable = config.get("configurable", {})
    return str(configurable["thread_id"]), configurable.get("checkpoint_ns", "")


def _name(beginning: str, thread: str, namespace: str, checkpoint_id: str) -> str:
    """Return the name of an entry. Names of a namespace are in the order of their ids, which grow."""
    coded = base64.urlsafe_b64encode(namespace.encode()).decode()
    return f"{beginning}{thread}:{coded}:{checkpoint_id}"


def _config(thread: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}
