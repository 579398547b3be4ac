"""Tests that run many times in one run, beside each other, to find what depends on chance or on the load."""

import os

import pytest

CHOSEN = "ISTHMUS_REPETITIONS"
"""Variable of the run: how many times each chosen test runs."""
_ARGUMENT = "repetition"


def repeat(metafunc: pytest.Metafunc) -> None:
    """Repeat a test as often as the run says; its id then ends with the number of the repetition, from 1."""
    times = int(os.environ.get(CHOSEN) or 1)
    if times > 1:
        metafunc.fixturenames.append(_ARGUMENT)
        numbers = range(1, times + 1)
        metafunc.parametrize(_ARGUMENT, numbers, indirect=True, ids=[f"{number} of {times}" for number in numbers])
