"""Runs the hooks of the settings before prompts and around calls and model requests of a session.

Their verdicts are applied here, too, except for those around model requests.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from isthmus.agent.approval.call_effect import effect_of
from isthmus.agent.approval.policy import ApprovalRequired, AskedEachTime, Decision, Deny, Policy, decide_each_time
from isthmus.agent.approval.restricted_tools import named_tool
from isthmus.agent.calls.call_rules import server_of
from isthmus.agent.calls.hooked_conversation import TurnConversation
from isthmus.agent.hooks.dialects import GEMINI_NAMES, HookedCall, HookedPrompt, HookedResult, HookedSubagent
from isthmus.agent.hooks.tool_hooks import HookPrograms, ToolHooks
from isthmus.agent.hooks.verdicts import Verdict, strictest
from isthmus.agent.options import AgentOptions
from isthmus.agent.resources import ModelSource
from isthmus.agent.session.loops import TextLoop
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import AgentThought, ConfirmationDetails, ToolCall
from isthmus.events import Thought
from isthmus.models.port.base import ChatModel, ModelError, ModelErrorKind
from isthmus.settings.rules.hooks import MODEL_EVENTS
from isthmus.tools.port.base import Tool, ToolFailed, ToolResult, ToolSucceeded
from isthmus.tools.port.tool_set import ToolSet

log = logging.getLogger(__name__)


class CallHooks:
    """The hooks around the calls of one turn; ``stopped`` is why one of them ended the work, or None."""

    def __init__(self, turn: AgentTurn, options: AgentOptions, programs: HookPrograms | None, tools: ToolSet) -> None:
        self._turn = turn
        self._options = options
        self._programs = programs
        self.tools = tools
        self.stopped: str | None = None
        self._conversation = TurnConversation(turn)

    async def decide(
        self,
        tool: Tool,
        call: ToolCall,
        proposal: ConfirmationDetails | None,
        policy: Policy,
        decision: Decision,
    ) -> Decision:
        """Return the decision on a call after its hooks, which can only make it stricter."""
        hooks = self._hooks()
        if hooks is None or isinstance(decision, Deny):
            return decision
        hooked = self._call(tool, call.tool_call_id, call.input_parameters, proposal, policy)
        verdict = await hooks.before(hooked)
        await self._show(verdict)
        if verdict.stop is not None:
            return Deny(f"A hook stopped the work: {verdict.stop}")
        if verdict.denial is not None:
            return Deny(f"A hook refused this call: {verdict.denial}")
        if verdict.arguments is not None and not _has(hooked, verdict.arguments):
            wanted = json.dumps(verdict.arguments, ensure_ascii=False)
            return Deny(f"Nothing was run. A hook wants other arguments; call the tool again with these: {wanted}")
        if verdict.question is not None:
            asked = AskedEachTime(verdict.question, "A hook of the settings requires it.")
            decision = decide_each_time(policy, tool.name, asked, tool.kind)
        if not isinstance(decision, ApprovalRequired):
            return decision
        verdict = await hooks.permission(hooked)
        await self._show(verdict)
        return decision if verdict.denial is None else Deny(f"A hook refused this call: {verdict.denial}")

    async def result(self, call: ToolCall, result: ToolResult, policy: Policy) -> tuple[str, bool]:
        """Return the text of a result for the model after its hooks, and whether hooks hide the result itself."""
        text = result.for_model
        if isinstance(result, ToolFailed):
            text = result.for_model or result.error.message
        tool, hooks = self.tools.tools.get(call.tool_name), self._hooks()
        if tool is None or hooks is None:
            return text, False
        shown = (result.output.text or "") if isinstance(result, ToolSucceeded) else result.error.message
        error = result.error.message if isinstance(result, ToolFailed) else None
        hooked = self._call(tool, call.tool_call_id, call.input_parameters, None, policy)
        verdict = await hooks.after(hooked, HookedResult(text, shown, error))
        await self._show(verdict)
        is_hidden = verdict.denial is not None
        if verdict.denial is not None:
            text = f"A hook hid this result: {verdict.denial}"
        return "".join((text, *(f"\n\n<hook_context>\n{more}\n</hook_context>" for more in verdict.context))), is_hidden

    async def prompt(self, text: str, policy: Policy, *, is_first: bool) -> Verdict:
        """Return what the hooks say about a prompt before the agent works on it; ``is_first``: it begins a session.

        The task of a subagent has hooks of its own, which cannot refuse it.
        """
        hooks = self._hooks()
        if hooks is None:
            return Verdict()
        prompt = self._prompt(text, policy)
        if (subagent := self._subagent()) is not None:
            verdict = await hooks.start_of_subagent(prompt, subagent)
            await self._show(verdict)
            return verdict
        verdict = await hooks.prompt(prompt)
        if is_first and verdict.denial is None and verdict.stop is None:
            start = await hooks.start(prompt)
            verdict = strictest((start, verdict))
        await self._show(verdict)
        return verdict

    def model(
        self,
        model: ChatModel,
        open_model: ModelSource | None,
        *,
        stops_loops: bool = False,
        is_in_conversation: bool = False,
    ) -> ChatModel:
        """Return a model whose requests and answers pass through the hooks; the same one if there are none for that.

        ``open_model`` opens another one that a hook names; ``stops_loops``: an answer that repeats itself is stopped.
        ``is_in_conversation``: the requests are of the session's conversation, which keeps what hooks add.
        """
        hooks = self._hooks()
        if hooks is None or not any(hook.event in MODEL_EVENTS for hook in self.tools.hooks):
            return model
        from isthmus.agent.hooks.hooked_model import HookedModel, HookedSession

        async def opened(name: str) -> ChatModel:
            if open_model is None:
                raise ModelError(ModelErrorKind.UNKNOWN_MODEL, "no other model can be opened here")
            return await open_model(name)

        session = HookedSession(
            hooks,
            moment=lambda: self._prompt("", self._options.policy),
            names=self._names_for_hooks,
            show=self._show,
            open_model=opened,
            begin_watch=lambda: _begin_watch(stops_loops=stops_loops),
            conversation=self._conversation if is_in_conversation else None,
        )
        return HookedModel(model, session)

    def _names_for_hooks(self, name: str) -> Sequence[frozenset[str]]:
        tool = self.tools.tools.get(name)
        own = frozenset((name,))
        if tool is not None and (server := server_of(self.tools, name)) is not None:
            return (own, frozenset((f"mcp_{server}_{named_tool(tool, server).own}",)))
        return (own, frozenset(GEMINI_NAMES[name])) if name in GEMINI_NAMES else (own,)

    async def end(self, prompt: str, answer: str, policy: Policy, *, is_again: bool) -> str | None:
        """Return why the agent is to go on after its answer; None if it may end its work."""
        hooks = self._hooks()
        if hooks is None:
            return None
        verdict = await hooks.end(self._prompt(prompt, policy), answer, self._subagent(), is_again=is_again)
        await self._show(replace(verdict, stop=None))
        return verdict.denial if verdict.stop is None else None

    def _subagent(self) -> HookedSubagent | None:
        session = self._turn.session
        return HookedSubagent(session.task_id, session.subagent.name) if session.subagent is not None else None

    def _prompt(self, text: str, policy: Policy) -> HookedPrompt:
        session = self._turn.session
        return HookedPrompt(text, session.context_id, session.workspace, policy.mode, _now())

    def _hooks(self) -> ToolHooks | None:
        if not self.tools.hooks or self._programs is None:
            return None
        session = self._turn.session
        environment = self._options.environment_of(session.user)
        return ToolHooks(self.tools.hooks, self._programs, Path(session.workspace), environment)

    def _call(
        self,
        tool: Tool,
        call_id: str,
        arguments: Mapping[str, Any],
        proposal: ConfirmationDetails | None,
        policy: Policy,
    ) -> HookedCall:
        session = self._turn.session
        named = named_tool(tool, server_of(self.tools, tool.name))
        return HookedCall(
            call_id,
            tool.name,
            arguments,
            effect_of(tool.name, arguments, proposal, Path(session.workspace)),
            session.context_id,
            session.workspace,
            policy.mode,
            _now(),
            named.server,
            named.own,
        )

    async def _show(self, verdict: Verdict) -> None:
        """Show the user what hooks say, and remember that one of them ends the work."""
        if verdict.stop is not None:
            self.stopped = verdict.stop
        for message in verdict.messages:
            log.warning("hook: %s", message)
            await self._turn.emit(Thought(AgentThought(f"Hook: {message}", "")))


def _begin_watch(*, stops_loops: bool) -> Callable[[str], None]:
    """Return a watcher of an answer's text, which raises RepeatedTextError if it repeats itself without end."""
    from isthmus.agent.calls.model_reply import RepeatedTextError

    loop = TextLoop()

    def watch(text: str) -> None:
        if stops_loops and (repeated := loop.add(text)) is not None:
            raise RepeatedTextError(repeated)

    return watch


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _has(call: HookedCall, wanted: Mapping[str, Any]) -> bool:
    """Return whether a call has these arguments already."""
    known = {**call.effect, **call.arguments}
    return all(name in known and known[name] == value for name, value in wanted.items())
