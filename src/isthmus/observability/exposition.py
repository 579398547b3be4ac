"""Metrics in the text format of Prometheus (0.0.4): counters, gauges and histograms with bounded labels. No I/O.

An event costs a look-up and an addition. A metric keeps at most :data:`SERIES` combinations of labels; events with
others are counted under ``other``, so that no client can make the page grow.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SERIES = 256
"""Maximum number of combinations of labels of one metric, besides ``other``."""
VALUES = 64
"""Maximum number of values of one label, besides ``other``."""
VALUE_CHARACTERS = 100
"""Maximum number of characters of a label's value."""
OTHER = "other"


class Labels:
    """The labels of one metric, by name. :meth:`bounded` gives the values under which an event is counted."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self._known: list[set[str]] = [set() for _ in names]
        self._series: set[tuple[str, ...]] = set()

    def bounded(self, values: tuple[str, ...]) -> tuple[str, ...]:
        """Return these values, or ``other`` in place of those that are too many."""
        if values in self._series:
            return values
        found = tuple(self._value(known, value) for known, value in zip(self._known, values, strict=True))
        if found not in self._series:
            if len(self._series) >= SERIES:
                return tuple(OTHER for _ in values)
            self._series.add(found)
        return found

    def text(self, values: Sequence[str], *more: tuple[str, str]) -> str:
        """Return the labels as they are written behind a name."""
        pairs = [*zip(self.names, values, strict=True), *more]
        return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs) + "}" if pairs else ""

    @staticmethod
    def _value(known: set[str], value: str) -> str:
        value = value[:VALUE_CHARACTERS]
        if value not in known:
            if len(known) >= VALUES:
                return OTHER
            known.add(value)
        return value


class Counter:
    """A sum that only grows; its name ends in ``_total``."""

    def __init__(self, name: str, about: str, labels: Sequence[str] = ()) -> None:
        self._name, self._about = name, about
        self._labels = Labels(labels)
        self._sums: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def add(self, *values: str, amount: float = 1) -> None:
        """Add an amount under these values of the labels."""
        key = self._labels.bounded(values)
        self._sums[key] = self._sums.get(key, 0.0) + amount

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format."""
        yield from _head(self._name, self._about, "counter")
        for values, total in self._sums.items():
            yield f"{self._name}{self._labels.text(values)} {_number(total)}"


class Histogram:
    """Counts of durations in seconds, by the first of the ascending ``bounds`` that each is within."""

    def __init__(self, name: str, about: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> None:
        self._name, self._about = name, about
        self._bounds = tuple(bounds)
        self._labels = Labels(labels)
        self._counts: dict[tuple[str, ...], list[int]] = {} if labels else {(): self._empty()}
        self._sums: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def _empty(self) -> list[int]:
        return [0] * (len(self._bounds) + 1)

    def observe(self, seconds: float, *values: str) -> None:
        """Count a duration under these values of the labels."""
        key = self._labels.bounded(values)
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = self._empty()
        counts[bisect_left(self._bounds, seconds)] += 1
        self._sums[key] = self._sums.get(key, 0.0) + seconds

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format."""
        yield from _head(self._name, self._about, "histogram")
        for values, counts in self._counts.items():
            total = 0
            for bound, count in zip((*self._bounds, math.inf), counts, strict=True):
                total += count
                yield f"{self._name}_bucket{self._labels.text(values, ('le', _number(bound)))} {total}"
            yield f"{self._name}_sum{self._labels.text(values)} {_number(self._sums[values])}"
            yield f"{self._name}_count{self._labels.text(values)} {total}"


def gauge(name: str, about: str, value: float) -> Iterator[str]:
    """Yield the lines of a value that goes up and down."""
    yield from _head(name, about, "gauge")
    yield f"{name} {_number(value)}"


def gauges(
    name: str, about: str, labels: Sequence[str], values: Mapping[tuple[str, ...], float], kind: str = "gauge"
) -> Iterator[str]:
    """Yield the lines of several values of one metric, by the values of their labels."""
    yield from _head(name, about, kind)
    written = Labels(labels)
    for key, value in values.items():
        yield f"{name}{written.text(key)} {_number(value)}"


def counter(name: str, about: str, value: float) -> Iterator[str]:
    """Yield the lines of a sum that is counted elsewhere."""
    yield from _head(name, about, "counter")
    yield f"{name} {_number(value)}"


def page(lines: Iterable[str]) -> bytes:
    """Return the page with these lines."""
    return ("\n".join(lines) + "\n").encode()


def _head(name: str, about: str, kind: str) -> Iterator[str]:
    escaped = about.replace("\\", "\\\\").replace("\n", "\\n")
    yield f"# HELP {name} {escaped}"
    yield f"# TYPE {name} {kind}"


def _escaped(value: str) -> str:
    """Return a label's value as it is written; text that is not Unicode is replaced."""
    value = value.encode("utf-8", "replace").decode()
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
