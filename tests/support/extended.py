"""Parameters of which every run of the tests has the first, and ``make test-extended`` has the others too.

For tests with real programs that show the same of several peers, at the cost of seconds of a processor for each peer.
``pytest.mark.extended`` marks a whole test if other tests show its requirements; ``scripts/run_tests.py`` checks this.
"""

from collections.abc import Iterable
from typing import Any

import pytest


def first_of(
    values: Iterable[Any], ids: Iterable[str] | None = None, *, count: int = 1, are_rows: bool = False
) -> list[Any]:
    """Return a parameter for each of the values, all but the first `count` marked as extended.

    Args:
        values: The values, or rows of values of several arguments.
        ids: Names of the tests, as many as there are values.
        count: Number of values of every run.
        are_rows: Whether each value is a row.
    """
    found = list(values)
    names = [None] * len(found) if ids is None else list(ids)
    return [
        pytest.param(*(value if are_rows else [value]), id=name, marks=[pytest.mark.extended] * (number >= count))
        for number, (value, name) in enumerate(zip(found, names, strict=True))
    ]
