"""The real Gemini CLI (npm, the locked version) in IDE mode, in a terminal, with a scripted model instead of Google's.

A person's helper: type a prompt, read the screen, answer its dialogs; and what the model was told. Its HOME and TMPDIR
are those of the test, so it finds the companions that the test started.
"""

import functools
import json
import os
import re
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.gemini_wire import GeminiWire
from support.programs import node_package, require
from support.pty_program import PtyProgram, pty_program
from support.scripted_wire import Call, Reply, Say
from support.waiting import eventually_async

SECONDS = 40
"""How long anything may take: the CLI starts in 2 s on a quiet machine, and much slower on a busy one."""
PROMPT = "Type your message"
WORKING = "(esc to cancel"
FOOTER = " workspace (/directory)"
ENTER = "\x1b[F\r"
"""End and Enter: the CLI takes an Enter within 30 ms of a letter for a part of a paste, but not one after End."""
ENTER_AGAIN_SECONDS = 1.0
DRAWN_SECONDS = 0.3
"""How long the typed text has to be away before it counts as submitted."""
SETTINGS: Mapping[str, Any] = {
    "ide": {"enabled": True, "hasSeenNudge": True},
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {
        "enableAutoUpdate": False,
        "enableAutoUpdateNotification": False,
        "checkpointing": {"enabled": False},
    },
    "model": {"name": "gemini-2.5-flash"},
}
_INHERITED = ("HOME", "TMPDIR", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "LC_ALL", "TERM")
_CONTEXT = re.compile(r"editor context.*?```json\n(.*?)\n```", re.DOTALL)


class GeminiCli:
    """Made by :func:`gemini_cli`. `wire` is its model."""

    def __init__(self, terminal: PtyProgram, wire: GeminiWire) -> None:
        self.terminal = terminal
        self.wire = wire

    async def shows(self, text: str) -> str:
        """Wait until this text stands on the screen; the screen. Not longer than the CLI runs."""

        def condition() -> str:
            if self.terminal.process.poll() is not None and text not in self.terminal.screen:
                pytest.fail(f"the CLI ended before it showed {text!r}:\n{self.terminal.screen}")
            return self.terminal.screen_with(text)

        return await eventually_async(condition, SECONDS, what=f"{text!r} on the screen")

    async def sees_files(self, count: int) -> None:
        """Wait until the CLI has an editor context with so many open files."""
        await self.shows(f"{count} open file{'s' if count > 1 else ''} (F4")

    async def type(self, text: str, suggestion: str = "") -> None:
        """Type at the empty prompt and press Enter, once `suggestion` is shown. No @: it opens a completion.

        Waits for the end of a turn first: the prompt is drawn during a turn as well, and the CLI then drops a command.
        """
        await eventually_async(self._is_idle, SECONDS, what="the prompt of a CLI that is idle")
        self.terminal.press(text)
        await eventually_async(lambda: self._typed() == text, SECONDS, what=f"{text!r} at the prompt")
        await self.shows(suggestion)
        await eventually_async(functools.partial(self._submitted, text, [], []), SECONDS, what=f"{text!r} submitted")

    def _is_idle(self) -> bool:
        return PROMPT in self.terminal.screen and WORKING not in self.terminal.screen

    def _submitted(self, text: str, pressed: list[float], gone: list[float]) -> bool:
        if self._typed() != text:
            # A screen that is half drawn has no prompt at all for a moment.
            gone.append(time.monotonic())
            return self.terminal.process.poll() is not None or gone[-1] - gone[0] > DRAWN_SECONDS
        gone.clear()
        # An Enter in the moment after the text was drawn is lost; a person sees that and presses it again.
        if not pressed or time.monotonic() - pressed[-1] > ENTER_AGAIN_SECONDS:
            pressed.append(time.monotonic())
            self.terminal.press(ENTER)
        return False

    def _typed(self) -> str:
        """What stands at the prompt: the last line that begins so, above the footer. Empty while a dialog is open."""
        line, _, below = self.terminal.screen.rpartition("\n > ")[2].partition("\n")
        return line if FOOTER in below else ""

    async def status(self) -> str:
        """What `/ide status` says."""
        # Before the commands are loaded, when none is suggested, it would be a prompt for the model.
        await self.type("/ide status", "Check status of IDE integration")

        def answered() -> str:
            answer = self.terminal.screen.rpartition("> /ide status")[2]
            assert "\N{INFORMATION SOURCE} " in answer, self.terminal.screen
            return answer

        return await eventually_async(answered, SECONDS, what="the answer of /ide status")

    async def ask(self, prompt: str) -> dict[str, Any]:
        """Have one turn in which the model only talks; the editor context that came with the prompt, {} when none."""
        before = len(self.wire.model_requests)
        answer = f"Answer {before}."
        self.wire.add(Reply.of(Say(answer)))
        await self.type(prompt)
        await self.shows(answer)
        await self.shows(PROMPT)
        return self.editor_context(before)

    async def propose(self, call: Call, closing: str | None = None) -> None:
        """Have the model call an editing tool, and say `closing` after that; returns when the CLI asks for permission.

        Without `closing` the model must not be asked again: the CLI ends a turn whose edit was rejected.
        """
        self.wire.add(Reply.of(call))
        if closing is not None:
            self.wire.add(Reply.of(Say(closing)))
        await self.type(f"call {call.name}")
        await self.shows("Apply this change?")

    async def choose(self, option: str) -> None:
        """Answer a dialog of the CLI."""
        screen = await self.shows(option)
        found = re.search(rf"(\d)\. {re.escape(option)}", screen)
        assert found is not None, screen
        self.terminal.press(found[1])

    def editor_context(self, request: int = -1) -> dict[str, Any]:
        """The editor context, or the changes of it, that came with the last message of a model request; {} for none."""
        for part in self.wire.model_requests[request].json["contents"][-1]["parts"]:
            if found := _CONTEXT.search(part.get("text", "")):
                return json.loads(found[1])
        return {}

    def tool_response(self) -> dict[str, Any]:
        """What the model was told last about a tool call."""
        contents: list[dict[str, Any]] = self.wire.model_requests[-1].json["contents"]
        parts = [part for content in contents for part in content["parts"]]
        return next(part["functionResponse"]["response"] for part in reversed(parts) if "functionResponse" in part)


def gemini_environment(model: GeminiWire) -> dict[str, str]:
    """All that the CLI gets from its surroundings."""
    return {
        **{name: os.environ[name] for name in _INHERITED if name in os.environ},
        "PATH": os.pathsep.join([str(require("node").parent), os.environ["PATH"]]),
        "COLORTERM": "truecolor",
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": model.base_url,
        "GEMINI_CLI_NO_RELAUNCH": "1",
        # In a container it would look for the companion on another host.
        "REMOTE_CONTAINERS": "true",
        # Offline every look-up stalls for as long as the resolver is patient.
        "RES_OPTIONS": "timeout:1 attempts:1",
    }


@asynccontextmanager
async def gemini_cli(folder: Path, *before: str | Path, files: int = 1) -> AsyncGenerator[GeminiCli]:
    """Start the CLI in `folder`, below the command `before`; it is ended afterwards, and nothing of the script is left.

    Returns when it shows the companion's context with `files` open files; 0 waits for its prompt alone.
    """
    program = node_package("@google/gemini-cli") / "bundle" / "gemini.js"
    settings = Path(os.environ["HOME"]) / ".gemini" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps(SETTINGS), encoding="utf-8")
    with GeminiWire() as model:
        command = [*before, require("node"), program]
        with pty_program(command, folder=folder, environment=gemini_environment(model)) as terminal:
            cli = GeminiCli(terminal, model)
            await cli.shows(PROMPT)
            if files:
                await cli.sees_files(files)
            yield cli
            assert model.unexpected == 0
