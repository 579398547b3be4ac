"""The real Claude Code in a terminal, where ISTHMUS_CLAUDE is its path, with a scripted model behind it.

The same small interface has :class:`StrictCli`, the strict client with a terminal that answers at once, so that one
scenario runs on both.
"""

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from support.anthropic_wire import AnthropicWire
from support.claude_cli import ClaudeCli, Edit, claude_cli
from support.pty_program import PtyProgram, pty_program
from support.scripted_wire import Call, Reply, Say
from support.waiting import eventually_async
from support.wire_server import Answer, WireRequest

PROGRAM = os.environ.get("ISTHMUS_CLAUDE", "")
"""Path of the real CLI, read before the first test hides the variable."""
SECONDS = 60.0
ENTER_AGAIN_SECONDS = 2.0
IDLE = "? for shortcuts"
IDLE_IN_AUTO_MODE = "auto mode on"
DIALOG = "Opened changes in"
DONE = "The edit is done."
_KEY = "sk-ant-api03-" + "x" * 40


class CliInATerminal(Protocol):
    """Actions and observations of a scenario at a CLI and its terminal."""

    async def sees_file(self, name: str) -> None:
        """Wait until it is connected and has this file in its context."""
        ...

    async def sees_selected_lines(self, count: int) -> None:
        """Wait until its context has this number of selected lines."""
        ...

    async def mentions(self, name: str, first: int, last: int) -> None:
        """Wait until lines (1-based) of a file are mentioned at its prompt."""
        ...

    async def learned(self, text: str) -> None:
        """Wait until it, and so its model, received a diagnostic."""
        ...

    async def found_again(self) -> None:
        """Wait until it is connected again after the companion was restarted."""
        ...

    async def propose(self, file: Path, old: str, new: str, *, is_rejected: bool = False) -> None:
        """Have it propose an edit; return when it asks. `is_rejected`: whether the edit will be rejected."""
        ...

    async def answer(self, *, yes: bool) -> None:
        """Answer the question in the terminal."""
        ...

    async def ended(self) -> None:
        """Wait until it has carried out the decision."""
        ...


class StrictCli:
    """The strict client behind the interface that scenarios use."""

    def __init__(self, cli: ClaudeCli) -> None:
        self._cli = cli
        self._terminal: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._edit: asyncio.Task[Edit] | None = None

    async def sees_file(self, name: str) -> None:

        def named() -> bool:
            selections = self._cli.told("selection_changed")
            return bool(selections) and Path(selections[-1]["filePath"]).name == name

        await eventually_async(named, what=f"{name} in the newest selection")

    async def sees_selected_lines(self, count: int) -> None:

        def selected() -> bool:
            newest = self._cli.told("selection_changed")[-1]
            at = newest["selection"]
            lines = at["end"]["line"] - at["start"]["line"] + (at["end"]["character"] > 0)
            return bool(newest["text"]) and lines == count

        await eventually_async(lambda: self._cli.received and selected(), what=f"{count} selected lines")

    async def mentions(self, name: str, first: int, last: int) -> None:
        mention = await self._cli.mentioned()
        lines = (mention["lineStart"] + 1, mention["lineEnd"] + 1)
        assert (Path(mention["filePath"]).name, *lines) == (name, first, last)

    async def learned(self, text: str) -> None:
        assert text in self._cli.diagnostics

    async def found_again(self) -> None:
        await self._cli.lost()
        assert await self._cli.reconnect()

    async def propose(self, file: Path, old: str, new: str, *, is_rejected: bool = False) -> None:
        await self._cli.begin_turn()
        self._terminal = asyncio.get_running_loop().create_future()
        text = file.read_bytes().decode().replace(old, new)
        self._edit = asyncio.create_task(self._cli.edit(file, text, self._terminal))

    async def answer(self, *, yes: bool) -> None:
        self._terminal.set_result(yes)

    async def ended(self) -> None:
        assert self._edit is not None
        await asyncio.wait_for(self._edit, SECONDS)


class _Model(AnthropicWire):
    """A model that also answers the CLI's requests to small models, for titles and for a check of the connection."""

    def asks_model(self, request: WireRequest) -> bool:
        if request.method != "POST" or request.path != "/v1/messages":
            return False
        return any(tool.get("name") == "Edit" for tool in request.json.get("tools", []))

    def answer_other(self, request: WireRequest) -> Answer:
        if request.method == "HEAD":
            return Answer()
        if request.path != "/v1/messages":
            return super().answer_other(request)
        text = {"type": "text", "text": "{}"}
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {"id": "msg_0", "type": "message", "role": "assistant", "model": "small", "content": [text]}
        return Answer.json({**message, "stop_reason": "end_turn", "usage": usage})


class ClaudeCode:
    """The real Claude Code in its terminal; `idle` is what it shows when it waits for a prompt."""

    def __init__(self, terminal: PtyProgram, model: AnthropicWire, idle: str) -> None:
        self._terminal = terminal
        self._model = model
        self._idle = idle

    async def _shows(self, text: str) -> None:
        await eventually_async(lambda: self._terminal.screen_with(text), SECONDS, what=f"{text!r} on the screen")

    async def sees_file(self, name: str) -> None:
        await self._shows(f"\u29c9 In {name}")

    async def sees_selected_lines(self, count: int) -> None:
        await self._shows(f"\u29c9 {count} line{'s' if count > 1 else ''} selected")

    async def mentions(self, name: str, first: int, last: int) -> None:
        await self._shows(f"@{name}#L{first}-{last}")

    async def learned(self, text: str) -> None:

        def told() -> bool:
            return any(text.encode() in request.body for request in self._model.model_requests)

        await eventually_async(told, SECONDS, what=f"{text!r} in a model request")

    async def found_again(self) -> None:
        """Return at once: the screen does not show the connection; the next check of its context does."""

    async def propose(self, file: Path, old: str, new: str, *, is_rejected: bool = False) -> None:
        edit = {"file_path": str(file), "old_string": old, "new_string": new}
        self._model.add(Reply.of(Call("Read", {"file_path": str(file)})), Reply.of(Call("Edit", edit)))
        if not is_rejected:
            self._model.add(Reply.of(Say(DONE)))
        await submit(self._terminal, self._model, "edit it", self._idle)
        await self._shows(DIALOG)

    async def write(self, path: Path, text: str) -> None:
        """Have the model write a file, in a mode that does not ask; return when its turn has ended."""
        done = f"Written {path.name}."
        self._model.add(Reply.of(Call("Read", {"file_path": str(path)})))
        self._model.add(Reply.of(Call("Write", {"file_path": str(path), "content": text})), Reply.of(Say(done)))
        await submit(self._terminal, self._model, f"write {path.name}", self._idle)
        await self._shows(done)

    async def answer(self, *, yes: bool) -> None:
        self._terminal.press("1" if yes else "\x1b")

    async def ended(self) -> None:

        def is_idle() -> bool:
            screen = self._terminal.screen
            return DIALOG not in screen and self._idle in screen

        await eventually_async(is_idle, SECONDS, what="the end of the turn")


async def submit(terminal: PtyProgram, model: AnthropicWire, prompt: str, idle: str = IDLE) -> None:
    """Type a prompt into the real CLI, which shows `idle` before, and wait until the model is asked."""
    await eventually_async(lambda: terminal.screen_with(idle), SECONDS, what="the prompt")
    before = len(model.model_requests)
    terminal.press(prompt)
    await eventually_async(lambda: terminal.screen_with(prompt), SECONDS, what="what was typed")

    async def submitted() -> bool:
        # An Enter right after the text counts as a part of it.
        terminal.press("\r")
        with_model = asyncio.get_running_loop().time() + ENTER_AGAIN_SECONDS
        while len(model.model_requests) == before:
            if asyncio.get_running_loop().time() > with_model:
                return False
            await asyncio.sleep(0.05)  # delay: pause between two looks at the model's requests
        return True

    await eventually_async(submitted, SECONDS, what="a model request")


@asynccontextmanager
async def cli_in_a_terminal(kind: str, folder: Path, variables: Mapping[str, str]) -> AsyncGenerator[CliInATerminal]:
    """Start a CLI of one `kind` ("strict" or "real") in a terminal with the variables of a companion."""
    if kind == "strict":
        async with claude_cli(folder, {**os.environ, **variables}) as cli:
            yield StrictCli(cli)
        return
    async with claude_code(folder, variables, "--permission-mode", "default") as cli:
        yield cli


@asynccontextmanager
async def claude_code(folder: Path, variables: Mapping[str, str], *arguments: str) -> AsyncGenerator[ClaudeCode]:
    """Start the real CLI with the variables of a companion; without a mode in `arguments`, in its default, auto."""
    idle = IDLE if "--permission-mode" in arguments else IDLE_IN_AUTO_MODE
    with claude_model() as model:
        environment = claude_environment(folder, model.base_url, variables)
        with pty_program([PROGRAM, *arguments], folder=folder, environment=environment) as terminal:
            cli = ClaudeCode(terminal, model, idle)
            await eventually_async(lambda: terminal.screen_with(idle), SECONDS, what="the prompt")
            yield cli


def claude_model() -> AnthropicWire:
    """Return a scripted model for the real CLI, which also answers its other requests."""
    return _Model()


def claude_environment(folder: Path, model_url: str, variables: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a CLI that asks nothing when it starts in `folder`; write its settings into HOME."""
    project = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
    settings = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [_KEY[-20:]], "rejected": []},
        "projects": {str(folder): project},
    }
    (Path(os.environ["HOME"]) / ".claude.json").write_text(json.dumps(settings), encoding="utf-8")
    return {
        **{name: os.environ[name] for name in ("HOME", "TMPDIR", "PATH")},
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": model_url,
        "ANTHROPIC_API_KEY": _KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        **variables,
    }
