"""Hooks around model requests, as programs of Gemini CLI's form, and agents that have them."""

import json
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.parts.hook_processes import HookProcesses
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent
from isthmus.tools.builtin import builtin_tools
from support.agent_harness import AgentHarness
from support.model_bench import Provider
from support.scripted_wire import Script

NAMES = {
    HookEvent.BEFORE_MODEL: "BeforeModel",
    HookEvent.TOOL_SELECTION: "BeforeToolSelection",
    HookEvent.AFTER_MODEL: "AfterModel",
}


def hook(event: HookEvent, body: str, *, is_project: bool = False, number: int = 1) -> Hook:
    """Return a hook of Gemini CLI: Python that reads `given` and sets `said`."""
    program = f"import json, sys\ngiven = json.load(sys.stdin)\nsaid = {{}}\n{body}\nprint(json.dumps(said))"
    where = f"hooks.{NAMES[event]} in file {number}"
    return Hook(
        HookDialect.GEMINI, event, NAMES[event], sys.executable, where, "*", "", ("-IS", "-c", program), 20,
        is_project=is_project,
    )  # fmt: skip


def before(body: str, **options: Any) -> Hook:
    return hook(HookEvent.BEFORE_MODEL, body, **options)


def selects(body: str, **options: Any) -> Hook:
    return hook(HookEvent.TOOL_SELECTION, body, **options)


def after(body: str, **options: Any) -> Hook:
    return hook(HookEvent.AFTER_MODEL, body, **options)


def answers(text: str, **more: object) -> str:
    """Return the body of a hook that returns this answer."""
    form = {"candidates": [{"content": {"role": "model", "parts": [text]}}]}
    return f"said = {json.dumps({**more, 'hookSpecificOutput': {'llm_response': form}})}"


def says(**fields: object) -> str:
    return f"said = {fields!r}"


@contextmanager
def agent(provider: Provider, workspace: Path, hooks: tuple[Hook, ...], *replies: Script) -> Generator[AgentHarness]:
    with provider.wire(replies) as wire:
        yield AgentHarness(
            workspace,
            wire,
            Policy(ApprovalMode.YOLO, may_ask=False),
            tools=replace(builtin_tools(), hooks=hooks),
            provider=provider.name,
            variables=(provider.key, provider.base_url),
            hook_programs=HookProcesses(),
        )
