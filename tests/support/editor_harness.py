"""The agent as the command line composes it, with its editors, and the real Gemini provider at a local endpoint."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.parts.editor.directory import EditorTimeouts
from isthmus.programs.agent.local_agent import local_agent, rule_for
from isthmus.programs.agent.local_agent_options import LocalAgentOptions
from isthmus.programs.setup.setup import GivenOptions, decide
from support.command_harness import CommandHarness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Reply

PATIENT_EDITOR = EditorTimeouts(context_seconds=30, ask_seconds=30, look_seconds=30)
"""Timeouts long enough for a busy machine, for editors that surely answer."""


@asynccontextmanager
async def editor_harness(
    workspace: Path,
    data: Path,
    replies: list[Reply],
    monkeypatch: pytest.MonkeyPatch,
    *,
    approval_mode: str = "default",
    timeouts: EditorTimeouts = EditorTimeouts(),
) -> AsyncGenerator[CommandHarness]:
    """Start an agent for ``workspace`` that stores its tasks in ``data``; the model replies with ``replies``."""
    with GeminiWire(replies) as wire:
        monkeypatch.setenv("GEMINI_API_KEY", "test-key")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", wire.base_url)
        given = GivenOptions("gemini:test", approval_mode, workspace=workspace, data_dir=data, ide=True)
        setup = decide(given, may_ask=True)
        async with local_agent(setup, rule_for(setup), LocalAgentOptions(editor_timeouts=timeouts)) as engine:
            yield CommandHarness(engine, wire, workspace, Path.home() / ".gemini", replies)
