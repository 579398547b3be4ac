"""Sends a message to an agent for one request, and notes for the logs which task it went to and what it answered."""

from collections.abc import Sequence
from contextlib import suppress

from isthmus.a2a.protocol.operations import SendMessage
from isthmus.a2a.server.logs.access_log import AnswerNote, RequestNote
from isthmus.a2a.service import SendResult, send
from isthmus.a2a.wire import Caller
from isthmus.client import AgentClient, TaskError
from isthmus.development_tool import ToolCall


async def send_noted(caller: Caller, message: SendMessage, note: RequestNote) -> SendResult:
    """Send a message as :func:`isthmus.a2a.service.send` does; the request is in the audit log when it is accepted.

    Raises:
        LimitReached: the user may begin no more work for now; nothing was changed.
        TaskError: the agent refuses the message.
    """
    await caller.check_quota()
    pending = await _pending(caller.agent, message) if note.is_audited else ()
    sent = await send(caller.agent, message)
    tools = {call.tool_call_id: call.tool_name for call in pending}
    note.task_id, note.status = sent.turn.task_id, 200  # whatever becomes of the answer
    note.answers = tuple(
        AnswerNote(answer.tool_call_id, tools.get(answer.tool_call_id, ""), answer.selected_option_id)
        for answer in sent.answers
    )
    note.record()
    return sent


async def _pending(agent: AgentClient, message: SendMessage) -> Sequence[ToolCall]:
    """Return the open questions of the task that a message may answer: after the answer they are gone."""
    if message.task_id is None:
        return ()
    with suppress(TaskError):  # the message will be refused in the same way
        return (await agent.get(message.task_id, 0)).pending
    return ()
