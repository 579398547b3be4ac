"""The interactive front in this process, on plain lines: the user's input and the output."""

import asyncio
import io
import os
import sys
import threading

import pytest

from isthmus.client import AgentClient
from isthmus.terminal.interactive.interactive import run_interactive
from isthmus.terminal.interactive.interactive_options import InteractiveOptions
from support.front_program import WORKSPACE
from support.waiting import eventually_async

OPTIONS = InteractiveOptions({"workspace_path": WORKSPACE}, WORKSPACE)


class Conversation:
    """A conversation on plain lines; stdin stays open until `end_input`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        reading, self._writing = os.pipe()
        self._ended = False
        self._stdin = os.fdopen(reading, encoding="utf-8")
        self._stdout = io.StringIO()
        self._monkeypatch = monkeypatch

    @property
    def text(self) -> str:
        """The output so far."""
        return self._stdout.getvalue()

    def type(self, *lines: str) -> None:
        """Type these lines."""
        os.write(self._writing, "".join(f"{line}\n" for line in lines).encode())

    async def wait_for(self, text: str, count: int = 1) -> None:
        """Wait until the output has a text this many times."""
        await eventually_async(lambda: self.text.count(text) >= count, what=f"{count} times {text!r} in {self.text}")

    async def run(self, agent: AgentClient, *lines: str, options: InteractiveOptions = OPTIONS) -> int:
        """Type these lines, then leave."""
        self.type(*lines, "/quit")
        return await self.start(agent, options)

    def start(self, agent: AgentClient, options: InteractiveOptions = OPTIONS) -> "asyncio.Task[int]":
        """Start the conversation; it ends with the exit code, after 20 seconds at the latest."""
        # Not in a fixture: pytest itself replaces the streams between set-up and test.
        self._monkeypatch.setattr(sys, "stdin", self._stdin)
        self._monkeypatch.setattr(sys, "stdout", self._stdout)
        return asyncio.create_task(asyncio.wait_for(run_interactive(agent, options), 60))

    def end_input(self) -> None:
        """End the input."""
        if not self._ended:
            self._ended = True
            os.close(self._writing)

    def close(self) -> None:
        """Close the input stream, once nothing reads from it: its number may be that of the next test's input."""
        self.end_input()
        for thread in threading.enumerate():
            if thread.name == "stdin":
                thread.join(20)
        self._stdin.close()
