"""Runs the hooks of a session before its prompts and around its tool calls, and returns their common verdict.

The programs themselves run behind the port :class:`HookPrograms`.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from isthmus.agent.hooks.dialects import (
    HookedCall,
    HookedPrompt,
    HookedResult,
    input_for,
    name_for,
    prompt_input_for,
)
from isthmus.agent.hooks.verdicts import HookOutcome, Verdict, strictest, verdict_of
from isthmus.settings.hooks import Hook, HookEvent


class HookPrograms(Protocol):
    """Runs the programs of hooks."""

    async def run(self, hook: Hook, given: bytes, folder: Path, environment: Mapping[str, str]) -> HookOutcome:
        """Run a hook with this standard input up to its end or its deadline. It never raises for what the hook does."""
        ...


class ToolHooks:
    """The hooks of a session, with the environment of its user's commands."""

    def __init__(
        self, hooks: Sequence[Hook], programs: HookPrograms, folder: Path, environment: Mapping[str, str]
    ) -> None:
        self._hooks = hooks
        self._programs = programs
        self._folder = folder
        self._environment = environment

    async def before(self, call: HookedCall) -> Verdict:
        """Return what the hooks say about a call that is about to be decided."""
        return await self._run((HookEvent.BEFORE_TOOL,), call, None)

    async def after(self, call: HookedCall, result: HookedResult) -> Verdict:
        """Return what the hooks say about the result of a call."""
        return await self._run((HookEvent.AFTER_TOOL, HookEvent.AFTER_FAILED_TOOL), call, result)

    async def prompt(self, prompt: HookedPrompt) -> Verdict:
        """Return what the hooks say about a prompt, whatever their matcher."""
        chosen = [hook for hook in self._hooks if hook.event is HookEvent.PROMPT]
        given = [(hook, prompt_input_for(hook, prompt)) for hook in chosen]
        return strictest(await asyncio.gather(*(self._verdict(hook, each, prompt.session_id) for hook, each in given)))

    async def _run(self, events: Sequence[HookEvent], call: HookedCall, result: HookedResult | None) -> Verdict:
        chosen = [
            (hook, name)
            for hook in self._hooks
            if hook.event in events and _is_for(hook, result) and (name := name_for(hook, call)) is not None
        ]
        if any(hook.is_sequential for hook, _ in chosen):
            return strictest([await self._one(hook, name, call, result) for hook, name in chosen])
        return strictest(await asyncio.gather(*(self._one(hook, name, call, result) for hook, name in chosen)))

    async def _one(self, hook: Hook, name: str, call: HookedCall, result: HookedResult | None) -> Verdict:
        return await self._verdict(hook, input_for(hook, name, call, result), call.session_id)

    async def _verdict(self, hook: Hook, value: Mapping[str, Any], session_id: str) -> Verdict:
        given = json.dumps(value, ensure_ascii=False).encode(errors="replace")
        variables = {
            "GEMINI_PROJECT_DIR": str(self._folder),
            "GEMINI_CWD": str(self._folder),
            "GEMINI_SESSION_ID": session_id,
            "CLAUDE_PROJECT_DIR": str(self._folder),
        }
        outcome = await self._programs.run(hook, given, self._folder, {**self._environment, **variables})
        return verdict_of(hook, outcome)


def _is_for(hook: Hook, result: HookedResult | None) -> bool:
    """Return whether a hook is for such a result: Claude Code has an event of its own for failures."""
    if result is None or hook.event_name == "AfterTool":
        return True
    return (hook.event is HookEvent.AFTER_FAILED_TOOL) is (result.error is not None)
