"""A server's form filled in line by line: what is asked next, and what a typed line answers. Pure.

Each value is held against the form as soon as it is typed; the answers together are a document such as ``$EDITOR``
would leave. Deliberately not here: reading lines (a Prompter), and sending anything.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from isthmus.client import ELICITATION
from isthmus.development_tool import ToolCall
from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.forms.form import REQUESTED_SCHEMA, FieldKind, Form, FormError, FormField, form_of
from isthmus.terminal.sanitize import visible_line
from isthmus.text.visible import with_ellipsis

SHOWN_CHOICES = 30
"""Choices of a field that are listed; others can be typed by name."""
LONGEST_SUGGESTION = 60
"""Characters of a value in brackets."""
LEAVE_OUT = "-"
"""Typed for a value that is not told although one is suggested."""
NONE_OF_THEM = "none"
_NUMBER = re.compile(r"[+-]?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,3})?")
_WORDS = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}


class _Unfit(Exception):
    """A typed line is no value of its field; the text says why."""


@dataclass(frozen=True, slots=True)
class FormFilling:
    """A form on its way: ``told`` are the values by field name, ``position`` counts the fields that were asked.

    What is told of a field that is still to be asked is suggested there. ``problem`` is with the last line.
    """

    form: Form
    told: Mapping[str, Any]
    position: int = 0
    problem: str = ""

    @property
    def field(self) -> FormField | None:
        """What is asked now; None when everything was."""
        return self.form.fields[self.position] if self.position < len(self.form.fields) else None

    @property
    def lines(self) -> tuple[str, ...]:
        """What stands above the prompt: what is asked, what it takes, and what was wrong."""
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
        """What stands before the typed line: the value that Enter takes in brackets."""
        if (field := self.field) is None:
            return ""
        suggested = self._suggested(field)
        return f"{_name(field)}{f' [{_shown(field, suggested)}]' if suggested is not None else ''}: "

    def typed(self, line: str) -> "FormFilling":
        """After a line of the user: the next field, or the same one with its ``problem``."""
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
        except _Unfit as error:
            return replace(self, problem=str(error))
        if (problem := field.problem(value)) is not None:
            return replace(self, problem=problem)
        return self._next(field, value)

    def document(self) -> str:
        """Return the answers as a JSON document, null where nothing is told."""
        answers = {field.name: self.told.get(field.name) for field in self.form.fields}
        return json.dumps(answers, ensure_ascii=False, indent=2) + "\n"

    def _next(self, field: FormField, value: Any) -> "FormFilling":
        return FormFilling(self.form, {**self.told, field.name: value}, self.position + 1)

    def _suggested(self, field: FormField) -> Any:
        return self.told.get(field.name)

    def _how(self, field: FormField) -> str:
        is_suggested = self._suggested(field) is not None
        match field.kind:
            case FieldKind.CHOICE:
                how = "a number or a name"
            case FieldKind.CHOICES:
                how = f"numbers or names, with commas between them; {NONE_OF_THEM} of them: {NONE_OF_THEM}"
            case FieldKind.BOOLEAN:
                how = "yes or no"
            case _:
                how = field.expected
        if is_suggested:
            return f"{how}; Enter takes what is in brackets" + (
                "" if field.is_required else f", {LEAVE_OUT} leaves it out"
            )
        return how if field.is_required else f"{how}; Enter leaves it out"


def filling_of(call: ToolCall, document: str) -> FormFilling | None:
    """The form that a call asks to fill in; what fits of ``document`` is suggested. None when it is no such call."""
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
                raise _Unfit(f"{visible_line(text)!r} is neither yes nor no")
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
    raise _Unfit(f"{visible_line(text)!r} is no number; expected {field.expected}")


def _choice(field: FormField, text: str) -> str:
    found = _find(field, text)
    if found is None:
        raise _Unfit(f"{visible_line(text)!r} is none of them; type a number from 1 to {len(field.choices)}, or a name")
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
    """By its number as it is listed, else by its name or value, else by its name in other case."""
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
