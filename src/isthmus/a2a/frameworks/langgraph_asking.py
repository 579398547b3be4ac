"""Asks a user what the interrupts of a graph want to know, and finds the answers.

Questions and answers are stored so that a process that goes on with the task knows what was asked after which message,
and which message was an answer: none of them answers two interrupts.
"""

# LangGraph's own types are partly unknown.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from langgraph.types import Interrupt, StateSnapshot

from isthmus.a2a.frameworks.langgraph_calls import CallNames
from isthmus.a2a.frameworks.langgraph_messages import open_calls
from isthmus.a2a.frameworks.langgraph_questions import Question, answer_in_words, answer_of, questions_of, words_of
from isthmus.a2a.frameworks.relay import Relay
from isthmus.a2a.frameworks.session_record import SessionRecord
from isthmus.a2a.frameworks.shown import jsonable
from isthmus.agent.calls.events import cancelled_call
from isthmus.agent.hosted import ask, decision, is_allowed
from isthmus.agent.session.session import Session
from isthmus.development_tool import ToolCall, ToolCallConfirmation, ToolCallStatus, ToolOutput
from isthmus.events import AgentMessage, Prompt, StateChange, TaskState, ToolCallUpdate
from isthmus.record import record

ASKED = "langgraph:asked:"
"""Beginning of the names of entries with the questions of a task and the message after which they were asked."""
ANSWER = "langgraph:answer:"
"""Beginning of the names of entries with the last message that was an answer, and the interrupt that it answers."""


@record
class Asked:
    """A question as it was asked; the call of its id may be one of the graph's tools, and may have begun."""

    call_id: str
    is_tools: bool = False
    has_begun: bool = False


class Asking:
    """The questions of a task's graph, and a user's last message."""

    def __init__(self, relay: Relay, session: Session, message: Prompt, kept: SessionRecord) -> None:
        self._relay = relay
        self._session = session
        self._message = message
        self._kept = kept
        self._names = CallNames(session, kept)
        entry = kept.entry(f"{ASKED}{session.task_id}")
        self._after: str | None = entry.get("message")
        self._asked: dict[str, list[Asked]] = {
            interrupt: [Asked(**item) for item in items] for interrupt, items in entry.get("interrupts", {}).items()
        }

    @property
    def answered_by(self) -> str | None:
        """Id of the last message that was an answer."""
        return self._answer.get("message")

    @property
    def _answer(self) -> Mapping[str, Any]:
        return self._kept.entry(f"{ANSWER}{self._session.task_id}")

    async def ask(self, at: StateSnapshot) -> None:
        """Ask what was not asked yet: all questions with options, otherwise the first one in words."""
        questions = {interrupt.id: questions_of(interrupt) for interrupt in at.interrupts}
        calls = list(open_calls(at.values.get("messages", ()))) if isinstance(at.values, dict) else []
        self._asked = {interrupt: self._asked_for(interrupt, items, calls) for interrupt, items in questions.items()}
        asked = {
            interrupt: [{"call_id": i.call_id, "is_tools": i.is_tools, "has_begun": i.has_begun} for i in items]
            for interrupt, items in self._asked.items()
        }
        entry = {"message": self._message.message_id, "interrupts": asked}
        self._kept.set(f"{ASKED}{self._session.task_id}", entry)
        await self._store()
        for interrupt, items in questions.items():
            for question, item in zip(items, self._asked[interrupt], strict=True):
                known = self._session.calls.get(item.call_id)
                if known is None or known.proposal is None:
                    event = ask(
                        item.call_id, question.tool, question.arguments, question.details, options=question.options
                    )
                    await self._relay.emit(event)
        if not self._session.calls.waiting:
            words = [words_of(interrupt) for interrupt in at.interrupts if not questions[interrupt.id]]
            await self._relay.emit(AgentMessage("", (words or [words_of(at.interrupts[0])])[0]))
            await self._relay.emit(StateChange(TaskState.INPUT_REQUIRED))

    async def answers(self, interrupts: Sequence[Interrupt[Any]]) -> dict[str, Any]:
        """Return what the graph receives for interrupts that the user has answered; none while a question waits."""
        if self._session.calls.waiting:
            return {}
        found: dict[str, Any] = {}
        for interrupt in interrupts:
            items = self._asked.get(interrupt.id, [])
            decided = [each for item in items if (each := decision(self._session, item.call_id)) is not None]
            if decided and len(decided) == len(items):
                found[interrupt.id] = answer_of(interrupt, decided)
                await self._close(questions_of(interrupt), items, decided)
        if (target := self._answered_in_words(interrupts, found)) is not None:
            found[target.id] = answer_in_words(target, self._message)
            answer = {"message": self._message.message_id, "interrupt": target.id}
            self._kept.set(f"{ANSWER}{self._session.task_id}", answer)
            await self._store()
        return found

    def _answered_in_words(
        self, interrupts: Sequence[Interrupt[Any]], decided: Mapping[str, Any]
    ) -> Interrupt[Any] | None:
        """Return the interrupt that the last message answers; None if it is not an answer."""
        if self.answered_by == self._message.message_id:  # the process may have ended before the graph got it
            return next((item for item in interrupts if item.id == self._answer["interrupt"]), None)
        if self._after in (None, self._message.message_id):
            return None
        candidates = [item for item in interrupts if item.id not in decided]
        in_words = [item for item in candidates if not questions_of(item)]
        return next(iter([*in_words, *candidates]), None)

    async def _close(
        self, questions: Sequence[Question], items: Sequence[Asked], answers: Sequence[ToolCallConfirmation]
    ) -> None:
        """End the calls that stand for questions, and the calls of tools that the user has rejected."""
        for question, item, answer in zip(questions, items, answers, strict=True):
            call = self._session.calls[item.call_id].call
            if call is None or call.status.is_final or item.has_begun:
                continue
            if question.values is None and not is_allowed(answer):
                await self._relay.emit(ToolCallUpdate(cancelled_call(call, "Rejected by the user")))
            elif not item.is_tools:
                chosen = next((each.name for each in question.options if each.id == answer.selected_option_id), "")
                await self._relay.emit(ToolCallUpdate(answered_call(call, chosen)))

    def _asked_for(self, interrupt: str, questions: Sequence[Question], calls: list[Mapping[str, Any]]) -> list[Asked]:
        """Return the questions of an interrupt as they were asked; new ones, if a message came instead of an answer."""
        before = self._asked.get(interrupt, [])
        known = [self._session.calls.get(item.call_id) for item in before]
        if len(before) == len(questions) and all(item is None or item.result is None for item in known):
            return before
        return [self._new(f"{interrupt}-{number}", item, calls) for number, item in enumerate(questions, start=1)]

    def _new(self, question_id: str, question: Question, calls: list[Mapping[str, Any]]) -> Asked:
        """Choose the id of a question: the id of the tool call that it is about, if there is one."""
        for call in calls:
            is_named = question.call_id == call["id"]
            is_alike = question.values is None and question.call_id is None and _is_alike(question, call)
            if is_named or is_alike:
                calls.remove(call)
                shown = self._names.shown(call["id"])
                known = self._session.calls.get(shown)
                has_begun = known is not None and known.call is not None and known.call.status is ToolCallStatus.PENDING
                is_free = known is not None and known.confirmation is None and known.result is None
                return Asked(shown if has_begun and is_free else self._names.name(call["id"]), True, has_begun)
        return Asked(self._names.name(question_id))

    async def _store(self) -> None:
        if (event := self._kept.take_changes()) is not None:
            await self._relay.emit(event)


def _is_alike(question: Question, call: Mapping[str, Any]) -> bool:
    return (call["name"], jsonable(call["args"])) == (question.tool, question.arguments)


def answered_call(call: ToolCall, chosen: str) -> ToolCall:
    """Return the call that stands for a question as answered."""
    output = ToolOutput(text=chosen)
    return replace(call, status=ToolCallStatus.SUCCEEDED, output=output, confirmation_request=None)
