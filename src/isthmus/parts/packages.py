"""Parts of the agent that packages of the user's bring, by entry points of the group ``isthmus.parts``.

Only parts that the user's settings name are loaded, and a fault of one does not end a task. Not here: the port, which
is :mod:`isthmus.agent.part`.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import TypeAlias, TypeVar

from typing_extensions import override

from isthmus.agent.part import Part, PartBase, PartTools, PartTurn
from isthmus.errors import IsthmusError
from isthmus.record import record
from isthmus.text.visible import visible_line
from isthmus.tools.port.tool_set import ToolScope

GROUP = "isthmus.parts"
"""Group of the entry points, and key of the settings."""
NOTE_SECONDS = 10.0
"""Maximum time in seconds for a note of a part, and for closing it."""
NOTE_CHARACTERS = 20_000
"""Maximum length of a note in characters."""

_T = TypeVar("_T")

log = logging.getLogger(__name__)


@record
class PartPlace:
    """Place of a part. ``folder`` is where it may keep files of its own; it need not exist."""

    folder: Path


MakePart: TypeAlias = Callable[[PartPlace], Part]
"""The object of an entry point: makes a part."""


class PartError(IsthmusError):
    """A part that the settings name cannot be loaded."""


async def load_parts(
    names: Sequence[str], data_dir: Path, installed: Callable[[], Sequence[EntryPoint]] | None = None
) -> tuple[Part, ...]:
    """Return the parts with these names, in their order. ``installed`` finds the parts of installed packages.

    Raises:
        PartError: a name has no package, or its package cannot be loaded. The parts before it are closed.
    """
    if not names:
        return ()
    found = {one.name: one for one in (installed or _installed)()}
    parts: list[Part] = []
    async with contextlib.AsyncExitStack() as until_loaded:
        for name in dict.fromkeys(names):
            parts.append(part := _load(name, found, data_dir))
            until_loaded.push_async_callback(part.aclose)
        until_loaded.pop_all()  # from now on the caller closes them
    return tuple(parts)


def _installed() -> Sequence[EntryPoint]:
    return tuple(entry_points(group=GROUP))


def _load(name: str, found: dict[str, EntryPoint], data_dir: Path) -> Part:
    shown = visible_line(name)
    if (entry := found.get(name)) is None:
        known = ", ".join(sorted(found)) or "none"
        raise PartError(
            f"{GROUP} in the settings names {shown!r}, which no installed package brings (installed: {known})."
            " Install its package into the environment of isthmus, or remove the name."
        )
    try:
        make: MakePart = entry.load()
        part = make(PartPlace(data_dir / "parts" / name))
    except Exception as error:  # whatever a package of others does
        raise PartError(
            f"the part {shown!r} of {GROUP} cannot be loaded from {entry.value} ({type(error).__name__}:"
            f" {visible_line(str(error))}). Repair or update its package, or remove the name from the settings."
        ) from error
    return GuardedPart(name, part)


class GuardedPart(PartBase):
    """A part of a package of others: its faults are logged, its waits end, and its notes are bounded."""

    def __init__(self, name: str, part: Part) -> None:
        self.name = name
        self._part = part

    @override
    async def tools(self, scope: ToolScope) -> PartTools:
        tools = await self._asked(lambda: self._part.tools(scope), "a question for its tools")
        return tools if isinstance(tools, PartTools) else PartTools()

    @override
    async def instructions(self, scope: ToolScope) -> str:
        return self._bounded(await self._asked(lambda: self._part.instructions(scope), "its instructions")) or ""

    @override
    async def at_prompt(self, turn: PartTurn) -> str | None:
        return self._bounded(await self._asked(lambda: self._part.at_prompt(turn), "a note at a prompt"))

    @override
    async def before_model(self, turn: PartTurn) -> str | None:
        return self._bounded(await self._asked(lambda: self._part.before_model(turn), "a note before a message"))

    @override
    async def before_edit(self, turn: PartTurn, path: Path) -> None:
        await self._asked(lambda: self._part.before_edit(turn, path), "an edit")

    @override
    def task_ended(self, task_id: str) -> None:
        try:
            self._part.task_ended(task_id)
        except Exception:
            log.exception("the part %s failed at the end of a task", self.name)

    @override
    async def aclose(self) -> None:
        await self._asked(lambda: self._part.aclose(), "its end")

    async def _asked(self, ask: Callable[[], Awaitable[_T]], moment: str) -> _T | None:
        async def answer() -> _T:
            return await ask()

        # A task of its own: a part that cancels itself does not cancel ours, and one that goes on after it was
        # cancelled is left behind.
        asking = asyncio.create_task(answer())
        try:
            await asyncio.wait({asking}, timeout=NOTE_SECONDS)
            if not asking.done():
                log.warning("the part %s did not answer in %.0f s at %s", self.name, NOTE_SECONDS, moment)
            elif asking.cancelled():
                log.warning("the part %s cancelled itself at %s", self.name, moment)
            elif (error := asking.exception()) is not None:
                log.error("the part %s failed at %s", self.name, moment, exc_info=error)
            else:
                return asking.result()
        finally:
            asking.cancel()
        return None

    def _bounded(self, note: object) -> str | None:
        if note is None:
            return None
        if not isinstance(note, str):
            log.warning("the part %s returned %s as a note; expected str or None", self.name, type(note).__name__)
            return None
        if len(note) > NOTE_CHARACTERS:
            return f"{note[:NOTE_CHARACTERS]}\n[{len(note) - NOTE_CHARACTERS} more characters left out]"
        return note
