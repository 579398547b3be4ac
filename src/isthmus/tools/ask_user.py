"""ask_user: ask the user questions: one of a few answers, several of them, yes or no, or a text.

A question is the call itself: it waits in the journal before anything runs, survives the end of the process, and may
be answered in any client. Several questions of a call become one call each, so that each answer is kept by itself.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ConfirmationOption, FileDiff, GenericDetails, ToolOutput
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object
from isthmus.forms.asked_question import ASK_USER, AskedQuestion, QuestionKind, asked_question, filled_answer
from isthmus.tools.port.arguments import INVALID_ARGUMENTS, check_arguments
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.failure import ToolFailure

MAXIMUM_QUESTIONS = 4
"""Maximum number of questions of one call, as in Gemini CLI."""
MAXIMUM_QUESTION_CHARACTERS = 2_000
"""Maximum length of a question in characters."""
MAXIMUM_LABEL_CHARACTERS = 100
"""Maximum length of an answer in characters: it is one line of a menu."""
MAXIMUM_OPTIONS = 6
"""Maximum number of answers."""
SEND = "proceed_once"
"""Id of the option that sends what was filled in: the usual one, so that every client can choose it."""
WORDS = "words"
"""Id of an answer in words to a question with options; without words it means nothing, so it is not listed."""
DOCUMENT_NAME = "agent-question.json"
"""Name of the document to fill in, which is only shown: no file is written."""
_CHOICE = "choice_"
_KINDS = tuple(kind.value for kind in QuestionKind)

QUESTION: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "question": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAXIMUM_QUESTION_CHARACTERS,
            "description": "The question, with what the user needs to know to answer it.",
        },
        "header": {"type": "string", "maxLength": 100, "description": 'Its very short name, such as "Database".'},
        "type": {
            "type": "string",
            "enum": list(_KINDS),
            "description": "choice (default): one of the options; yesno; or text, which the user types.",
        },
        "options": {
            "type": "array",
            "minItems": 2,
            "description": f"For choice: 2 to {MAXIMUM_OPTIONS} answers; name the one you recommend first.",
            "items": {
                "type": "object",
                "properties": {
                    "label": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": MAXIMUM_LABEL_CHARACTERS,
                        "description": "The answer, in a few words.",
                    },
                    "description": {
                        "type": "string",
                        "maxLength": 300,
                        "description": "What follows from it, in one sentence.",
                    },
                },
                "required": ["label"],
            },
        },
        "multiSelect": {"type": "boolean", "description": "For choice: whether several options may be chosen."},
        "placeholder": {"type": "string", "maxLength": 300, "description": "For text: a hint at what to type."},
    },
    "required": ["question"],
}
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "questions": {
            "type": "array",
            "minItems": 1,
            "description": f"1 to {MAXIMUM_QUESTIONS} questions, which the user answers one after another.",
            "items": QUESTION,
        }
    },
    "required": ["questions"],
}


class AskUserTool:
    """Asks the user a question."""

    name = ASK_USER
    description = (
        "Asks the user questions with a few possible answers, or for a text, and waits for the answers. For decisions "
        "that are the user's and that you cannot take from the request or the project; not for permission to run a "
        "tool, which is asked by itself. The user may also choose none of the answers."
    )
    parameters = PARAMETERS
    kind = ToolKind.OTHER

    def split(self, arguments: Arguments) -> Sequence[JsonObject]:
        """Return a call for each question."""
        questions = as_list(arguments.get("questions"))
        if "question" in arguments or not 1 < len(questions) <= MAXIMUM_QUESTIONS:
            return (dict(arguments),)
        return tuple({**arguments, "questions": [question]} for question in questions)

    def describe(self, arguments: Arguments) -> str:
        """Return the question."""
        return _checked(arguments).text

    def choices(self, arguments: Arguments) -> tuple[ConfirmationOption, ...]:
        """Return the answers; of a form also the option that sends it."""
        question = _checked(arguments)
        options = tuple(
            ConfirmationOption(f"{_CHOICE}{number}", option.label, option.description or None)
            for number, option in enumerate(question.options, 1)
        )
        if question.form is None:
            return options
        what = "Those of the document are the answer" if options else "The agent gets what you have filled in"
        return (*options, ConfirmationOption(SEND, "Send several" if options else "Send", what))

    def words_option(self, arguments: Arguments) -> str | None:
        """Return the id of an answer in the user's own words; a form has room for them itself."""
        question = _checked(arguments)
        return WORDS if question.kind is QuestionKind.CHOICE and question.form is None else None

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the question, with a document where the answer is to be filled in."""
        question = _checked(arguments)
        if question.form is None:
            return GenericDetails(question.text)
        document = question.document()
        path = str(context.workspace.root / DOCUMENT_NAME)
        return FileDiff(DOCUMENT_NAME, path, document, formatted_diff=document)

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the user's answer, to a call in Gemini CLI's form as Gemini CLI does."""
        option_id, content = context.approved.option_id, context.approved.modified_content or ""
        chosen = next((one for one in self.choices(arguments) if one.id == option_id), None)
        if option_id == WORDS:
            answer = content.strip()
        elif chosen is None:
            raise ToolFailure("ask_user: the user was not asked; decide yourself, and say what you assumed", "no_user")
        else:
            answer = filled_answer(content) if option_id == SEND else chosen.name
        for_model = f"The user chose: {answer}"
        if "question" not in arguments or option_id in (SEND, WORDS):
            for_model = json.dumps({"answers": {"0": answer} if answer else {}}, ensure_ascii=False)
        return ToolSucceeded(ToolOutput(text=f"Answer: {answer}" if answer else "Sent without an answer"), for_model)


def _checked(arguments: Arguments) -> AskedQuestion:
    """Return the question of the arguments: in ``questions``, or the members of a question themselves.

    Raises:
        ToolFailure: they are not a question that can be asked.
    """
    asked: Mapping[str, Any] = arguments
    if "question" not in arguments:
        check_arguments(ASK_USER, _OUTER, arguments)
        questions = as_list(arguments.get("questions"))
        if len(questions) > 1:
            raise _invalid("questions", f"1 to {MAXIMUM_QUESTIONS} questions", str(len(questions)))
        asked = as_object(questions[0])
    values = dict(check_arguments(ASK_USER, QUESTION, asked).values)
    if (kind := values.get("type", QuestionKind.CHOICE.value)) not in _KINDS:
        raise _invalid("type", f"one of {', '.join(_KINDS)}", repr(kind[:100]))
    if kind == QuestionKind.CHOICE.value and "options" not in values:
        check_arguments(ASK_USER, {**QUESTION, "required": ["options"]}, asked)
    question = asked_question(values)
    if question is None:
        raise _invalid("question", "a question", "none")
    labels = [option.label.strip() for option in question.options]
    if len(labels) > MAXIMUM_OPTIONS:
        raise _invalid("options", f"at most {MAXIMUM_OPTIONS} answers", str(len(labels)))
    if len(set(labels)) < len(labels) or not all(labels):
        raise ToolFailure("ask_user: options: expected labels that differ and are not blank", INVALID_ARGUMENTS)
    return question


_OUTER: Mapping[str, Any] = {
    "type": "object",
    "properties": {"questions": {"type": "array", "minItems": 1, "items": {"type": "object"}}},
    "required": ["questions"],
}


def _invalid(name: str, expected: str, received: str) -> ToolFailure:
    return ToolFailure(f"ask_user: {name}: expected {expected}, received {received}", INVALID_ARGUMENTS)
