"""The questions that wait for users, as they are shown: calls that are asked together are one. Sans-I/O."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from isthmus.development_tool import ToolCall
from isthmus.engine.followers.open_questions import QuestionChange, QuestionOpened
from isthmus.record import record
from isthmus.web.push.pushed_facts import group_of, question_digest
from isthmus.web.push.sent_questions import question_key


@record
class WaitingQuestion:
    """A question of a user's task: its calls, which are asked together, in their order.

    ``shown`` is the digest of the first one (see ``question_digest``).
    """

    user: str
    task_id: str
    workspace: str
    calls: tuple[ToolCall, ...]
    shown: str

    @property
    def call_id(self) -> str:
        """The id of its first call."""
        return self.calls[0].tool_call_id

    @property
    def key(self) -> str:
        """The key of the question, as in the address of its page."""
        return question_key(self.task_id, self.call_id)


@record
class EndedQuestion:
    """A question that waits no more; ``by`` is the surface or user that answered, empty if nobody did."""

    question: WaitingQuestion
    by: str


@dataclass(slots=True)
class WaitingQuestions:
    """All questions that wait. A change counts once :meth:`take` is called, so that changes of one moment are one."""

    _calls: dict[str, dict[str, QuestionOpened]] = field(default_factory=dict[str, dict[str, QuestionOpened]])
    """The open calls of each task by their ids."""
    _known: dict[str, dict[str, WaitingQuestion]] = field(default_factory=dict[str, dict[str, WaitingQuestion]])
    """The questions of each task that were taken, by their groups."""
    _answerers: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    _changed: set[str] = field(default_factory=set[str])

    def note(self, change: QuestionChange) -> None:
        """Take a change of the open calls."""
        self._changed.add(change.task_id)
        calls = self._calls.setdefault(change.task_id, {})
        if isinstance(change, QuestionOpened):
            calls[change.tool_call.tool_call_id] = change
        else:
            calls.pop(change.tool_call_id, None)
            self._answerers.setdefault(change.task_id, {})[change.tool_call_id] = change.answered_by

    def take(self) -> tuple[Sequence[WaitingQuestion], Sequence[EndedQuestion]]:
        """Return the questions that began to wait since the last call, and those that ended."""
        began: list[WaitingQuestion] = []
        ended: list[EndedQuestion] = []
        for task_id in self._changed:
            now = {group: _question(calls) for group, calls in self._groups(task_id).items()}
            known, answerers = self._known.get(task_id, {}), self._answerers.pop(task_id, {})
            for group, question in known.items():
                if not _goes_on(question, now.get(group)):
                    ids = [call.tool_call_id for call in question.calls if call.tool_call_id in answerers]
                    ended.append(EndedQuestion(question, answerers[ids[-1]] if ids else ""))
            for group, question in now.items():
                if _goes_on(known.get(group), question):
                    now[group] = known[group]  # its key stays when its first call is answered
                else:
                    began.append(question)
            self._known[task_id] = now
            if not now:
                del self._known[task_id], self._calls[task_id]
        self._changed.clear()
        return began, ended

    def waits(self, question: WaitingQuestion) -> bool:
        """Return whether a question still waits as it was asked."""
        return any(each == question for each in self._known.get(question.task_id, {}).values())

    def count(self, user: str) -> int:
        """Return the number of questions that wait for a user."""
        return sum(question.user == user for known in self._known.values() for question in known.values())

    @property
    def all(self) -> Sequence[WaitingQuestion]:
        """All questions that wait."""
        return [question for known in self._known.values() for question in known.values()]

    def _groups(self, task_id: str) -> dict[str, list[QuestionOpened]]:
        groups: dict[str, list[QuestionOpened]] = {}
        for opened in self._calls[task_id].values():
            groups.setdefault(group_of(opened.tool_call), []).append(opened)
        return groups


def _question(opened: Sequence[QuestionOpened]) -> WaitingQuestion:
    first, calls = opened[0], tuple(each.tool_call for each in opened)
    return WaitingQuestion(first.user, first.task_id, first.workspace, calls, question_digest(calls[0]))


def _goes_on(before: WaitingQuestion | None, now: WaitingQuestion | None) -> bool:
    """Return whether a question is an earlier one, of which a part may have been answered."""
    if before is None or now is None:
        return False
    asked = {call.tool_call_id: question_digest(call) for call in before.calls}
    return all(asked.get(call.tool_call_id) in (None, question_digest(call)) for call in now.calls) and any(
        call.tool_call_id in asked for call in now.calls
    )
