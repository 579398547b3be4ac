"""Tests of brief work in threads."""

import asyncio
import contextvars
import os
import threading
import warnings

import pytest

from isthmus.runtime.brief_work import MAXIMUM_THREADS, briefly

pytestmark = pytest.mark.anyio
DEADLINE_SECONDS = 30.0


def failing(error: BaseException) -> None:
    raise error


async def test_the_result_or_the_error_comes_back() -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert await briefly(divmod, 7, 2) == (3, 1)
        assert await briefly(int, "ff", base=16) == 255
        with pytest.raises(ZeroDivisionError):
            await briefly(divmod, 7, 0)
        with pytest.raises(KeyboardInterrupt):
            await briefly(failing, KeyboardInterrupt())
        assert await briefly(threading.get_ident) != threading.get_ident()


async def test_context_variables_go_along() -> None:
    variable = contextvars.ContextVar[str]("variable")
    variable.set("here")
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert await briefly(variable.get) == "here"


async def test_work_that_takes_long_does_not_hold_up_the_rest() -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        release = threading.Event()
        held = [asyncio.ensure_future(briefly(release.wait)) for _ in range(MAXIMUM_THREADS - 1)]
        assert await briefly(int) == 0
        release.set()
        assert await asyncio.gather(*held) == [True] * (MAXIMUM_THREADS - 1)


async def test_the_result_of_cancelled_work_is_dropped() -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        begun, release, ended = threading.Event(), threading.Event(), threading.Event()

        def work() -> None:
            begun.set()
            release.wait()
            ended.set()

        task = asyncio.ensure_future(briefly(work))
        await asyncio.to_thread(begun.wait)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        release.set()
        await asyncio.to_thread(ended.wait)
        assert await briefly(int) == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
async def test_a_forked_process_has_threads_of_its_own() -> None:
    assert await briefly(int) == 0

    def fork() -> int:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of a fork while other threads run
            child = os.fork()
        if child == 0:
            os._exit(asyncio.run(asyncio.wait_for(briefly(int, "7"), DEADLINE_SECONDS)))
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert await asyncio.to_thread(fork) == 7
