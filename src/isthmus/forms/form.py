"""The form of an elicitation: the fields that a server asks for, as choices or as a document to fill in. Pure.

Not here: the conversion from the server's schema, see :mod:`isthmus.forms.requested_schema`, and asking the user.
"""

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from enum import Enum
from typing import Any, TypeAlias, cast
from urllib.parse import urlsplit

from isthmus.development_tool import ConfirmationOption
from isthmus.encoding.json_schema import draft_2020_12
from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.errors import IsthmusError
from isthmus.record import record

DIRECT_CHOICES = 12
"""Maximum number of choices of a field that can be asked without a document."""
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
"""Description of each format that a text may be required to have."""
_EMAIL = re.compile(r"[^@\s]{1,64}@[^@\s.]+(\.[^@\s.]+)*")

Content: TypeAlias = Mapping[str, "str | int | float | bool | list[str]"]
"""The values that a user filled in, by field."""


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


@record
class FormChoice:
    """A value that can be chosen, with the server's title for it and, unless that is empty, a description."""

    value: str
    title: str
    description: str = ""


@record
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
        """Description of the expected value."""
        return _expected(self)

    def problem(self, value: object) -> str | None:
        """Return why a value is invalid, and the expected value; None if it is valid."""
        found = _find_error(self, value)
        return f"{found}; expected {_expected(self)}" if found is not None else None


@record
class Form:
    """The fields that a server asks for in one request."""

    fields: tuple[FormField, ...]

    @property
    def is_direct(self) -> bool:
        """Whether the form can be asked as one question with a few options."""
        if len(self.fields) != 1:
            return False
        field = self.fields[0]
        return field.kind is FieldKind.BOOLEAN or (
            field.kind is FieldKind.CHOICE and len(field.choices) <= DIRECT_CHOICES
        )

    def options(self) -> tuple[ConfirmationOption, ...]:
        """Return one option for each answer of a direct form."""
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
        """Return the values for an option of a direct form; None if it is not an option of the form."""
        field = self.fields[0]
        if field.kind is FieldKind.BOOLEAN:
            return {field.name: option_id == "yes"} if option_id in ("yes", "no") else None
        numbered = {f"choice-{number}": choice.value for number, choice in enumerate(field.choices, 1)}
        return {field.name: numbered[option_id]} if option_id in numbered else None

    def document(
        self, server: str, message: str, problem: str = "", last: str = "", *, kind: str = "The MCP server"
    ) -> str:
        """Return a JSON document with comments for a user to fill in; ``kind`` stands before the asker's name.

        ``problem`` describes the errors in ``last``, the document of the previous attempt.
        """
        values: dict[str, Any] = {**{field.name: field.default for field in self.fields}, **_read_members(last)}
        asker = one_line(server)
        lines = [f"// {kind} {asker} wants to know the following. It says:", *quoted(message, "// > ")]
        if problem:
            lines += ["//", *quoted(problem, "// NOT ACCEPTED: ")]
        lines += ["//", "// Replace null by your values, and accept. Fields that stay null are not sent.", "{"]
        for number, field in enumerate(self.fields, 1):
            comma = "," if number < len(self.fields) else ""
            lines += [f"  // {text}" for text in _explain(field)]
            lines += [f"  {_json(field.name)}: {_json(values[field.name])}{comma}", ""]
        return "\n".join([*lines[:-1], "}", ""])

    def read(self, document: str) -> Content:
        """Return the values that a user filled in.

        Raises:
            FormError: the document is invalid; the message names the fields and the expected values.
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
    """Return a server's text as lines with a prefix, without terminal sequences; cut if it is too long."""
    cut = text if len(text) <= limit else f"{text[:limit]}… ({len(text):,} characters)"
    return [f"{prefix}{one_line(line)}".rstrip() for line in cut.splitlines()] or [prefix.rstrip()]


# --- showing --------------------------------------------------------------------------------------------------------


def _explain(field: FormField) -> list[str]:
    about = " - ".join(text for text in (field.title, field.description) if text)
    need = "required" if field.is_required else "optional"
    return [*([about] if about else []), f"{need}: {_expected(field)}"]


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
    limits = [f"at least {_number(least)}"] if least is not None else []
    limits += [f"at most {_number(most)}"] if most is not None else []
    return [f"{' and '.join(limits)} {unit}".rstrip()] if limits else []


def _read_members(document: str) -> Mapping[str, Any]:
    """Return the members of a document, valid or not; empty if it is not an object."""
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
    """Return a text as one line that is safe to show; cut if it is too long."""
    cut = text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
    return "".join(character if character.isprintable() else " " for character in cut)


# --- checking values ------------------------------------------------------------------------------------------------


def _by_value(field: FormField, answer: Any) -> Any:
    """Return the answer with titles of choices replaced by their values."""
    titles = {choice.title: choice.value for choice in field.choices}
    values = {choice.value for choice in field.choices}

    def value_of(item: Any) -> Any:
        return titles.get(item, item) if isinstance(item, str) and item not in values else item

    if field.kind is FieldKind.CHOICES and isinstance(answer, list):
        return [value_of(item) for item in cast("list[Any]", answer)]
    return value_of(answer)


def _find_error(field: FormField, value: object) -> str | None:
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
