"""Counters, gauges and histograms with bounded labels, and the text format of Prometheus (0.0.4). No I/O.

A :class:`Family` is a metric at one moment, from which the page and what is sent by OpenTelemetry are made.

An event costs a look-up and an addition. A metric keeps at most :data:`SERIES` combinations of labels; events with
others are counted under ``other``, so that no client can make the page grow.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

from isthmus.record import record

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SERIES = 256
"""Maximum number of combinations of labels of one metric, besides ``other``."""
VALUES = 64
"""Maximum number of values of one label, besides ``other``."""
VALUE_CHARACTERS = 100
"""Maximum number of characters of a label's value."""
OTHER = "other"


Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
"""Word of the text format for what a metric is."""


@record
class Sample:
    """A number under these values of the labels."""

    values: tuple[str, ...]
    number: float


@record
class Buckets:
    """Numbers of a histogram under these values of the labels; ``counts`` has one more than the metric has bounds."""

    values: tuple[str, ...]
    counts: tuple[int, ...]
    total: float


@record
class Family:
    """A metric at one moment; ``bounds`` are the upper ones of a histogram's buckets, without the infinite one."""

    name: str
    about: str
    kind: Kind
    labels: tuple[str, ...] = ()
    samples: tuple[Sample, ...] = ()
    buckets: tuple[Buckets, ...] = ()
    bounds: tuple[float, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield the lines of the text format."""
        escaped = self.about.replace("\\", "\\\\").replace("\n", "\\n")
        yield f"# HELP {self.name} {escaped}"
        yield f"# TYPE {self.name} {self.kind}"
        for sample in self.samples:
            yield f"{self.name}{self._text(sample.values)} {_number(sample.number)}"
        for each in self.buckets:
            count = 0
            for bound, number in zip((*self.bounds, math.inf), each.counts, strict=True):
                count += number
                yield f"{self.name}_bucket{self._text(each.values, ('le', _number(bound)))} {count}"
            yield f"{self.name}_sum{self._text(each.values)} {_number(each.total)}"
            yield f"{self.name}_count{self._text(each.values)} {count}"

    def _text(self, values: Sequence[str], *more: tuple[str, str]) -> str:
        """Return the labels as they are written behind a name."""
        pairs = [*zip(self.labels, values, strict=True), *more]
        return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs) + "}" if pairs else ""


class Labels:
    """The labels of one metric, by name. :meth:`bounded` gives the values under which an event is counted."""

    def __init__(self, names: Sequence[str], most: int = VALUES) -> None:
        self.names = tuple(names)
        self._most = most
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

    def _value(self, known: set[str], value: str) -> str:
        value = value[:VALUE_CHARACTERS]
        if value not in known:
            if len(known) >= self._most:
                return OTHER
            known.add(value)
        return value


class Counter:
    """A sum that only grows; its name ends in ``_total``. A label has at most ``most`` values, besides ``other``."""

    def __init__(self, name: str, about: str, labels: Sequence[str] = (), most: int = VALUES) -> None:
        self._name, self._about = name, about
        self._labels = Labels(labels, most)
        self._sums: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def add(self, *values: str, amount: float = 1) -> None:
        """Add an amount under these values of the labels."""
        key = self._labels.bounded(values)
        self._sums[key] = self._sums.get(key, 0.0) + amount

    def family(self) -> Family:
        """Return the metric at this moment."""
        samples = tuple(Sample(values, total) for values, total in self._sums.items())
        return Family(self._name, self._about, "counter", self._labels.names, samples)


class Histogram:
    """Counts of numbers, such as seconds, by the first of the ascending ``bounds`` that each is within."""

    def __init__(self, name: str, about: str, bounds: Sequence[float], labels: Sequence[str] = ()) -> None:
        self._name, self._about = name, about
        self._bounds = tuple(bounds)
        self._labels = Labels(labels)
        self._counts: dict[tuple[str, ...], list[int]] = {} if labels else {(): self._empty()}
        self._sums: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def _empty(self) -> list[int]:
        return [0] * (len(self._bounds) + 1)

    def observe(self, number: float, *values: str) -> None:
        """Count a number under these values of the labels."""
        key = self._labels.bounded(values)
        counts = self._counts.get(key)
        if counts is None:
            counts = self._counts[key] = self._empty()
        counts[bisect_left(self._bounds, number)] += 1
        self._sums[key] = self._sums.get(key, 0.0) + number

    def family(self) -> Family:
        """Return the metric at this moment."""
        found = tuple(Buckets(values, tuple(counts), self._sums[values]) for values, counts in self._counts.items())
        return Family(self._name, self._about, "histogram", self._labels.names, (), found, self._bounds)

    def totals(self, name: str, about: str) -> Family:
        """Return a counter of what was observed."""
        samples = tuple(Sample(values, total) for values, total in self._sums.items())
        return Family(name, about, "counter", self._labels.names, samples)


def gauge(name: str, about: str, value: float | None) -> Family:
    """Return a value that goes up and down; None: it is not known now."""
    return Family(name, about, "gauge", (), () if value is None else (Sample((), value),))


def gauges(name: str, about: str, labels: Sequence[str], values: Mapping[tuple[str, ...], float]) -> Family:
    """Return several values of one metric, by the values of their labels."""
    return Family(name, about, "gauge", tuple(labels), tuple(Sample(*each) for each in values.items()))


def counter(name: str, about: str, value: float) -> Family:
    """Return a sum that is counted elsewhere."""
    return Family(name, about, "counter", (), (Sample((), value),))


def page(families: Iterable[Family]) -> bytes:
    """Return the page with these metrics."""
    return "".join(f"{line}\n" for family in families for line in family.lines()).encode()


def _escaped(value: str) -> str:
    """Return a label's value as it is written; text that is not Unicode is replaced."""
    value = value.encode("utf-8", "replace").decode()
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _number(value: float) -> str:
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(float(value))
