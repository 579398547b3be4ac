"""Fixtures of the agent's tests."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.agent_harness import AgentHarness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Replies


@pytest.fixture
def harness(workspace: Path) -> Iterator[Callable[..., AgentHarness]]:
    wires: list[GeminiWire] = []

    def opened(replies: Replies, **options: Any) -> AgentHarness:
        wire = GeminiWire(replies)
        wire.__enter__()
        wires.append(wire)
        return AgentHarness(workspace, wire, **options)

    yield opened
    for wire in wires:
        wire.__exit__(None, None, None)
