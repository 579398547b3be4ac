"""Runs a slash command inside its task: carries out its steps, and keeps each in the session's events.

A command that waits for a person, or whose process ended, is run again from its beginning; what was said and settled
is known from the session, so nothing is done twice. Deliberately not here: what the commands do.
"""

import asyncio
import logging
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import assert_never

from isthmus.agent.call_events import failed_calls
from isthmus.agent.calls import CallRunner
from isthmus.agent.commands.base import (
    AskModel,
    Calls,
    CommandContext,
    CommandNode,
    Fail,
    Keep,
    Refused,
    Say,
    Step,
    Steps,
    ToolUse,
)
from isthmus.agent.commands.custom_files import find_custom_commands
from isthmus.agent.commands.prompts import PromptNames
from isthmus.agent.commands.registry import BUILT_IN
from isthmus.agent.memory import Memory
from isthmus.agent.options import AgentOptions
from isthmus.agent.parked_calls import ParkedCalls
from isthmus.agent.resources import AgentResources
from isthmus.agent.session import OpenCall, Session
from isthmus.development_tool import SlashCommand, ToolCall, ToolCallStatus
from isthmus.errors import IsthmusError
from isthmus.events import (
    AgentEvent,
    CommandPrompt,
    StateChange,
    TaskState,
    TextContent,
    ToolCallUpdate,
)
from isthmus.models.base import ModelError, ToolRequest
from isthmus.slash_commands import Completion, find
from isthmus.tools.base import ToolScope, ToolSet
from isthmus.tools.failure import ToolFailure

log = logging.getLogger(__name__)


class CommandRunner:
    """The commands of a coding agent."""

    def __init__(self, resources: AgentResources, memory: Memory, parked: ParkedCalls | None = None) -> None:
        self._resources = resources
        self._parked = parked if parked is not None else ParkedCalls()
        self._memory = memory
        self._said_problems: set[str] = set()
        self._prompt_names = PromptNames()

    async def commands(self, scope: ToolScope, home: Path | None) -> Sequence[SlashCommand]:
        """The tree for a scope and a person's own folder: built-in commands, custom ones, prompts of MCP servers."""
        nodes, _ = await self._nodes(scope, home)
        return tuple(node.declared() for node in nodes)

    async def complete(self, scope: ToolScope, home: Path | None, line: str) -> Sequence[Completion]:
        """How a line may go on behind a command's name, where that is known."""
        name, blank, args = line.removeprefix("/").partition(" ")
        nodes, _ = await self._nodes(scope, home) if blank else ((), ())
        node = find((name,), nodes)
        if node is None or node.complete is None:
            return ()
        return [Completion(f"/{name} {text}", "") for text in await node.complete(self._resources, scope, args)]

    async def run(
        self, session: Session, tools: ToolSet, scope: ToolScope, options: AgentOptions
    ) -> AsyncGenerator[AgentEvent, None]:
        """The command of the session's task, up to a question, its end, or CommandPrompt: then the model goes on.

        The events are applied to the session already.
        """
        command = session.command
        nodes, problems = await self._nodes(scope, self._resources.home_of(session.user))
        node = find(command.path, nodes) if command is not None else None
        if command is None or node is None or node.body is None:
            name = "/" + " ".join(command.path if command is not None else ())
            gone = f"There is no command {name} any more. Of a prompt, /mcp tells how its MCP server stands."
            for event in _failed(session, gone, "unknown_command"):
                yield event
            return
        context = CommandContext(
            session=session,
            args=command.args,
            resources=self._resources,
            options=options,
            memory=self._memory,
            tools=tools,
            scope=scope,
            tree=tuple(item.declared() for item in nodes),
            problems=problems,
        )
        execution = _Execution(context, self._parked)
        async with (
            aclosing(node.body(context)) as steps,
            aclosing(execution.carry_out(steps)) as events,
        ):
            async for event in events:
                yield event

    async def _nodes(self, scope: ToolScope, home: Path | None) -> tuple[tuple[CommandNode, ...], tuple[str, ...]]:
        found = await asyncio.to_thread(find_custom_commands, home, scope.workspace, BUILT_IN)
        for problem in found.problems:
            if problem not in self._said_problems:
                self._said_problems.add(problem)
                log.warning("custom commands: %s", problem)
        nodes, contents = (*BUILT_IN, *found.nodes), self._resources.contents
        if contents is None:
            return nodes, found.problems
        listed = await contents.prompts(scope)
        prompts, too_many = self._prompt_names.nodes(scope.workspace, listed, nodes)
        return (*nodes, *prompts), (*found.problems, *too_many)


class _Execution:
    """One run of a command's steps."""

    def __init__(self, context: CommandContext, parked: ParkedCalls) -> None:
        self._session = context.session
        self._options = context.options
        self._rules = replace(context.tools, tools={}, servers=(), trusted_servers=frozenset())
        self._parked = parked
        self._open_model = context.resources.open_model
        self._texts = 0
        self._calls = 0

    async def carry_out(self, steps: Steps) -> AsyncGenerator[AgentEvent, None]:
        session = self._session
        outcome: Sequence[ToolCall] | None = None
        try:
            while (step := await _next(steps, outcome)) is not None:
                outcome = ()
                async with aclosing(self._carry_out(step)) as events:
                    async for event in events:
                        yield event
                        if isinstance(event, CommandPrompt) or (
                            isinstance(event, StateChange) and event.state.ends_stream
                        ):
                            return
                if isinstance(step, Calls):
                    outcome = self._outcome(step)
        except ModelError as error:
            for event in _failed(session, str(error), f"model_{error.kind}"):
                yield event
            return
        except IsthmusError as error:
            told = error.told(session.user) if isinstance(error, ToolFailure) else str(error)
            for event in _failed(session, told, getattr(error, "category", "command_failed")):
                yield event
            return
        for event in _working(session):
            yield event
        yield session.apply(StateChange(TaskState.COMPLETED))

    async def _carry_out(self, step: Step) -> AsyncGenerator[AgentEvent, None]:
        session = self._session
        if isinstance(step, Calls):
            async with aclosing(self._settle(step)) as events:
                async for event in events:
                    yield event
            return
        for event in _working(session):
            yield event
        match step:
            case Say(text, is_afresh):
                self._texts += 1
                message_id = str(uuid.uuid4()) if is_afresh else f"{session.task_id}-{self._texts}"
                if text and message_id not in session.command_texts:
                    yield session.apply(TextContent(message_id, text))
            case AskModel(text, media, requested_file):
                yield session.apply(CommandPrompt(text, media, requested_file))
            case Keep(event):
                yield session.apply(event)
            case Fail(message, reason):
                yield session.apply(StateChange(TaskState.FAILED, message, reason))
            case Refused():
                yield session.apply(StateChange(TaskState.CANCELED))
            case _:
                assert_never(step)

    async def _settle(self, step: Calls) -> AsyncGenerator[AgentEvent, None]:
        """Settle the calls; the last event is INPUT_REQUIRED when a person has to decide on one."""
        session = self._session
        first = self._calls + 1
        self._calls += len(step.uses)
        for number, use in enumerate(step.uses, first):
            if not self._is_as_before(number, use):
                why = "The command has changed since it was begun. Run it again."
                for event in _failed(session, why, "command_changed"):
                    yield event
                return
        tools = replace(self._rules, tools={use.tool.name: use.tool for use in step.uses})
        runner = CallRunner(
            tools,
            self._options,
            session,
            parked=self._parked,
            open_model=self._open_model,
            is_permitted=step.is_permitted,
            asked_each_time=step.asked_each_time,
        )
        async with aclosing(runner.settle()) as events:
            async for event in events:
                if not _asks(event):
                    for begun in _working(session):
                        yield begun
                yield event
        if session.waiting:
            yield session.apply(StateChange(TaskState.INPUT_REQUIRED))

    def _is_as_before(self, number: int, use: ToolUse) -> bool:
        """Make the call known to the session; whether it is the one that the session knows under its number."""
        call_id = self._call_id(number)
        request = ToolRequest(call_id, use.tool.name, use.arguments)
        known = self._session.calls.setdefault(call_id, OpenCall(request, is_models=False)).request
        return known.name == request.name and dict(known.arguments) == dict(request.arguments)

    def _outcome(self, step: Calls) -> Sequence[ToolCall]:
        numbers = range(self._calls - len(step.uses) + 1, self._calls + 1)
        calls = [self._session.calls[self._call_id(number)].call for number in numbers]
        return [call for call in calls if call is not None]

    def _call_id(self, number: int) -> str:
        return f"{self._session.task_id}-{number}"


async def _next(steps: Steps, outcome: Sequence[ToolCall] | None) -> Step | None:
    try:
        return await (anext(steps) if outcome is None else steps.asend(outcome))
    except StopAsyncIteration:
        return None


def _working(session: Session) -> Sequence[AgentEvent]:
    """What is said before a command does anything; nothing when it asks at once."""
    return (session.apply(StateChange(TaskState.WORKING)),) if session.state is TaskState.SUBMITTED else ()


def _asks(event: AgentEvent) -> bool:
    return (
        isinstance(event, ToolCallUpdate)
        and event.tool_call.status is ToolCallStatus.PENDING
        and event.tool_call.confirmation_request is not None
    )


def _failed(session: Session, message: str, reason: str) -> Sequence[AgentEvent]:
    """The end of a command that cannot go on, with what it has open."""
    events = (*failed_calls(session, message), StateChange(TaskState.FAILED, message, reason))
    return [session.apply(event) for event in events]
