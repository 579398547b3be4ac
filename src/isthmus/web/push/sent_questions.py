"""Questions that devices were told of by notifications, with the tokens that answer them. Sans-I/O.

A token answers one question with one option, from one device, once. It is in the encrypted message alone; here is its
SHA-256, so that a server that starts again knows it, and a copy of the file answers nothing.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from typing import Any

from isthmus.encoding import json_text
from isthmus.encoding.codec import from_json, to_json
from isthmus.encoding.json_text import JsonError
from isthmus.errors import DecodeError, IsthmusError
from isthmus.record import record

TOKEN_SECONDS = 12 * 3600.0
"""Time in seconds for which a notification can be answered."""
KEPT_SECONDS = 24 * 3600.0
"""Time in seconds for which it is known how a question has ended."""
MAXIMUM_TOLD = 500
"""Maximum number of questions that are kept; the oldest are forgotten first."""
_VERSION = 1


class SentQuestionsError(IsthmusError):
    """Raised when the questions that devices were told of cannot be read or changed; they were not changed."""


@record
class AnswerToken:
    """A token that answers a question with the option ``option``, from the device with the id ``device``.

    ``digest`` is the SHA-256 of the token, ``expires`` a Unix time in seconds, ``act`` the button that has it.
    """

    digest: str
    device: str
    act: str
    option: str
    expires: float


@record
class AnswerRecord:
    """The end of a question: the surface or device that answered it (empty if nobody did), and when, in Unix seconds.

    ``act`` and ``device`` are of an answer by a notification; empty for others.
    """

    by: str
    at: float
    act: str = ""
    device: str = ""


@record
class SentQuestion:
    """A question of a user's task. ``shown`` is the digest of all that it asked (see ``question_digest``).

    ``told`` has the ids of the devices whose push services took the message. ``at`` is a Unix time in seconds.
    """

    user: str
    task_id: str
    call_id: str
    shown: str
    at: float
    told: tuple[str, ...] = ()
    tokens: tuple[AnswerToken, ...] = ()
    outcome: AnswerRecord | None = None

    @property
    def key(self) -> str:
        """The key of the question, as in the address of its page."""
        return question_key(self.task_id, self.call_id)


def question_key(task_id: str, call_id: str) -> str:
    """Return the key of a question in the page."""
    return f"{task_id}/{call_id}"


def token_digest(token: str) -> str:
    """Return the digest by which a token is kept."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def new_token() -> str:
    """Return a new token: 256 random bits."""
    return secrets.token_urlsafe(32)


@record
class SentTable:
    """All questions that devices were told of, by their keys, the oldest first."""

    questions: Mapping[str, SentQuestion] = field(default_factory=dict[str, SentQuestion])

    @classmethod
    def decode(cls, data: bytes) -> "SentTable":
        """Return the table in the bytes of its file.

        Raises:
            SentQuestionsError: they are not a table of this version.
        """
        try:
            value: Any = json_text.decode(data)
            if value["version"] != _VERSION:
                raise SentQuestionsError(f"expected version {_VERSION}, found {value['version']!r:.100}")
            questions = [from_json(SentQuestion, item) for item in value["questions"]]
        except (JsonError, ValueError, KeyError, TypeError, DecodeError) as error:
            raise SentQuestionsError(f"expected a table of questions: {error!s:.1000}") from error
        return cls({question.key: question for question in questions})

    def encode(self) -> bytes:
        """Return the bytes of the table's file."""
        questions = [to_json(question) for question in self.questions.values()]
        return json.dumps({"version": _VERSION, "questions": questions}).encode() + b"\n"

    def with_question(self, question: SentQuestion, now: float) -> "SentTable":
        """Return the table with a question in place of an earlier one with its key, and without those that are old."""
        others = [each for each in self.questions.values() if each.key != question.key and not _is_old(each, now)]
        return SentTable({each.key: each for each in [*others[-(MAXIMUM_TOLD - 1) :], question]})

    def changed(self, key: str, shown: str, change: Callable[[SentQuestion], SentQuestion]) -> "SentTable":
        """Return the table with a question changed; the same table if it does not have the question any more."""
        known = self.find_question(key, shown)
        return self if known is None else SentTable({**self.questions, key: change(known)})

    def find_question(self, key: str, shown: str) -> SentQuestion | None:
        """Return a question as it was shown; None if no device was told of it so."""
        known = self.questions.get(key)
        return known if known is not None and known.shown == shown else None

    def with_told(self, key: str, shown: str, device: str) -> "SentTable":
        """Return the table with a device that was told of a question."""
        return self.changed(key, shown, lambda known: replace(known, told=tuple(dict.fromkeys((*known.told, device)))))

    def with_outcome(self, key: str, shown: str, outcome: AnswerRecord) -> "SentTable":
        """Return the table with the end of a question; the first one stays."""
        return self.changed(
            key, shown, lambda known: known if known.outcome is not None else replace(known, outcome=outcome)
        )

    def find(self, token: str) -> tuple[SentQuestion, AnswerToken] | None:
        """Return a token with its question; None for an unknown one."""
        digest = token_digest(token)
        for question in self.questions.values():
            for known in question.tokens:
                if known.digest == digest:
                    return question, known
        return None

    def of_task(self, task_id: str, call_ids: Iterable[str]) -> SentQuestion | None:
        """Return the question of a task about one of these calls, the newest; None if no device was told of one."""
        keys = [question_key(task_id, call_id) for call_id in call_ids]
        found = [question for key in keys if (question := self.questions.get(key)) is not None]
        return max(found, key=lambda question: question.at, default=None)


def _is_old(question: SentQuestion, now: float) -> bool:
    return question.outcome is not None and now - question.outcome.at > KEPT_SECONDS
