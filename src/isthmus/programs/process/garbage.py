"""The search for garbage in cycles, in programs that run for long."""

import contextlib
import gc
from collections.abc import Generator

YOUNG_OBJECTS = 5_000
"""Number of new objects after which Python looks through them for garbage; 700 or 2,000 otherwise.

A task at work has a few hundred, so a server with dozens of tasks looked through the same ones again and again, which
took a tenth of its CPU. Most objects are freed without a search.
"""


@contextlib.contextmanager
def searched_seldom() -> Generator[None]:
    """Look for garbage less often within."""
    before = gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS)
    try:
        yield
    finally:
        gc.set_threshold(*before)
