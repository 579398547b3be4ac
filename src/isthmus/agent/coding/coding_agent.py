"""The coding agent and its loop: model, tool calls, results, model again, until an answer or a question.

It emits its events through its turn and keeps no state besides the Session, which is a fold of the same events. It can
therefore stop at a question and continue in another process. It looks for new tools before each message of the model,
since servers connect and change their tools.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.agent.approval.policy_rules import rules_for
from isthmus.agent.approval.restricted_tools import UNREADABLE_SETTINGS
from isthmus.agent.approval.session_policy import policy_for
from isthmus.agent.calls.events import failed_calls
from isthmus.agent.calls.model_reply import RepeatedTextError, ReplyStream
from isthmus.agent.calls.runner import CallRunner
from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.agent.calls.withheld_tools import WithheldNotice
from isthmus.agent.coding.fallback import FallbackModels
from isthmus.agent.coding.loop_guard import LoopGuard
from isthmus.agent.context.keeper import ContextKeeper
from isthmus.agent.context.windows import LearnedWindows, window_of
from isthmus.agent.environment import has_environment
from isthmus.agent.hooks.refusal import STOPPED_BY_HOOK, RefusedByHookError
from isthmus.agent.hooks.verdicts import Verdict
from isthmus.agent.memory.instructions import Instructions
from isthmus.agent.memory.memory import Memory
from isthmus.agent.options import AgentOptions
from isthmus.agent.part import PartTurn
from isthmus.agent.references.reading import complete_references, read_references
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.session import PROMPT_REFUSED, ReadSession, Session
from isthmus.agent.session.size import messages_tokens
from isthmus.agent.session.spending import TOKEN_QUOTA
from isthmus.agent.session.turn import AgentTurn
from isthmus.agent.subagents.child_tools import child_tools
from isthmus.agent.system_prompt import PromptVariant, system_prompt
from isthmus.agent.tool_search.loading import ToolLoading
from isthmus.client import SessionStatus
from isthmus.development_tool import AgentSettings, SlashCommand
from isthmus.events import RetryNotice, StateChange, TaskState
from isthmus.internal_events import (
    HOOK_CONTEXT,
    HOOK_NOTE,
    LIMIT_NOTE,
    ContextNote,
    EnvironmentContext,
    ToolsLoaded,
)
from isthmus.models.port.base import (
    ChatModel,
    Effort,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ToolSpec,
    text_of,
)
from isthmus.runtime.brief_work import briefly
from isthmus.slash_commands.tree import Completion
from isthmus.tools.port.base import Tool, full_parameters_of, is_model_specific, is_search_tool
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import ToolScope, ToolSet

if TYPE_CHECKING:
    from isthmus.agent.commands.runner import CommandRunner

TURN_LIMIT = "turn_limit"
"""Reason of a task that failed because the model needed too many turns."""
SETTINGS_ATTEMPTS = 25
"""Maximum number of times that work which goes on tries to read settings that cannot be read: for about 10 minutes."""
SETTINGS_WAIT_SECONDS = 30.0
"""Maximum time in seconds between two of these attempts."""
MAXIMUM_CONTINUATIONS = 10
"""Maximum number of times that hooks make the agent go on after its answer to one prompt."""
LAST_TURN = "This is your last message: make no more calls, and answer with what you have found and done so far."
"""Text for a subagent that has used all but one of its model messages."""


class CodingAgent:
    """Coding agent with a model and tools, run by the engine."""

    def __init__(self, resources: AgentResources, options: AgentOptions) -> None:
        self._resources = resources
        self._options = options
        self._memory = Memory(options.roots)
        self.suspended = SuspendedCalls()
        self._withheld = WithheldNotice()
        self._windows = LearnedWindows()

    @cached_property
    def _commands(self) -> "CommandRunner":
        """Runner of commands, created at the first use, since most sessions have no commands."""
        from isthmus.agent.commands.runner import CommandRunner

        return CommandRunner(self._resources, self._memory, self.suspended)

    async def commands(self, workspace: Path, settings: AgentSettings | None, user: str = "") -> Sequence[SlashCommand]:
        """Return the slash commands for a user in a workspace."""
        servers = settings.mcp_servers if settings is not None else ()
        scope = ToolScope(workspace, mcp_servers=servers, user=user)
        return await self._commands.commands(scope, self._resources.home_of(user))

    def general_commands(self) -> Sequence[SlashCommand]:
        """Return the built-in slash commands."""
        return self._commands.general()

    def needs_folder(self, path: Sequence[str]) -> bool:
        """Return whether a built-in command can only be executed in a folder."""
        return self._commands.needs_folder(path)

    async def complete(
        self, session: ReadSession, workspace: Path, settings: AgentSettings | None, line: str, user: str = ""
    ) -> Sequence[Completion]:
        """Return the completions of a line that a user is typing in the session that ``session`` reads."""
        scope = ToolScope(workspace, mcp_servers=settings.mcp_servers if settings is not None else (), user=user)
        if line.startswith("/"):
            return await self._commands.complete(scope, self._resources.home_of(user), line, session)
        return await complete_references(
            line, self._resources.contents, scope, self._options.workspace_of(workspace, user)
        )

    async def status(self, session: Session) -> SessionStatus:
        """Return the mode, the model and its effort in a session, and how full its context is, as far as counted."""
        refusal = await self._resources.yolo_refusal_of(Path(session.workspace))
        options = self._options
        policy = policy_for(options.policy, session.settings, options.settings_rule, yolo_refusal=refusal)
        try:
            model = await self._resources.open_model(session.model)
        except ModelError:  # its key is gone, for example; the next prompt will say it
            model = None
        name, effort = session.model, None
        if model is not None:
            name = name or model.name
            if model.capabilities.thoughts:
                effort = session.effort or (options.effort.value if options.effort is not None else "default")
        if not session.measured_messages:
            return SessionStatus(policy.mode.value, model=name, effort=effort)
        used = session.measured_tokens + messages_tokens(session.messages[session.measured_messages :])
        return SessionStatus(
            policy.mode.value, used, window_of(session, model) if model is not None else None, name, effort
        )

    async def advance(self, turn: AgentTurn) -> StateChange:
        """Work on the session's task up to its end or a question, and return that state."""
        session, scope = turn.session, _scope(turn.session)
        if session.command is not None and not session.workspace:
            end = await self._commands.run(turn, ToolSet(), None, self._options)
            return end or StateChange(TaskState.FAILED, "The model needs a folder; the session has none.", "no_folder")
        try:
            try:
                tools = await self._tools(turn, scope)
            except ToolFailure as failure:
                if session.state is TaskState.SUBMITTED:
                    await turn.emit(StateChange(TaskState.WORKING))
                message = failure.message_for(session.user)
                await turn.emit(*failed_calls(session, message))
                return StateChange(TaskState.FAILED, message, failure.category)
            if session.command is not None and not session.has_command_prompt:
                end = await self._commands.run(turn, tools, scope, self._options)
                if end is not None:
                    return end
            try:
                return await self._work(turn, tools, scope)
            except ModelError as error:
                return StateChange(TaskState.FAILED, str(error), f"model_{error.kind}")
            except RefusedByHookError as refused:
                return StateChange(TaskState.FAILED, str(refused), refused.reason)
        finally:
            # A call that waits for the user in the middle of its work delays the release.
            await self.suspended.end_segment(scope.task_id, partial(self._resources.tools.release, scope))

    async def _tools(self, turn: AgentTurn, scope: ToolScope) -> ToolSet:
        """Return the tools of a segment. Work that goes on waits for rules that cannot be read: an answer is kept.

        Raises:
            ToolFailure: there are none.
        """
        for attempt in range(1, SETTINGS_ATTEMPTS):
            try:
                return await self._resources.tools.tools(scope)
            except ToolFailure as failure:
                if failure.category != UNREADABLE_SETTINGS or not scope.goes_on:
                    raise
                delay = min(2.0 ** (attempt - 1), SETTINGS_WAIT_SECONDS)
                notice = RetryNotice(attempt, SETTINGS_ATTEMPTS, delay, failure.message_for(turn.session.user))
                await turn.emit(notice)
                await asyncio.sleep(delay)
        return await self._resources.tools.tools(scope)

    async def _work(self, turn: AgentTurn, tools: ToolSet, scope: ToolScope) -> StateChange:
        session, resources, options = turn.session, self._resources, self._options
        subagent = session.subagent
        part_turn = PartTurn(scope, session.key, is_of_subagent=subagent is not None)
        loading = ToolLoading(_tools_of(session, tools), options.tool_search)
        calls = CallRunner(
            turn,
            loading.tools,
            options,
            resources.checkpoints,
            suspended=self.suspended,
            open_model=resources.open_model,
            approvals=await resources.approvals_of(session.user, tools),
            before_edit=partial(resources.parts.before_edit, part_turn),
            hook_programs=resources.hook_programs,
        )
        keeper = ContextKeeper(turn, options.compaction_share, self._windows)
        models = FallbackModels(resources.open_model, options.fallback_models)
        guard = LoopGuard(turn, may_ask=options.policy.may_ask, is_on=options.stops_loops)
        if session.state is TaskState.SUBMITTED:
            await turn.emit(StateChange(TaskState.WORKING))
        if not session.unsettled:
            await resources.open_model(session.model)  # A model that cannot be opened fails the task before calls run.
        context: tuple[str, ...] = ()
        if session.model_turns == 0 and not session.unsettled:
            # Once for each prompt: after a crash before the first reply the hooks run again.
            is_first = all(message.role == "user" for message in session.messages)
            verdict = await calls.verdict_on_prompt(_prompt_text(session), is_first=is_first)
            if (end := _end_by_hook(verdict)) is not None:
                return end
            context = verdict.context
        if session.command is None and subagent is None:
            await read_references(turn, resources.contents, scope, tools, options, resources.hook_programs)
        if resources.environment is not None and not session.unsettled and not has_environment(session.messages):
            await turn.emit(EnvironmentContext(await resources.environment(scope)))
        if not session.unsettled:
            await turn.emit(*await resources.parts.notes_at_prompt(part_turn, session.note_sources))
        for text in context:
            await turn.emit(_note_of_hook(text))
        continued = 0
        while True:
            if (end := await guard.settle()) is not None:
                return end
            await calls.settle()
            if session.waiting:
                return StateChange(TaskState.INPUT_REQUIRED)
            if calls.stopped is not None:
                return StateChange(TaskState.FAILED, f"A hook stopped the work: {calls.stopped}", STOPPED_BY_HOOK)
            if (end := await guard.check()) is not None:
                return end
            if await turn.takes_steering():
                await read_references(turn, resources.contents, scope, tools, options, resources.hook_programs)
                continue
            limit = subagent.max_turns if subagent is not None else options.max_model_turns
            if limit is not None and session.model_turns >= limit:
                message = f"The model needed more than {limit} turns for one prompt. Send a message to continue."
                return StateChange(TaskState.FAILED, message, TURN_LIMIT)
            if (refusal := await turn.refusal()) is not None:
                return StateChange(TaskState.FAILED, refusal, TOKEN_QUOTA)
            if (now := await resources.tools.renewed(scope, tools)) is not tools:
                tools, loading = now, ToolLoading(_tools_of(session, now), options.tool_search)
                calls.renew(loading.tools, await resources.approvals_of(session.user, tools))
            await turn.emit(*await resources.parts.notes_before_model(part_turn))
            if subagent is not None and limit is not None and 0 < session.model_turns == limit - 1:
                await turn.emit(ContextNote(LIMIT_NOTE, LAST_TURN))
            try:
                end = await self._ask_model(turn, loading, keeper, models, calls)
            except RepeatedTextError as repeated:
                end = await guard.act(
                    f"repeated a passage without end ({repeated.passage})",
                    f"Your last answer repeated the same passage without end ({repeated.passage}). It was stopped and"
                    " discarded. Answer without the repetition, or say what is in the way.",
                )
            if end is None:
                continue
            if end.state is not TaskState.COMPLETED or continued >= MAXIMUM_CONTINUATIONS:
                return end
            reason = await calls.reason_to_go_on(text_of(session.messages[-1]), is_again=continued > 0)
            if reason is None:
                return end
            continued += 1
            await turn.emit(_note_of_hook(f"You are not done: {reason}"))

    async def _ask_model(
        self, turn: AgentTurn, loading: ToolLoading, keeper: ContextKeeper, models: FallbackModels, calls: CallRunner
    ) -> StateChange | None:
        """Emit the next message of the first model that is not overloaded; return the end of the turn if that is it."""
        reply = ReplyStream(turn, stops_loops=self._options.stops_loops)
        while True:
            model = await models.present(turn.session.model)
            try:
                hooked = calls.hooked(model)
                return await self._ask(turn, loading, keeper, hooked, reply, calls, has_fallback=models.has_more)
            except ModelError as error:
                await turn.emit(await models.after(model, error))

    async def _ask(
        self,
        turn: AgentTurn,
        loading: ToolLoading,
        keeper: ContextKeeper,
        model: ChatModel,
        reply: ReplyStream,
        calls: CallRunner,
        *,
        has_fallback: bool,
    ) -> StateChange | None:
        """Emit the model's next message, after compacting the conversation if necessary.

        Return the end of the turn if the message ends it.
        """
        session, tools = turn.session, loading.tools.tools
        window = window_of(session, model)
        loading.fit(window)
        if loading.begins(session.loaded_tools, window):
            await turn.emit(ToolsLoaded())
        request = replace(await self._request(session, loading, model, calls), has_fallback=has_fallback)
        self._withheld.say(calls.withheld())
        calls.name_offered([spec.name for spec in request.tools])
        await keeper.before(model, request)
        while True:
            request = replace(request, messages=tuple(session.messages))
            try:
                return await reply.stream(model, request, tools)
            except ModelError as error:
                if error.kind is not ModelErrorKind.CONTEXT_TOO_LONG:
                    raise
                too_long = error
            # Each time the conversation becomes shorter, or this raises the error.
            await keeper.after(model, request, too_long)

    async def _request(
        self, session: Session, loading: ToolLoading, model: ChatModel, calls: CallRunner
    ) -> ModelRequest:
        settings, workspace = session.settings, Path(session.workspace)
        policy = policy_for(
            self._options.policy, settings, self._options.settings_rule, yolo_refusal=loading.tools.yolo_refusal
        )
        names_of_tools = frozenset(name for name, tool in loading.tools.tools.items() if calls.is_offered(tool))
        variant = PromptVariant(
            policy.mode, policy.may_ask, self._options.is_in_terminal, model.provider, names_of_tools
        )
        names = (settings.context_files if settings is not None else ()) or self._options.context_files
        home = self._resources.home_of(session.user)

        def look() -> tuple[Instructions, bool]:
            # In one thread, for each request: handing work to a thread costs more than most looks.
            is_trusted = self._resources.is_project_trusted(session.user, workspace)
            return self._memory.read(workspace, home, names), is_trusted

        instructions, is_trusted = await briefly(look)
        of_parts = await self._resources.parts.instructions(_scope(session))
        subagent = session.subagent
        return ModelRequest(
            system=system_prompt(
                workspace,
                variant,
                instructions.text,
                is_trusted=is_trusted,
                parts=of_parts,
                subagent=subagent.instructions if subagent is not None else None,
                folders=self._options.further_folders_of(workspace, session.user, session.added_folders),
            )
            + loading.note(session.loaded_tools)
            + (f"\n{appended}\n" if (appended := self._options.appended_prompt) else ""),
            messages=tuple(session.messages),
            effort=Effort(session.effort) if session.effort is not None else self._options.effort,
            tools=tuple(
                ToolSpec(tool.name, tool.description, tool.parameters, full_parameters_of(tool))
                for tool in loading.sent(session.loaded_tools)
                if _suits(tool, model) and calls.is_offered(tool)
            ),
        )


def _suits(tool: Tool, model: ChatModel) -> bool:
    """Return whether a tool is offered to a model."""
    if is_search_tool(tool) and not model.capabilities.web_search:
        return False
    return not is_model_specific(tool) or tool.suits(model.name)


def _tools_of(session: Session, tools: ToolSet) -> ToolSet:
    """Return the tools that the session's agent, or its subagent, may use."""
    if session.subagent is not None:
        return child_tools(tools, session.subagent)
    if all(rule.subagent is None for rule in tools.policies):
        return tools
    return replace(tools, policies=rules_for(tools.policies, None))


def _prompt_text(session: Session) -> str:
    """Return the text that the user, or a command for the user, has written since the model's last message."""
    if session.new_prompts:
        return "\n\n".join(prompt.text for prompt in session.new_prompts)
    last = session.messages[-1] if session.messages else None
    return text_of(last) if last is not None and last.role == "user" else ""


def _end_by_hook(verdict: Verdict) -> StateChange | None:
    """Return the end of a turn whose prompt a hook has refused; None if it may go on."""
    if verdict.stop is not None:
        return StateChange(TaskState.FAILED, f"A hook stopped the work: {verdict.stop}", STOPPED_BY_HOOK)
    reason = verdict.denial or verdict.question
    return (
        None
        if reason is None
        else StateChange(TaskState.FAILED, f"A hook refused the prompt: {reason}", PROMPT_REFUSED)
    )


def _scope(session: Session) -> ToolScope:
    servers = session.settings.mcp_servers if session.settings is not None else ()
    return ToolScope(
        Path(session.workspace),
        session.context_id,
        session.task_id,
        servers,
        session.user,
        goes_on=bool(session.unsettled),
    )


def _note_of_hook(text: str) -> ContextNote:
    return ContextNote(HOOK_NOTE, f"{HOOK_CONTEXT}\n{text}\n</hook_context>")
