"""The context of a slash command: texts for the user, tool calls, and the hand-over to the model.

A command is a coroutine. After a crash, and after the user's answer, it runs again from its beginning: texts are not
shown twice, and settled calls return immediately. So the code before a call must not depend on anything that changes,
and effects belong in calls.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from typing_extensions import override

from isthmus.agent.approval.policy import AskedEachTime
from isthmus.agent.calls.call_hooks import CallHooks
from isthmus.agent.calls.runner import CallRunner
from isthmus.agent.calls.services import CallServices
from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.agent.memory.memory import Memory
from isthmus.agent.options import AgentOptions
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.open_call import OpenCall
from isthmus.agent.session.session import Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import SlashCommand, ToolCall, ToolCallStatus
from isthmus.errors import IsthmusError
from isthmus.events import AgentEvent, StateChange, TaskState, TextContent, ToolCallUpdate
from isthmus.internal_events import CommandPrompt
from isthmus.media import Media
from isthmus.models.port.base import ChatModel, ToolRequest
from isthmus.record import record
from isthmus.tools.port.base import Tool
from isthmus.tools.port.tool_set import ToolScope, ToolSet


class CommandError(IsthmusError):
    """Raised when a command failed; ``reason`` is a machine-readable word."""

    def __init__(self, message: str, reason: str = "command_failed") -> None:
        super().__init__(message)
        self.reason = reason


class CommandRefusedError(IsthmusError):
    """Raised when the user refused to continue the command; its task is cancelled."""


class CommandChangedError(IsthmusError):
    """Raised when a command that is run again makes another call than before."""

    category = "command_changed"


class CommandSuspendedError(IsthmusError):
    """Raised when a call of the command waits for the user; the command is run again after the answer."""


@record
class ToolInvocation:
    """A tool, and its arguments."""

    tool: Tool
    arguments: Mapping[str, Any]


class CommandTurn(AgentTurn):
    """The turn of a command: WORKING goes before its first event, unless the command begins with a question."""

    @override
    async def emit(self, *events: AgentEvent) -> None:
        for event in events:
            if self.session.state is TaskState.SUBMITTED and not _asks(event):
                await super().emit(StateChange(TaskState.WORKING))
            await super().emit(event)


@dataclass(slots=True)
class CommandContext:
    """One run of a command. ``problems`` report custom commands that cannot be used.

    ``known_scope`` is None while the session has no folder: only commands that need none run then. ``turn`` emits
    events other than texts and calls; they are emitted again when the command runs again.
    """

    turn: CommandTurn
    args: str
    resources: AgentResources
    options: AgentOptions
    memory: Memory
    tools: ToolSet
    known_scope: ToolScope | None
    tree: tuple[SlashCommand, ...]
    suspended: SuspendedCalls
    problems: tuple[str, ...] = ()
    _texts: int = field(default=0, init=False)
    _calls: int = field(default=0, init=False)

    @property
    def session(self) -> Session:
        """The session of the command's task."""
        return self.turn.session

    @property
    def scope(self) -> ToolScope:
        """The scope of the session's tools; raises CommandError while the session has no folder."""
        if self.known_scope is None:
            raise CommandError("This needs a folder, which the session does not have yet.", "no_folder")
        return self.known_scope

    @property
    def workspace(self) -> Path:
        """The folder of the session."""
        return self.scope.workspace

    @property
    def home(self) -> Path | None:
        """The folder of the user's own files; None if the user has no folder here."""
        return self.resources.home_of(self.session.user)

    @property
    def has_called(self) -> bool:
        """Whether an earlier run of the command has already made calls."""
        return bool(self.session.calls)

    @property
    def context_files(self) -> tuple[str, ...]:
        """The names of the files that instruct the agent; empty for the usual ones."""
        settings = self.session.settings
        return (settings.context_files if settings is not None else ()) or self.options.context_files

    async def say(self, text: str, *, is_afresh: bool = False) -> None:
        """Show a text to the user; ``is_afresh`` repeats it when the command runs again, e.g. an address to open."""
        self._texts += 1
        message_id = str(uuid.uuid4()) if is_afresh else f"{self.session.task_id}-{self._texts}"
        if text and message_id not in self.session.command_texts:
            await self.turn.emit(TextContent(message_id, text))

    async def model(self) -> ChatModel:
        """Open the session's model, whose requests pass through the hooks of the settings.

        Raises:
            ModelError: it cannot be opened.
            CommandError: a budget allows no request.
        """
        resources = self.resources
        model = await resources.open_model(self.session.choices.model)
        refusal = await self.turn.refusal()
        refusal = refusal or self.turn.price_refusal(model.name, is_priced=model.capabilities.costs is not None)
        if refusal is not None:
            raise CommandError(refusal.text, refusal.reason)
        hooks = CallHooks(self.turn, self.options, resources.hook_programs, self.tools)
        return hooks.model(model, resources.open_model)

    async def call(
        self, *uses: ToolInvocation, is_permitted: bool = False, asked_each_time: AskedEachTime | None = None
    ) -> tuple[ToolCall, ...]:
        """Make tool calls, and return them in their final states, in this order.

        The approval policy decides on them, unless the command itself is the user's permission (``is_permitted``), or
        another author wrote it: then ``asked_each_time`` is the reason to ask the user for each call.

        Raises:
            CommandSuspendedError: one of them waits for the user.
            CommandChangedError: an earlier run of the command made other calls.
        """
        first = self._calls + 1
        self._calls += len(uses)
        call_ids = [f"{self.session.task_id}-{number}" for number in range(first, first + len(uses))]
        for call_id, use in zip(call_ids, uses, strict=True):
            request = ToolRequest(call_id, use.tool.name, use.arguments)
            known = self.session.calls.setdefault(call_id, OpenCall(request, is_models=False)).request
            if known.name != request.name or dict(known.arguments) != dict(request.arguments):
                raise CommandChangedError("The command has changed since it started. Run it again.")
        named = {use.tool.name: use.tool for use in uses}
        runner = CallRunner(
            self.turn,
            replace(self.tools, tools=named, servers=(), trusted_servers=frozenset()),
            self.options,
            CallServices(
                suspended=self.suspended,
                open_model=self.resources.open_model,
                hook_programs=self.resources.hook_programs,
            ),
            is_permitted=is_permitted,
            asked_each_time=asked_each_time,
        )
        await runner.settle()
        if self.session.calls.waiting:
            raise CommandSuspendedError("a call of the command waits for the user")
        calls = [self.session.calls[call_id].call for call_id in call_ids]
        return tuple(call for call in calls if call is not None)

    async def ask_model(self, text: str, media: tuple[Media, ...] = (), requested_file: str = "") -> None:
        """Hand the task over to the model with this text and media, which ends the command.

        ``requested_file`` is the file that the user requested by the command.
        """
        await self.turn.emit(CommandPrompt(text, media, requested_file))


def error_of(call: ToolCall, otherwise: str, reason: str) -> CommandError:
    """Return the error of a command whose call failed, with the call's message if it has one."""
    return CommandError(call.error.message if call.error is not None else otherwise, reason)


def _asks(event: AgentEvent) -> bool:
    return (
        isinstance(event, ToolCallUpdate)
        and event.tool_call.status is ToolCallStatus.PENDING
        and event.tool_call.confirmation_request is not None
    )
