"""Search for words in what is shown of sessions, and in the beginnings of their prompts. No I/O.

Words are matched here and not in SQL, which knows no case beyond ASCII.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

# A value in the JSON of an event has no quote before its end, so that this is found only as the name of a member.
_TEXT: Final = re.compile(r'"text":"((?:[^"\\]+|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*)')


class WordMatcher:
    """The words of a search over sessions."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = [word.casefold() for word in words]

    def fits(self, shown: str) -> bool:
        """Return whether all words are in what is shown of a session."""
        folded = shown.casefold()
        return all(word in folded for word in self._words)

    def found_in(self, shown: str, bodies: Sequence[str]) -> str | None:
        """Return the first prompt with a word that is not in ``shown``, empty if all are; None if a word is nowhere.

        ``bodies`` are the beginnings of the prompts' events as JSON.
        """
        folded = shown.casefold()
        missing = [word for word in self._words if word not in folded]
        if not missing:
            return ""
        first: str | None = None
        for body in bodies:
            plain = (
                body.casefold()
            )  # most prompts are passed over by this; it takes a hundredth of the time of the rest
            if not any(word in plain or _is_escaped(word) for word in missing):
                continue
            prompt = _text(body)
            folded = prompt.casefold()
            left = [word for word in missing if word not in folded]
            if len(left) < len(missing):
                first = prompt if first is None else first
            if not left:
                return first
            missing = left
        return None


def _is_escaped(word: str) -> bool:
    """Return whether a word is written differently in JSON."""
    return '"' in word or "\\" in word or not word.isprintable()


def _text(body: str) -> str:
    """Return the text of a prompt's event, as far as the beginning of its JSON goes."""
    found = _TEXT.search(body)
    return "" if found is None else json.loads(f'"{found[1]}"', strict=False)
