"""Asks the user for one step of an agent whose terminal asks at the same time; the first answer counts.

The hook of the agent's CLI (:mod:`isthmus.ide.permission_hook`) sends the question on the control channel and waits.
Only an answer of the user is passed on. Whatever else happens, the hook gets none, and the terminal decides: after a
time-out, the end of the companion, or a message that cannot be read. An answer in the terminal, and the end of the hook
or the CLI, take the question back.

If several questions of one terminal wait at the same time, nothing tells which of them was answered there. Then all of
them are left to the terminal.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

from isthmus.encoding.codec import JsonObject
from isthmus.ide.agent_client import Client
from isthmus.ide.companion import Companion
from isthmus.ide.control.commands import ControlCommandError
from isthmus.ide.control.questions import PERMISSION_SECONDS, Answered, ClientQuestion
from isthmus.ide.permissions import PermissionAnswer, PermissionAsked, PermissionHook, TerminalWatch

REMEMBERED: Final = 100
"""Number of terminals' questions that are remembered as several at a time."""
NOTHING: Final[JsonObject] = {"output": None}
"""Answer with which the hook prints nothing."""


class PermissionQuestions:
    """Permission questions of one companion. ``hooks`` has the hooks of CLIs by the names of their protocols."""

    def __init__(self, companion: Companion, hooks: Mapping[str, PermissionHook]) -> None:
        self._companion = companion
        self._hooks = hooks
        self._limits = companion.limits.permissions
        self._waiting: dict[str, asyncio.Event] = {}
        self._several: deque[str] = deque(maxlen=REMEMBERED)

    async def ask(self, request: JsonObject, pid: int | None) -> JsonObject:
        """Ask what the hook with process id ``pid`` sent; return its ``output``, null if the terminal is to decide.

        Cancelling takes the question back.

        Raises:
            IsthmusError: the message cannot be read, or too many questions wait.
        """
        protocol, given = request.get("protocol"), request.get("message")
        hook = self._hooks.get(protocol) if isinstance(protocol, str) else None
        if hook is None or not isinstance(given, dict):
            expected = ", ".join(self._hooks) or "none"
            raise ControlCommandError(f"expected a message, and a protocol that has permission questions: {expected}")
        message = cast(JsonObject, given)
        ancestors = await asyncio.to_thread(_ancestors, pid)
        watch = await asyncio.to_thread(hook.watch, message, ancestors)
        asked = await asyncio.to_thread(hook.read, message)
        if asked is None or watch is None or (name := await self._name(watch, asked)) is None:
            return NOTHING
        if name and (name in self._waiting or name in self._several):
            self._several.append(name)
            if (other := self._waiting.get(name)) is not None:
                other.set()
            return NOTHING
        end = asyncio.Event()
        if name:
            self._waiting[name] = end
        try:
            question = await self._asked(asked, watch, name, end, self._client(ancestors))
        finally:
            if name:
                del self._waiting[name]
        if question is None or not isinstance(question.state, Answered):
            return NOTHING
        outcome = self._companion.asking.outcomes.get(question.id)
        by = outcome.by if outcome is not None else ""
        return {"output": hook.write(PermissionAnswer(question.is_allowed, by, question.state.reason))}

    async def _name(self, watch: TerminalWatch, asked: PermissionAsked) -> str | None:
        """Return the name of the terminal's question; empty if the hook comes first, None if this is not known."""
        deadline = asyncio.get_running_loop().time() + self._limits.terminal_seconds
        while (name := watch.look()) == "":
            if asyncio.get_running_loop().time() >= deadline:
                return "" if asked.may_be_first else None
            await asyncio.sleep(self._limits.look_seconds)
        return name

    async def _asked(
        self, asked: PermissionAsked, watch: TerminalWatch, name: str, end: asyncio.Event, client: Client | None
    ) -> ClientQuestion | None:
        """Ask, and return the question as it ended; None if the terminal or a diff has it."""

        def is_over() -> bool:
            now = watch.look()
            return now is None if not name else now != name

        text, seconds = asked.text, PERMISSION_SECONDS
        if not name:
            seconds = self._limits.first_seconds
            text = f"Its terminal: asks if there is no answer within {seconds:g} seconds\n{text}"
        over = asyncio.create_task(self._until(is_over, end))
        opened = asyncio.create_task(self._diff_opened(client, asked))
        asking = None
        try:
            if asked.file is not None and client is not None and self._companion.shows_diffs:
                await asyncio.wait(
                    {over, opened}, timeout=self._limits.diff_seconds, return_when=asyncio.FIRST_COMPLETED
                )
            if over.done() or opened.done():
                return None
            asking = asyncio.create_task(
                self._companion.asking.ask_permission(asked.agent, asked.title, text, is_over, seconds)
            )
            await asyncio.wait({over, opened, asking}, return_when=asyncio.FIRST_COMPLETED)
            return asking.result() if asking.done() else None
        finally:
            begun: list[asyncio.Task[Any]] = [over, opened, *([asking] if asking is not None else [])]
            for task in begun:
                task.cancel()
            await asyncio.gather(*begun, return_exceptions=True)

    async def _until(self, is_over: Callable[[], bool], end: asyncio.Event) -> None:
        """Return once the question is over in the terminal, or given back to it."""
        while not is_over() and not end.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._limits.look_seconds):
                    await end.wait()

    async def _diff_opened(self, client: Client | None, asked: PermissionAsked) -> None:
        """Return once the agent shows the edit as a diff."""
        changes, reviews = self._companion.changes, self._companion.reviews
        while True:
            count = changes.number
            if client is not None and any(
                review.owner == client.id and review.file_path == asked.file for review in reviews.all()
            ):
                return
            await changes.wait(count, PERMISSION_SECONDS)

    def _client(self, ancestors: Sequence[int]) -> Client | None:
        """Return the attached agent below which the hook runs; None if it is not attached."""
        clients = {client.pid: client for client in self._companion.clients if client.pid is not None}
        return next((clients[pid] for pid in ancestors if pid in clients), None)


def _ancestors(pid: int | None) -> tuple[int, ...]:
    """Return the ids of the processes above one, nearest first. Blocks."""
    import psutil  # loaded for the first question, not at start

    try:
        return tuple(parent.pid for parent in psutil.Process(pid).parents()) if pid else ()
    except (psutil.Error, ValueError, OverflowError):
        return ()
