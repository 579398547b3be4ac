"""The table of questions: each is answered once, and everything but a yes in time is a no."""

from itertools import count

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from isthmus.ide.control.questions import (
    MAXIMUM_QUESTIONS,
    PATIENCE_SECONDS,
    REMEMBERED_IDS,
    Answered,
    Cancelled,
    ClientQuestion,
    QuestionTable,
    TimedOut,
    TooManyQuestionsError,
    Unanswered,
)
from isthmus.ide.editor import Consent


class QuestionsAreAnsweredOnce(RuleBasedStateMachine):
    """A state machine with any order of questions, answers, cancellations and passing time; a dict is the model."""

    asked = Bundle("asked")

    def __init__(self) -> None:
        super().__init__()
        numbers = count()
        self.table = QuestionTable(lambda: str(next(numbers) // 2))  # every id is offered twice
        self.now = 0.0
        self.open: dict[str, ClientQuestion] = {}
        self.seen: set[str] = set()

    @rule(target=asked)
    def ask(self) -> str:
        try:
            question = self.table.ask("An agent", "May I?", "text", self.now)
        except TooManyQuestionsError:
            assert len(self.open) == MAXIMUM_QUESTIONS
            return ""
        assert question.id not in self.seen
        assert question.state == Unanswered()
        self.seen.add(question.id)
        self.open[question.id] = question
        return question.id

    @rule(question_id=asked, yes=st.booleans())
    def answer(self, question_id: str, yes: bool) -> None:
        ended = self.table.answer(question_id, Consent.of(yes=yes))
        was_open = self.open.pop(question_id, None)
        assert (ended is None) == (was_open is None)
        if ended is not None:
            assert ended.state == Answered(Consent.of(yes=yes))
            assert ended.is_allowed is yes

    @rule(question_id=asked)
    def cancel(self, question_id: str) -> None:
        ended = self.table.cancel(question_id)
        was_open = self.open.pop(question_id, None)
        assert (ended is None) == (was_open is None)
        if ended is not None:
            assert ended.state == Cancelled()
            assert not ended.is_allowed

    @rule(seconds=st.floats(0, 2 * PATIENCE_SECONDS))
    def pass_time(self, seconds: float) -> None:
        self.now += seconds
        late = {name for name, question in self.open.items() if question.deadline <= self.now}
        ended = self.table.expire(self.now)
        assert {question.id for question in ended} == late
        assert all(question.state == TimedOut() and not question.is_allowed for question in ended)
        for name in late:
            del self.open[name]

    @invariant()
    def the_open_ones_are_those_that_nobody_ended(self) -> None:
        assert self.table.all() == tuple(self.open.values())
        assert all(question.is_open and not question.is_allowed for question in self.table.all())
        assert all(self.table.get(name) == question for name, question in self.open.items())


TestQuestionsAreAnsweredOnce = pytest.mark.slow(QuestionsAreAnsweredOnce.TestCase)
TestQuestionsAreAnsweredOnce.settings = settings(max_examples=50, stateful_step_count=40, deadline=None)


def test_a_question_too_many_is_refused_with_the_number() -> None:
    numbers = count()
    table = QuestionTable(lambda: str(next(numbers)))
    for _ in range(MAXIMUM_QUESTIONS):
        table.ask("An agent", "May I?", "", 0.0)
    with pytest.raises(TooManyQuestionsError, match=str(MAXIMUM_QUESTIONS)):
        table.ask("An agent", "May I?", "", 0.0)
    assert len(table) == MAXIMUM_QUESTIONS


def test_ids_never_run_out_however_many_questions_are_asked_and_taken_back() -> None:
    numbers = count()
    table = QuestionTable(lambda: str(next(numbers) % (REMEMBERED_IDS + MAXIMUM_QUESTIONS)))
    for _ in range(3 * REMEMBERED_IDS):
        table.cancel(table.ask("An agent", "May I?", "", 0.0).id)
    waiting = [table.ask("An agent", "May I?", "", 0.0).id for _ in range(MAXIMUM_QUESTIONS)]
    assert len(set(waiting)) == len(table) == MAXIMUM_QUESTIONS
