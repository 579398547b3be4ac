"""The questions of a task that a call has begun, as the call's own task asks them. Pure.

Each has a call of its own, ``<call>?<id of the other task's call>``, so that an answer finds its way back, also in
another process. The model does not see it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from isthmus.agent.approval.grants import CANCEL
from isthmus.agent.calls.events import CANCELLED_CATEGORY
from isthmus.agent.session.open_call import OpenCall
from isthmus.agent.session.session import Session
from isthmus.development_tool import ErrorDetails, ToolCall, ToolCallConfirmation, ToolCallStatus, ToolOutput
from isthmus.events import AgentEvent, ToolCallUpdate
from isthmus.internal_events import ToolResultRecorded
from isthmus.questions import QUESTION_MARK

ANSWERED_ELSEWHERE = "It is not asked any more: it was answered in the subagent's own task, or that has ended"
"""Reason of a question that ends without an answer here."""


_AGAIN = "#"
"""Mark before the number of a question that is asked again, after it was withdrawn."""
_ESCAPES = {"%": "%25", QUESTION_MARK: "%3F", _AGAIN: "%23"}


def relayed_id(session: Session, call_id: str, asked: str) -> str:
    """Return the id under which ``call_id`` asks the question of the other task's call ``asked``.

    The id of a question that was withdrawn is not used again.
    """
    base = call_id + QUESTION_MARK + "".join(_ESCAPES.get(character, character) for character in asked)
    identity, number = base, 1
    while (known := session.calls.get(identity)) is not None and known.result is not None:
        number += 1
        identity = f"{base}{_AGAIN}{number}"
    return identity


def asked_id(relayed: str) -> str:
    """Return the id of the other task's call whose question is asked under an id of :func:`relayed_id`."""
    asked = relayed.rpartition(QUESTION_MARK)[2].partition(_AGAIN)[0]
    for character, escape in reversed(_ESCAPES.items()):
        asked = asked.replace(escape, character)
    return asked


def answers_of(session: Session, call_id: str) -> Mapping[str, ToolCallConfirmation]:
    """Return the answers that were given here, by the ids of the other task's calls.

    Those that were passed on before are among them: the process may have ended before they arrived.
    """
    answers: dict[str, ToolCallConfirmation] = {}
    for item in session.calls.questions_of(call_id):
        if item.confirmation is not None:
            asked = asked_id(item.request.id)
            answers[asked] = replace(item.confirmation, tool_call_id=asked)
    return answers


def answered_events(session: Session, call_id: str) -> Sequence[AgentEvent]:
    """Return the events that end the questions which were answered here."""
    return [
        event
        for item in session.calls.questions_of(call_id)
        if item.result is None and item.confirmation is not None
        for event in _end(item, item.confirmation)
    ]


def relay_events(session: Session, call: ToolCall, questions: Sequence[ToolCall]) -> Sequence[AgentEvent]:
    """Return the events after which exactly these questions of the other task are open here."""
    wanted = {relayed_id(session, call.tool_call_id, asked.tool_call_id): asked for asked in questions}
    events = [*withdrawal_events(session, call.tool_call_id, [asked.tool_call_id for asked in questions])]
    for identity, asked in wanted.items():
        known = session.calls.get(identity)
        if known is None or not known.is_waiting:
            told = replace(asked, tool_call_id=identity, description=_description(call, asked))
            if (request := told.confirmation_request) is not None:  # its own agent's words, not those of this one
                told = replace(told, confirmation_request=replace(request, wants=request.wants or ""))
            events.append(ToolCallUpdate(told))
    return events


def withdrawal_events(session: Session, call_id: str, asked: Collection[str] = ()) -> Iterator[AgentEvent]:
    """Yield the events that end the open questions of a call, but for those of the other task's calls ``asked``."""
    for item in session.calls.questions_of(call_id):
        if item.call is not None and item.result is None and asked_id(item.request.id) not in asked:
            yield from _end(item, item.confirmation)


def _end(item: OpenCall, answer: ToolCallConfirmation | None) -> Iterator[AgentEvent]:
    if item.call is None:
        return
    at_rest = replace(item.call, confirmation_request=None)
    request = item.call.confirmation_request
    options = request.options if request is not None else ()
    if answer is not None and answer.selected_option_id != CANCEL:
        name = next((option.name for option in options if option.id == answer.selected_option_id), "")
        output = ToolOutput(text=f"Answered: {name or answer.selected_option_id}")
        yield ToolCallUpdate(replace(at_rest, status=ToolCallStatus.SUCCEEDED, output=output))
        yield ToolResultRecorded(item.request.id, "Answered")
        return
    reason = ANSWERED_ELSEWHERE if answer is None else "Rejected by the user"
    error = ErrorDetails(reason, CANCELLED_CATEGORY)
    yield ToolCallUpdate(replace(at_rest, status=ToolCallStatus.CANCELLED, error=error))
    yield ToolResultRecorded(item.request.id, reason, is_error=True)


def _description(call: ToolCall, asked: ToolCall) -> str:
    agent = call.input_parameters.get("agent_name")
    return f"{agent if isinstance(agent, str) else call.tool_name}: {asked.description or asked.tool_name}"
