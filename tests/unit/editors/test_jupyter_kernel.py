"""A kernel that is restarted while code is on its way to it, and one that is only busy."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from isthmus.editors.jupyter.kernel import Channels, Kernel
from isthmus.editors.jupyter.messages import KernelDiedError
from isthmus.ide.editor import EditorError

pytestmark = pytest.mark.anyio


class PlayedKernel(Channels):
    """A kernel that takes messages in their order. It ``loses`` the first ones, or is busy until the second question.

    One that is starting sends nothing of the code but the reply: nobody has subscribed to its output yet.
    """

    def __init__(self, *, loses: int = 0, is_busy: bool = False, is_starting: bool = False) -> None:
        self.asked = 0
        self._is_starting = is_starting
        self._loses = loses
        self._sent = 0
        self._messages: asyncio.Queue[Mapping[str, Any]] = asyncio.Queue()
        self._held: list[Mapping[str, Any]] | None = [] if is_busy else None

    async def execute(self, code: str) -> str:
        reply = ("execute_reply", {"status": "ok"})
        if self._is_starting:
            return self._take(reply)
        return self._take(("status", {"execution_state": "busy"}), ("status", {"execution_state": "idle"}), reply)

    async def ask(self) -> str:
        self.asked += 1
        if self._held is not None and self.asked == 2:
            for message in self._held:
                self._messages.put_nowait(message)
            self._held = None
        return self._take(("kernel_info_reply", {}))

    async def receive(self) -> Mapping[str, Any]:
        return await self._messages.get()

    async def interrupt(self) -> None: ...

    def _take(self, *answers: tuple[str, Mapping[str, Any]]) -> str:
        self._sent += 1
        identity = f"m{self._sent}"
        for kind, content in answers if self._sent > self._loses else ():
            header = {"msg_type": kind}
            message = {"header": header, "parent_header": {"msg_id": identity}, "content": content}
            if self._held is not None:
                self._held.append(message)
            else:
                self._messages.put_nowait(message)
        return identity


def kernel(played: PlayedKernel) -> Kernel:
    @asynccontextmanager
    async def connect() -> AsyncGenerator[Channels]:
        yield played

    return Kernel(connect, start_seconds=0.02)


@pytest.mark.parametrize("lost", [1, 3], ids=["the code", "the code and two questions"])
async def test_code_that_a_restarted_kernel_has_lost_is_said_not_to_have_run(lost: int) -> None:
    played = PlayedKernel(loses=lost)
    async with asyncio.timeout(10):
        with pytest.raises(KernelDiedError, match="has not received the code, which did not run"):
            await kernel(played).execute("1")
    assert played.asked == lost


async def test_a_kernel_that_is_busy_for_long_runs_the_code_in_its_turn() -> None:
    played = PlayedKernel(is_busy=True)
    async with asyncio.timeout(10):
        assert not (await kernel(played).execute("1")).is_error
    assert played.asked == 2


async def test_output_that_was_lost_while_the_kernel_started_is_said_to_be_lost() -> None:
    played = PlayedKernel(is_starting=True)
    async with asyncio.timeout(10):
        with pytest.raises(EditorError, match="still starting when it ran the code, and the output was lost"):
            await kernel(played).execute("1")
    assert played.asked == 1
