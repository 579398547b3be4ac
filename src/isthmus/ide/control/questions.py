"""Yes-or-no questions to the user: a state machine for each, and the table of the open questions.

No I/O and no clock: the caller asks in all places and passes the time. The first answer wins, from any place; later
answers change nothing. No answer in time is a no. Reviews of edits are in :mod:`isthmus.ide.reviews.review`.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import field, replace
from typing import TypeAlias, assert_never

from isthmus.errors import IsthmusError
from isthmus.ide.editor import Consent
from isthmus.record import record

MAXIMUM_QUESTIONS = 20
PATIENCE_SECONDS = 600.0
"""Time in seconds for which a question waits for an answer."""
PERMISSION_SECONDS = 24 * 3600.0
"""The same for a question that its agent asks in its own terminal at the same time."""
REMEMBERED_IDS = 1000
"""Number of recent ids that are not reused, so that a late answer does not match a newer question."""


class TooManyQuestionsError(IsthmusError):
    """Too many questions are waiting; the text can be sent to the client."""


@record
class Unanswered:
    """Waiting for an answer."""


@record
class Answered:
    """Answered by the user with yes or no; closing the question is a no. ``reason`` has their words about a no."""

    consent: Consent
    reason: str = ""


@record
class Cancelled:
    """Withdrawn, because the client no longer needs an answer."""


@record
class TimedOut:
    """Expired without an answer."""


QuestionState: TypeAlias = Unanswered | Answered | Cancelled | TimedOut


@record
class ClientQuestion:
    """A client's request for permission.

    ``id`` is short, because users type it, and not reused for the next :data:`REMEMBERED_IDS` questions. ``client`` is
    the client's name, ``title`` one line, ``text`` the details in any length. ``deadline`` is in seconds of the
    caller's clock, ``asked`` the Unix time in seconds of the request. ``is_permission``: the agent asks for one step,
    in its own terminal too; so there is no yes for the session, and words about a no reach the agent.
    """

    id: str
    client: str
    title: str
    text: str
    deadline: float
    state: QuestionState = field(default_factory=Unanswered)
    asked: float = field(default=0.0, compare=False)
    is_permission: bool = False

    @property
    def is_open(self) -> bool:
        """Whether an answer still counts."""
        return isinstance(self.state, Unanswered)

    @property
    def is_allowed(self) -> bool:
        """Whether the user said yes."""
        match self.state:
            case Answered(consent, _):
                return consent.is_yes
            case Unanswered() | Cancelled() | TimedOut():
                return False
            case _:
                assert_never(self.state)


class QuestionTable:
    """Table of the open questions, oldest first.

    ``new_id`` must be able to return many more ids than are remembered; used ids are skipped. Methods that end
    questions return the ended ones. ``changed`` is called after each change.
    """

    def __init__(self, new_id: Callable[[], str], changed: Callable[[], None] = lambda: None) -> None:
        self._changed = changed
        self._new_id = new_id
        self._used: deque[str] = deque(maxlen=REMEMBERED_IDS)
        self._open: dict[str, ClientQuestion] = {}

    def __len__(self) -> int:
        return len(self._open)

    def all(self) -> tuple[ClientQuestion, ...]:
        """Return the open questions."""
        return tuple(self._open.values())

    def get(self, question_id: str) -> ClientQuestion | None:
        """Return an open question, or None."""
        return self._open.get(question_id)

    def ask(
        self,
        client: str,
        title: str,
        text: str,
        now: float,
        asked: float = 0.0,
        *,
        is_permission: bool = False,
        patience: float = PATIENCE_SECONDS,
    ) -> ClientQuestion:
        """Add a question that waits for ``patience`` seconds; ``asked`` is the Unix time in seconds.

        Raises:
            TooManyQuestionsError: 20 questions are waiting.
        """
        if len(self._open) >= MAXIMUM_QUESTIONS:
            raise TooManyQuestionsError(f"{MAXIMUM_QUESTIONS} questions wait for the user already; ask again later")
        while (question_id := self._new_id()) in self._used or question_id in self._open:
            pass
        self._used.append(question_id)
        question = ClientQuestion(
            question_id, client, title, text, now + patience, asked=asked, is_permission=is_permission
        )
        self._open[question.id] = question
        self._changed()
        return question

    def answer(self, question_id: str, consent: Consent, reason: str = "") -> ClientQuestion | None:
        """Record the user's answer."""
        return self._end(question_id, Answered(consent, reason))

    def cancel(self, question_id: str) -> ClientQuestion | None:
        """Withdraw a question, because its caller no longer waits for the answer."""
        return self._end(question_id, Cancelled())

    def expire(self, now: float) -> tuple[ClientQuestion, ...]:
        """End the questions whose time has passed."""
        late = [question.id for question in self._open.values() if question.deadline <= now]
        return tuple(ended for name in late if (ended := self._end(name, TimedOut())) is not None)

    def _end(self, question_id: str, state: QuestionState) -> ClientQuestion | None:
        question = self._open.pop(question_id, None)
        if question is not None:
            self._changed()
        return replace(question, state=state) if question is not None else None
