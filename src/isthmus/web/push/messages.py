"""Texts of the messages that a page's service worker shows as notifications: facts as JSON, which it puts in words.

Pure.
"""

import base64
from collections.abc import Mapping
from hashlib import sha256
from typing import Any

from isthmus.encoding.codec import to_json
from isthmus.encoding.json_text import encode
from isthmus.web.push.pushed_facts import PushedFacts
from isthmus.web.push.sent_questions import AnswerRecord

LONGEST_KEY = 400
"""Maximum number of characters of a question's key in a message; one with a longer key leads to the inbox."""
MAXIMUM_BYTES = 3_000
"""Maximum size of a message in bytes; push services take 4,096 with its encryption."""
SUMMARY_TOPIC = "questions"
"""Topic of the messages that many questions wait."""


def topic_of(key: str) -> str:
    """Return the topic of the messages about a question: a push service keeps the last one of each."""
    return base64.urlsafe_b64encode(sha256(key.encode("utf-8", "surrogatepass")).digest())[:32].decode()


def question_text(
    key: str, facts: PushedFacts, about: Mapping[str, Any], answers: Mapping[str, str], language: str
) -> bytes:
    """Return the message that a question waits.

    ``about`` has the names of the agent and the session, the time and the number of questions; ``answers`` the tokens
    of the buttons by their acts.
    """
    message: dict[str, Any] = {"kind": "question", "key": _key(key), **about, "about": to_json(facts)}
    return _text({**message, "answers": dict(answers), "language": language}, ("session", "about"))


def summary_text(waiting: int, about: Mapping[str, Any], language: str) -> bytes:
    """Return the message that many questions wait."""
    return _text({"kind": "many", "waiting": waiting, **about, "language": language}, ())


def ended_text(key: str, facts: PushedFacts, outcome: AnswerRecord, about: Mapping[str, Any], language: str) -> bytes:
    """Return the message that a question waits no more; ``about`` is as in :func:`question_text`."""
    message: dict[str, Any] = {"kind": "ended", "key": _key(key), **about, "about": to_json(facts)}
    return _text({**message, "by": outcome.by, "at": outcome.at, "act": outcome.act, "language": language}, ("about",))


def _key(key: str) -> str:
    return key if len(key) <= LONGEST_KEY else ""


def _text(message: dict[str, Any], spare: tuple[str, ...]) -> bytes:
    """Return a message; what is spare is left out while it is too long, and nothing can be answered then."""
    text = encode(message)
    for name in spare:
        if len(text) > MAXIMUM_BYTES:
            message = {**message, name: None, "answers": {}}
            text = encode(message)
    return text
