from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_origin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.development_tool import (
    AgentThought,
    DevelopmentToolEvent,
    DevelopmentToolEventKind,
    SlashCommand,
    SlashCommandArgument,
    ToolCall,
    ToolCallStatus,
    ToolOutput,
)
from isthmus.encoding.codec import camel, from_json, to_json, well_formed
from isthmus.errors import DecodeError
from support.vocabulary import MESSAGES, FieldType, any_of, event_types, fields_of

ONEOF_MEMBERS = {"output", "error", "text", "diff", "structured_data", "generic_details", "mcp_details"}
OBJECT: dict[str, object] = {}
LIST: list[object] = []
WRONG: dict[Any, tuple[object, ...]] = {
    str: (5, True, {}, []),
    int: ("5", True, 1.5, {}),
    float: ("1", True, []),
    bool: ("true", 1, 0),
    Path: (5, True, {}),
}
NAMES: dict[Any, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Path: "a string",
}


def sample(kind: type) -> dict[str, Any]:
    """Return the JSON of a message with every field except the further members of a oneof."""
    return {
        field.name: [sample_value(field.kind)] if field.repeated else sample_value(field.kind)
        for field in fields_of(kind)
        if not (field.optional and field.name in ONEOF_MEMBERS)
        and field.name not in ("execute_details", "file_edit_details")
        and not (kind is SlashCommand and field.name == "sub_commands")
    }


def sample_value(kind: Any) -> Any:
    """Return a JSON value of a field's type."""
    if get_origin(kind) is not None or kind is Mapping:
        return {"key": 1}
    if issubclass(kind, Enum):
        return next(iter(kind)).name
    scalars: dict[type, Any] = {str: "text", int: 5, float: 0.5, bool: True, Path: "/a/b"}
    return scalars[kind] if kind in scalars else sample(kind)


def wrong_values(field: FieldType) -> Iterator[tuple[object, str]]:
    """Yield values that do not fit a field, with the path and the expected type in the error."""
    if field.repeated:
        yield from ((value, "a list") for value in ("text", 5, OBJECT))
        return
    if field.kind in WRONG:
        expected = NAMES[field.kind]
        yield from ((value, expected) for value in WRONG[field.kind])
    elif isinstance(field.kind, type) and issubclass(field.kind, Enum):
        yield from ((value, "one of " + ", ".join(field.kind.__members__)) for value in ("NO", 99, True, 1.0, OBJECT))
    else:
        yield from ((value, "an object") for value in ("text", 5, LIST))
    if not field.optional:
        yield None, ""


def cases() -> Iterator[tuple[type, str, dict[str, Any], str]]:
    """Yield every message and event with one field dropped or mistyped, and the expected error."""
    for kind in (*MESSAGES, *event_types()):
        whole = sample(kind)
        for field in fields_of(kind):
            path = f"{kind.__name__}.{field.name}"
            without = {key: value for key, value in whole.items() if key != field.name}
            if field.required:
                yield kind, f"{path} dropped", without, f"{path}: expected "
            for value, expected in wrong_values(field):
                yield kind, f"{path} = {value!r}", {**without, field.name: value}, f"{path}: expected {expected}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "value", "message"), [pytest.param(kind, value, text, id=name) for kind, name, value, text in cases()]
)
def test_a_field_that_is_dropped_or_mistyped_is_named(kind: type, value: dict[str, Any], message: str) -> None:
    with pytest.raises(DecodeError) as caught:
        from_json(kind, value)
    assert str(caught.value).startswith(message)
    assert caught.value.path == message.split(":")[0]


@pytest.mark.parametrize("kind", [*MESSAGES, *event_types()], ids=lambda kind: kind.__name__)
def test_the_samples_of_that_table_are_valid_themselves(kind: type) -> None:
    from_json(kind, sample(kind))


def test_a_path_leads_through_lists_and_messages() -> None:
    value = {"name": "a", "description": "", "sub_commands": [sample(SlashCommand), {"name": "b", "description": 5}]}
    with pytest.raises(DecodeError) as caught:
        from_json(SlashCommand, value)
    assert caught.value.path == "SlashCommand.sub_commands[1].description"
    assert str(caught.value) == "SlashCommand.sub_commands[1].description: expected a string, received int 5"


@pytest.mark.parametrize("value", [None, 5, "text", []])
def test_what_is_no_object_is_no_message(value: object) -> None:
    with pytest.raises(DecodeError, match=r"^AgentThought: expected an object"):
        from_json(AgentThought, value)


def test_a_caller_may_name_the_place_of_a_message() -> None:
    with pytest.raises(DecodeError, match=r"^params\.x\.subject: expected a string, received nothing"):
        from_json(AgentThought, {}, "params.x")


def camelised(value: Any) -> Any:
    """Return a JSON value with the names of its message fields in camelCase."""
    if isinstance(value, dict):
        return {camel(key): camelised(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return [camelised(item) for item in value] if isinstance(value, list) else value  # pyright: ignore[reportUnknownVariableType]


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_camel_case_names_are_read(kind: type) -> None:
    whole = sample(kind)
    assert from_json(kind, camelised(whole)) == from_json(kind, whole)


def test_names_inside_the_arguments_of_a_tool_are_left_alone() -> None:
    arguments = {"file_path": "/a", "nested": {"some_name": 1, "camelCase": None}}
    call = from_json(ToolCall, {"toolCallId": "c", "status": 1, "toolName": "t", "inputParameters": arguments})
    assert call.input_parameters == arguments
    assert to_json(call)["input_parameters"] == arguments


@pytest.mark.parametrize("status", list(ToolCallStatus))
def test_enums_are_read_by_name_and_number_and_written_by_name(status: ToolCallStatus) -> None:
    base = {"tool_call_id": "c", "tool_name": "t", "input_parameters": OBJECT}
    for spelled in (status.name, status.value):
        call = from_json(ToolCall, {**base, "status": spelled})
        assert call.status is status
        assert to_json(call)["status"] == status.name


@given(any_of(MESSAGES), st.dictionaries(st.text(min_size=30), st.integers()))
def test_unknown_names_are_ignored(value: object, more: dict[str, int]) -> None:
    assert from_json(type(value), {**more, **to_json(value)}) == value


def test_null_is_as_good_as_absent_for_what_may_be_absent() -> None:
    event = {"kind": "THOUGHT", "model": None, "userTier": None}
    assert from_json(DevelopmentToolEvent, event) == DevelopmentToolEvent(DevelopmentToolEventKind.THOUGHT)
    assert from_json(ToolOutput, {"text": "a", "diff": None, "structured_data": None}) == ToolOutput(text="a")


def test_what_is_none_is_left_out_and_what_is_empty_is_not() -> None:
    assert to_json(ToolOutput(text="")) == {"text": ""}
    argument = SlashCommandArgument("a", "", is_required=False)
    assert to_json(SlashCommand("n", "", (argument,))) == {
        "name": "n",
        "description": "",
        "arguments": [{"name": "a", "description": "", "is_required": False}],
        "sub_commands": [],
    }


def test_whole_numbers_stay_whole() -> None:
    arguments = {"id": 2**63 + 1, "one": 1, "half": 0.5}
    call = ToolCall("c", ToolCallStatus.PENDING, "t", arguments)
    found = to_json(call)["input_parameters"]
    assert [type(value) for value in found.values()] == [int, int, float]
    assert found == arguments


def test_a_long_value_is_shortened_in_the_error() -> None:
    with pytest.raises(DecodeError) as caught:
        from_json(AgentThought, {"subject": ["x" * 1000], "description": ""})
    assert len(str(caught.value)) < 200


def test_snake_case_wins_where_both_spellings_are_given() -> None:
    @dataclass(frozen=True, slots=True)
    class Sample:
        some_name: Annotated[str, 1]

    assert from_json(Sample, {"someName": "b", "some_name": "a"}) == Sample("a")


@pytest.mark.parametrize(
    ("name", "expected"), [("a", "a"), ("tool_call_id", "toolCallId"), ("is_required", "isRequired")]
)
def test_camel_case_is_that_of_protobuf(name: str, expected: str) -> None:
    assert camel(name) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("one \ud800 two", "one \ufffd two"),
        ({"\udfff": ["\ud800", {"a": "\udc00"}]}, {"\ufffd": ["\ufffd", {"a": "\ufffd"}]}),
        (("fine", "\ud800"), ("fine", "\ufffd")),
        (ToolOutput(text="\ud800"), ToolOutput(text="\ufffd")),
        (
            ToolCall("c\ud800", ToolCallStatus.PENDING, "ls", {"path": "\udcff"}),
            ToolCall("c\ufffd", ToolCallStatus.PENDING, "ls", {"path": "\ufffd"}),
        ),
    ],
)
def test_half_characters_are_replaced_wherever_they_stand(value: object, expected: object) -> None:
    assert well_formed(value) == expected
    assert type(well_formed(value)) is type(expected)


@pytest.mark.parametrize(
    "value",
    [
        "漢字 😀",
        "",
        7,
        None,
        True,
        ToolCallStatus.PENDING,
        {"a": [1, "é", None]},
        ToolCall("c", ToolCallStatus.PENDING, "ls", {"path": "ä", "deep": {"list": ["ö"]}}),
    ],
)
def test_what_is_well_formed_stays_the_same_object(value: object) -> None:
    assert well_formed(value) is value
