"""Runs the hooks of a session before its prompts and around its tool calls, and returns their common verdict.

The programs themselves run behind the port :class:`HookPrograms`.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from isthmus.agent.hooks.dialects import (
    HookedCall,
    HookedPrompt,
    HookedResult,
    HookedSubagent,
    end_input_for,
    input_for,
    is_of_subagent,
    name_for,
    prompt_input_for,
    start_input_for,
    starts_at,
    subagent_input_for,
)
from isthmus.agent.hooks.verdicts import HookOutcome, Verdict, strictest, verdict_of
from isthmus.settings.rules.hooks import Hook, HookEvent


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

    def of(self, event: HookEvent) -> tuple[Hook, ...]:
        """Return the hooks of an event."""
        return tuple(hook for hook in self._hooks if hook.event is event)

    async def before(self, call: HookedCall) -> Verdict:
        """Return what the hooks say about a call that is about to be decided."""
        return await self._run((HookEvent.BEFORE_TOOL,), call, None)

    async def after(self, call: HookedCall, result: HookedResult) -> Verdict:
        """Return what the hooks say about the result of a call."""
        return await self._run((HookEvent.AFTER_TOOL, HookEvent.AFTER_FAILED_TOOL), call, result)

    async def permission(self, call: HookedCall) -> Verdict:
        """Return what the hooks say about a call that the user is about to be asked about."""
        return await self._run((HookEvent.PERMISSION,), call, None)

    async def prompt(self, prompt: HookedPrompt) -> Verdict:
        """Return what the hooks say about a prompt, whatever their matcher."""
        return await self._moment(HookEvent.PROMPT, prompt.session_id, lambda hook: prompt_input_for(hook, prompt))

    async def start(self, prompt: HookedPrompt) -> Verdict:
        """Return what the hooks say at the start of a session, which begins with a prompt."""
        return await self._moment(
            HookEvent.SESSION_START,
            prompt.session_id,
            lambda hook: start_input_for(hook, prompt) if starts_at(hook) else None,
        )

    async def start_of_subagent(self, prompt: HookedPrompt, subagent: HookedSubagent) -> Verdict:
        """Return what the hooks say before a subagent works on its task, which is ``prompt``."""
        return await self._moment(
            HookEvent.SUBAGENT_START,
            prompt.session_id,
            lambda hook: subagent_input_for(hook, prompt, subagent) if is_of_subagent(hook, subagent) else None,
        )

    async def end(
        self, prompt: HookedPrompt, answer: str, subagent: HookedSubagent | None = None, *, is_again: bool
    ) -> Verdict:
        """Return what the hooks say about the answer to a prompt, or of a subagent: a denial is a reason to go on."""
        event = HookEvent.END if subagent is None else HookEvent.SUBAGENT_END
        return await self._moment(
            event,
            prompt.session_id,
            lambda hook: (
                end_input_for(hook, prompt, answer, subagent, is_again=is_again)
                if subagent is None or is_of_subagent(hook, subagent)
                else None
            ),
        )

    async def _moment(
        self, event: HookEvent, session_id: str, given: Callable[[Hook], Mapping[str, Any] | None]
    ) -> Verdict:
        chosen = [(hook, each) for hook in self.of(event) if (each := given(hook)) is not None]
        return strictest(await asyncio.gather(*(self._verdict(hook, each, session_id) for hook, each in chosen)))

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
        return verdict_of(hook, await self.outcome(hook, value, session_id))

    async def outcome(self, hook: Hook, value: Mapping[str, Any], session_id: str) -> HookOutcome:
        """Run a hook with this JSON on its standard input, and return its end."""
        given = json.dumps(value, ensure_ascii=False).encode(errors="replace")
        variables = {
            "GEMINI_PROJECT_DIR": str(self._folder),
            "GEMINI_CWD": str(self._folder),
            "GEMINI_SESSION_ID": session_id,
            "CLAUDE_PROJECT_DIR": str(self._folder),
        }
        return await self._programs.run(hook, given, self._folder, {**self._environment, **variables})


def _is_for(hook: Hook, result: HookedResult | None) -> bool:
    """Return whether a hook is for such a result: Claude Code has an event of its own for failures."""
    if result is None or hook.event_name == "AfterTool":
        return True
    return (hook.event is HookEvent.AFTER_FAILED_TOOL) is (result.error is not None)
