"""The tool calls of an agent's turn as the ToolCalls of our events, and its questions about them. Pure.

A call may begin in its question, and an id may come again for another call: then it is shown under another id.
"""

import hashlib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import PurePath
from typing import cast

from isthmus.acp.host.edits import UserEdit
from isthmus.acp.host.form_question import FormQuestion
from isthmus.acp.host.known_agent import KnownAgent
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.v1.client_requests import PermissionKind, PermissionOption
from isthmus.acp.v1.content import EmbeddedResource, ResourceLink, TextBlock
from isthmus.acp.v1.updates import AcpCallStatus, BlockContent, CallKind, DiffContent, ToolCallStarted, ToolCallState
from isthmus.development_tool import (
    ConfirmationDetails,
    ConfirmationOption,
    ConfirmationRequest,
    ErrorDetails,
    ExecuteDetails,
    FileDiff,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import encode
from isthmus.questions import ELICITATION
from isthmus.text.diff import unified_diff
from isthmus.text.visible import with_ellipsis

STATUSES: Mapping[str, ToolCallStatus] = {
    AcpCallStatus.PENDING: ToolCallStatus.PENDING,
    AcpCallStatus.IN_PROGRESS: ToolCallStatus.EXECUTING,
    AcpCallStatus.COMPLETED: ToolCallStatus.SUCCEEDED,
    AcpCallStatus.FAILED: ToolCallStatus.FAILED,
}
NO_TEXT = "[object Object]"
"""Text of an error of ours in agents whose JavaScript takes it for a text."""
MCP_PREFIX = "mcp__"
"""Beginning of the name of a tool of an MCP server: ``mcp__server__tool``."""


@dataclass(slots=True)
class _Entry:
    """A call: what the agent has stated, and what was shown last."""

    state: ToolCallState
    shown: ToolCall
    was_asked: bool = False
    proposal: FileDiff | None = None
    """The change of a file that the last question was about."""
    edit: UserEdit | None = None
    streamed: str = ""
    """Output of a command that some agents send in parts, beside the content."""


class CallTable:
    """The calls of one turn."""

    def __init__(self, agent: KnownAgent, limits: HostLimits) -> None:
        self._agent = agent
        self._limits = limits
        self._entries: dict[str, _Entry] = {}
        self._shown_ids: dict[str, str] = {}
        """Id under which a call is shown, by the agent's own id."""

    def take(self, update: ToolCallState) -> ToolCall | None:
        """Return the call after an update; None if there is nothing new to show."""
        own = self._own_id(update)
        entry = self._entry(own)
        if entry is None or (entry.shown.status.is_final and isinstance(update, ToolCallStarted)):
            entry = self._begin(own, update)
            if entry is None:
                return None
        elif entry.shown.status.is_final:
            return None
        else:
            entry.state = _merged(entry.state, update)
        if more := _streamed(update):
            entry.streamed = with_ellipsis(entry.streamed + more, self._limits.text)
        call = self._call(entry)
        if entry.shown.confirmation_request is not None and not call.status.is_final:
            return None  # The question is what the user sees until it is answered.
        if call == entry.shown and not isinstance(update, ToolCallStarted):
            return None
        entry.shown = call
        return call

    def _own_id(self, update: ToolCallState) -> str:
        """Return the agent's id of a call; for one that is too long its beginning and a digest."""
        given = update.tool_call_id
        if len(given) <= self._limits.title:
            return given
        return f"{given[:200]}-{hashlib.sha256(given.encode('utf-8', 'surrogatepass')).hexdigest()}"

    def ask(self, update: ToolCallState, options: Sequence[PermissionOption]) -> tuple[ToolCall, ...]:
        """Return the calls to show for a question: the last one has it, with the question's id."""
        own = self._own_id(update)
        entry, closed = self._entry(own), tuple[ToolCall, ...]()
        if entry is not None and entry.was_asked and not entry.shown.status.is_final:
            closed = (self._close(entry, ToolCallStatus.CANCELLED, "The agent asked again"),)
        if entry is None or entry.was_asked or entry.shown.status.is_final:
            before = entry.state if entry is not None else None
            entry = self._begin(own, update if before is None else _merged(before, update), is_question=True)
            if entry is None:
                raise RuntimeError("a question is never left out")
        else:
            entry.state = _merged(entry.state, update)
        entry.was_asked = True
        request = ConfirmationRequest.of(self._options(options), self._details(entry))
        entry.proposal = request.file_edit_details
        call = replace(self._call(entry), status=ToolCallStatus.PENDING, live_content=None, output=None, error=None)
        entry.shown = replace(call, confirmation_request=request)
        return (*closed, entry.shown)

    def ask_form(self, question: FormQuestion) -> ToolCall:
        """Return the call to show for a form; its id is the question's."""
        number = 1
        while (call_id := f"{ELICITATION}-{number}") in self._entries:
            number += 1
        request = ConfirmationRequest.of(question.options, question.details)
        call = ToolCall(call_id, ToolCallStatus.PENDING, ELICITATION, question.about, question.description)
        call = replace(call, confirmation_request=request)
        self._entries[call_id] = _Entry(ToolCallState(call_id), call, was_asked=True)
        return call

    def answered(self, call_id: str) -> ToolCall:
        """Return the call of a form that was filled in."""
        entry = self._entries[call_id]
        entry.shown = replace(entry.shown, status=ToolCallStatus.SUCCEEDED, confirmation_request=None)
        return entry.shown

    def allow(self, call_id: str, edit: UserEdit | None = None) -> ToolCall:
        """Return a call that was allowed; ``edit`` is the user's change of it."""
        entry = self._entries[call_id]
        entry.edit = edit
        entry.shown = replace(entry.shown, status=ToolCallStatus.EXECUTING, confirmation_request=None)
        return entry.shown

    def written(self, call_id: str, edit: UserEdit) -> ToolCall:
        """Return a call that ended because the user's own text was written instead."""
        entry = self._entries[call_id]
        output = ToolOutput(diff=file_diff(DiffContent(edit.path, edit.text, edit.old_text)))
        entry.shown = replace(
            entry.shown, status=ToolCallStatus.SUCCEEDED, confirmation_request=None, live_content=None, output=output
        )
        return entry.shown

    def close(self, call_id: str, status: ToolCallStatus, reason: str) -> ToolCall:
        """Return a call that ended without a result."""
        return self._close(self._entries[call_id], status, reason)

    def is_open(self, call_id: str) -> bool:
        """Return whether a call has not ended."""
        entry = self._entries.get(call_id)
        return entry is not None and not entry.shown.status.is_final

    @property
    def is_working(self) -> bool:
        """Whether a call is running."""
        return any(entry.shown.status is ToolCallStatus.EXECUTING for entry in self._entries.values())

    def edit_of(self, call_id: str) -> UserEdit | None:
        """Return the user's change of a call."""
        return self._entries[call_id].edit

    def proposal(self, call_id: str) -> FileDiff | None:
        """Return the change of a file that a question was about."""
        return self._entries[call_id].proposal

    def paths(self, call_id: str) -> Sequence[str]:
        """Return the paths of the files that a call is about, as far as the agent has said."""
        entry = self._entries[call_id]
        proposed = [entry.proposal.file_path] if entry.proposal is not None else []
        stated = [item.path for item in (*self._diffs(entry.state), *(entry.state.locations or ()))]
        return list(dict.fromkeys((*proposed, *stated)))

    def explain(self, call_id: str, reason: str) -> ToolCall:
        """Return a failed call with the reason of our refusal, which its agent may have lost."""
        entry = self._entries[call_id]
        said = entry.shown.error.message if entry.shown.error is not None else ""
        if reason not in said:
            said = said.replace(NO_TEXT, reason) if NO_TEXT in said else f"{said}: {reason}"
            entry.shown = replace(entry.shown, error=ErrorDetails(with_ellipsis(said, self._limits.text)))
        return entry.shown

    def _entry(self, own: str) -> _Entry | None:
        return self._entries.get(self._shown_ids.get(own, ""))

    def _begin(self, own: str, update: ToolCallState, *, is_question: bool = False) -> _Entry | None:
        if len(self._entries) >= self._limits.calls and not is_question:
            return None
        number, shown_id = 1, own
        while shown_id in self._entries:
            number, shown_id = number + 1, f"{own}-{number + 1}"
        state = _merged(ToolCallState(own), update)
        entry = _Entry(state, ToolCall(shown_id, ToolCallStatus.PENDING, "", {}))
        self._entries[shown_id], self._shown_ids[own] = entry, shown_id
        return entry

    def _close(self, entry: _Entry, status: ToolCallStatus, reason: str) -> ToolCall:
        entry.shown = replace(
            entry.shown,
            status=status,
            error=ErrorDetails(reason),
            confirmation_request=None,
            live_content=None,
            output=None,
        )
        return entry.shown

    def _call(self, entry: _Entry) -> ToolCall:
        state, before = entry.state, entry.shown
        status = STATUSES.get(state.status or AcpCallStatus.PENDING, before.status)
        if status is ToolCallStatus.PENDING and before.status is ToolCallStatus.EXECUTING:
            status = before.status
        text = with_ellipsis("\n".join(filter(None, (self._text(state), entry.streamed))), self._limits.text)
        call = ToolCall(
            before.tool_call_id,
            status,
            self._name(state),
            self._arguments(state.raw_input),
            description=with_ellipsis(state.title, self._limits.title) if state.title else None,
        )
        match status:
            case ToolCallStatus.EXECUTING:
                return replace(call, live_content=text or None)
            case ToolCallStatus.SUCCEEDED:
                return replace(call, output=self._output(entry, text))
            case ToolCallStatus.FAILED:
                unsaid = f"{call.description or call.tool_name} failed; the agent does not say why"
                message = text or self._raw_text(state.raw_output) or unsaid
                return replace(call, error=ErrorDetails(message))
            case _:
                return call

    def _output(self, entry: _Entry, text: str) -> ToolOutput | None:
        if (edit := entry.edit) is not None:
            return ToolOutput(diff=file_diff(DiffContent(edit.path, edit.text, edit.old_text)))
        diffs = self._diffs(entry.state)
        if len(diffs) == 1:
            asked = entry.proposal
            return ToolOutput(diff=asked if asked is not None and _says_less(diffs[0], asked) else file_diff(diffs[0]))
        changes = [unified_diff(item.old_text, item.new_text, item.path) for item in diffs]
        shown = "\n".join(filter(None, (*changes, text)))
        return ToolOutput(text=shown or self._raw_text(entry.state.raw_output))

    def _details(self, entry: _Entry) -> ConfirmationDetails:
        state, title = entry.state, entry.state.title or "Allow this action"
        title = with_ellipsis(title, self._limits.title)
        diffs = self._diffs(state)
        if len(diffs) == 1:
            return file_diff(diffs[0])
        if (server := self._server(state)) is not None:
            return server
        if state.kind == CallKind.EXECUTE and (command := self._command(state)):
            return ExecuteDetails(command, _folder(state.raw_input))
        changes = (unified_diff(item.old_text, item.new_text, item.path) for item in diffs)
        description = "\n".join(filter(None, (title, *changes, self._text(state))))
        return GenericDetails(with_ellipsis(description, self._limits.text))

    def _command(self, state: ToolCallState) -> str:
        command = _member(state.raw_input, "command")
        if isinstance(command, list):
            words = cast("list[object]", command)
            command = shlex.join(str(word) for word in words)
        if not isinstance(command, str) and self._agent.title_is_command:
            command = state.title
        return with_ellipsis(command, self._limits.text) if isinstance(command, str) else ""

    def _server(self, state: ToolCallState) -> McpDetails | None:
        server, _, tool = self._name(state).removeprefix(MCP_PREFIX).partition("__")
        if self._name(state).startswith(MCP_PREFIX) and tool:
            return McpDetails(server, tool)
        found = self._agent.mcp_title.fullmatch(state.title or "") if self._agent.mcp_title is not None else None
        return McpDetails(found["server"], found["tool"]) if found else None

    def _options(self, options: Sequence[PermissionOption]) -> tuple[ConfirmationOption, ...]:
        most = self._limits.title
        return tuple(
            ConfirmationOption(item.option_id, with_ellipsis(item.name, most), kind=_kind_of(item)) for item in options
        )

    def _name(self, state: ToolCallState) -> str:
        if state.name:
            return state.name[: self._limits.title]
        meta: object = state.meta
        for key in self._agent.tool_name_key:
            meta = _member(meta, key)
        if self._agent.tool_name_key and isinstance(meta, str) and meta:
            return meta[: self._limits.title]
        if self._agent.tool_name is not None and (found := self._agent.tool_name.match(state.tool_call_id)):
            return found["name"]
        return (state.kind or CallKind.OTHER)[: self._limits.title]

    def _arguments(self, raw: object) -> JsonObject:
        if not isinstance(raw, dict) or len(encode(cast("object", raw))) > self._limits.arguments:
            return {}
        return cast("JsonObject", raw)

    def _diffs(self, state: ToolCallState) -> Sequence[DiffContent]:
        found = [item for item in state.content or () if isinstance(item, DiffContent)]
        most = self._limits.file
        return [item for item in found if len(item.new_text) <= most and len(item.old_text or "") <= most]

    def _text(self, state: ToolCallState) -> str:
        texts: list[str] = []
        for item in state.content or ():
            match item:
                case BlockContent(TextBlock(text)):
                    texts.append(text)
                case BlockContent(ResourceLink(uri, name)):
                    texts.append(f"{name}: {uri}")
                case BlockContent(EmbeddedResource(resource)) if resource.text is not None:
                    texts.append(resource.text)
                case _:
                    pass
        return with_ellipsis("\n".join(texts), self._limits.text)

    def _raw_text(self, raw: object) -> str | None:
        if isinstance(raw, str) and raw:
            return with_ellipsis(raw, self._limits.text)
        return with_ellipsis(encode(raw).decode(), self._limits.text) if raw else None


def file_diff(diff: DiffContent) -> FileDiff:
    """Return a change of a file as in our events."""
    shown = unified_diff(diff.old_text, diff.new_text, diff.path.removeprefix("/"))
    return FileDiff(PurePath(diff.path).name, diff.path, diff.new_text, diff.old_text, shown)


def _says_less(diff: DiffContent, asked: FileDiff) -> bool:
    """Return whether a result is a part of the change that was asked about, or has an empty text for a new file."""
    is_part = diff.new_text in asked.new_content and (diff.old_text or "") in (asked.old_content or "")
    return diff.path == asked.file_path and is_part


def _streamed(update: ToolCallState) -> str:
    """Return a part of a command's output, as Codex sends it to clients without terminals."""
    data = _member(_member(update.meta, "terminal_output_delta"), "data")
    return data if isinstance(data, str) else ""


def _folder(raw: object) -> str | None:
    folder = _member(raw, "cwd")
    return folder if isinstance(folder, str) else None


def _member(value: object, key: str) -> object:
    return cast("JsonObject", value).get(key) if isinstance(value, dict) else None


def _merged(before: ToolCallState, update: ToolCallState) -> ToolCallState:
    names = [item.name for item in fields(ToolCallState) if item.name != "tool_call_id"]
    stated = {name: getattr(update, name) for name in names if getattr(update, name) is not None}
    if not stated.get("raw_input", True):
        del stated["raw_input"]  # some agents announce a call before they know its arguments
    return ToolCallState(before.tool_call_id, **{name: getattr(before, name) for name in names} | stated)


def _kind_of(option: PermissionOption) -> str | None:
    """Return the kind of an option if it is one that we know."""
    return option.kind if option.kind in {kind.value for kind in PermissionKind} else None
