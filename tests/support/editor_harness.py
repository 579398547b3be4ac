"""The agent as the command line composes it, editors and all, with the real Gemini provider at a local endpoint."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.app import edit_diagnostics
from isthmus.app import editor_directory as editors
from isthmus.app.local_agent import local_agent, rule_for
from isthmus.app.setup import GivenOptions, decide
from support.command_harness import CommandHarness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Reply


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the agent wait as long as a busy machine needs for what an editor surely says."""
    monkeypatch.setattr(editors, "CONTEXT_SECONDS", 30.0)
    monkeypatch.setattr(edit_diagnostics, "PATIENCE", edit_diagnostics.DiagnosticsTimeouts(ask=30.0, look=30.0))


@asynccontextmanager
async def editor_harness(
    workspace: Path,
    data: Path,
    replies: list[Reply],
    monkeypatch: pytest.MonkeyPatch,
    *,
    approval_mode: str = "default",
) -> AsyncGenerator[CommandHarness]:
    """An agent for ``workspace`` that keeps its tasks in ``data``; the model says ``replies``."""
    with GeminiWire(replies) as wire:
        monkeypatch.setenv("GEMINI_API_KEY", "test-key")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", wire.base_url)
        given = GivenOptions("gemini:test", approval_mode, workspace=workspace, data_dir=data, ide=True)
        setup = decide(given, may_ask=True)
        async with local_agent(setup, rule_for(setup)) as engine:
            yield CommandHarness(engine, wire, workspace, Path.home() / ".gemini", replies)
