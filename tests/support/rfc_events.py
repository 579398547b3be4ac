"""Records of the A2A development-tool extension, read strictly by the words of its RFC."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar, cast

JsonObject = dict[str, object]
T = TypeVar("T")
E = TypeVar("E", bound=StrEnum)


class Deviation(Exception):
    """An answer that is not what the RFC, or the A2A 0.3 protocol under it, says."""


class Kind(StrEnum):
    """Names of DevelopmentToolEventKind, without the unspecified value."""

    TOOL_CALL_CONFIRMATION = "TOOL_CALL_CONFIRMATION"
    TOOL_CALL_UPDATE = "TOOL_CALL_UPDATE"
    TEXT_CONTENT = "TEXT_CONTENT"
    STATE_CHANGE = "STATE_CHANGE"
    THOUGHT = "THOUGHT"


class ToolStatus(StrEnum):
    """Names of ToolCallStatus, without the unspecified value."""

    PENDING = "PENDING"
    EXECUTING = "EXECUTING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


class State(StrEnum):
    """States of a task in A2A 0.3."""

    SUBMITTED = "submitted"
    WORKING = "working"
    INPUT_REQUIRED = "input-required"
    AUTH_REQUIRED = "auth-required"
    COMPLETED = "completed"
    CANCELED = "canceled"
    FAILED = "failed"
    REJECTED = "rejected"


TERMINAL = frozenset({State.COMPLETED, State.CANCELED, State.FAILED, State.REJECTED})
PAUSED = frozenset({State.INPUT_REQUIRED, State.AUTH_REQUIRED})
OVER = frozenset({ToolStatus.SUCCEEDED, ToolStatus.FAILED, ToolStatus.CANCELLED})


@dataclass(frozen=True)
class FileDiff:
    """A change of one file."""

    file_name: str
    file_path: str
    old_content: str | None
    new_content: str
    formatted_diff: str | None


@dataclass(frozen=True)
class ConfirmationRequest:
    """A question about a tool call: names of its options by their ids, and its details by their field's name."""

    options: dict[str, str]
    details_field: str
    details: FileDiff | JsonObject


@dataclass(frozen=True)
class ToolCall:
    """A tool's execution, whole in every update; the output is the field of ToolOutput that is set."""

    tool_call_id: str
    status: ToolStatus
    tool_name: str
    description: str | None
    input_parameters: JsonObject
    live_content: str | None
    output: FileDiff | JsonObject | str | None
    error: JsonObject | None
    confirmation_request: ConfirmationRequest | None


@dataclass(frozen=True)
class Thought:
    """A thought of the agent."""

    subject: str
    description: str


@dataclass(frozen=True)
class Event:
    """A TaskStatusUpdateEvent with its DevelopmentToolEvent."""

    task_id: str
    context_id: str
    state: State
    final: bool
    kind: Kind
    model: str | None
    user_tier: str | None
    error: str | None
    text: str
    tool_calls: tuple[ToolCall, ...]
    thought: Thought | None

    @property
    def tool_call(self) -> ToolCall:
        """Return the only tool call of the event."""
        if len(self.tool_calls) != 1:
            raise Deviation(f"a single ToolCall was expected in {self}")
        return self.tool_calls[0]


@dataclass(frozen=True)
class Task:
    """A Task as a stream begins with it and tasks/get shows it; text and tool calls are its status message's."""

    task_id: str
    context_id: str
    state: State
    text: str
    tool_calls: tuple[ToolCall, ...]


def read_object(value: object, what: str, known: str = "") -> JsonObject:
    """Return a JSON object without its nulls; with known names, any other name is a deviation."""
    if not isinstance(value, dict):
        raise Deviation(f"{what} should be an object, and is {value!r}")
    fields = {name: item for name, item in cast(JsonObject, value).items() if item is not None}
    if known and (unknown := sorted(fields.keys() - known.split())):
        raise Deviation(f"{what} has fields that the RFC does not name: {unknown}; it names {known}")
    return fields


def read_list(fields: JsonObject, name: str, what: str) -> list[object]:
    """Return a repeated field; an absent one is empty, as in protobuf's JSON."""
    value = fields.get(name, [])
    if not isinstance(value, list):
        raise Deviation(f"{what}.{name} should be a list, and is {value!r}")
    return cast(list[object], value)


def read_field(fields: JsonObject, name: str, sort: type[T], what: str) -> T:
    """Return a field that must be there."""
    value = fields.get(name)
    if not isinstance(value, sort):
        raise Deviation(f"{what}.{name} should be a {sort.__name__}, and is {value!r}")
    return value


def read_name(fields: JsonObject, name: str, what: str) -> str:
    """Return a string that must be there and not be empty."""
    value = read_field(fields, name, str, what)
    if not value:
        raise Deviation(f"{what}.{name} should not be empty")
    return value


def read_enum(fields: JsonObject, name: str, names: type[E], what: str) -> E:
    """Return an enum's value, which must be spelled as the RFC spells it."""
    value = fields.get(name)
    for known in names:
        if value == known.value:
            return known
    raise Deviation(f"{what}.{name} should be one of {[each.value for each in names]}, and is {value!r}")


def read_task(value: object) -> Task:
    """Return a Task; data in its status message must be whole tool calls."""
    fields = read_object(value, "Task")
    if fields.get("kind") != "task":
        raise Deviation(f"a Task was expected (kind 'task'), and came: {value!r}")
    status = read_object(fields.get("status"), "Task.status")
    texts, data = _read_message(status.get("message"), "Task.status.message")
    return Task(
        task_id=read_name(fields, "id", "Task"),
        context_id=read_name(fields, "contextId", "Task"),
        state=read_enum(status, "state", State, "Task.status"),
        text="".join(texts),
        tool_calls=tuple(_read_tool_call(each) for each in data),
    )


def read_event(value: object, uri: str) -> Event:
    """Return a TaskStatusUpdateEvent, whose metadata must say under the extension's URI of which kind it is."""
    what = "TaskStatusUpdateEvent"
    fields = read_object(value, what)
    if fields.get("kind") != "status-update":
        raise Deviation(f"all real-time updates are TaskStatusUpdateEvents (3.2), and one came as {value!r}")
    status = read_object(fields.get("status"), f"{what}.status")
    metadata = read_object(fields.get("metadata"), f"{what}.metadata")
    about = read_object(metadata.get(uri), f"{what}.metadata[{uri}]", "kind model user_tier error")
    kind = read_enum(about, "kind", Kind, f"{what}.metadata[{uri}]")
    texts, data = _read_message(status.get("message"), f"{what}.status.message")
    _check_parts(kind, len(texts), len(data))
    event = Event(
        task_id=read_name(fields, "taskId", what),
        context_id=read_name(fields, "contextId", what),
        state=read_enum(status, "state", State, f"{what}.status"),
        final=read_field(fields, "final", bool, what),
        kind=kind,
        model=_optional_text(about, "model", f"{what}.metadata[{uri}]"),
        user_tier=_optional_text(about, "user_tier", f"{what}.metadata[{uri}]"),
        error=_optional_text(about, "error", f"{what}.metadata[{uri}]"),
        text="".join(texts),
        tool_calls=() if kind is Kind.THOUGHT else tuple(_read_tool_call(each) for each in data),
        thought=_read_thought(data[0]) if kind is Kind.THOUGHT else None,
    )
    _check_event(event)
    return event


def _check_parts(kind: Kind, texts: int, data: int) -> None:
    match kind:
        case Kind.TEXT_CONTENT:
            fits = texts > 0 and data == 0
        case Kind.TOOL_CALL_UPDATE | Kind.TOOL_CALL_CONFIRMATION | Kind.THOUGHT:
            fits = texts == 0 and data == 1
        case Kind.STATE_CHANGE:  # the RFC gives it no content of its own
            fits = texts == 0 or data == 0
    if not fits:
        raise Deviation(f"a {kind} event cannot hold {texts} TextParts and {data} DataParts (3.2)")


def _check_event(event: Event) -> None:
    """Refuse a wrong `final`, and a TOOL_CALL_CONFIRMATION that asks nothing."""
    if event.final and event.state not in TERMINAL | PAUSED:
        raise Deviation(f"final is true, but the task goes on: {event}")
    if event.final and event.kind is not Kind.STATE_CHANGE:
        raise Deviation(f"final belongs to a STATE_CHANGE (Appendix A, steps 4 and 9): {event}")
    if not event.final and event.state in TERMINAL:
        raise Deviation(f"the state is terminal, so final should be true (2): {event}")
    if not event.final and event.kind is Kind.STATE_CHANGE and event.state in PAUSED:
        raise Deviation(f"the exchange is over, so final should be true (Appendix A, step 4): {event}")
    if event.kind is Kind.TOOL_CALL_CONFIRMATION and event.tool_call.confirmation_request is None:
        raise Deviation(f"a TOOL_CALL_CONFIRMATION should have a confirmation_request: {event}")


def _read_message(value: object, what: str) -> tuple[list[str], list[object]]:
    """Return the texts and the data of an agent's message; a status may have no message."""
    if value is None:
        return [], []
    fields = read_object(value, what)
    if (fields.get("kind"), fields.get("role")) != ("message", "agent"):
        raise Deviation(f"{what} should have kind 'message' and role 'agent', and is {value!r}")
    read_name(fields, "messageId", what)
    texts: list[str] = []
    data: list[object] = []
    for item in read_list(fields, "parts", what):
        part = read_object(item, f"{what}.parts[]")
        match part.get("kind"):
            case "text":
                texts.append(read_field(part, "text", str, f"{what}.parts[]"))
            case "data":
                data.append(part.get("data"))
            case _:
                raise Deviation(f"a part of {what} should be a TextPart or a DataPart (3.2), and is {item!r}")
    return texts, data


def _read_tool_call(value: object) -> ToolCall:
    what = "ToolCall"
    known = "tool_call_id status tool_name description input_parameters live_content output error confirmation_request"
    fields = read_object(value, what, known)
    call = ToolCall(
        tool_call_id=read_name(fields, "tool_call_id", what),
        status=read_enum(fields, "status", ToolStatus, what),
        tool_name=read_name(fields, "tool_name", what),
        description=_optional_text(fields, "description", what),
        input_parameters=cast(JsonObject, read_field(fields, "input_parameters", dict, what)),
        live_content=_optional_text(fields, "live_content", what),
        output=_read_output(fields["output"]) if "output" in fields else None,
        error=_read_details("error", fields["error"]) if "error" in fields else None,
        confirmation_request=_read_request(fields["confirmation_request"])
        if "confirmation_request" in fields
        else None,
    )
    if call.confirmation_request is not None and call.status is not ToolStatus.PENDING:
        raise Deviation(f"confirmation_request is populated while status is PENDING alone (3.2): {call}")
    results = fields.keys() & {"output", "error"}
    expected = {ToolStatus.SUCCEEDED: {"output"}, ToolStatus.FAILED: {"error"}}.get(call.status, set[str]())
    if call.status is ToolStatus.CANCELLED:  # the RFC does not say which field is the appropriate one
        expected = results if len(results) < 2 else expected
    if results != expected:
        raise Deviation(f"a {call.status} ToolCall should have the result {sorted(expected)} (3.2): {call}")
    return call


def _read_output(value: object) -> FileDiff | JsonObject | str:
    fields = read_object(value, "ToolOutput", "text diff structured_data")
    match list(fields):
        case ["text"]:
            return read_field(fields, "text", str, "ToolOutput")
        case ["diff"]:
            return _read_diff(fields["diff"])
        case ["structured_data"]:
            return cast(JsonObject, read_field(fields, "structured_data", dict, "ToolOutput"))
        case names:
            raise Deviation(f"ToolOutput should have one of text, diff and structured_data, and has {names}")


def _read_request(value: object) -> ConfirmationRequest:
    what = "ConfirmationRequest"
    fields = read_object(value, what, "options execute_details file_edit_details mcp_details generic_details")
    options: dict[str, str] = {}
    for item in read_list(fields, "options", what):
        option = read_object(item, f"{what}.options[]", "id name description")
        _optional_text(option, "description", f"{what}.options[]")
        options[read_name(option, "id", f"{what}.options[]")] = read_name(option, "name", f"{what}.options[]")
    if not options or len(options) != len(read_list(fields, "options", what)):
        raise Deviation(f"{what}.options should be choices with unique ids, and are {fields.get('options')!r}")
    match [name for name in fields if name != "options"]:
        case ["file_edit_details"]:
            return ConfirmationRequest(options, "file_edit_details", _read_diff(fields["file_edit_details"]))
        case [name]:
            return ConfirmationRequest(options, name, _read_details(name, fields[name]))
        case names:
            raise Deviation(f"{what} should have the details of one sort, and has {names}")


def _read_details(field: str, value: object) -> JsonObject:
    """Return the details of a confirmation or of an error, whose strings without a mark must be there."""
    match field:
        case "execute_details":
            needed, optional = ("command",), ("working_directory",)
        case "mcp_details":
            needed, optional = ("server_name", "tool_name"), ()
        case "generic_details":
            needed, optional = ("description",), ()
        case _:
            needed, optional = ("message",), ("type",)
    fields = read_object(value, field, " ".join((*needed, *optional, *(["status_code"] * (field == "error")))))
    for name in needed:
        read_field(fields, name, str, field)
    for name in optional:
        _optional_text(fields, name, field)
    if "status_code" in fields:
        read_field(fields, "status_code", int, field)
    return fields


def _read_diff(value: object) -> FileDiff:
    fields = read_object(value, "FileDiff", "file_name file_path old_content new_content formatted_diff")
    return FileDiff(
        file_name=read_name(fields, "file_name", "FileDiff"),
        file_path=read_name(fields, "file_path", "FileDiff"),
        old_content=_optional_text(fields, "old_content", "FileDiff"),
        new_content=read_field(fields, "new_content", str, "FileDiff"),
        formatted_diff=_optional_text(fields, "formatted_diff", "FileDiff"),
    )


def _read_thought(value: object) -> Thought:
    fields = read_object(value, "AgentThought", "subject description")
    return Thought(
        read_field(fields, "subject", str, "AgentThought"), read_field(fields, "description", str, "AgentThought")
    )


def _optional_text(fields: JsonObject, name: str, what: str) -> str | None:
    return read_field(fields, name, str, what) if name in fields else None
