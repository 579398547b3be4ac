"""Operations on an agent, which every protocol version and dialect of the server shares.

They work on any :class:`~isthmus.client.AgentClient` and know neither JSON nor HTTP.
"""

import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import replace
from typing import cast

from isthmus.a2a.protocol.jsonrpc import InvalidParamsError
from isthmus.a2a.protocol.operations import FollowTask, ListTasks, SendMessage
from isthmus.a2a.protocol.text_questions import answer_in_text, is_no_answer
from isthmus.a2a.wire import TaskPage
from isthmus.client import (
    AgentClient,
    AnswersWithWords,
    Delivery,
    LongFollower,
    PromptMessage,
    TaskNotResumable,
    TaskPlace,
    TaskQuery,
    TaskSnapshot,
    Turn,
)
from isthmus.development_tool import ToolCall, ToolCallConfirmation
from isthmus.events import Command
from isthmus.record import record

ANSWERED_BY = "A2A client"
"""Name of the client that answered a question, when the client does not send its own."""


@record
class SendResult:
    """The turn that a message started, and the answers that the message had."""

    turn: Turn
    answers: tuple[ToolCallConfirmation, ...] = ()

    @property
    def answered(self) -> frozenset[str]:
        """Ids of the tool calls that the message answered."""
        return frozenset(answer.tool_call_id for answer in self.answers)


async def send(agent: AgentClient, message: SendMessage) -> SendResult:
    """Start or continue a task, or answer its questions. A text beside answers is for the work that they let go on.

    Raises:
        TaskError: the agent refuses the message, e.g. because of its workspace; no task is created.
    """
    if message.confirmations and message.task_id is not None:
        if message.text.strip() and isinstance(agent, AnswersWithWords):
            return await _answer(agent, message, message.task_id, message.confirmations, agent)
        answered = await _answer(agent, message, message.task_id, message.confirmations)
        return await _with_text(agent, message, message.task_id, answered) if message.text.strip() else answered
    if message.task_id is not None and message.answers_in_text:
        pending = await _open_questions(agent, message.task_id)
        answer = answer_in_text(message.text, pending)
        if answer is not None:
            return await _answer(agent, message, message.task_id, (answer,))
        if not message.extension and not message.parts and is_no_answer(message.text, pending):
            return SendResult(await agent.follow(message.task_id))
    return SendResult(await agent.prompt(_prompt(message)))


async def _answer(
    agent: AgentClient,
    message: SendMessage,
    task_id: str,
    confirmations: Sequence[ToolCallConfirmation],
    with_words: AnswersWithWords | None = None,
) -> SendResult:
    """Answer questions; the agent ``with_words`` takes the text of the message, too."""
    pending: Sequence[ToolCall] = ()
    if message.resolve_answers is not None:
        pending = (await agent.get(task_id, 0)).pending
        confirmations = message.resolve_answers(pending, confirmations)
    answered_by = message.answered_by or ANSWERED_BY
    if with_words is not None:
        turn = await with_words.answer_with(task_id, confirmations, _prompt(message), answered_by=answered_by)
    else:
        turn = await agent.answer(
            task_id,
            confirmations,
            answered_by=answered_by,
            context_id=message.context_id,
            message_id=message.message_id,
        )
    if pending:
        # The encoder needs the questions that were asked.
        turn = replace(turn, snapshot=replace(turn.snapshot, pending=tuple(pending)))
    return SendResult(turn, tuple(confirmations))


async def _with_text(agent: AgentClient, message: SendMessage, task_id: str, answered: SendResult) -> SendResult:
    """Send the text of a message whose answers were accepted; the events after the answers end where its own end."""
    turn = answered.turn
    await close(turn.deliveries)
    said = await agent.prompt(replace(_prompt(message), may_continue_completed=True, is_steering=True))
    await close(said.deliveries)
    followed = await agent.follow(task_id, turn.snapshot.seq)
    return replace(answered, turn=replace(turn, deliveries=followed.deliveries))


async def _open_questions(agent: AgentClient, task_id: str) -> Sequence[ToolCall]:
    snapshot = await agent.get(task_id, 0)
    return snapshot.pending if snapshot.state.is_waiting else ()


def _prompt(message: SendMessage) -> PromptMessage:
    return PromptMessage(
        text=message.text,
        message_id=message.message_id,
        task_id=message.task_id,
        context_id=message.context_id,
        settings=message.settings,
        may_continue_completed=message.may_continue_completed,
        requires_settings=message.requires_settings,
        new_task_id=message.new_task_id,
        parts=message.parts,
        metadata=message.metadata,
        extension=message.extension,
    )


async def follow(agent: AgentClient, operation: FollowTask) -> Turn:
    """Return the events of a task. For a slash command they begin with the first one: no client can follow earlier.

    Raises:
        TaskNotResumable: the task has ended, and only live events were requested.
    """
    if operation.after is not None:
        return await _followed(agent, operation, operation.after)
    turn = await _followed(agent, operation, None)
    snapshot = turn.snapshot
    is_command = snapshot.title.startswith("/") and await _is_command(agent, operation.task_id)
    if is_command or (operation.only_live and snapshot.state.is_terminal):
        await close(turn.deliveries)
    if is_command:
        return await _followed(agent, operation, 0)
    if operation.only_live and snapshot.state.is_terminal:
        raise TaskNotResumable(f"task {operation.task_id} is {snapshot.state}: it has no further events")
    return turn


async def _followed(agent: AgentClient, operation: FollowTask, after: int | None) -> Turn:
    if operation.to_end and isinstance(agent, LongFollower):
        return await agent.follow_to_end(operation.task_id, after)
    return await agent.follow(operation.task_id, after)


async def _is_command(agent: AgentClient, task_id: str) -> bool:
    """Return whether the first event of a task is a slash command; a title with a slash may also come from a prompt."""
    turn = await agent.follow(task_id, 0)
    try:
        first = await anext(aiter(turn.deliveries), None)
    finally:
        await close(turn.deliveries)
    return first is not None and isinstance(first.event, Command)


async def page_of_tasks(agent: AgentClient, operation: ListTasks) -> TaskPage:
    """Return a page of the tasks that match, most recently changed first; its token is the position of its last task.

    Raises:
        InvalidParamsError: the page token was not made by this server.
    """
    after = _place_of(operation.page_token) if operation.page_token else None
    query = TaskQuery(operation.limit + 1, operation.context_id, operation.state, operation.since, after)
    found = await agent.list_tasks(query)
    page, more = found.tasks[: operation.limit], found.tasks[operation.limit :]
    token = _token(page[-1]) if more else ""
    if operation.history_length or operation.with_artifacts:
        # One message at least: without the extension the last one is the artifact with the answer.
        page = [await agent.get(task.task_id, max(operation.history_length or 0, 1)) for task in page]
        if not operation.with_artifacts:
            page = [replace(task, artifacts=()) for task in page]
    return TaskPage(page, token, found.total, operation.limit, operation.with_artifacts)


async def close(deliveries: AsyncIterator[Delivery]) -> None:
    """Close deliveries that are not read to their end."""
    if isinstance(deliveries, AsyncGenerator):
        await cast("AsyncGenerator[Delivery, None]", deliveries).aclose()


def _token(task: TaskSnapshot) -> str:
    return f"{task.updated_at!r}:{task.task_id}"


def _place_of(token: str) -> TaskPlace:
    time, separator, task_id = token.partition(":")
    try:
        updated = float(time)
    except ValueError:
        updated = math.nan
    if not (separator and math.isfinite(updated)):
        raise InvalidParamsError("params.pageToken", f"expected the nextPageToken of a page, received {token[:80]!r}")
    return TaskPlace(updated, task_id)
