"""A text as tokens and the gaps of white space between them. Pure; knows no programming language."""

import re
from dataclasses import dataclass, field
from functools import cached_property

_TOKEN = re.compile(r"\w+|\.\.\.|[^\w\s]")
_QUOTES = frozenset("\"'`")
_FOLDED = {
    **dict.fromkeys("\"'`\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033\u00b4\u00ab\u00bb", "'"),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    "\u2026": "...",
    "\u00d7": "x",
    "\uff0c": ",",
    "\uff1a": ":",
    "\uff1b": ";",
    "\uff08": "(",
    "\uff09": ")",
}
"""Characters that models exchange for one another, by the one that stands for them in comparisons."""


def is_quote(token: str) -> bool:
    """Return whether the token is a quotation mark of ASCII, so that another one can take its place in code."""
    return token in _QUOTES


@dataclass(frozen=True)
class TokenText:
    r"""A text with ``\n`` newlines and its tokens: runs of word characters, and single other characters.

    `starts` and `ends` are the offsets of each token in `text`.
    """

    text: str
    tokens: list[str] = field(init=False)
    starts: list[int] = field(init=False)
    ends: list[int] = field(init=False)

    def __post_init__(self) -> None:
        spans = [match.span() for match in _TOKEN.finditer(self.text)]
        text = self.text
        object.__setattr__(self, "starts", [start for start, _ in spans])
        object.__setattr__(self, "ends", [end for _, end in spans])
        object.__setattr__(self, "tokens", [text[start:end] for start, end in spans])

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def folded(self) -> list[str]:
        """Tokens for comparison: quotation marks, dashes and ellipses of every kind are the same."""
        return [_FOLDED.get(token, token) for token in self.tokens]

    def gap(self, index: int) -> str:
        """Return the white space before token `index`; after the last one for ``len(self)``."""
        start = self.ends[index - 1] if index else 0
        end = self.starts[index] if index < len(self.starts) else len(self.text)
        return self.text[start:end]

    def begins_line(self, index: int) -> bool:
        """Return whether token `index` is the first one of its line."""
        return index == 0 or "\n" in self.gap(index)

    def ends_line(self, index: int) -> bool:
        """Return whether token `index` is the last one of its line."""
        return index == len(self) - 1 or "\n" in self.gap(index + 1)

    def indentation(self, index: int) -> str:
        """Return the white space between the beginning of its line and token `index`, which is the first one there."""
        return indentation_of(self.gap(index))


def indentation_of(gap: str) -> str:
    """Return the part of the white space that is on the last line."""
    return gap[gap.rfind("\n") + 1 :]
