"""Operations on an agent: the one way in which every protocol version and dialect of the server meets a request.

Serves any :class:`~isthmus.client.AgentClient`. Deliberately not here: JSON, HTTP and the shape of answers.
"""

import math
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import cast

from isthmus.a2a.coder_agent.requests import chosen_options
from isthmus.a2a.protocol.jsonrpc import InvalidParamsError
from isthmus.a2a.protocol.operations import FollowTask, ListTasks, SendMessage
from isthmus.a2a.protocol.text_questions import answer_in_text
from isthmus.a2a.wire import TaskPage
from isthmus.client import (
    AgentClient,
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

ANSWERED_BY = "A2A client"
"""Who answered, when the client does not say where its user sits."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A stretch of a task's life that a message began, and the calls that the message answered."""

    turn: Turn
    answered: frozenset[str] = frozenset()


async def send(agent: AgentClient, message: SendMessage) -> Opened:
    """Start or continue a task, or answer its questions.

    Raises:
        TaskError: the agent refuses, e.g. because it has not the workspace; no task is made then.
    """
    if message.confirmations and message.task_id is not None:
        return await _answer(agent, message, message.task_id, message.confirmations)
    if message.task_id is not None and message.answers_in_text:
        answer = await _plain_answer(agent, message.task_id, message.text)
        if answer is not None:
            return await _answer(agent, message, message.task_id, (answer,))
    return Opened(await agent.prompt(_prompt(message)))


async def _answer(
    agent: AgentClient, message: SendMessage, task_id: str, confirmations: Sequence[ToolCallConfirmation]
) -> Opened:
    pending: Sequence[ToolCall] = ()
    if message.options_are_outcomes:
        pending = (await agent.get(task_id, 0)).pending
        confirmations = chosen_options(pending, confirmations)
    turn = await agent.answer(
        task_id,
        confirmations,
        answered_by=message.answered_by or ANSWERED_BY,
        context_id=message.context_id,
        message_id=message.message_id,
    )
    answered = frozenset(confirmation.tool_call_id for confirmation in confirmations)
    if pending:
        # The encoder is to know what was asked.
        turn = replace(turn, snapshot=replace(turn.snapshot, pending=tuple(pending)))
    return Opened(turn, answered)


async def _plain_answer(agent: AgentClient, task_id: str, text: str) -> ToolCallConfirmation | None:
    snapshot = await agent.get(task_id, 0)
    return answer_in_text(text, snapshot.pending) if snapshot.state.is_waiting else None


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
    )


async def follow(agent: AgentClient, operation: FollowTask) -> Turn:
    """What happens to a task. A slash command is told from its first event, as nobody could be there before.

    Raises:
        TaskNotResumable: the task has ended and only live events are wanted.
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
        raise TaskNotResumable(f"task {operation.task_id} is {snapshot.state}: nothing happens to it any more")
    return turn


async def _followed(agent: AgentClient, operation: FollowTask, after: int | None) -> Turn:
    if operation.to_end and isinstance(agent, LongFollower):
        return await agent.follow_to_end(operation.task_id, after)
    return await agent.follow(operation.task_id, after)


async def _is_command(agent: AgentClient, task_id: str) -> bool:
    """Return whether the task runs a slash command, as its first event tells; a prompt may begin with a slash, too."""
    turn = await agent.follow(task_id, 0)
    try:
        first = await anext(aiter(turn.deliveries), None)
    finally:
        await close(turn.deliveries)
    return first is not None and isinstance(first.event, Command)


async def page_of_tasks(agent: AgentClient, operation: ListTasks) -> TaskPage:
    """Return the tasks that fit, most recently changed first; a page token is the place of the last one shown.

    Raises:
        InvalidParamsError: the page token is none of ours.
    """
    after = _place_of(operation.page_token) if operation.page_token else None
    query = TaskQuery(operation.limit + 1, operation.context_id, operation.state, operation.since, after)
    found = await agent.list_tasks(query)
    page, more = found.tasks[: operation.limit], found.tasks[operation.limit :]
    token = _token(page[-1]) if more else ""
    if operation.history_length or operation.with_artifacts:
        page = [await agent.get(task.task_id, operation.history_length or 0) for task in page]
        if not operation.with_artifacts:
            page = [replace(task, artifacts=()) for task in page]
    return TaskPage(page, token, found.total, operation.limit)


async def close(deliveries: AsyncIterator[Delivery]) -> None:
    """Let go of deliveries that are not wanted to their end."""
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
