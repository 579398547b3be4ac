"""Vocabulary of the dialect ``coderAgent`` of gemini-cli-a2a-server.

The dialect is A2A 0.3 with ``metadata.coderAgent`` in place of the development-tool extension; events carry the objects
of Gemini CLI's tool scheduler. These names, and their mapping to ours, are shared by server and client. They were taken
from the code and from recordings of version 0.25.2 of the npm package ``@google/gemini-cli-a2a-server``.
"""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import assert_never

from isthmus.development_tool import (
    ConfirmationDetails,
    ConfirmationOption,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
)
from isthmus.questions import ACCEPTING_OPTIONS, REFUSING_OPTIONS

KEY = "coderAgent"
"""Key in a metadata object: for AgentSettings in a message, for ``{"kind": ...}`` in an event.

The metadata of an event also has ``model``, ``userTier``, ``error`` and ``traceId``.
"""


class EventKind(StrEnum):
    """Values of ``metadata.coderAgent.kind``."""

    TOOL_CALL_CONFIRMATION = "tool-call-confirmation"
    """A call asks for permission; in the development-tool extension this kind is the answer."""
    TOOL_CALL_UPDATE = "tool-call-update"
    TEXT_CONTENT = "text-content"
    STATE_CHANGE = "state-change"
    AGENT_SETTINGS = "agent-settings"
    """Settings in a message, with ``workspacePath`` and ``autoExecute``."""
    THOUGHT = "thought"
    CITATION = "citation"


class CallStatus(StrEnum):
    """Values of ``status`` of a call in the scheduler."""

    VALIDATING = "validating"
    SCHEDULED = "scheduled"
    AWAITING_APPROVAL = "awaiting_approval"
    EXECUTING = "executing"
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"


class AnswerOutcome(StrEnum):
    """Values of ``outcome`` of an answer. ``proceed_always``: the command's program, or every edit, in the session."""

    PROCEED_ONCE = "proceed_once"
    PROCEED_ALWAYS = "proceed_always"
    PROCEED_ALWAYS_SERVER = "proceed_always_server"
    PROCEED_ALWAYS_TOOL = "proceed_always_tool"
    MODIFY_WITH_EDITOR = "modify_with_editor"
    CANCEL = "cancel"


class DetailsType(StrEnum):
    """Values of ``confirmationDetails.type``, each with the members that it brings."""

    EDIT = "edit"
    """``fileName``, ``filePath``, ``fileDiff``, ``originalContent`` (null for a new file), ``newContent``."""
    EXEC = "exec"
    """``command``, ``rootCommand``: the programs it runs, separated by ", "."""
    MCP = "mcp"
    """``serverName``, ``toolName``, ``toolDisplayName``."""
    INFO = "info"
    """``prompt``, and ``urls`` of a web fetch."""


STATUSES: Mapping[CallStatus, ToolCallStatus] = MappingProxyType(
    {
        CallStatus.VALIDATING: ToolCallStatus.PENDING,
        CallStatus.SCHEDULED: ToolCallStatus.PENDING,
        CallStatus.AWAITING_APPROVAL: ToolCallStatus.PENDING,
        CallStatus.EXECUTING: ToolCallStatus.EXECUTING,
        CallStatus.SUCCESS: ToolCallStatus.SUCCEEDED,
        CallStatus.ERROR: ToolCallStatus.FAILED,
        CallStatus.CANCELLED: ToolCallStatus.CANCELLED,
    }
)
"""Our status for each status of the scheduler."""

OFFERED: Mapping[DetailsType, tuple[AnswerOutcome, ...]] = MappingProxyType(
    {
        DetailsType.EDIT: (AnswerOutcome.PROCEED_ONCE, AnswerOutcome.PROCEED_ALWAYS, AnswerOutcome.CANCEL),
        DetailsType.EXEC: (AnswerOutcome.PROCEED_ONCE, AnswerOutcome.PROCEED_ALWAYS, AnswerOutcome.CANCEL),
        DetailsType.MCP: (
            AnswerOutcome.PROCEED_ONCE,
            AnswerOutcome.PROCEED_ALWAYS_TOOL,
            AnswerOutcome.PROCEED_ALWAYS_SERVER,
            AnswerOutcome.CANCEL,
        ),
        DetailsType.INFO: (AnswerOutcome.PROCEED_ONCE, AnswerOutcome.PROCEED_ALWAYS, AnswerOutcome.CANCEL),
    }
)
"""Outcomes that are possible for each kind of question, since questions of the dialect do not list options."""

_FALLBACKS: Mapping[AnswerOutcome, tuple[str, ...]] = MappingProxyType(
    {
        AnswerOutcome.PROCEED_ONCE: ACCEPTING_OPTIONS,
        AnswerOutcome.PROCEED_ALWAYS: (
            "proceed_always",
            "proceed_always_prefix",
            "proceed_always_command",
            "proceed_always_tool",
            "proceed_always_file",
            "proceed_always_folder",
            "proceed_always_sampling",
            *("allow_always", "allow-always", "always"),
            *ACCEPTING_OPTIONS,
        ),
        AnswerOutcome.PROCEED_ALWAYS_SERVER: ("proceed_always_server", "proceed_always_tool", "proceed_once"),
        AnswerOutcome.PROCEED_ALWAYS_TOOL: (
            "proceed_always_tool",
            "proceed_always_prefix",
            "proceed_always_command",
            "proceed_once",
        ),
        AnswerOutcome.MODIFY_WITH_EDITOR: ("modify_with_editor",),
        AnswerOutcome.CANCEL: REFUSING_OPTIONS,
    }
)
_KINDS: Mapping[AnswerOutcome, tuple[str, ...]] = MappingProxyType(
    {
        AnswerOutcome.PROCEED_ONCE: ("allow_once",),
        AnswerOutcome.PROCEED_ALWAYS: ("allow_always", "allow_once"),
        AnswerOutcome.PROCEED_ALWAYS_SERVER: ("allow_once",),
        AnswerOutcome.PROCEED_ALWAYS_TOOL: ("allow_once",),
        AnswerOutcome.MODIFY_WITH_EDITOR: (),
        AnswerOutcome.CANCEL: ("reject_once", "reject_always"),
    }
)
"""Kinds of options that an outcome means, of agents that state them."""

TASK_PATH = re.compile(r"/tasks/([^/]{1,200})/metadata")
"""Path of one task's metadata."""
_METHODS: Mapping[str, str] = {
    "/listCommands": "GET",
    "/executeCommand": "POST",
    "/tasks": "POST",
    "/tasks/metadata": "GET",
}
_OUTCOMES: Mapping[str, AnswerOutcome] = MappingProxyType({outcome.value: outcome for outcome in AnswerOutcome})
_ARTIFACT = ("tool-", "-output")


def status_of(call: ToolCall) -> CallStatus:
    """Return the scheduler's status of a call."""
    match call.status:
        case ToolCallStatus.STATUS_UNSPECIFIED | ToolCallStatus.PENDING:
            return CallStatus.VALIDATING if call.confirmation_request is None else CallStatus.AWAITING_APPROVAL
        case ToolCallStatus.EXECUTING:
            return CallStatus.EXECUTING
        case ToolCallStatus.SUCCEEDED:
            return CallStatus.SUCCESS
        case ToolCallStatus.FAILED:
            return CallStatus.ERROR
        case ToolCallStatus.CANCELLED:
            return CallStatus.CANCELLED
        case _:
            assert_never(call.status)


def details_type(details: ConfirmationDetails | None) -> DetailsType:
    """Return the dialect's name for a kind of question."""
    match details:
        case FileDiff():
            return DetailsType.EDIT
        case ExecuteDetails():
            return DetailsType.EXEC
        case McpDetails():
            return DetailsType.MCP
        case GenericDetails() | None:
            return DetailsType.INFO
        case _:
            assert_never(details)


def option_id_of(outcome: AnswerOutcome, offered: Sequence[ConfirmationOption]) -> str | None:
    """Return the option of a question that an outcome means, otherwise one that grants less, otherwise None.

    An option that states its kind is chosen by that, unless its id is a name of this vocabulary.
    """
    for kind in _KINDS[outcome]:
        if stated := [option.id for option in offered if option.kind == kind and option.id not in _OUTCOMES]:
            return stated[0]
    ids = {option.id for option in offered if not option.kind or option.id in _OUTCOMES}
    return next((option_id for option_id in _FALLBACKS[outcome] if option_id in ids), None)


def outcome_of(option_id: str) -> AnswerOutcome | None:
    """Return the outcome for one of our options on a server of this dialect; None if it does not know the option."""
    if option_id == "proceed_always_prefix":
        return AnswerOutcome.PROCEED_ALWAYS
    return _OUTCOMES.get(option_id)


def output_artifact(call_id: str) -> str:
    """Return the id of the artifact with a call's live output."""
    return call_id.join(_ARTIFACT)


def call_of_artifact(artifact_id: str) -> str | None:
    """Return the id of the call whose live output is in an artifact; None for another artifact."""
    start, end = _ARTIFACT
    is_output = artifact_id.startswith(start) and artifact_id.endswith(end) and len(artifact_id) > len(start + end)
    return artifact_id[len(start) : -len(end)] if is_output else None


def methods_of(path: str) -> tuple[str, ...]:
    """Return the HTTP methods of a path of this dialect; none for another path."""
    method = _METHODS.get(path) or ("GET" if TASK_PATH.fullmatch(path) else None)
    return () if method is None else (method,)
