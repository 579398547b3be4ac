"""The indentation of a model's lines, in the indentation of the file which it remembered differently. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import reduce
from math import gcd
from typing import Self

from isthmus.record import record


@record
class LinePair:
    """A line that the model wrote and the file has: their indentations, and the index of its first token as written."""

    index: int
    written: str
    actual: str


@record
class IndentationMap:
    """Turns an indentation as the model writes it into the one that the file has for such lines."""

    pairs: tuple[LinePair, ...]
    written_unit: int
    actual_unit: int
    has_tabs: bool

    @classmethod
    def of(cls, pairs: Sequence[LinePair]) -> Self:
        """Return the map that the lines in both texts show."""
        return cls(
            tuple(pairs),
            _unit(pair.written for pair in pairs),
            _unit(pair.actual for pair in pairs),
            any("\t" in pair.actual for pair in pairs),
        )

    def map(self, written: str, index: int) -> str:
        """Return the file's indentation for a new line, which follows the model's token `index`."""
        if all(pair.written == pair.actual for pair in self.pairs):
            return written
        shorter = [pair.written for pair in self.pairs if written.startswith(pair.written)]
        if shorter:
            known = max(shorter, key=len)
            return self._usual(known, index) + self._converted(written[len(known) :])
        least = min(self.pairs, key=lambda pair: len(pair.written))
        surplus = self._converted(least.written[len(written) :]) if least.written.startswith(written) else ""
        return least.actual.removesuffix(surplus) if surplus and least.actual.endswith(surplus) else written

    def _usual(self, written: str, index: int) -> str:
        """Return the indentation that most such lines have in the file; of two as frequent, the line before's."""
        same = [pair for pair in self.pairs if pair.written == written]
        counts = Counter(pair.actual for pair in same)
        best = min(same, key=lambda pair: (-counts[pair.actual], pair.index > index, abs(pair.index - index)))
        return best.actual

    def _converted(self, rest: str) -> str:
        """Return further indentation in the file's characters."""
        if self.has_tabs and "\t" not in rest:
            return "\t" * (len(rest) // self.written_unit) + " " * (len(rest) % self.written_unit)
        return rest if self.has_tabs else rest.replace("\t", " " * self.actual_unit)


def _unit(indentations: Iterable[str]) -> int:
    """Return the number of spaces of one level; 4 if the lines do not show it."""
    widths = {len(indentation) for indentation in indentations if "\t" not in indentation}
    steps = [larger - smaller for smaller, larger in zip(sorted(widths), sorted(widths)[1:], strict=False)]
    return reduce(gcd, steps) if steps and reduce(gcd, steps) > 1 else 4
