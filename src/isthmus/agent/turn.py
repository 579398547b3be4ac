"""The turn loop: model, tool calls, results, model again, until an answer or a question.

A turn is an async generator of AgentEvents. What it yields is in the journal before it goes on: that is how a tool
with an effect runs only after EXECUTING is on the disk. It keeps no state of its own besides the Session, which is a
fold of those same events, so that it can end at a question and be taken up by another process. What tools there are is
asked before each message of the model: servers come, and change what they offer. Deliberately not here:
leases, subscribers, and who answers.
"""

import uuid
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.agent.call_events import failed_calls
from isthmus.agent.call_execution import BeforeEdit
from isthmus.agent.calls import CallRunner
from isthmus.agent.context_keeping import ContextKeeper, still_too_long
from isthmus.agent.context_size import context_window
from isthmus.agent.memory import Memory
from isthmus.agent.options import AgentOptions
from isthmus.agent.parked_calls import ParkedCalls
from isthmus.agent.prompt import system_prompt
from isthmus.agent.referring import complete_references, read_references
from isthmus.agent.resources import AgentResources
from isthmus.agent.server_instructions import server_instructions
from isthmus.agent.session import Session
from isthmus.agent.session_policy import policy_for
from isthmus.agent.thoughts import thought_of
from isthmus.agent.tool_loading import ToolLoading
from isthmus.development_tool import AgentSettings, SlashCommand
from isthmus.events import (
    AgentEvent,
    EditorContext,
    ModelReply,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolsLoaded,
)
from isthmus.models.base import (
    ChatModel,
    Done,
    Finish,
    Message,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    Retrying,
    TextDelta,
    ThoughtDelta,
    ToolRequest,
    ToolRequestStarted,
    ToolSpec,
    requests_of,
)
from isthmus.models.message import message_to_json
from isthmus.slash_commands import Completion
from isthmus.tools.base import ToolScope, ToolSet, full_parameters_of
from isthmus.tools.failure import ToolFailure

if TYPE_CHECKING:
    from isthmus.agent.commands.runner import CommandRunner

TURN_LIMIT = "turn_limit"
"""The ``reason`` of a task that failed because the model wanted too many turns."""


class CodingAgent:
    """An agent with a model and tools, as the engine runs it."""

    def __init__(self, resources: AgentResources, options: AgentOptions) -> None:
        self._resources = resources
        self._options = options
        self._memory = Memory(options.roots)
        self.parked = ParkedCalls()

    @cached_property
    def _commands(self) -> "CommandRunner":
        """Made when it is first wanted: most sessions have no commands."""
        from isthmus.agent.commands.runner import CommandRunner

        return CommandRunner(self._resources, self._memory, self.parked)

    async def commands(self, workspace: Path, settings: AgentSettings | None, user: str = "") -> Sequence[SlashCommand]:
        """See :meth:`isthmus.engine.segment.CommandAgent.commands`."""
        servers = settings.mcp_servers if settings is not None else ()
        return await self._commands.commands(ToolScope(workspace, mcp_servers=servers), self._resources.home_of(user))

    async def complete(
        self, workspace: Path, settings: AgentSettings | None, line: str, user: str = ""
    ) -> Sequence[Completion]:
        """See :meth:`isthmus.client.LineCompleter.complete`."""
        scope = ToolScope(workspace, mcp_servers=settings.mcp_servers if settings is not None else ())
        if line.startswith("/"):
            return await self._commands.complete(scope, self._resources.home_of(user), line)
        return await complete_references(line, self._resources.contents, scope)

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """The next segment of the session's task; ends with a StateChange that ends the stream."""
        scope = _scope(session)
        try:
            try:
                tools = await self._resources.tools.tools(scope)
            except ToolFailure as failure:
                if session.state is TaskState.SUBMITTED:
                    yield session.apply(StateChange(TaskState.WORKING))
                told = failure.told(session.user)
                for event in failed_calls(session, told):
                    yield session.apply(event)
                yield session.apply(StateChange(TaskState.FAILED, told, failure.category))
                return
            async with aclosing(self._run(session, tools)) as running:
                async for event in running:
                    yield event
        finally:
            # Not yet for a call that waits for a person in the middle of its work.
            await self.parked.end_segment(scope.task_id, partial(self._resources.tools.release, scope))

    async def _run(self, session: Session, tools: ToolSet) -> AsyncGenerator[AgentEvent, None]:
        if session.command is not None and not session.has_command_prompt:
            async with aclosing(self._commands.run(session, tools, _scope(session), self._options)) as running:
                async for event in running:
                    yield event
            if not session.has_command_prompt:
                return
        loading = ToolLoading(tools, self._options.tool_search)
        calls = CallRunner(
            loading.tools,
            self._options,
            session,
            self._resources.checkpoints,
            parked=self.parked,
            open_model=self._resources.open_model,
            approvals=await self._resources.approvals_of(session.user, tools),
            before_edit=self._before_edit(session),
        )
        keeper = ContextKeeper(session, self._options.compaction_share)
        if session.state is TaskState.SUBMITTED:
            yield session.apply(StateChange(TaskState.WORKING))
        if not session.unsettled:
            try:
                await self._resources.open_model(session.model)
            except ModelError as error:
                # Before anything runs.
                yield session.apply(_model_failure(error))
                return
        if session.command is None and self._resources.contents is not None:
            references = read_references(session, self._resources.contents, _scope(session), self._options)
            async with aclosing(references) as reading:
                async for event in reading:
                    yield event
        editor_context = self._resources.editor_context
        if not session.has_editor_context and editor_context is not None and not session.unsettled:
            shown = await editor_context(_scope(session))
            if shown is not None:
                yield session.apply(EditorContext(shown))
        while True:
            async with aclosing(calls.settle()) as settling:
                async for event in settling:
                    yield event
            if session.waiting:
                yield session.apply(StateChange(TaskState.INPUT_REQUIRED))
                return
            if session.model_turns >= self._options.max_model_turns:
                limit = self._options.max_model_turns
                message = f"The model wanted more than {limit} turns for one prompt. Send a message to let it go on."
                yield session.apply(StateChange(TaskState.FAILED, message, TURN_LIMIT))
                return
            if (now := await self._resources.tools.renewed(_scope(session), tools)) is not tools:
                tools, loading = now, ToolLoading(now, self._options.tool_search)
                calls.renew(loading.tools, await self._resources.approvals_of(session.user, tools))
            if (diagnostics := self._resources.edit_diagnostics) is not None:
                news = await diagnostics.news(_scope(session))
                if news is not None:
                    yield session.apply(EditorContext(news))
            end: StateChange | None = None
            try:
                async with aclosing(self._step(session, loading, keeper)) as step:
                    async for event in step:
                        if isinstance(event, StateChange):
                            end = event
                        else:
                            yield session.apply(event)
            except ModelError as error:
                end = _model_failure(error)
            if end is not None:
                yield session.apply(end)
                return

    def _before_edit(self, session: Session) -> BeforeEdit | None:
        diagnostics = self._resources.edit_diagnostics
        return partial(diagnostics.before_edit, _scope(session)) if diagnostics is not None else None

    async def _step(
        self, session: Session, loading: ToolLoading, keeper: ContextKeeper
    ) -> AsyncGenerator[AgentEvent, None]:
        """The model's next message, the conversation compacted before it where that is needed."""
        model = await self._resources.open_model(session.model)
        window = context_window(model)
        loading.fit(window)
        if loading.begins(session.loaded_tools, window):
            yield ToolsLoaded()
        request = await self._request(session, loading)
        async with aclosing(keeper.before(model, request)) as keeping:
            async for event in keeping:
                yield event
        try:
            request = replace(request, messages=tuple(session.messages))
            async with aclosing(_ask(model, request, session.call_ids)) as asking:
                async for event in asking:
                    yield event
            return
        except ModelError as error:
            if error.kind is not ModelErrorKind.CONTEXT_TOO_LONG:
                raise
            too_long = error
        async with aclosing(keeper.after(model, too_long)) as keeping:
            async for event in keeping:
                yield event
        try:
            request = replace(request, messages=tuple(session.messages))
            async with aclosing(_ask(model, request, session.call_ids)) as asking:
                async for event in asking:
                    yield event
        except ModelError as error:
            if error.kind is not ModelErrorKind.CONTEXT_TOO_LONG:
                raise
            raise still_too_long(error, "What is left after its older part was summarised is too long, too.") from error

    async def _request(self, session: Session, loading: ToolLoading) -> ModelRequest:
        settings, workspace = session.settings, Path(session.workspace)
        mode = policy_for(
            self._options.policy, settings, self._options.settings_rule, yolo_refusal=loading.tools.yolo_refusal
        ).mode
        names = (settings.context_files if settings is not None else ()) or self._options.context_files
        home = self._resources.home_of(session.user)
        instructions = await self._memory.instructions(workspace, home, names)
        is_trusted = await self._resources.trusts_project(session.user, workspace)
        contents = self._resources.contents
        said = await contents.instructions(_scope(session)) if contents is not None else ()
        told = server_instructions(said)
        return ModelRequest(
            system=system_prompt(workspace, mode, instructions.text, is_trusted=is_trusted, servers=told)
            + loading.note(session.loaded_tools),
            messages=tuple(session.messages),
            tools=tuple(
                ToolSpec(tool.name, tool.description, tool.parameters, full_parameters_of(tool))
                for tool in loading.sent(session.loaded_tools)
            ),
        )


async def _ask(model: ChatModel, request: ModelRequest, used_ids: Collection[str]) -> AsyncGenerator[AgentEvent, None]:
    """One model message as it comes, the ModelReply, and a StateChange when it is the last of the turn.

    Calls get ids other than ``used_ids``: a model knows only those that are still in its conversation.
    """
    message_id = str(uuid.uuid4())
    thinking: list[str] = []
    done: Done | None = None
    async with aclosing(model.stream(request)) as stream:
        async for item in stream:
            if thinking and not isinstance(item, ThoughtDelta):
                yield Thought(thought_of("".join(thinking)))
                thinking.clear()
            match item:
                case TextDelta(text):
                    yield TextContent(message_id, text)
                case ThoughtDelta(text):
                    thinking.append(text)
                case Retrying(attempt, attempts, delay, reason):
                    yield RetryNotice(attempt, attempts, delay, reason)
                case ToolRequestStarted():
                    pass
                case Done():
                    done = item
    if done is None:
        raise RuntimeError(f"the {model.provider} model's stream ended without its Done item")
    usage = done.usage
    yield ModelReply(
        message_id,
        model.name,
        message_to_json(_with_new_ids(done.message, used_ids)),
        input_tokens=usage.input,
        output_tokens=usage.output,
        cached_tokens=usage.cached,
        thought_tokens=usage.thoughts,
    )
    if (end := _end_of_turn(done)) is not None:
        yield end


def _with_new_ids(message: Message, used_ids: Collection[str]) -> Message:
    if not any(request.id in used_ids for request in requests_of(message)):
        return message
    parts = tuple(
        replace(part, id=f"call_{uuid.uuid4().hex[:16]}")
        if isinstance(part, ToolRequest) and part.id in used_ids
        else part
        for part in message.parts
    )
    return replace(message, parts=parts)


def _model_failure(error: ModelError) -> StateChange:
    return StateChange(TaskState.FAILED, str(error), f"model_{error.kind}")


def _scope(session: Session) -> ToolScope:
    servers = session.settings.mcp_servers if session.settings is not None else ()
    return ToolScope(Path(session.workspace), session.context_id, session.task_id, servers)


def _end_of_turn(done: Done) -> StateChange | None:
    if requests_of(done.message):
        return None
    match done.finish:
        case Finish.SAFETY:
            return StateChange(
                TaskState.FAILED, "The model stopped for safety reasons. Rephrase the request.", "safety"
            )
        case Finish.LENGTH:
            message = "The model's answer was cut at its output limit. Send a message to let it go on."
            return StateChange(TaskState.FAILED, message, "output_limit")
        case Finish.STOP | Finish.TOOL_CALLS | Finish.OTHER:
            return StateChange(TaskState.COMPLETED)
