"""A question of the model to the user, in the form of Gemini CLI's ``ask_user``, and the meaning of an answer. Pure.

The tool and the fronts read it from the arguments of the call. One choice and yes or no are answered by the options of
the call's question; a text, and several choices, by a form with one field (:mod:`isthmus.forms.form`).
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, cast

from isthmus.development_tool import ToolCall
from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.forms.form import Form, FormError
from isthmus.forms.requested_schema import form_of
from isthmus.record import record

ASK_USER = "ask_user"
"""Name of the tool by which the model asks the user."""
FIELD = "answer"
"""Name of the only field of the form."""


class QuestionKind(StrEnum):
    """Type of a question, as Gemini CLI names it."""

    CHOICE = "choice"
    TEXT = "text"
    YES_NO = "yesno"


@record
class QuestionOption:
    """An answer to choose; ``description`` may be empty."""

    label: str
    description: str = ""


@record
class AskedQuestion:
    """A question to the user. ``header`` is its short name, and ``placeholder`` a hint at the text to type.

    ``is_multiple`` is whether several of the ``options`` may be chosen.
    """

    text: str
    header: str = ""
    kind: QuestionKind = QuestionKind.CHOICE
    options: tuple[QuestionOption, ...] = ()
    is_multiple: bool = False
    placeholder: str = ""

    @property
    def form(self) -> Form | None:
        """The form in which the answer is filled in; None if an option of the call's question is the whole answer."""
        schema = self._schema()
        try:
            return form_of({"properties": {FIELD: schema}}) if schema is not None else None
        except FormError:  # an agent elsewhere asks for more choices than can be shown, or none
            return None

    def _schema(self) -> Mapping[str, Any] | None:
        about: dict[str, Any] = {"title": self.header, "description": self.placeholder}
        if self.kind is QuestionKind.TEXT:
            return {**about, "type": "string"}
        if not self.is_multiple:
            return None
        choices = [{"const": one.label, "title": _title(one)} for one in self.options]
        return {**about, "type": "array", "items": {"anyOf": choices}}

    def document(self) -> str:
        """Return the form as a document to fill in; empty without a form."""
        return self.form.document("agent", self.text, kind="The") if self.form is not None else ""


def asked_question(arguments: Mapping[str, Any]) -> AskedQuestion | None:
    """Return the question of a call with these arguments; None if they are not one question.

    The arguments may come from an agent elsewhere: parts of other types are left out.
    """
    questions = as_list(arguments.get("questions"))
    if "question" not in arguments and len(questions) != 1:
        return None
    asked = arguments if "question" in arguments else as_object(questions[0])
    kinds = {kind.value: kind for kind in QuestionKind}
    text, kind = as_text(asked.get("question")), kinds.get(as_text(asked.get("type")) or QuestionKind.CHOICE.value)
    if not text or kind is None:
        return None
    listed = [as_object(option) for option in as_list(asked.get("options"))]
    options = [QuestionOption(as_text(one.get("label")), as_text(one.get("description"))) for one in listed]
    if kind is QuestionKind.YES_NO:
        options = [QuestionOption("Yes"), QuestionOption("No")]
    return AskedQuestion(
        text,
        as_text(asked.get("header")),
        kind,
        tuple(options) if kind is not QuestionKind.TEXT else (),
        asked.get("multiSelect") is True and kind is QuestionKind.CHOICE,
        as_text(asked.get("placeholder")),
    )


def question_in(call: ToolCall) -> AskedQuestion | None:
    """Return the question that a call of ``ask_user`` asks; None for other calls."""
    return asked_question(call.input_parameters) if call.tool_name == ASK_USER else None


def filled_answer(document: str) -> str:
    """Return the answer in a document that a user filled in, choices joined by commas; empty for none.

    Whatever else the user wrote is the answer as it stands: nothing of it is lost.
    """
    try:
        value = parse(document)
    except JsoncError:
        return document.strip()
    members = cast("dict[str, Any]", value) if isinstance(value, dict) else {"": value}
    if members.keys() - {FIELD}:
        return document.strip()
    answer: object = members.get(FIELD)
    if answer is None or isinstance(answer, str):
        return (answer or "").strip()
    items = as_list(answer)
    return ", ".join(as_text(item) or _json(item) for item in items) if isinstance(answer, list) else _json(answer)


def _title(option: QuestionOption) -> str:
    return f"{option.label}: {option.description}" if option.description else option.label


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
