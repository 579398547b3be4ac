"""Fixtures of the commands' tests."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.command_harness import CommandHarness, OpenHarness, command_harness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Replies, Reply, Say
from support.wire_server import WireRequest


@pytest.fixture
def open_harness(tmp_path: Path) -> OpenHarness:
    """Return a function that starts a harness; without replies the model sends ``harness.replies``, then "fine"."""

    @asynccontextmanager
    async def opened(replies: Replies | None = None, **options: Any) -> AsyncGenerator[CommandHarness]:
        queue: list[Reply] = []

        def next_reply(_: WireRequest) -> Reply:
            return queue.pop(0) if queue else Reply.of(Say("fine"))

        with GeminiWire(next_reply if replies is None else replies) as wire:
            async with command_harness(tmp_path.resolve(), wire, **options) as harness:
                harness.replies = queue
                yield harness

    return opened
