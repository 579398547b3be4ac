"""Work on large values: in a thread, one piece at a time; small values are worked on at once."""

import asyncio
import os
import subprocess
import sys
import threading

import pytest

from isthmus.runtime.large_values import LARGE_BYTES
from isthmus.runtime.large_work import RETURNED_BYTES, off_loop

pytestmark = pytest.mark.anyio

PROGRAM = f"""
import gc, re, sys
from isthmus.runtime.large_work import return_large_blocks

def memory():
    return int(re.search("VmRSS:\\\\s+(\\\\d+)", open("/proc/self/status").read())[1]) * 1024

if sys.argv[1] == "returns":
    return_large_blocks()
before = memory()
large = bytearray(30_000_000)
del large                                   # the C library remembers its size
kept = []
for number in range(20):
    value = bytearray(b"x") * {RETURNED_BYTES * 4}
    kept.append(bytearray(b"x") * 200_000)  # lies behind it
    del value
kept = kept[-1:]
values = [bytearray(b"x") * {RETURNED_BYTES * 4} for _ in range(20)]
last = bytearray(b"x") * 200_000            # lies behind all of them
del values
gc.collect()
print(memory() - before)
"""


async def test_small_values_are_worked_on_at_once() -> None:
    assert await off_loop(LARGE_BYTES - 1, threading.get_ident) == threading.get_ident()


async def test_large_values_are_worked_on_in_one_thread_while_the_loop_goes_on() -> None:
    gate, at_work, most = threading.Event(), 0, 0

    def work(number: int, *, double: bool) -> int:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        assert gate.wait(30)
        at_work -= 1
        return 2 * number if double else number

    pieces = [asyncio.create_task(off_loop(LARGE_BYTES, work, number, double=True)) for number in range(3)]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(*pieces) == [0, 2, 4]
    assert most == 1


@pytest.mark.parametrize("size", [0, LARGE_BYTES])
async def test_what_the_work_raises_is_raised(size: int) -> None:
    def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await off_loop(size, fail)


def grown(how: str, **environment: str) -> int:
    """Return how many bytes a program still has after it has freed large values."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how],
        env={**os.environ, **environment}, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return int(done.stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="other C libraries keep memory in other ways")
def test_freed_memory_goes_back_unless_the_user_has_chosen_otherwise() -> None:
    kept = grown("keeps")
    if kept < 10 * RETURNED_BYTES:
        pytest.skip("this C library gives memory back by itself")
    assert grown("returns") < kept / 3
    chosen = {"MALLOC_MMAP_THRESHOLD_": "33554432"}
    assert grown("returns", **chosen) > grown("keeps", **chosen) / 2
