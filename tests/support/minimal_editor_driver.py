"""The example of a plugin (examples/editors/minimal_editor.py) as a running program, and the user at its terminal.

The program starts ``python -m isthmus companion``. Here that is a package of this name which only passes the bytes on
to the test, in whose process the editor is attached.
"""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.editors.plugin.editor import StdioEditor, attach
from isthmus.ide.editor import Range
from isthmus.ide.reviews.review import DiffReview
from support.editor_deadlines import PATIENT_PLUGIN
from support.waiting import eventually_async

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "editors" / "minimal_editor.py"
PASSES_ON = """
import os, socket, threading

def connected():
    end = socket.socket(socket.AF_UNIX)
    end.connect(os.environ["COMPANION_SOCKET"])
    return end

outgoing, incoming = connected(), connected()

def pass_on():
    while data := os.read(0, 65536):
        outgoing.sendall(data)
    outgoing.close()

threading.Thread(target=pass_on, daemon=True).start()
while data := incoming.recv(65536):
    view = memoryview(data)
    while view:
        view = view[os.write(1, view):]
"""
"""The program in the companion's place."""
SECONDS = 60


class MinimalEditorDriver:
    """A user at the terminal of the example; see EditorDriver in support.editor_driver."""

    def __init__(self, process: "subprocess.Popen[str]", editor: StdioEditor) -> None:
        self._process = process
        self._editor = editor
        self._lines: list[str] = []
        self._seen = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.append(line.rstrip("\n"))

    @property
    def editor(self) -> StdioEditor:
        return self._editor

    async def _enter(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

    async def open(self, path: Path) -> None:
        await self._enter(str(path))

    async def select(self, at: Range) -> None:
        del at
        pytest.skip("a terminal has no selection")

    async def type_over(self, text: str) -> None:
        del text
        pytest.skip("a terminal edits no files")

    async def edit_review(self, review: DiffReview, text: str) -> None:
        del review, text
        pytest.skip("a terminal shows proposals, and does not edit them")

    async def accept(self, review: DiffReview) -> None:
        await self._answer(review, "y")

    async def reject(self, review: DiffReview) -> None:
        await self._answer(review, "n")

    async def _answer(self, review: DiffReview, line: str) -> None:
        """Answer a review once it is asked about."""

        def is_asked() -> bool:
            lines = self._lines[self._seen :]
            asked = [each for each in lines if " proposes for " in each]
            return bool(asked) and asked[-1].endswith(f" {review.file_path}:") and lines[-1] == "Accept? [y/n]"

        await eventually_async(is_asked, SECONDS, what=f"a question about {review.file_path}")
        self._seen = len(self._lines)
        await self._enter(line)

    async def has_message(self, text: str) -> bool:
        return any(text in line for line in self._lines)

    async def quit(self) -> None:
        self._process.send_signal(signal.SIGINT)


@asynccontextmanager
async def minimal_editor_driver(folder: Path) -> AsyncGenerator[MinimalEditorDriver]:
    """Yield a user at the terminal of the example, which works in ``folder``."""
    with contextlib.ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        (place / "isthmus").mkdir()
        (place / "isthmus" / "__init__.py").touch()
        (place / "isthmus" / "__main__.py").write_text(PASSES_ON, "utf-8")
        listener = stack.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(str(place / "s"))
        listener.listen()
        variables = {"PYTHONPATH": str(place), "COMPANION_SOCKET": str(place / "s")}
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, str(EXAMPLE)],
                cwd=folder,
                env={**os.environ, **variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        )
        stack.callback(process.kill)
        listener.setblocking(False)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(SECONDS):
            incoming, outgoing = [(await loop.sock_accept(listener))[0] for _ in range(2)]
        editor = await attach(incoming.detach(), outgoing.detach(), PATIENT_PLUGIN)
        try:
            yield MinimalEditorDriver(process, editor)
        finally:
            await editor.aclose()
