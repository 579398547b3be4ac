"""Fixtures of the agent's tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.agent_desk import Desk
from support.gemini_wire import GeminiWire
from support.scripted_wire import Replies


@pytest.fixture
def desk(workspace: Path) -> Iterator[Callable[..., Desk]]:
    wires: list[GeminiWire] = []

    def opened(replies: Replies, **options: Any) -> Desk:
        wire = GeminiWire(replies)
        wire.__enter__()
        wires.append(wire)
        return Desk(workspace, wire, **options)

    yield opened
    for wire in wires:
        wire.__exit__(None, None, None)
