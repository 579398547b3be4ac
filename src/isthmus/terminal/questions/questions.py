"""Questions to a user as choices, and the meaning of an answer. Pure: asking and drawing happen elsewhere."""

from dataclasses import replace

from isthmus.development_tool import ConfirmationOption, FileDiff, ModifiedFileDetails, ToolCall, ToolCallConfirmation
from isthmus.forms.asked_question import filled_answer, question_in
from isthmus.questions import ACCEPTING_OPTIONS, ELICITATION, REFUSING_OPTIONS, SAMPLING, offered_option, refuses
from isthmus.record import record
from isthmus.terminal.questions.form_filling import filling_of
from isthmus.terminal.questions.hunk_choice import can_choose

FILL_IN = "f"
HUNKS = "h"
TELL = "t"
"""Key of the choice to reject a call with words for the agent."""
_SHORT = {"y": ACCEPTING_OPTIONS, "n": ("no", "decline", *REFUSING_OPTIONS)}
"""Option ids that a typed letter can select: it selects the first one that the question offers."""
_KINDS = {"y": "allow_once", "n": "reject_once"}
"""Kind of an option that a typed letter selects before, if its agent states one."""


@record
class AnswerChoice:
    """One line of a question: the input that selects it, and its text.

    ``option_id`` is None for the front's own choices: to edit the proposal first, or to fill in a form. ``kind`` is the
    option's, where its agent states one.
    """

    key: str
    name: str
    description: str | None
    option_id: str | None
    kind: str | None = None
    is_refusal: bool = False

    @property
    def is_edit(self) -> bool:
        """Whether the choice is to edit the proposed file first."""
        return self.option_id is None and self.key not in (FILL_IN, HUNKS, TELL)

    @property
    def is_choosing_hunks(self) -> bool:
        """Whether the choice is to accept some hunks of the proposal."""
        return self.option_id is None and self.key == HUNKS

    @property
    def is_telling(self) -> bool:
        """Whether the choice is to reject the call and tell the agent what to do instead."""
        return self.option_id is None and self.key == TELL

    @property
    def is_filling_in(self) -> bool:
        """Whether the choice is to be asked for each value of a form."""
        return self.option_id is None and self.key == FILL_IN


@record
class CallQuestion:
    """A question about a pending call; ``edited`` is the user's own version of the proposed file."""

    call: ToolCall
    choices: tuple[AnswerChoice, ...]
    edited: str | None = None

    @property
    def file_diff(self) -> FileDiff | None:
        """Change under review, with the user's edits."""
        request = self.call.confirmation_request
        diff = request.file_edit_details if request is not None else None
        if diff is None or self.edited is None:
            return diff
        return FileDiff(diff.file_name, diff.file_path, self.edited, diff.old_content)

    def choice(self, typed: str) -> AnswerChoice | None:
        """Return the choice that was typed by its key, the id or name of its option, ``y`` or ``n``, or None."""
        word = typed.strip().casefold()
        for choice in self.choices:
            if word and word in (choice.key, (choice.option_id or "").casefold(), choice.name.casefold()):
                return choice
        letter = {"yes": "y", "no": "n"}.get(word, word)
        stated = [choice for choice in self.choices if choice.kind is not None and choice.kind == _KINDS.get(letter)]
        if stated:
            return stated[0]
        option_ids = _SHORT.get(letter, ())
        by_id = {choice.option_id: choice for choice in self.choices}
        return next((by_id[option_id] for option_id in option_ids if option_id in by_id), None)

    @property
    def filled_choice(self) -> AnswerChoice | None:
        """Choice that sends the answer to the agent's question which has just been filled in; None for others."""
        if self.edited is None or not _fills_in(self.call):
            return None
        sent = next((choice for choice in self.choices if choice.option_id in ACCEPTING_OPTIONS), None)
        return replace(sent, name=filled_answer(self.edited) or "Sent without an answer") if sent is not None else None

    def confirmation(self, choice: AnswerChoice) -> ToolCallConfirmation:
        """Return the answer for a choice, with the user's edits unless the call is refused."""
        option_id = choice.option_id or offered_option(self.call, ACCEPTING_OPTIONS, "allow_once")
        edited = None if choice.is_refusal else self.edited
        details = ModifiedFileDetails(edited) if edited is not None else None
        return ToolCallConfirmation(self.call.tool_call_id, option_id, details)


def _fills_in(call: ToolCall) -> bool:
    """Return whether a call is a question of the agent whose answer is to be filled in."""
    asked, request = question_in(call), call.confirmation_request
    return asked is not None and asked.form is not None and request is not None and bool(request.file_edit_details)


def is_refusal(option: ConfirmationOption) -> bool:
    """Return whether an option refuses a call, or declines a question of a server."""
    return refuses(option) or (option.kind is None and option.id == "decline")


def question_of(call: ToolCall, edited: str | None = None) -> CallQuestion:
    """Return the question of a pending call: its options from 1, ``h`` for some hunks of an edit, ``e`` to edit it."""
    request = call.confirmation_request
    is_asked = _fills_in(call)
    options = request.options if request is not None else ()
    if is_asked and edited is None:
        options = [option for option in options if option.id not in ACCEPTING_OPTIONS]  # nothing to send yet
    choices = [
        AnswerChoice(
            str(number), option.name or option.id, option.description, option.id, option.kind, is_refusal(option)
        )
        for number, option in enumerate(options, 1)
    ]
    if request is not None and request.file_edit_details is not None and choices:
        if filling_of(call, "") is not None:
            fill = "Fill in again" if edited is not None else "Fill in"
            what = "asks for one value after another"
            if is_asked:
                fill, what = ("Choose several", "by their numbers") if len(choices) > 1 else ("Answer", "in your words")
            choices.append(AnswerChoice(FILL_IN, fill, what, None))
        edit = "Edit again" if edited is not None else "Edit first"
        what = "document" if is_asked or call.tool_name == ELICITATION else "proposal"
        if not is_asked and call.tool_name != ELICITATION and can_choose(request.file_edit_details):
            choices.append(AnswerChoice(HUNKS, "Some hunks", "by their numbers; the others stay as they are", None))
        choices.append(AnswerChoice("e", edit, f"opens the {what} in your $EDITOR", None))
    if call.tool_name not in (ELICITATION, SAMPLING) and any(choice.is_refusal for choice in choices):
        choices.append(AnswerChoice(TELL, "Reject and tell", "what to do instead, or why not", None))
    return CallQuestion(call, tuple(choices), edited)


def refusal(call: ToolCall) -> ToolCallConfirmation | None:
    """Return the answer that refuses a call, for runs without a user; None if no option of it does."""
    request = call.confirmation_request
    for option in request.options if request is not None else ():
        if refuses(option):
            return ToolCallConfirmation(call.tool_call_id, option.id)
    return None
