import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isthmus.encoding.jsonc import parse
from isthmus.forms.form import FormError, quoted
from isthmus.forms.requested_schema import MAXIMUM_FIELDS, form_of
from support.forms import EVERY


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_the_document_has_each_field_with_its_default_and_what_is_expected() -> None:
    document = form_of(EVERY).document("files", "Who are you?\nTell me.")
    assert parse(document) == {
        **dict.fromkeys(EVERY["properties"]),
        "count": 2,
        "sure": False,
        "pet": "dog",
    }  # fmt: skip
    for line in (
        "// The MCP server files wants to know the following. It says:",
        "// > Who are you?",
        "// > Tell me.",
        "  // required: a text, at least 2 and at most 5 characters",
        "  // optional: an e-mail address",
        "  // optional: a whole number, at least 1 and at most 3",
        '  // optional: one of "cat" (Cat), "dog" (Dog)',
        '  // required: one of "h1" (Superman), "h2" (Hulk)',
        '  // optional: a list of any of "f1" (Tuna), "f2" (Trout), "f3", at least 1 and at most 2 of them',
    ):
        assert line in document.splitlines()


def test_what_fits_is_read_and_what_is_null_is_left_out() -> None:
    filled = {
        **dict.fromkeys(EVERY["properties"]),
        "name": "Ada",
        "mail": "ada@example.org",
        "page": "https://example.org/x",
        "day": "2026-02-28",
        "moment": "2026-02-28T10:00:00Z",
        "count": 3.0,
        "share": 0.5,
        "hero": "Superman",
        "fish": ["Tuna", "f3"],
    }
    content = form_of(EVERY).read(json.dumps(filled))
    assert content == {
        "name": "Ada",
        "mail": "ada@example.org",
        "page": "https://example.org/x",
        "day": "2026-02-28",
        "moment": "2026-02-28T10:00:00Z",
        "count": 3,
        "share": 0.5,
        "hero": "h1",
        "fish": ["f1", "f3"],
    }
    assert isinstance(content["count"], int)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "A", "name: 'A' is too short; expected a text, at least 2"),
        ("name", None, "name: a value is required"),
        ("name", 7, "name: 7 is not of type 'string'"),
        ("mail", "ada", "mail: 'ada' is not an e-mail address"),
        ("page", "example", "page: 'example' is not a URI"),
        ("day", "2026-02-30", "day: '2026-02-30' is not a date such as"),
        ("moment", "2026-02-28T10:00:00", "is not a date and time such as"),
        ("count", 4, "count: 4 is greater than the maximum of 3"),
        ("count", 1.5, "count: 1.5 is not of type 'integer'"),
        ("count", True, "count: True is not of type 'integer'"),
        ("sure", "yes", "sure: 'yes' is not of type 'boolean'; expected true or false"),
        ("hero", "h3", "hero: 'h3' is not one of ['h1', 'h2']"),
        ("fish", ["f1", "f2", "f3"], "is too long"),
        ("fish", ["f1", "f1"], "has non-unique elements"),
        ("fish", "f1", "is not of type 'array'"),
        ("other", 1, "other: there is no such field"),
    ],
)
def test_what_does_not_fit_is_said_with_what_was_expected(field: str, value: Any, said: str) -> None:
    with pytest.raises(FormError) as caught:
        form_of(EVERY).read(json.dumps({"name": "Ada", "hero": "h1", field: value}))
    assert said in str(caught.value)


@pytest.mark.parametrize("document", ["", "[]", "{", "null", "[" * 100_000])
def test_a_document_that_is_no_object_is_refused_in_words(document: str) -> None:
    with pytest.raises(FormError):
        form_of(EVERY).read(document)


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"a": {"type": "object"}}, "the field a is of the type object"),
        ({"a": {"type": "array", "items": {"type": "string"}}}, "the field a is of the type array"),
        ({"a": {"$ref": "#/properties/a"}}, "the field a is of the type None"),
        ({"a": 1}, "the field a is not described by an object"),
        ({f"f{number}": {"type": "string"} for number in range(MAXIMUM_FIELDS + 1)}, "at most 50 are allowed"),
        ({"a": {"enum": [str(number) for number in range(201)]}}, "the field a has 201 choices"),
    ],
)
def test_what_is_no_form_is_refused(properties: dict[str, Any], said: str) -> None:
    with pytest.raises(FormError, match=said):
        form_of(schema(**properties))
    with pytest.raises(FormError, match="no properties"):
        form_of({"type": "object"})


def test_a_default_that_does_not_fit_is_left_out_and_patterns_are_never_matched() -> None:
    form = form_of(schema(a={"type": "string", "default": 5, "pattern": "(a+)+$"}, b={"type": ["null", "integer"]}))
    assert [field.default for field in form.fields] == [None, None]
    assert form.read(json.dumps({"a": "a" * 50 + "!", "b": 1})) == {"a": "a" * 50 + "!", "b": 1}


def test_one_field_with_few_answers_is_choices() -> None:
    yes_no = form_of(schema(agree={"type": "boolean", "default": True}))
    assert yes_no.is_direct
    assert [(option.id, option.description) for option in yes_no.options()] == [
        ("yes", "The server's suggestion"),
        ("no", None),
    ]
    assert [yes_no.chosen(word) for word in ("yes", "no", "cancel")] == [{"agree": True}, {"agree": False}, None]
    pets = form_of(schema(pet=EVERY["properties"]["pet"]))
    assert [(option.id, option.name) for option in pets.options()] == [("choice-1", "Cat"), ("choice-2", "Dog")]
    assert [pets.chosen(word) for word in ("choice-2", "choice-3")] == [{"pet": "dog"}, None]
    assert not form_of(schema(pet={"enum": [str(number) for number in range(13)]})).is_direct
    assert not form_of(EVERY).is_direct


TEXTS = st.text(max_size=40)
NAMES = st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=6)


@given(NAMES, TEXTS, TEXTS, TEXTS)
@example({"\x7f": "\x7f\x1b\u2028"}, "\x7f", "\x9b2J", "\r")
def test_whatever_a_server_writes_the_document_is_one_and_only_its_fields(
    fields: dict[str, str], title: str, message: str, problem: str
) -> None:
    form = form_of(
        schema(**{name: {"type": "string", "title": title, "default": text} for name, text in fields.items()})
    )
    document = form.document(title, message, problem)
    assert parse(document) == fields
    assert form.read(document) == fields
    assert all(line.isprintable() for line in document.split("\n"))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
KEYWORDS = st.dictionaries(
    st.sampled_from(
        [
            "type",
            "enum",
            "enumNames",
            "oneOf",
            "anyOf",
            "items",
            "default",
            "minLength",
            "minItems",
            "minimum",
            "format",
        ]
    ),
    JSON | st.sampled_from(["string", "integer", "number", "boolean", "array", "date", "email"]),
)


@pytest.mark.slow
@given(st.dictionaries(TEXTS, KEYWORDS, max_size=4), JSON)
def test_no_schema_and_no_document_breaks_the_form(properties: dict[str, Any], answer: Any) -> None:
    try:
        form = form_of({"properties": properties, "required": list(properties)})
        form.document("s", "m")
        form.read(json.dumps(answer))
        form.read(json.dumps(dict.fromkeys(properties, answer)))
    except FormError:
        pass


def test_a_servers_words_are_marked_line_by_line_and_cut() -> None:
    assert quoted("one\u2028two\x1b[2J\r\nthree") == ["> one", "> two [2J", "> three"]
    assert quoted("") == [">"]
    assert quoted("x" * 100, limit=10) == ["> xxxxxxxxxx… (100 characters)"]


def test_bounds_are_written_out() -> None:
    (field,) = form_of(schema(size={"type": "number", "minimum": 0.25, "maximum": 12_345_678})).fields
    assert field.expected == "a number, at least 0.25 and at most 12345678"


def test_what_was_filled_in_stands_in_the_document_when_it_is_asked_anew() -> None:
    form = form_of(schema(name={"type": "string"}, size={"type": "integer", "default": 7}, sure={"type": "boolean"}))
    again = form.document("s", "m", "size: wrong", '{"name": "Ada", "size": "much", "sure": null, "other": 1} // mine')
    assert parse(again) == {"name": "Ada", "size": "much", "sure": None}
    assert parse(form.document("s", "m", "no JSON", '{"name": ')) == {"name": None, "size": 7, "sure": None}
