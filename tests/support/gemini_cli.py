"""The real Gemini CLI (npm, the locked version) in IDE mode, in a terminal, with a scripted model instead of Google's.

Helpers for a user: type a prompt, read the screen, answer its dialogs; and requests to the model. Its HOME and TMPDIR
are those of the test, so it finds the companions that the test started.
"""

import json
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.coding_cli import PROMPT, SECONDS, CodingCli, cli_environment
from support.gemini_wire import GeminiWire
from support.programs import node_package, require
from support.pty_program import pty_program
from support.waiting import eventually_async

FOOTER = " workspace (/directory)"
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
_CONTEXT = re.compile(r"editor context.*?```json\n(.*?)\n```", re.DOTALL)


class GeminiCli(CodingCli):
    """The Gemini CLI in its terminal, made by :func:`gemini_cli`."""

    working = "(esc to cancel"

    async def sees_files(self, count: int) -> None:
        """Wait until the CLI has an editor context with this number of open files."""
        await self.shows(f"{count} open file{'s' if count > 1 else ''} (F4")

    def typed(self) -> str:
        """Return the text at the prompt: the last line with its mark above the footer. Empty while a dialog is open."""
        line, _, below = self.terminal.screen.rpartition("\n > ")[2].partition("\n")
        return line if FOOTER in below else ""

    async def status(self) -> str:
        """Return the answer to `/ide status`."""
        # Before the commands are loaded, when none is suggested, it would be a prompt for the model.
        await self.type("/ide status", "Check status of IDE integration")

        def answered() -> str:
            answer = self.terminal.screen.rpartition("> /ide status")[2]
            assert "\N{INFORMATION SOURCE} " in answer, self.terminal.screen
            return answer

        return await eventually_async(answered, SECONDS, what="the answer of /ide status")

    def editor_context(self, request: int = -1) -> dict[str, Any]:
        """Return the editor context, or its changes, sent with the last message of a model request; {} for none."""
        for part in self.wire.model_requests[request].json["contents"][-1]["parts"]:
            if found := _CONTEXT.search(part.get("text", "")):
                return json.loads(found[1])
        return {}

    def tool_response(self) -> dict[str, Any]:
        """Return the response to the last tool call that the model received."""
        contents: list[dict[str, Any]] = self.wire.model_requests[-1].json["contents"]
        parts = [part for content in contents for part in content["parts"]]
        return next(part["functionResponse"]["response"] for part in reversed(parts) if "functionResponse" in part)


def gemini_environment(model: GeminiWire) -> dict[str, str]:
    """Return the whole environment of the CLI."""
    return {
        **cli_environment(),
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": model.base_url,
        "GEMINI_CLI_NO_RELAUNCH": "1",
        # In a container it would look for the companion on another host.
        "REMOTE_CONTAINERS": "true",
    }


@asynccontextmanager
async def gemini_cli(
    folder: Path,
    *before: str | Path,
    files: int = 1,
    environment: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] = SETTINGS,
    first: str = PROMPT,
) -> AsyncGenerator[GeminiCli]:
    """Start the CLI in `folder`, below the command `before`; end it afterwards, and check that the script was used up.

    Returns when it shows the companion's context with `files` open files; 0 waits only for its prompt. `environment`
    is added to its environment, `settings` are those of the user; `first` is the text that it shows in place of
    its prompt if the settings make it ask a question.
    """
    program = node_package("@google/gemini-cli") / "bundle" / "gemini.js"
    file = Path(os.environ["HOME"]) / ".gemini" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(settings), encoding="utf-8")
    with GeminiWire() as model:
        command = [*before, require("node"), program]
        isolated_folders = gemini_environment(model) | dict(environment or {})
        with pty_program(command, folder=folder, environment=isolated_folders) as terminal:
            cli = GeminiCli(terminal, model)
            await cli.shows(first)
            if files:
                await cli.sees_files(files)
            yield cli
            assert model.unexpected == 0
