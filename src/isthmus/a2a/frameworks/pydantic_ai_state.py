"""The messages and open questions of a pydantic-ai agent, kept in the AgentRecord of the session.

Each message is stored once, pictures included. A task continues the messages of the task that worked last in its
session, and has messages of its own from then on: a question of an earlier task is still answered there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from isthmus.a2a.frameworks.pydantic_ai_files import files_of
from isthmus.a2a.frameworks.session_record import SessionRecord
from isthmus.agent.session.session import Session
from isthmus.internal_events import AgentRecord
from isthmus.record import record

LAST = "pydantic-ai:last"
"""Entry with the id of the task that worked last."""
TASK = "pydantic-ai:task:"
"""Beginning of the names of the entries of tasks."""


@record
class DeferredCall:
    """A call that waits: for a permission, or for a result that the user gives in words (``wants_result``)."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    metadata: Mapping[str, Any]
    wants_result: bool = False


class RunState:
    """The state of the task of a session, as the last run of it left it.

    ``is_taken``: the messages have the user's last message. ``answer`` is set if the work on it has ended. ``results``
    are those that the user gave in words.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._record = SessionRecord(session)
        self._entry = f"{TASK}{session.task_id}"
        self._task_id = session.task_id
        self._names: dict[int, tuple[ModelMessage, str]] = {}
        self._message_id = session.message.message_id if session.message is not None else ""
        own: dict[str, Any] | None = self._record.get(self._entry)
        last = self._record.entry(LAST).get("task")
        kept = own if own is not None else self._record.entry(f"{TASK}{last}")
        values = [self._record.get(name) for name in kept.get("messages", ())]
        known = values[max((at + 1 for at, value in enumerate(values) if value is None), default=0) :]
        messages = ModelMessagesTypeAdapter.validate_python(known)
        self.messages: list[ModelMessage] = messages if len(known) == len(values) else from_prompt(messages)
        self.is_taken = own is not None and own["message_id"] == self._message_id
        self.questions = [DeferredCall(**item) for item in own["questions"]] if own is not None else []
        self.results: dict[str, Any] = dict(own["results"]) if own is not None else {}
        self._shown: dict[str, str] = dict(own["shown"]) if own is not None else {}
        self.answer: str | None = own["answer"] if own is not None and self.is_taken else None

    def save(
        self, messages: Sequence[ModelMessage], questions: Sequence[DeferredCall] = (), answer: str | None = None
    ) -> AgentRecord | None:
        """Return the event that stores these messages and questions; None if all is stored.

        ``answer`` is the final text of a run that has ended, empty if its answer is not a text.
        """
        self.messages, self.questions, self.is_taken = list(messages), list(questions), True
        self._record.set(
            self._entry,
            {
                "message_id": self._message_id,
                "messages": [self._name_of(message) for message in messages],
                "questions": [
                    {
                        "call_id": item.call_id,
                        "tool": item.tool,
                        "arguments": item.arguments,
                        "metadata": item.metadata,
                        "wants_result": item.wants_result,
                    }
                    for item in questions
                ],
                "results": self.results,
                "shown": self._shown,
                "answer": answer,
            },
        )
        self._record.set(LAST, {"task": self._task_id})
        return self._record.take_changes()

    def shown(self, call_id: str) -> str:
        """Return the id under which clients see a call."""
        return self._shown.get(call_id, call_id)

    def name(self, call_id: str) -> None:
        """Choose the id under which clients see a new call: its own, unless the task has used that for another one."""
        shown, number = call_id, 1
        while shown in self._session.calls:
            number += 1
            shown = f"{call_id}.{number}"
        self._shown.pop(call_id, None)
        if shown != call_id:
            self._shown[call_id] = shown

    def _name_of(self, message: ModelMessage) -> str:
        known = self._names.get(id(message))
        # The newest message may still change.
        if known is not None and known[0] is message and message is not self.messages[-1]:
            return known[1]
        (value,) = ModelMessagesTypeAdapter.dump_python([_without_own_files(message)], mode="json")
        name = self._record.put(value)
        self._names[id(message)] = (message, name)
        return name


def _without_own_files(message: ModelMessage) -> ModelMessage:
    """Return the message without the files in the metadata of results: they are artifacts, which the task keeps."""
    if not isinstance(message, ModelRequest) or not any(isinstance(part, ToolReturnPart) for part in message.parts):
        return message
    parts = [
        replace(part, metadata=None) if isinstance(part, ToolReturnPart) and any(files_of(part.metadata)) else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def from_prompt(messages: list[ModelMessage]) -> list[ModelMessage]:
    """Return the messages from the first prompt of a user on: the task with those before was deleted."""
    for at, message in enumerate(messages):
        if isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts):
            return messages[at:]
    return []


def open_calls(messages: Sequence[ModelMessage]) -> Sequence[ToolCallPart]:
    """Return the calls of the last response that have no result."""
    answered: set[str] = set()
    for message in reversed(messages):
        if isinstance(message, ModelResponse):
            return [part for part in message.tool_calls if part.tool_call_id not in answered]
        for part in message.parts:
            if isinstance(part, ToolReturnPart):
                answered.add(part.tool_call_id)
    return []


def closed(messages: Sequence[ModelMessage], results: Mapping[str, str], otherwise: str) -> list[ModelMessage]:
    """Return the messages with a result for each call that has none, so that a new prompt can follow.

    ``results`` are those that are known, by call id.
    """
    parts = [
        ToolReturnPart(part.tool_name, results.get(part.tool_call_id, otherwise), part.tool_call_id)
        for part in open_calls(messages)
    ]
    return [*messages, ModelRequest(parts)] if parts else list(messages)
