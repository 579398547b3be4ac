"""The form of an elicitation: what a server wants to know, as choices or as a document that a user fills in. Pure.

A form is flat: texts, numbers, yes or no, one choice or several. The rest of the schema is ignored: patterns could run
forever, references lead elsewhere. Deliberately not here: asking.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeAlias, cast

from isthmus.development_tool import ConfirmationOption
from isthmus.encoding.json_schema import draft_2020_12
from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.errors import IsthmusError
from isthmus.forms.formats import FORMATS, has_format

REQUESTED_SCHEMA = "requested_schema"
"""Key of a form's schema in the input parameters of its question's call."""
MAXIMUM_FIELDS = 50
MAXIMUM_CHOICES = 200
"""Choices of one field."""
DIRECT_CHOICES = 12
"""A form of one field with so many choices is asked without a document."""
SHOWN_CHARACTERS = 500
"""Maximum number of characters shown of each text from the server."""
SHOWN_PROBLEMS = 5

Content: TypeAlias = Mapping[str, "str | int | float | bool | list[str]"]
"""Values that a user filled in, by field."""


class FormError(IsthmusError):
    """A schema is not a form that can be shown, or a document does not fit its form."""


class FieldKind(Enum):
    """Kind of a field's value."""

    TEXT = "string"
    NUMBER = "number"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    CHOICE = "choice"
    CHOICES = "choices"


@dataclass(frozen=True, slots=True)
class FormChoice:
    """A value that can be chosen, and what the server calls it."""

    value: str
    title: str


@dataclass(frozen=True, slots=True)
class FormField:
    """One thing that the server wants to know. ``schema`` is what its value is held against."""

    name: str
    kind: FieldKind
    title: str
    description: str
    is_required: bool
    schema: Mapping[str, Any]
    choices: tuple[FormChoice, ...] = ()
    default: Any = None

    @property
    def expected(self) -> str:
        """The expected value, in words."""
        return _expected(self)

    def problem(self, value: object) -> str | None:
        """Return why a value does not fit and what was expected; None when it fits."""
        found = _misfit(self, value)
        return f"{found}; expected {_expected(self)}" if found is not None else None


@dataclass(frozen=True, slots=True)
class Form:
    """All that a server wants to know at once."""

    fields: tuple[FormField, ...]

    @property
    def is_direct(self) -> bool:
        """Whether it is one question with few answers."""
        if len(self.fields) != 1:
            return False
        field = self.fields[0]
        return field.kind is FieldKind.BOOLEAN or (
            field.kind is FieldKind.CHOICE and len(field.choices) <= DIRECT_CHOICES
        )

    def options(self) -> tuple[ConfirmationOption, ...]:
        """One option for each answer of a direct form."""
        field = self.fields[0]
        hint = "The server's suggestion"
        if field.kind is FieldKind.BOOLEAN:
            return tuple(
                ConfirmationOption(word, word.capitalize(), hint if field.default is value else None)
                for word, value in (("yes", True), ("no", False))
            )
        return tuple(
            ConfirmationOption(f"choice-{number}", choice.title, hint if field.default == choice.value else None)
            for number, choice in enumerate(field.choices, 1)
        )

    def chosen(self, option_id: str) -> Content | None:
        """Return the values that an option of a direct form stands for; None for another option."""
        field = self.fields[0]
        if field.kind is FieldKind.BOOLEAN:
            return {field.name: option_id == "yes"} if option_id in ("yes", "no") else None
        numbered = {f"choice-{number}": choice.value for number, choice in enumerate(field.choices, 1)}
        return {field.name: numbered[option_id]} if option_id in numbered else None

    def requested_schema(self) -> Mapping[str, Any]:
        """Return the schema of just this: :func:`form_of` reads the same form from it."""
        properties = {field.name: _described(field) for field in self.fields}
        required = [field.name for field in self.fields if field.is_required]
        return {"type": "object", "properties": properties, "required": required}

    def document(self, server: str, message: str, problem: str = "", last: str = "") -> str:
        """Return a JSON document with comments for a user to fill in.

        ``problem`` says what was wrong with ``last``, the document that was filled in before.
        """
        told: dict[str, Any] = {**{field.name: field.default for field in self.fields}, **_told(last)}
        lines = [f"// The MCP server {_line(server)} wants to know the following. It says:", *quoted(message, "// > ")]
        if problem:
            lines += ["//", *quoted(problem, "// NOT ACCEPTED: ")]
        lines += ["//", "// Replace null by what you want to tell, and accept; what stays null is not told.", "{"]
        for number, field in enumerate(self.fields, 1):
            comma = "," if number < len(self.fields) else ""
            lines += [f"  // {text}" for text in _explained(field)]
            lines += [f"  {_json(field.name)}: {_json(told[field.name])}{comma}", ""]
        return "\n".join([*lines[:-1], "}", ""])

    def read(self, document: str) -> Content:
        """Return the values that a user filled in.

        Raises:
            FormError: it does not fit; the text says where and what was expected.
        """
        try:
            value = parse(document)
        except JsoncError as error:
            raise FormError(f"the document is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise FormError('the document must be an object: {"name": value, ...}')
        given = cast("dict[str, Any]", value)
        known = {field.name: field for field in self.fields}
        problems = [f"{_line(name)}: there is no such field" for name in given if name not in known]
        content: dict[str, Any] = {}
        for field in self.fields:
            answer = _by_value(field, given.get(field.name))
            if answer is None:
                if field.is_required:
                    problems.append(f"{_line(field.name)}: a value is required; expected {_expected(field)}")
                continue
            if (problem := field.problem(answer)) is not None:
                problems.append(f"{_line(field.name)}: {problem}")
            content[field.name] = int(answer) if field.kind is FieldKind.INTEGER and not problem else answer
        if problems:
            more = f"; and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
            raise FormError("; ".join(problems[:SHOWN_PROBLEMS]) + more)
        return content


def form_of(schema: Mapping[str, Any]) -> Form:
    """Return the form that a requested schema stands for.

    Raises:
        FormError: it is not a flat form, or too large.
    """
    properties: object = schema.get("properties")
    if not isinstance(properties, Mapping):
        raise FormError("the requested schema has no properties")
    named = cast("Mapping[str, object]", properties)
    if len(named) > MAXIMUM_FIELDS:
        raise FormError(f"the form has {len(named)} fields; at most {MAXIMUM_FIELDS} are asked")
    listed: object = schema.get("required")
    required = cast("Sequence[object]", listed) if isinstance(listed, (list, tuple)) else ()
    return Form(tuple(_field(name, value, is_required=name in required) for name, value in named.items()))


def quoted(text: str, prefix: str = "> ", limit: int = SHOWN_CHARACTERS * 8) -> list[str]:
    """Return a server's text as marked lines, without terminal sequences; cut when long."""
    cut = text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"
    return [f"{prefix}{_line(line)}".rstrip() for line in cut.splitlines()] or [prefix.rstrip()]


# --- reading a schema -----------------------------------------------------------------------------------------------

_KEPT = {
    FieldKind.TEXT: ("minLength", "maxLength", "format"),
    FieldKind.NUMBER: ("minimum", "maximum"),
    FieldKind.INTEGER: ("minimum", "maximum"),
    FieldKind.BOOLEAN: (),
    FieldKind.CHOICE: (),
    FieldKind.CHOICES: ("minItems", "maxItems"),
}


def _field(name: str, value: object, *, is_required: bool) -> FormField:
    if not isinstance(value, Mapping):
        raise FormError(f"the field {_line(name)} is not described by an object")
    described = cast("Mapping[str, Any]", value)
    kind, choices = _kind(name, described)
    schema: dict[str, Any] = {"type": kind.value}
    if kind is FieldKind.CHOICE:
        schema = {"enum": [choice.value for choice in choices]}
    elif kind is FieldKind.CHOICES:
        values = [choice.value for choice in choices]
        schema = {"type": "array", "uniqueItems": True, "items": {"enum": values}}
    for key in _KEPT[kind]:
        bound: object = described.get(key)
        is_number = isinstance(bound, (int, float)) and not isinstance(bound, bool)
        if (key == "format" and isinstance(bound, str) and bound in FORMATS) or (key != "format" and is_number):
            schema[key] = bound
    field = FormField(
        name,
        kind,
        _text(described.get("title")),
        _text(described.get("description")),
        is_required,
        schema,
        choices,
    )
    default: object = described.get("default")
    if default is None or _misfit(field, default) is not None:
        return field
    if kind is FieldKind.INTEGER:
        default = int(cast("float", default))  # JSON does not tell 2 from 2.0.
    return FormField(name, kind, field.title, field.description, is_required, schema, choices, default)


def _described(field: FormField) -> Mapping[str, Any]:
    choices = [{"const": choice.value, "title": choice.title} for choice in field.choices]
    described: dict[str, Any] = {key: field.schema[key] for key in _KEPT[field.kind] if key in field.schema}
    match field.kind:
        case FieldKind.CHOICE:
            described |= {"type": "string", "oneOf": choices}
        case FieldKind.CHOICES:
            described |= {"type": "array", "items": {"anyOf": choices}}
        case _:
            described["type"] = field.kind.value
    said = {"title": field.title or None, "description": field.description or None, "default": field.default}
    return described | {key: value for key, value in said.items() if value is not None}


def _kind(name: str, described: Mapping[str, Any]) -> tuple[FieldKind, tuple[FormChoice, ...]]:
    stated: object = described.get("type")
    if isinstance(stated, list):
        stated = next((item for item in cast("list[object]", stated) if item != "null"), None)
    if stated in ("string", None) and (choices := _choices(name, described)):
        return FieldKind.CHOICE, choices
    if stated == "array":
        items: object = described.get("items")
        choices = _choices(name, cast("Mapping[str, Any]", items)) if isinstance(items, Mapping) else ()
        if choices:
            return FieldKind.CHOICES, choices
    for kind in (FieldKind.TEXT, FieldKind.NUMBER, FieldKind.INTEGER, FieldKind.BOOLEAN):
        if stated == kind.value:
            return kind, ()
    raise FormError(
        f"the field {_line(name)} is of the type {_line(str(stated))}; expected a text, a number, yes or no, or choices"
    )


def _choices(name: str, described: Mapping[str, Any]) -> tuple[FormChoice, ...]:
    """Return the values that an enumeration allows, in each of the forms that revisions of MCP have for it."""
    found: list[FormChoice] = []
    values: object = described.get("enum")
    if isinstance(values, list):
        listed: object = described.get("enumNames")
        titles = cast("list[object]", listed) if isinstance(listed, list) else []
        for index, value in enumerate(cast("list[object]", values)):
            title = titles[index] if index < len(titles) else value
            if isinstance(value, str):
                found.append(FormChoice(value, _text(title) or _line(value)))
    for key in ("oneOf", "anyOf"):
        entries: object = described.get(key)
        if not found and isinstance(entries, list):
            for entry in cast("list[object]", entries):
                if isinstance(entry, Mapping):
                    one = cast("Mapping[str, object]", entry)
                    if isinstance(value := one.get("const"), str):
                        found.append(FormChoice(value, _text(one.get("title")) or _line(value)))
    if len(found) > MAXIMUM_CHOICES:
        raise FormError(f"the field {_line(name)} has {len(found)} choices; at most {MAXIMUM_CHOICES} are asked")
    return tuple(found)


# --- showing --------------------------------------------------------------------------------------------------------


def _explained(field: FormField) -> list[str]:
    said = " - ".join(text for text in (field.title, field.description) if text)
    need = "required" if field.is_required else "optional"
    return [*([said] if said else []), f"{need}: {_expected(field)}"]


def _expected(field: FormField) -> str:
    schema = field.schema
    match field.kind:
        case FieldKind.TEXT:
            form = schema.get("format")
            parts = [FORMATS[form]] if form else ["a text"]
            parts += _bounds(schema, "minLength", "maxLength", "characters")
        case FieldKind.NUMBER:
            parts = ["a number", *_bounds(schema, "minimum", "maximum", "")]
        case FieldKind.INTEGER:
            parts = ["a whole number", *_bounds(schema, "minimum", "maximum", "")]
        case FieldKind.BOOLEAN:
            parts = ["true or false"]
        case FieldKind.CHOICE:
            parts = [f"one of {_listed(field)}"]
        case FieldKind.CHOICES:
            parts = [f"a list of any of {_listed(field)}", *_bounds(schema, "minItems", "maxItems", "of them")]
    return ", ".join(parts)


def _bounds(schema: Mapping[str, Any], low: str, high: str, unit: str) -> list[str]:
    least, most = schema.get(low), schema.get(high)
    said = [f"at least {_number(least)}"] if least is not None else []
    said += [f"at most {_number(most)}"] if most is not None else []
    return [f"{' and '.join(said)} {unit}".rstrip()] if said else []


def _told(document: str) -> Mapping[str, Any]:
    """Return the members of a document, right or wrong; none if it is not an object."""
    try:
        value = parse(document)
    except JsoncError:
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _number(value: float) -> str:
    return str(int(value)) if abs(value) < 1e15 and value == int(value) else repr(value)


def _listed(field: FormField) -> str:
    shown = [
        _json(choice.value) + (f" ({choice.title})" if choice.title != choice.value else "") for choice in field.choices
    ]
    return ", ".join(shown)


def _json(value: object) -> str:
    """JSON that is safe to show: what cannot be seen is escaped."""
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return "".join(character if character.isprintable() else json.dumps(character)[1:-1] for character in text)


def _line(text: str) -> str:
    """One line that is safe to show."""
    cut = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
    return "".join(character if character.isprintable() else " " for character in cut)


def _text(value: object) -> str:
    return _line(value).strip() if isinstance(value, str) else ""


# --- holding values against the form --------------------------------------------------------------------------------


def _by_value(field: FormField, answer: Any) -> Any:
    """Return the answer, with titles of choices in place of their values taken too."""
    titles = {choice.title: choice.value for choice in field.choices}
    values = {choice.value for choice in field.choices}

    def value_of(item: Any) -> Any:
        return titles.get(item, item) if isinstance(item, str) and item not in values else item

    if field.kind is FieldKind.CHOICES and isinstance(answer, list):
        return [value_of(item) for item in cast("list[Any]", answer)]
    return value_of(answer)


def _misfit(field: FormField, value: object) -> str | None:
    validator: Any = draft_2020_12()(dict(field.schema))
    found = next(iter(validator.iter_errors(value)), None)
    if found is not None:
        return _line(str(found.message))
    form = field.schema.get("format")
    if isinstance(value, str) and isinstance(form, str) and not has_format(form, value):
        return f"{_line(value)!r} is not {FORMATS[form]}"
    return None
