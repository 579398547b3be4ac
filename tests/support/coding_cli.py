"""The common parts of real coding CLIs in a terminal: a prompt, a screen, a dialog, and a scripted model.

Gemini CLI and its descendant Qwen Code draw with the same library, so tests type into both in the same way. The
differences are in gemini_cli.py and qwen_cli.py.
"""

import functools
import os
import re
import time
from pathlib import Path
from typing import Any, ClassVar

import pytest

from support.programs import require
from support.pty_program import PtyProgram
from support.scripted_wire import Call, Reply, Say, ScriptedWire
from support.waiting import eventually_async

SECONDS = 90
"""Maximum seconds for any step: a CLI starts in 2 s on a quiet machine, in 40 s where many programs start at once."""
PROMPT = "Type your message"
ENTER = "\x1b[F\r"
"""End and Enter: the CLIs take an Enter within 30 ms of a letter as part of a paste, but not one after End."""
ENTER_AGAIN_SECONDS = 1.0
DRAWN_SECONDS = 0.3
"""Seconds that the typed text must be gone from the screen before it counts as submitted."""
DIALOG = "Apply this change?"
COMPILED = Path(__file__).resolve().parents[2] / ".cache" / "node-compiled"
"""Folder where Node.js keeps the compiled code of CLIs."""
_INHERITED = ("HOME", "TMPDIR", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "LC_ALL", "TERM")


def cli_environment() -> dict[str, str]:
    """Return the environment that every CLI gets."""
    return {
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        "PATH": os.pathsep.join([str(require("node").parent), os.environ["PATH"]]),
        "COLORTERM": "truecolor",
        # Each CLI is compiled once for all tests.
        "NODE_COMPILE_CACHE": str(COMPILED),
        # Without this, each look-up without a network stalls until the resolver's timeout.
        "RES_OPTIONS": "timeout:1 attempts:1",
    }


class CodingCli:
    """A CLI in its terminal; `wire` is its model."""

    working: ClassVar[str]
    """Text that the screen shows during a turn."""

    def __init__(self, terminal: PtyProgram, wire: ScriptedWire) -> None:
        self.terminal = terminal
        self.wire = wire

    def typed(self) -> str:
        """Return the text at the prompt; empty while a dialog is open."""
        raise NotImplementedError

    def editor_context(self, request: int = -1) -> Any:
        """Return the editor context, or its changes, sent with the last message of a model request."""
        raise NotImplementedError

    async def shows(self, text: str) -> str:
        """Wait until this text is on the screen, and return the screen. Fails at once if the CLI ends."""

        def condition() -> str:
            if self.terminal.process.poll() is not None and text not in self.terminal.screen:
                pytest.fail(f"the CLI ended before it showed {text!r}:\n{self.terminal.screen}")
            return self.terminal.screen_with(text)

        return await eventually_async(condition, SECONDS, what=f"{text!r} on the screen")

    async def type(self, text: str, suggestion: str = "") -> None:
        """Type at the empty prompt and press Enter once `suggestion` is shown. Do not type @: it opens a completion.

        Waits for the end of a turn first: the prompt is drawn during a turn as well, and the CLI then drops a command.
        """
        await self.is_idle()
        self.terminal.press(text)
        await eventually_async(lambda: self.typed() == text, SECONDS, what=f"{text!r} at the prompt")
        await self.shows(suggestion)
        await eventually_async(functools.partial(self._submitted, text, [], []), SECONDS, what=f"{text!r} submitted")

    async def is_idle(self) -> None:
        """Wait until it shows an empty prompt."""
        await eventually_async(self._is_idle, SECONDS, what="the prompt of a CLI that is idle")

    def _is_idle(self) -> bool:
        return PROMPT in self.terminal.screen and self.working not in self.terminal.screen

    def _submitted(self, text: str, pressed: list[float], gone: list[float]) -> bool:
        if self.typed() != text:
            # A half-drawn screen has no prompt at all for a moment.
            gone.append(time.monotonic())
            return self.terminal.process.poll() is not None or gone[-1] - gone[0] > DRAWN_SECONDS
        gone.clear()
        # An Enter just after the text was drawn is lost; a user sees that and presses it again.
        if not pressed or time.monotonic() - pressed[-1] > ENTER_AGAIN_SECONDS:
            pressed.append(time.monotonic())
            self.terminal.press(ENTER)
        return False

    async def ask(self, prompt: str) -> Any:
        """Run one turn in which the model only replies with text; return the editor context sent with the prompt."""
        before = len(self.wire.model_requests)
        answer = f"Answer {before}."
        self.wire.add(Reply.of(Say(answer)))
        await self.type(prompt)
        await self.shows(answer)
        await self.shows(PROMPT)
        return self.editor_context(before)

    async def propose(self, call: Call, closing: str | None = None) -> None:
        """Have the model call an editing tool, then reply with `closing`; return when the CLI asks for permission.

        Without `closing` the model must not be asked again: the CLI ends a turn whose edit was rejected.
        """
        self.wire.add(Reply.of(call))
        if closing is not None:
            self.wire.add(Reply.of(Say(closing)))
        await self.type(f"call {call.name}")
        await self.shows(DIALOG)

    async def choose(self, option: str) -> None:
        """Answer a dialog of the CLI."""
        screen = await self.shows(option)
        found = re.search(rf"(\d)\. {re.escape(option)}", screen)
        assert found is not None, screen
        self.terminal.press(found[1])
