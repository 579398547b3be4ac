"""The form of an elicitation: the fields that a server asks for, as choices or as a document to fill in. Pure.

Deliberately not here: the schema that it comes from (:mod:`isthmus.forms.requested_schema`), and asking.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime
from enum import Enum
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

from isthmus.development_tool import ConfirmationOption
from isthmus.encoding.json_schema import draft_2020_12
from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.errors import IsthmusError

DIRECT_CHOICES = 12
"""Maximum number of choices of a field that is asked for without a document."""
SHOWN_CHARACTERS = 500
"""Maximum number of characters shown of each text from the server."""
SHOWN_PROBLEMS = 5
"""Maximum number of problems shown of one document."""
FORMATS: Mapping[str, str] = {
    "email": "an e-mail address",
    "uri": "a URI such as https://example.org",
    "date": "a date such as 2026-01-31",
    "date-time": "a date and time such as 2026-01-31T08:30:00Z",
}
"""Formats that a text may be required to have, in words."""
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]+(\.[^@\s.]+)*")

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
    """A value that the server asks for. ``schema`` is the JSON Schema that the value must match."""

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
    """The fields that a server asks for at once."""

    fields: tuple[FormField, ...]

    @property
    def is_direct(self) -> bool:
        """Whether it can be asked as one question with few answers."""
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

    def document(self, server: str, message: str, problem: str = "", last: str = "") -> str:
        """Return a JSON document with comments for a user to fill in.

        ``problem`` says what was wrong with ``last``, the document that was filled in before.
        """
        told: dict[str, Any] = {**{field.name: field.default for field in self.fields}, **_told(last)}
        asker = one_line(server)
        lines = [f"// The MCP server {asker} wants to know the following. It says:", *quoted(message, "// > ")]
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
        problems = [f"{one_line(name)}: there is no such field" for name in given if name not in known]
        content: dict[str, Any] = {}
        for field in self.fields:
            answer = _by_value(field, given.get(field.name))
            if answer is None:
                if field.is_required:
                    problems.append(f"{one_line(field.name)}: a value is required; expected {_expected(field)}")
                continue
            if (problem := field.problem(answer)) is not None:
                problems.append(f"{one_line(field.name)}: {problem}")
            content[field.name] = int(answer) if field.kind is FieldKind.INTEGER and not problem else answer
        if problems:
            more = f"; and {len(problems) - SHOWN_PROBLEMS} more" if len(problems) > SHOWN_PROBLEMS else ""
            raise FormError("; ".join(problems[:SHOWN_PROBLEMS]) + more)
        return content


def quoted(text: str, prefix: str = "> ", limit: int = SHOWN_CHARACTERS * 8) -> list[str]:
    """Return a server's text as marked lines, without terminal sequences; cut when long."""
    cut = text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"
    return [f"{prefix}{one_line(line)}".rstrip() for line in cut.splitlines()] or [prefix.rstrip()]


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
    """Return a value as JSON that is safe to show: invisible characters are escaped."""
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return "".join(character if character.isprintable() else json.dumps(character)[1:-1] for character in text)


def one_line(text: str) -> str:
    """Return a text as one line that is safe to show; cut when long."""
    cut = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
    return "".join(character if character.isprintable() else " " for character in cut)


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
        return one_line(str(found.message))
    form = field.schema.get("format")
    if isinstance(value, str) and isinstance(form, str) and not _has_format(form, value):
        return f"{one_line(value)!r} is not {FORMATS[form]}"
    return None


def _has_format(form: str, text: str) -> bool:
    try:
        match form:
            case "email":
                return _EMAIL.fullmatch(text) is not None
            case "uri":
                parts = urlsplit(text)
                return bool(parts.scheme and (parts.netloc or parts.path)) and not re.search(r"\s", text)
            case "date":
                return date.fromisoformat(text).isoformat() == text
            case _:
                return "T" in text.upper() and datetime.fromisoformat(text.upper()).tzinfo is not None
    except ValueError:
        return False
