"""A server's form that is filled in line by line: the next field, and the value of a typed line. Pure.

Each value is checked against the form as soon as it is typed. The result is a document as if edited in ``$EDITOR``.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from isthmus.development_tool import ToolCall
from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.forms.asked_question import question_in
from isthmus.forms.form import FieldKind, Form, FormError, FormField
from isthmus.forms.requested_schema import REQUESTED_SCHEMA, form_of
from isthmus.questions import ELICITATION
from isthmus.record import record
from isthmus.text.visible import visible_line, with_ellipsis

SHOWN_CHOICES = 30
"""Maximum number of choices of a field that are listed; others can be typed by name."""
LONGEST_SUGGESTION = 60
"""Maximum number of characters of a suggested value in brackets."""
LEAVE_OUT = "-"
"""Input that leaves a field empty although a value is suggested."""
NONE_OF_THEM = "none"
_NUMBER = re.compile(r"[+-]?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,3})?")
_WORDS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


class _InvalidValue(Exception):
    """A typed line is not a value of its field; the text says why."""


@record
class FormFilling:
    """A partly filled form. ``position`` is the number of fields that have been asked.

    ``values`` maps field names to values; for fields that are still to be asked they are suggestions. ``problem`` is
    the reason why the last line was not accepted.
    """

    form: Form
    values: Mapping[str, Any]
    position: int = 0
    problem: str = ""

    @property
    def field(self) -> FormField | None:
        """Field to ask now; None after the last one."""
        return self.form.fields[self.position] if self.position < len(self.form.fields) else None

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines above the prompt: the field, its valid values, and the problem with the last input."""
        if (field := self.field) is None:
            return ()
        need = "required" if field.is_required else "optional"
        lines = [f"{self.position + 1} of {len(self.form.fields)}: {_name(field)} ({need})"]
        lines += [f"  {visible_line(field.description)}"] if field.description else []
        lines += [f"  {number:>2}  {visible_line(choice.title)}" for number, choice in _listed(field)]
        hidden = len(field.choices) - SHOWN_CHOICES
        lines += [f"  and {hidden} more, which can be typed by name"] if hidden > 0 else []
        lines.append(f"  {self._how(field)}")
        return (*lines, f"  {self.problem}") if self.problem else tuple(lines)

    @property
    def prompt(self) -> str:
        """Prompt before the typed line, with the value that Enter accepts in brackets."""
        if (field := self.field) is None:
            return ""
        suggested = self._suggested(field)
        return f"{_name(field)}{f' [{_shown(field, suggested)}]' if suggested is not None else ''}: "

    def with_line(self, line: str) -> "FormFilling":
        """Return the form after a line of the user: at the next field, or at the same one with a ``problem``."""
        if (field := self.field) is None:
            return self
        text = line.strip()
        suggested = self._suggested(field)
        if text == LEAVE_OUT and suggested is not None and not field.is_required:
            return self._next(field, None)
        if not text:
            if suggested is None and field.is_required:
                return replace(self, problem="A value is required. Ctrl-C goes back.")
            return self._next(field, suggested)
        try:
            value = _value(field, text)
        except _InvalidValue as error:
            return replace(self, problem=str(error))
        if (problem := field.problem(value)) is not None:
            return replace(self, problem=problem)
        return self._next(field, value)

    def document(self) -> str:
        """Return the answers as a JSON document, with null for empty fields."""
        answers = {field.name: self.values.get(field.name) for field in self.form.fields}
        return json.dumps(answers, ensure_ascii=False, indent=2) + "\n"

    def _next(self, field: FormField, value: Any) -> "FormFilling":
        return FormFilling(self.form, {**self.values, field.name: value}, self.position + 1)

    def _suggested(self, field: FormField) -> Any:
        return self.values.get(field.name)

    def _how(self, field: FormField) -> str:
        is_suggested = self._suggested(field) is not None
        match field.kind:
            case FieldKind.CHOICE:
                how = "a number or a name"
            case FieldKind.CHOICES:
                how = f"numbers or names, separated by commas, or {NONE_OF_THEM}"
            case FieldKind.BOOLEAN:
                how = "yes or no"
            case _:
                how = field.expected
        if is_suggested:
            return f"{how}; Enter accepts the value in brackets" + (
                "" if field.is_required else f", {LEAVE_OUT} leaves it out"
            )
        return how if field.is_required else f"{how}; Enter leaves it out"


def filling_of(call: ToolCall, document: str) -> FormFilling | None:
    """Return the form that a call asks the user to fill in, or None; valid values of ``document`` are suggested."""
    if (question := question_in(call)) is not None:
        return FormFilling(question.form, _fitting(question.form, document)) if question.form is not None else None
    schema = call.input_parameters.get(REQUESTED_SCHEMA)
    if call.tool_name != ELICITATION or not isinstance(schema, Mapping):
        return None
    try:
        form = form_of(cast("Mapping[str, Any]", schema))
    except FormError:
        return None
    return FormFilling(form, _fitting(form, document)) if form.fields else None


def _fitting(form: Form, document: str) -> Mapping[str, Any]:
    try:
        value = parse(document)
    except JsoncError:
        return {}
    given = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return {
        field.name: answer
        for field in form.fields
        if (answer := given.get(field.name)) is not None and field.problem(answer) is None
    }


def _value(field: FormField, text: str) -> Any:
    match field.kind:
        case FieldKind.TEXT:
            return text
        case FieldKind.NUMBER | FieldKind.INTEGER:
            return _number(field, text)
        case FieldKind.BOOLEAN:
            if (word := _WORDS.get(text.casefold())) is None:
                raise _InvalidValue(f"{visible_line(text)!r} is neither yes nor no")
            return word
        case FieldKind.CHOICE:
            return _choice(field, text)
        case FieldKind.CHOICES:
            return _several(field, text)


def _number(field: FormField, text: str) -> float:
    if _NUMBER.fullmatch(text) is not None:
        if "." not in text and "e" not in text.casefold():
            return int(text)
        if math.isfinite(value := float(text)):
            return int(value) if field.kind is FieldKind.INTEGER and value.is_integer() else value
    raise _InvalidValue(f"{visible_line(text)!r} is not a valid number; expected {field.expected}")


def _choice(field: FormField, text: str) -> str:
    found = _find(field, text)
    if found is None:
        expected = f"a number from 1 to {len(field.choices)}, or a name"
        raise _InvalidValue(f"{visible_line(text)!r} is not one of the choices; type {expected}")
    return found


def _several(field: FormField, text: str) -> list[str]:
    if (whole := _find(field, text)) is not None:
        return [whole]
    if text.casefold() == NONE_OF_THEM:
        return []
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 1 and all(part.isdecimal() for part in text.split()):
        parts = text.split()
    return list(dict.fromkeys(_choice(field, part) for part in parts if part))


def _find(field: FormField, text: str) -> str | None:
    """Return the value of a choice given by its number in the list, its name or value, or its name in other case."""
    if text.isascii() and text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= len(field.choices):
        return field.choices[int(text) - 1].value
    for choice in field.choices:
        if text in (choice.title, choice.value):
            return choice.value
    folded = [choice.value for choice in field.choices if text.casefold() == choice.title.casefold()]
    return folded[0] if len(folded) == 1 else None


def _listed(field: FormField) -> list[tuple[int, Any]]:
    return list(enumerate(field.choices[:SHOWN_CHOICES], 1))


def _name(field: FormField) -> str:
    return visible_line(field.title or field.name)[:LONGEST_SUGGESTION]


def _shown(field: FormField, value: Any) -> str:
    titles = {choice.value: choice.title for choice in field.choices}
    match value:
        case bool():
            text = "yes" if value else "no"
        case list():
            chosen = [titles.get(str(item), str(item)) for item in cast("list[object]", value)]
            text = ", ".join(chosen) or NONE_OF_THEM
        case _:
            text = titles.get(str(value), str(value))
    return with_ellipsis(visible_line(text), LONGEST_SUGGESTION)
