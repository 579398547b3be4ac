"""Finds tools by words: Okapi BM25 over their names, descriptions and the names of their parameters. Pure.

Designed for hundreds of tools with short texts, in memory. The same tools and words always give the same result in the
same order. Not here: the choice of the searched tools, see :mod:`isthmus.agent.tool_search.loading`.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from isthmus.record import record

_SATURATION = 1.2
"""BM25's k1: the lower it is, the less a repeated word adds to the score."""
_LENGTH_WEIGHT = 0.75
"""BM25's b: the higher it is, the less a word in a long description counts."""
_NAME_WEIGHT = 4
"""Weight of a word in the name; a word of the description has the weight 1."""
_SHORTEST_BEGINNING = 3
"""Minimum length in letters of a word that matches as the beginning of a longer one."""
_BEGINNING_WEIGHT = 0.5

_STOP_WORD = re.compile("a|an|and|are|at|by|for|from|in|is|it|of|on|or|that|the|this|to|where|which|with")
"""A word that is too common to distinguish tools."""

_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


@record
class SearchedTool:
    """A searchable tool, with its name for the model and its server's name."""

    name: str
    server: str
    description: str
    parameters: Mapping[str, Any]


class ToolIndex:
    """An index of tools; tools with equal scores keep their order."""

    def __init__(self, tools: Sequence[SearchedTool]) -> None:
        self._tools = tuple(tools)
        self._counts = [_counts(tool) for tool in tools]
        self._lengths = [sum(counts.values()) for counts in self._counts]
        self._average = sum(self._lengths) / len(self._lengths) if self._lengths else 1.0
        self._known = sorted({word for counts in self._counts for word in counts})

    def search(self, query: str, limit: int) -> tuple[SearchedTool, ...]:
        """Return the tools that match words of `query`, best first; none if no word matches."""
        scores = [0.0] * len(self._tools)
        for word in dict.fromkeys(_words(query)):
            for known, weight in self._forms(word):
                self._add(scores, known, weight)
        places = [place for place, score in enumerate(scores) if score > 0]
        places.sort(key=lambda place: (-scores[place], place))
        return tuple(self._tools[place] for place in places[:limit])

    def _forms(self, word: str) -> Iterator[tuple[str, float]]:
        """Yield the known words that equal the word, begin with it, or are its beginning, with their weights."""
        for known in self._known:
            shorter, longer = sorted((known, word), key=len)
            if known == word:
                yield known, 1.0
            elif len(shorter) >= _SHORTEST_BEGINNING and longer.startswith(shorter):
                yield known, _BEGINNING_WEIGHT

    def _add(self, scores: list[float], word: str, weight: float) -> None:
        having = sum(word in counts for counts in self._counts)
        rarity = math.log(1 + (len(self._tools) - having + 0.5) / (having + 0.5))
        for place, counts in enumerate(self._counts):
            if (count := counts.get(word, 0)) == 0:
                continue
            length = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * self._lengths[place] / self._average
            scores[place] += weight * rarity * count * (_SATURATION + 1) / (count + _SATURATION * length)


def _counts(tool: SearchedTool) -> Counter[str]:
    counts: Counter[str] = Counter()
    for word in _words(tool.name):
        counts[word] += _NAME_WEIGHT
    for text in (tool.server, tool.description, *_parameter_names(tool.parameters)):
        counts.update(_words(text))
    return counts


def _parameter_names(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    properties: object = parameters.get("properties")
    return tuple(cast("Mapping[str, object]", properties)) if isinstance(properties, Mapping) else ()


def _words(text: str) -> Iterator[str]:
    """Yield the words in lower case, camelCase split, without a plural s; for other scripts also pairs of letters."""
    for found in _WORD.findall(text):
        if not found.isascii():
            folded = found.casefold()
            yield folded
            yield from (folded[at : at + 2] for at in range(len(folded) - 1) if len(folded) > 2)
            continue
        for part in _CAMEL.split(found):
            word = part.lower()
            if _STOP_WORD.fullmatch(word):
                continue
            yield word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
