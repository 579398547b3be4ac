"""The real Qwen Code (npm, the locked version) in IDE mode, in a terminal, with a scripted model of OpenAI's wire.

Its HOME and TMPDIR are those of the test, so it finds the companions that the test started.
"""

import json
import os
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from support.coding_cli import PROMPT, SECONDS, CodingCli, cli_environment
from support.openai_wire import OpenAIWire
from support.programs import node_package, require
from support.pty_program import pty_program
from support.scripted_wire import Call, Reply
from support.waiting import eventually_async

SETTINGS: Mapping[str, Any] = {
    "$version": 4,
    "ide": {"enabled": True, "hasSeenNudge": True},
    "security": {"auth": {"selectedType": "openai"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "checkpointing": {"enabled": False}},
    "ui": {
        "hideTips": True,
        "enableFollowupSuggestions": False,
        "enableWelcomeBack": False,
        "enableUserFeedback": False,
    },
    "tools": {"approvalMode": "default", "useRipgrep": False},
    "memory": {"enableManagedAutoMemory": False},
    "model": {"name": "scripted"},
}
STATUS_TRIES = 20
_CONTEXT = re.compile(
    r"<system-reminder>\nHere is [^\n]* current editor context\.[^\n]*\n(.*?)\n</system-reminder>", re.S
)
_TYPED = re.compile(r"^> (.*)\n─", re.MULTILINE)


class QwenCode(CodingCli):
    """Qwen Code in its terminal, made by :func:`qwen_code`."""

    working = "esc to cancel"

    def typed(self) -> str:
        """Return the text at the prompt, between two rules; empty while a dialog is open."""
        lines = _TYPED.findall(self.terminal.screen)
        return lines[-1].strip() if lines else ""

    async def status(self) -> str:
        """Return the answer to `/ide status`, with the names of its open files."""
        await self.type("/ide status", "check status of IDE integration")

        def answered() -> str:
            answer = self.terminal.screen.rpartition("> /ide status")[2]
            assert re.search(r"Connect(ed|ing)|Disconnected", answer), self.terminal.screen
            return answer

        return await eventually_async(answered, SECONDS, what="the answer of /ide status")

    async def sees_file(self, name: str) -> None:
        """Ask for its open files until this one is among them; it shows them only when asked."""
        for _ in range(STATUS_TRIES):
            if f"- {name}" in await self.status():
                return
        raise AssertionError(f"{name} is not among the open files of Qwen Code:\n{self.terminal.screen}")

    def editor_context(self, request: int = -1) -> str:
        """Return the editor context, or its changes, sent with the last message of a model request; "" for none."""
        content = self.wire.model_requests[request].json["messages"][-1]["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        return "".join(found for part in parts for found in _CONTEXT.findall(part.get("text", "")))

    async def rewrite(self, path: Path, text: str, closing: str | None = None) -> None:
        """Have the model read a file, as Qwen Code requires, and then rewrite it, as :meth:`propose` does."""
        self.wire.add(Reply.of(Call("read_file", {"file_path": str(path)})))
        await self.propose(Call("write_file", {"file_path": str(path), "content": text}), closing)

    def tool_response(self) -> str:
        """Return the response to the last tool call that the model received."""
        messages: list[dict[str, Any]] = self.wire.model_requests[-1].json["messages"]
        content: Any = next(message["content"] for message in reversed(messages) if message["role"] == "tool")
        return content if isinstance(content, str) else "".join(part["text"] for part in content)


@asynccontextmanager
async def qwen_code(
    folder: Path,
    *before: str | Path,
    environment: Mapping[str, str] | None = None,
    settings: Mapping[str, Any] = SETTINGS,
) -> AsyncGenerator[QwenCode]:
    """Start the CLI in `folder`, below the command `before`; end it afterwards, and check that the script was used up.

    Returns when it shows its prompt. `environment` is added to its environment, `settings` are those of the user.
    """
    program = node_package("@qwen-code/qwen-code") / "cli.js"
    file = Path(os.environ["HOME"]) / ".qwen" / "settings.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(settings), encoding="utf-8")
    with OpenAIWire() as model:
        isolated_folders = {
            **cli_environment(),
            "OPENAI_API_KEY": "none",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_MODEL": "scripted",
            # Otherwise it starts itself a second time, with more memory.
            "QWEN_CODE_NO_RELAUNCH": "true",
            **(environment or {}),
        }
        command = [*before, require("node"), program]
        with pty_program(command, folder=folder, environment=isolated_folders) as terminal:
            cli = QwenCode(terminal, model)
            await cli.shows(PROMPT)
            yield cli
            assert model.unexpected == 0
