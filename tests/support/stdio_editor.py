"""The plugin of stdio_plugin.py as a running process, the StdioEditor attached to it, and the user in front of it."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from isthmus.editors.plugin import editor as stdio
from isthmus.editors.plugin.editor import StdioEditor
from isthmus.editors.plugin.limits import PluginLimits
from isthmus.ide.editor import Editor, EditorEvent, Position, Range
from isthmus.ide.reviews.review import DiffReview
from support import stdio_plugin
from support.editor_deadlines import PATIENT_PLUGIN
from support.waiting import eventually_async


class RunningPlugin:
    """The process, and its pipes for the user, which the companion does not use."""

    def __init__(self, folder: Path, **changes: object) -> None:
        theirs_in, self.outgoing = os.pipe()
        self.incoming, theirs_out = os.pipe()
        theirs_commands, commands = os.pipe()
        answers, theirs_answers = os.pipe()
        arguments = [str(theirs_commands), str(theirs_answers), json.dumps(changes)]
        self.process = subprocess.Popen(
            [sys.executable, stdio_plugin.__file__, *arguments],
            cwd=folder, stdin=theirs_in, stdout=theirs_out, pass_fds=(theirs_commands, theirs_answers),
        )  # fmt: skip
        for descriptor in (theirs_in, theirs_out, theirs_commands, theirs_answers):
            os.close(descriptor)
        self._commands = os.fdopen(commands, "w", encoding="utf-8")
        self._answers = os.fdopen(answers, encoding="utf-8")

    async def do(self, do: str, **how: object) -> Any:
        """Run a user command of stdio_plugin.py and return its answer. Raises EOFError if the plugin has ended."""
        return await asyncio.to_thread(self._do, do, **how)

    def _do(self, do: str, **how: object) -> Any:
        print(json.dumps({"do": do, **how}), file=self._commands, flush=True)
        line = self._answers.readline()
        if not line:
            raise EOFError
        return json.loads(line)

    async def heard(self, method: str) -> list[dict[str, Any]]:
        """Return the messages of this method that the companion sent."""
        return [message for message in await self.do("heard") if message.get("method") == method]

    async def hears(self, method: str) -> list[dict[str, Any]]:
        """Wait for a message of this method, and return all of them."""
        return await eventually_async(lambda: self.heard(method), what=method)

    @contextmanager
    def stopped(self) -> Generator[None]:
        """Stop the process meanwhile, so that it reads nothing."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    async def is_left(self) -> None:
        """Wait until the companion has closed its output."""

        async def left() -> bool:
            return not await self.do("has_companion")

        await eventually_async(left, what="the companion's output is closed")

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        with contextlib.suppress(OSError):
            self._commands.close()
        self._answers.close()


class StdioDriver:
    """A user in front of the plugin; see EditorDriver in support.editor_driver."""

    def __init__(self, plugin: RunningPlugin, editor: StdioEditor) -> None:
        self.plugin = plugin
        self._editor = editor
        self._path = Path()

    @property
    def editor(self) -> StdioEditor:
        return self._editor

    async def open(self, path: Path) -> None:
        self._path = path
        await self.plugin.do("open", path=str(path))

    async def select(self, at: Range) -> None:
        text = self._path.read_bytes().decode()
        await self.plugin.do("select", start=offset(text, at.start), end=offset(text, at.end))

    async def type_over(self, text: str) -> None:
        await self.plugin.do("type_over", text=text)

    async def edit_review(self, review: DiffReview, text: str) -> None:
        await self.plugin.do("edit_review", review=review.id, text=text)

    async def accept(self, review: DiffReview) -> None:
        await self.plugin.do("accept", review=review.id)

    async def reject(self, review: DiffReview) -> None:
        await self.plugin.do("reject", review=review.id)

    async def has_message(self, text: str) -> bool:
        messages = [message["params"]["message"] for message in await self.plugin.heard("window/showMessage")]
        return any(text in message for message in (*messages, *await self.plugin.do("warnings")))

    async def quit(self) -> None:
        await self.plugin.do("quit")


def offset(text: str, place: Position) -> int:
    """Convert a position in UTF-16 units to code points, without the functions under test."""
    lines = text.split("\n")
    before = lines[place.line].encode("utf-16-le")[: 2 * place.character].decode("utf-16-le")
    return sum(len(line) + 1 for line in lines[: place.line]) + len(before)


@asynccontextmanager
async def stdio_driver(
    folder: Path, limits: PluginLimits = PATIENT_PLUGIN, **changes: object
) -> AsyncGenerator[StdioDriver]:
    """Yield a user in front of a plugin; `changes` are members of its ``initialize``."""
    plugin = RunningPlugin(folder, **changes)
    try:
        editor = await stdio.attach(plugin.incoming, plugin.outgoing, limits)
        try:
            yield StdioDriver(plugin, editor)
        finally:
            await editor.aclose()
    finally:
        plugin.close()


@asynccontextmanager
async def told(editor: Editor) -> AsyncGenerator[list[EditorEvent]]:
    """Collect the editor's events meanwhile."""
    events: list[EditorEvent] = []

    async def listen() -> None:
        async for event in editor.changes():
            events.append(event)

    task = asyncio.create_task(listen())
    yield events
    task.cancel()
    await asyncio.wait({task})


def review_of(path: Path, proposed: str = "new\n") -> DiffReview:
    """Return a review of a file."""
    return DiffReview("r1", str(path), proposed, "owner", "An agent")


def made(workspace: Path, name: str = "a.py", content: bytes = b"one\n") -> Path:
    """Make a file and return its path."""
    path = workspace / name
    path.write_bytes(content)
    return path


async def equals(value: "asyncio.Future[object] | object", expected: object) -> bool:
    """Return whether a value, or the result of an awaitable, equals `expected`."""
    return (await value if asyncio.iscoroutine(value) else value) == expected
