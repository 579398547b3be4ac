"""Checks of a user's answers against a task's questions; a task's history, artifacts and title. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from isthmus.client import ChangedQuestion, Delivery, HistoryMessage, InvalidRequest
from isthmus.development_tool import ToolCall, ToolCallConfirmation
from isthmus.engine.requests.command_execution import format_command
from isthmus.events import AgentMessage, ArtifactUpdate, Command, Prompt
from isthmus.internal_events import ModelReply
from isthmus.journal.port.task_rows import TaskRow
from isthmus.models.port.base import text_of
from isthmus.models.port.message import message_from_json
from isthmus.text.visible import with_ellipsis

TITLE_CHARACTERS = 80


def check_answers(row: TaskRow, pending: Sequence[ToolCall], confirmations: Sequence[ToolCallConfirmation]) -> None:
    """Check answers against the open questions of a task.

    Raises:
        InvalidRequest: a call is not waiting, an answer does not fit its question, or one call has two answers. All
            questions stay open.
    """
    calls = [confirmation.tool_call_id for confirmation in confirmations]
    if twice := sorted({call for call in calls if calls.count(call) > 1}):
        raise InvalidRequest(f"expected one answer for each tool call, received several for {', '.join(twice)}")
    for confirmation in confirmations:
        _check_answer(row, pending, confirmation)


def check_shown(
    pending: Sequence[ToolCall],
    confirmations: Sequence[ToolCallConfirmation],
    is_shown: Callable[[ToolCall], bool],
) -> None:
    """Check that the questions which are answered ask what the user was shown.

    Raises:
        ChangedQuestion: ``is_shown`` returns false for one of their calls. All questions stay open.
    """
    answered = {confirmation.tool_call_id for confirmation in confirmations}
    for call in pending:
        if call.tool_call_id in answered and not is_shown(call):
            raise ChangedQuestion(
                f"tool call {call.tool_call_id} asks for something else than what was shown; look at it, and answer it"
            )


def _check_answer(row: TaskRow, pending: Sequence[ToolCall], confirmation: ToolCallConfirmation) -> None:
    call = next((call for call in pending if call.tool_call_id == confirmation.tool_call_id), None)
    if call is None or call.confirmation_request is None:
        waiting = ", ".join(item.tool_call_id for item in pending) or "none"
        raise InvalidRequest(
            f"tool call {confirmation.tool_call_id} of task {row.task_id} is not waiting for an answer: it was already"
            f" answered, or never asked. Waiting now: {waiting}."
        )
    valid = [option.id for option in call.confirmation_request.options]
    words = call.confirmation_request.words_option
    if words is not None and confirmation.selected_option_id == words:
        if confirmation.file_details is None:
            raise InvalidRequest(
                f"selected_option_id {words!r} of tool call {call.tool_call_id} is an answer in words; expected them in"
                " file_details.new_content. The question stays open."
            )
        return
    if confirmation.selected_option_id not in valid:
        raise InvalidRequest(
            f"selected_option_id {confirmation.selected_option_id!r} is not an option of tool call"
            f" {call.tool_call_id}; expected one of {', '.join(valid)}. The question stays open."
        )
    if confirmation.file_details is not None and call.confirmation_request.file_edit_details is None:
        raise InvalidRequest(
            f"received modified_details of type file_details for {call.tool_call_id}, which is not a file edit"
        )


def history_of(deliveries: Sequence[Delivery]) -> tuple[HistoryMessage, ...]:
    """Return the messages of the conversation as a client without extensions sees them."""
    messages: list[HistoryMessage] = []
    for delivery in deliveries:
        match delivery.event:
            case Prompt(message_id, text):
                messages.append(HistoryMessage(message_id, "user", text))
            case Command(message_id):
                messages.append(HistoryMessage(message_id, "user", format_command(delivery.event)))
            case AgentMessage(message_id, text):
                messages.append(HistoryMessage(message_id, "agent", text))
            case ModelReply(message_id=message_id, message=message):
                if text := text_of(message_from_json(message)):
                    messages.append(HistoryMessage(message_id, "agent", text))
            case _:
                pass
    return tuple(messages)


def artifacts_of(deliveries: Sequence[Delivery]) -> tuple[ArtifactUpdate, ...]:
    """Return the complete artifacts after these events, in the order in which they began."""
    artifacts: dict[str, ArtifactUpdate] = {}
    for delivery in deliveries:
        if isinstance(update := delivery.event, ArtifactUpdate):
            before = artifacts.get(update.artifact_id)
            if update.append and before is not None:
                update = replace(before, parts=(*before.parts, *update.parts), last_chunk=update.last_chunk)
            artifacts[update.artifact_id] = replace(update, append=False)
    return tuple(artifacts.values())


def title_of(text: str) -> str:
    """Return the first line of a prompt, shortened to :data:`TITLE_CHARACTERS`."""
    beginning = text.strip()[: TITLE_CHARACTERS + 1]  # the text may have many megabytes of lines
    return with_ellipsis(beginning.splitlines()[0], TITLE_CHARACTERS)
