"""Streams of a server that begins again at the first event: what the client has seen before is not handed on again."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
from typing_extensions import override

from isthmus.a2a.client.retry import StreamRetryPolicy
from isthmus.a2a.client.streams import ItemSource, Numbered, TaskReader
from isthmus.a2a.protocol.items import ArtifactItem, Status, StatusItem
from isthmus.a2a.protocol.stream_decoder import StreamDecoder
from isthmus.events import ArtifactPart, ArtifactUpdate, StateChange, TaskState

if TYPE_CHECKING:
    from isthmus.a2a.client.connection import AgentConnection

pytestmark = pytest.mark.anyio


class _Listed(ItemSource):
    """A stream of given items."""

    def __init__(self, items: Sequence[Numbered]) -> None:
        self._items = list(items)

    @override
    async def next(self) -> Numbered | None:
        return self._items.pop(0) if self._items else None

    @override
    async def finish(self) -> None: ...

    @override
    async def aclose(self) -> None: ...


def artifact(number: int) -> Numbered:
    return ArtifactItem(f"a{number}", (ArtifactPart(text=str(number)),)), number


async def test_events_up_to_the_last_one_seen_are_not_handed_on_again() -> None:
    connection = cast("AgentConnection", SimpleNamespace(wire=SimpleNamespace(version="0.3")))
    end = StatusItem("t1", "c1", Status(TaskState.COMPLETED, None, 0.0), None, is_final=True), 6
    source = _Listed([*map(artifact, range(2, 6)), end])
    reader = TaskReader(connection, StreamDecoder(TaskState.WORKING), StreamRetryPolicy())
    found = [delivery async for delivery in reader.deliveries(source, "t1", 3, ())]
    assert [(delivery.seq, type(delivery.event)) for delivery in found] == [
        (4, ArtifactUpdate),
        (5, ArtifactUpdate),
        (6, StateChange),
    ]
