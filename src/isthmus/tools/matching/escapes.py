r"""Texts that a model escaped once too often, as if for JSON: ``\n`` for a newline, ``\"`` for a quote. Pure."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

Unescape: TypeAlias = Callable[[str], str]

_CHARACTERS: Mapping[str, str] = {"n": "\n", "t": "\t", "r": "\r"}
_QUOTES = re.compile(r"\\([\"'`])")
_ONE_LEVEL = re.compile(r"\\([\\\"'`/ntr])")
_NEWLINES = re.compile(r"\\([nt])")
_ALL_LEVELS = re.compile(r"\\+([ntr\"'`\n])")


def _without(pattern: "re.Pattern[str]") -> Unescape:
    return lambda text: pattern.sub(lambda match: _CHARACTERS.get(match[1], match[1]), text)


_WAYS: tuple[Unescape, ...] = tuple(map(_without, (_QUOTES, _ONE_LEVEL, _NEWLINES, _ALL_LEVELS)))


def unescaped(old: str, new: str) -> Iterator[tuple[str, str]]:
    """Yield the two texts with fewer escapes, in each way that changes `old`, the smallest change first.

    `new` keeps its escapes if it has more lines in common with `old` so: then only `old` was written wrongly.
    """
    seen = {old}
    for way in _WAYS:
        plain = way(old)
        if plain not in seen:
            seen.add(plain)
            lines = set(plain.split("\n"))
            yield plain, max(way(new), new, key=lambda text: len(lines.intersection(text.split("\n"))))
