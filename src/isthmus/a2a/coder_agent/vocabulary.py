"""The words of the dialect ``coderAgent``, which gemini-cli-a2a-server speaks instead of the extension of spec 2.

It is A2A 0.3 with ``metadata.coderAgent`` in the extension's place; events carry the objects of Gemini CLI's tool
scheduler. Here is what both directions share: the names, and how they map to ours. Deliberately not here: building
events (:mod:`isthmus.a2a.coder_agent.encoder`), reading requests (:mod:`isthmus.a2a.coder_agent.requests`), and the
client's side. Everything was read in version 0.25.2 of npm's ``@google/gemini-cli-a2a-server``, and recorded from it.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import assert_never

from isthmus.development_tool import (
    ConfirmationDetails,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
)

KEY = "coderAgent"
"""The key in a metadata object: of AgentSettings in a message, of ``{"kind": ...}`` in an event. Beside it stand, in an
event, ``model``, ``userTier``, ``error`` and ``traceId``."""


class EventKind(StrEnum):
    """``metadata.coderAgent.kind``."""

    TOOL_CALL_CONFIRMATION = "tool-call-confirmation"
    """A call asks for permission (in the extension of spec 2 this is the answer)."""
    TOOL_CALL_UPDATE = "tool-call-update"
    TEXT_CONTENT = "text-content"
    STATE_CHANGE = "state-change"
    AGENT_SETTINGS = "agent-settings"
    """Of a message: ``workspacePath`` and ``autoExecute`` stand beside it."""
    THOUGHT = "thought"
    CITATION = "citation"


class CallStatus(StrEnum):
    """``status`` of a call, in the scheduler's words."""

    VALIDATING = "validating"
    SCHEDULED = "scheduled"
    AWAITING_APPROVAL = "awaiting_approval"
    EXECUTING = "executing"
    SUCCESS = "success"
    ERROR = "error"
    CANCELLED = "cancelled"


class AnswerOutcome(StrEnum):
    """``outcome`` of an answer. ``proceed_always`` means: this command's program, or every edit, in this session."""

    PROCEED_ONCE = "proceed_once"
    PROCEED_ALWAYS = "proceed_always"
    PROCEED_ALWAYS_SERVER = "proceed_always_server"
    PROCEED_ALWAYS_TOOL = "proceed_always_tool"
    MODIFY_WITH_EDITOR = "modify_with_editor"
    CANCEL = "cancel"


class DetailsType(StrEnum):
    """``confirmationDetails.type``."""

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
"""Our status of each of the scheduler's."""

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
"""The outcomes that mean something for a question, since the dialect lists no options."""

_FALLBACKS: Mapping[AnswerOutcome, tuple[str, ...]] = MappingProxyType(
    {
        AnswerOutcome.PROCEED_ONCE: ("proceed_once", "accept", "yes"),
        AnswerOutcome.PROCEED_ALWAYS: (
            "proceed_always",
            "proceed_always_prefix",
            "proceed_always_tool",
            "proceed_always_sampling",
            "proceed_once",
            "accept",
            "yes",
        ),
        AnswerOutcome.PROCEED_ALWAYS_SERVER: ("proceed_always_server", "proceed_always_tool", "proceed_once"),
        AnswerOutcome.PROCEED_ALWAYS_TOOL: ("proceed_always_tool", "proceed_always_prefix", "proceed_once"),
        AnswerOutcome.MODIFY_WITH_EDITOR: ("modify_with_editor",),
        AnswerOutcome.CANCEL: ("cancel",),
    }
)

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


def option_id_of(outcome: AnswerOutcome, offered: Collection[str]) -> str | None:
    """Return the option of a question that an outcome chooses: where the very one is not offered, one that grants less.

    None when the question has none that fits.
    """
    return next((option for option in _FALLBACKS[outcome] if option in offered), None)


def outcome_of(option_id: str) -> AnswerOutcome | None:
    """Return the outcome that an option of ours means on a server of this dialect; None for one that it does not know.

    ``cancel``, and the outcomes themselves, are their own.
    """
    if option_id == "proceed_always_prefix":
        return AnswerOutcome.PROCEED_ALWAYS
    return _OUTCOMES.get(option_id)


def output_artifact(call_id: str) -> str:
    """Return the id of the artifact that a call's live output goes out as."""
    return call_id.join(_ARTIFACT)


def call_of_artifact(artifact_id: str) -> str | None:
    """Return the call whose live output an artifact is; None for another artifact."""
    start, end = _ARTIFACT
    is_output = artifact_id.startswith(start) and artifact_id.endswith(end) and len(artifact_id) > len(start + end)
    return artifact_id[len(start) : -len(end)] if is_output else None
