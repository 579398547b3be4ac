"""ask_user: ask the user a question with a few answers.

The question is the call itself: it waits in the journal before anything runs, survives the end of the process, and may
be answered in any client.
"""

from collections.abc import Mapping
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ConfirmationOption, GenericDetails, ToolOutput
from isthmus.encoding.json_shapes import as_list, as_object
from isthmus.tools.arguments import INVALID_ARGUMENTS, CheckedArguments, check_arguments
from isthmus.tools.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.failure import ToolFailure

MAXIMUM_QUESTION_CHARACTERS = 2_000
"""Maximum length of a question in characters."""
MAXIMUM_LABEL_CHARACTERS = 100
"""Maximum length of an answer in characters: it is one line of a menu."""
MAXIMUM_OPTIONS = 6
"""Maximum number of answers."""
_CHOICE = "choice_"
_YES_OR_NO = [{"label": "Yes"}, {"label": "No"}]

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "question": {
            "type": "string",
            "minLength": 1,
            "maxLength": MAXIMUM_QUESTION_CHARACTERS,
            "description": "The question, with what the user needs to know to answer it.",
        },
        "options": {
            "type": "array",
            "minItems": 2,
            "description": f"2 to {MAXIMUM_OPTIONS} answers that exclude each other; name the one you recommend first.",
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
    },
    "required": ["question", "options"],
}


class AskUserTool:
    """Asks the user to choose one of a few answers."""

    name = "ask_user"
    description = (
        "Asks the user a question with a few possible answers, and waits for the answer. For decisions that are the "
        "user's and that you cannot take from the request or the project; not for permission to run a tool, which is "
        "asked by itself. The user may also choose none of the answers."
    )
    parameters = PARAMETERS
    kind = ToolKind.OTHER

    def describe(self, arguments: Arguments) -> str:
        """Return the question."""
        return self._check(arguments).string("question")

    def choices(self, arguments: Arguments) -> tuple[ConfirmationOption, ...]:
        """Return the answers."""
        return tuple(
            ConfirmationOption(f"{_CHOICE}{number}", option.string("label"), option.string("description") or None)
            for number, option in enumerate(self._check(arguments).objects("options"), 1)
        )

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Return the question."""
        return GenericDetails(self.describe(arguments))

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the answer that the user chose."""
        chosen = next((one for one in self.choices(arguments) if one.id == context.approved.option_id), None)
        if chosen is None:
            raise ToolFailure("ask_user: the user was not asked; decide yourself, and say what you assumed", "no_user")
        return ToolSucceeded(ToolOutput(text=f"Answer: {chosen.name}"), f"The user chose: {chosen.name}")

    def _check(self, arguments: Arguments) -> CheckedArguments:
        checked = check_arguments(self.name, PARAMETERS, _one_question(arguments))
        labels = [option.string("label").strip() for option in checked.objects("options")]
        if len(labels) > MAXIMUM_OPTIONS:
            message = f"ask_user: options: expected at most {MAXIMUM_OPTIONS} answers, received {len(labels)}"
            raise ToolFailure(message, INVALID_ARGUMENTS)
        if len(set(labels)) < len(labels) or not all(labels):
            raise ToolFailure("ask_user: options: expected labels that differ and are not blank", INVALID_ARGUMENTS)
        return checked


def _one_question(arguments: Arguments) -> Arguments:
    """Return the arguments of a question that a model asks as it does in Gemini CLI and Claude Code: in ``questions``.

    Their ``header`` and ``placeholder`` are not shown, and one answer is chosen also where ``multiSelect`` is set.
    """
    questions = as_list(arguments.get("questions"))
    if "question" in arguments or not questions:
        return arguments
    if len(questions) > 1:
        message = f"ask_user: questions: expected one question a call, received {len(questions)}; make a call for each"
        raise ToolFailure(message, INVALID_ARGUMENTS)
    question = as_object(questions[0])
    if question.get("type") == "text":
        message = "ask_user: type: expected choice or yesno, received text; ask an open question in your reply"
        raise ToolFailure(message, INVALID_ARGUMENTS)
    options = _YES_OR_NO if question.get("type") == "yesno" else question.get("options")
    named = {"question": question.get("question"), "options": options}
    return {name: value for name, value in named.items() if value is not None}
