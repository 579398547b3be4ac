import json
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.development_tool import ConfirmationOption, ConfirmationRequest, FileDiff, ToolCall, ToolCallStatus
from isthmus.forms.form import FORMATS, Form, FormField
from isthmus.forms.requested_schema import form_of, requested_schema
from isthmus.terminal.questions.form_filling import FormFilling, filling_of
from isthmus.terminal.questions.questions import question_of
from support.forms import EVERY

LETTERS = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12)
BOUNDS = {"minimum": st.integers(-9, 9), "maximum": st.integers(0, 10**9)}
PLAIN = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("string")},
        optional={"title": LETTERS, "description": LETTERS, "minLength": st.integers(0, 3), "default": LETTERS},
    ),
    st.fixed_dictionaries({"type": st.just("string"), "format": st.sampled_from(list(FORMATS))}),
    st.fixed_dictionaries({"type": st.just("integer")}, optional={**BOUNDS, "default": st.integers(-3, 3)}),
    st.fixed_dictionaries({"type": st.just("number")}, optional={**BOUNDS, "default": st.floats(-3, 3)}),
    st.fixed_dictionaries({"type": st.just("boolean")}, optional={"default": st.booleans()}),
)
NAMED = st.fixed_dictionaries({"const": LETTERS}, optional={"title": LETTERS})
CHOOSING = st.lists(NAMED, min_size=1, max_size=4).flatmap(
    lambda named: st.sampled_from(
        [
            {"type": "string", "oneOf": named, "default": named[0]["const"]},
            {"type": "string", "enum": [item["const"] for item in named]},
            {"type": "array", "items": {"anyOf": named}, "minItems": 1, "default": [named[0]["const"]]},
        ]
    )
)
SCHEMAS = st.dictionaries(LETTERS, PLAIN | CHOOSING, min_size=1, max_size=5).flatmap(
    lambda fields: st.fixed_dictionaries(
        {
            "type": st.just("object"),
            "properties": st.just(fields),
            "required": st.lists(st.sampled_from(list(fields)), unique=True),
        }
    )
)

LINES = ("", "-", "1", "1, 2", "yes", "none", "0.5", "a@b.c", "https://a.b", "2026-01-31")


def asking(schema: Any, document: str = "{}") -> ToolCall:
    options = tuple(ConfirmationOption(option, option) for option in ("accept", "decline", "cancel"))
    request = ConfirmationRequest(options, file_edit_details=FileDiff("s.json", "/w/s.json", document))
    about = {"server": "s", "requested_schema": schema}
    return ToolCall("c?1", ToolCallStatus.PENDING, "elicitation", about, confirmation_request=request)


def filling(form: Form) -> FormFilling:
    found = filling_of(asking(requested_schema(form)), form.document("s", "m"))
    assert found is not None
    return found


def field(**described: Any) -> FormFilling:
    return filling(form_of({"properties": {"x": described}, "required": ["x"]}))


def told(form: FormFilling, line: str) -> Any:
    after = form.with_line(line)
    assert after.position == 1, after.problem
    return after.values["x"]


def refused(form: FormFilling, line: str) -> str:
    after = form.with_line(line)
    assert after.position == 0
    assert after.values == form.values
    assert after.problem in after.lines[-1]
    return after.problem


@given(SCHEMAS)
def test_the_schema_that_goes_along_with_a_question_is_the_same_form(schema: dict[str, Any]) -> None:
    form = form_of(schema)
    over_a_wire = json.loads(json.dumps(requested_schema(form)), parse_int=float)
    assert form_of(requested_schema(form)) == form_of(over_a_wire) == form


@given(
    SCHEMAS, st.lists(LETTERS | st.sampled_from(["", "-", "1", "1, 2", "yes", "none", "0.5", "a@b.c", "2026-01-31"]))
)
def test_whatever_is_typed_the_document_holds_only_values_that_fit(schema: dict[str, Any], lines: list[str]) -> None:
    form = form_of(schema)
    state = filling(form)
    for line in lines:
        before, state = state, state.with_line(line)
        assert state.position - before.position in (0, 1)
        if before.field is not None and state.position == before.position:
            assert state.problem
        assert all(text.isprintable() for text in (*state.lines, state.prompt))
    if state.field is None:
        answers = {name: value for name, value in json.loads(state.document()).items() if value is not None}
        assert form.read(state.document()) == answers


def value_line(item: FormField, value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case list():
            values = [choice.value for choice in item.choices]
            return ",".join(str(values.index(one) + 1) for one in cast("list[str]", value))
        case _ if item.choices:
            return str([choice.value for choice in item.choices].index(value) + 1)
        case _:
            return str(value)


def test_every_kind_of_field_is_filled_in_and_suggested_again() -> None:
    form = form_of(EVERY)
    answers = {
        "name": "Ada", "mail": "ada@example.org", "page": "https://example.org", "day": "1815-12-10",
        "moment": "1815-12-10T08:00:00Z", "count": 3, "share": 0.5, "sure": True, "pet": "cat", "hero": "h2",
        "fish": ["f1", "f3"],
    }  # fmt: skip
    state = filling(form)
    while (item := state.field) is not None:
        assert not state.problem
        state = state.with_line(value_line(item, answers[item.name]))
    assert json.loads(state.document()) == answers
    again = filling_of(asking(requested_schema(form)), state.document())
    assert again is not None
    assert again.prompt == "Name [Ada]: "
    while again.field is not None:
        again = again.with_line("")
    assert again.document() == state.document()


def test_a_field_says_what_it_is_and_what_it_takes() -> None:
    form = form_of(
        {
            "properties": {
                "pet": {"type": "string", "title": "Pet", "description": "At home", "enum": ["cat", "dog"],
                        "enumNames": ["Cat", "Dog"], "default": "dog"},
                "size": {"type": "integer", "maximum": 2_000_000},
            },
            "required": ["size"],
        }
    )  # fmt: skip
    state = filling(form)
    assert state.lines == (
        "1 of 2: Pet (optional)", "  At home", "   1  Cat", "   2  Dog",
        "  a number or a name; Enter accepts the value in brackets, - leaves it out",
    )  # fmt: skip
    assert state.prompt == "Pet [Dog]: "
    state = state.with_line("-")
    assert state.lines == ("2 of 2: size (required)", "  a whole number, at most 2000000")
    assert state.with_line("").problem == "A value is required. Ctrl-C goes back."
    assert json.loads(state.with_line("7").document()) == {"pet": None, "size": 7}


@pytest.mark.parametrize(
    ("described", "good", "bad"),
    [
        ({"type": "integer", "minimum": 1, "maximum": 3}, {"2": 2, " 3.0 ": 3}, ["0", "4", "1.5", "1_0", "9" * 99]),
        ({"type": "number", "maximum": 1}, {"-1": -1, ".5e": None, "1e-1": 0.1}, ["2", "nan", "inf", "1e999", "1,5"]),
        ({"type": "boolean"}, {"y": True, "No": False, "TRUE": True}, ["maybe", "1"]),
        ({"type": "string", "format": "email"}, {"a@b.c": "a@b.c"}, ["a", "a b@c", "@"]),
        ({"type": "string", "format": "uri"}, {"https://a.b": "https://a.b"}, ["a.b", "https://"]),
        ({"type": "string", "format": "date"}, {"2026-02-28": "2026-02-28"}, ["2026-02-30", "today"]),
        ({"type": "string", "minLength": 2, "maxLength": 3}, {"abc": "abc"}, ["a", "abcd"]),
        ({"enum": ["a", "b"], "enumNames": ["Ah", "Be"]}, {"2": "b", "AH": "a", "b": "b"}, ["3", "0", "c"]),
        (
            {"type": "array", "items": {"enum": ["a", "b", "c d"]}, "maxItems": 2},
            {"1": ["a"], "2 1": ["b", "a"], "a, c d": ["a", "c d"], "c d": ["c d"], "1,1": ["a"], "none": []},
            ["1,2,3", "4", "x", "a b"],
        ),
    ],
    ids=["integer", "number", "boolean", "email", "uri", "date", "length", "choice", "choices"],
)  # fmt: skip
def test_a_line_is_held_against_its_field_at_once(
    described: dict[str, Any], good: dict[str, Any], bad: list[str]
) -> None:
    form = field(**described)
    for line, value in good.items():
        if value is None:
            refused(form, line)
        else:
            assert told(form, line) == value
            assert type(told(form, line)) is type(value)
    for line in ["", *bad]:
        assert refused(form, line)


def test_only_a_form_that_is_a_document_with_its_schema_is_offered_for_filling_in() -> None:
    def keys(call: ToolCall) -> list[str]:
        return [choice.key for choice in question_of(call).choices]

    schema = requested_schema(form_of(EVERY))
    assert keys(asking(schema)) == ["1", "2", "3", "f", "e"]
    assert [choice.name for choice in question_of(asking(schema), "{}").choices[3:]] == ["Fill in again", "Edit again"]
    others: tuple[Any, ...] = (None, "x", {}, {"properties": {}}, {"properties": {"x": {"type": "object"}}})
    for other in others:
        assert keys(asking(other)) == ["1", "2", "3", "e"]


def test_a_server_cannot_draw_with_what_it_asks() -> None:
    form = form_of({"properties": {"a\x1b[2J\nb": {"type": "string", "title": "t\x9b\u202e", "description": "d\r\n"}}})
    state = filling(form)
    assert all(text.isprintable() for text in (*state.lines, state.prompt))


def test_of_many_choices_the_first_are_listed_and_every_one_can_be_typed() -> None:
    state = field(type="string", enum=[f"v{number}" for number in range(100)])
    assert len(state.lines) < 40
    assert "  and 70 more, which can be typed by name" in state.lines
    assert told(state, "v99") == "v99"
