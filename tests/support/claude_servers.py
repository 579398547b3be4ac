"""Servers with the habits of real IDE extensions of the Claude protocol, each as it was observed.

claudecode.nvim (strict frames, JSON-RPC errors, leaked buffers), monet (``uri``, errors as text, an openDiff that is
never answered), sublime-claude-code (``isError``, 401), claude-code-ide.el (no token, counts from 1, few tools).
"""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from support.claude_ide import TEXT, ClaudeServer, RpcError, json_text, position, texts


class SublimeServer(ClaudeServer):
    """sublime-claude-code: a hex token, 401, `isError`, re-assembles fragments."""

    ide_name = "Sublime Text"
    server_name = "sublime-claude-code"
    token = "0123456789abcdef0123456789abcdef"

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace)
        self.says_contents = True


class NeovimServer(ClaudeServer):
    """claudecode.nvim: one frame a message, JSON-RPC errors, close_tab unlisted, a leaked buffer, flat diagnostics."""

    ide_name = "Neovim"
    server_name = "claudecode-neovim"
    version = "2024-11-05"
    token = "fedcba9876543210fedcba9876543210"
    refusal = 400
    unfragmented = True
    hidden = frozenset({"close_tab"})
    tools: ClassVar[Mapping[str, Sequence[str]]] = {
        **ClaudeServer.tools,
        "openFile": (*ClaudeServer.tools["openFile"], "startLine", "endLine"),
    }

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace)
        self.says_contents = True

    async def mention(self, path: str, start: int | None = None, end: int | None = None) -> None:
        """Send the path relative to its working directory."""
        await super().mention(os.path.relpath(path, self.workspace), start, end)

    async def open_diff(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Announce the diff's buffer as a file while it is open; join lines again, with a final newline."""
        if arguments["new_file_path"] in self.dirty:
            raise RpcError(-32000, "Diff setup failed", "Cannot create diff: file has unsaved changes")
        leaked = f"{self.workspace}/{arguments['tab_name']} (proposed)"
        await self.tell("selection_changed", self.selection(leaked, "", (0, 0), (0, 0)))
        result = await super().open_diff(arguments)
        content = result["content"]
        if content[0]["text"] == "FILE_SAVED":
            content[1]["text"] = "\n".join(content[1]["text"].splitlines()) + "\n"
        return result

    def tell_diagnostics(self, uri: str | None) -> dict[str, Any]:
        """Answer getDiagnostics with one item for each diagnostic, counted from 1."""
        wanted = [path for path in self.diagnostics if uri in (None, Path(path).as_uri())]
        if uri is not None and not any(Path(path).as_uri() == uri for path in self.open):
            raise RpcError(-32001, "File not open in buffer", uri)
        found: list[dict[str, Any]] = []
        for path in wanted:
            for each in self.diagnostics[path]:
                at = each["range"]["start"]
                flat = {"filePath": path, "line": at["line"] + 1, "character": at["character"] + 1, "severity": 1}
                found.append({"type": TEXT, "text": json.dumps({**flat, "message": each["message"], "source": "p"})})
        return {"content": found}

    def failure(self, text: str) -> dict[str, Any]:
        """Return a JSON-RPC error, with its reason in `data`."""
        raise RpcError(-32000, "Operation failed", text)


class MonetServer(ClaudeServer):
    """monet: `uri`, errors as text, null for false, no token check, an openDiff that close_tab leaves unanswered."""

    ide_name = "Emacs"
    server_name = "monet.el"
    version = "2024-11-05"
    checks_token = False
    tools: ClassVar[Mapping[str, Sequence[str]]] = {
        **ClaudeServer.tools,
        "openFile": ("uri",),
        "checkDocumentDirty": ("uri",),
        "saveDocument": ("uri",),
    }

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace)
        self.says_contents = True

    async def notification(self, method: str) -> None:
        """Send a notification that the tools have changed, at each connection."""
        if method == "notifications/initialized":
            await self.tell("notifications/tools/list_changed", {})

    async def call(self, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer in its own forms."""
        if name == "openFile" and set(arguments) != {"uri"}:
            return texts("Error opening file: Wrong type argument: stringp, nil")
        if name == "getOpenEditors":
            entries = [{"uri": Path(path).as_uri(), "name": Path(path).name, "path": path} for path in self.open]
            return json_text({"editors": entries})
        if name == "getWorkspaceFolders":
            return json_text({"folders": [{"uri": self.workspace.as_uri() + "/", "name": self.workspace.name}]})
        return await super().call(name, arguments)

    def path_of(self, arguments: dict[str, Any]) -> str:
        """Return the file that the URI names."""
        return str(arguments["uri"]).removeprefix("file://")

    def open_file(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Answer with this text alone."""
        result = super().open_file(arguments)
        return result if "isError" in result else texts("FILE_OPENED")

    def is_dirty(self, path: str) -> dict[str, Any]:
        """Answer null for false, as Lisp does."""
        return json_text({"success": True, "filePath": path, "isDirty": True if path in self.dirty else None})

    def close_tab(self, name: str) -> dict[str, Any]:
        """Close the diff without answering its openDiff."""
        if self.views.pop(name, None) is None:
            return texts("TAB_NOT_DIFF")
        return texts("TAB_CLOSED")


class EmacsServer(ClaudeServer):
    """claude-code-ide.el: no token at all, counts from 1, few tools, and executeCode is Lisp."""

    ide_name = "Emacs"
    server_name = "claude-code-ide-mcp"
    version = "2024-11-05"
    token = None
    tools: ClassVar[Mapping[str, Sequence[str]]] = {
        "openFile": ("path", "startLine", "endLine", "startText", "endText"),
        "openDiff": ClaudeServer.tools["openDiff"],
        "getDiagnostics": ("uri",),
        "close_tab": ("tab_name",),
        "executeCode": ("code",),
    }

    def __init__(self, workspace: Path) -> None:
        super().__init__(workspace)
        self.says_contents = True

    def selection(self, path: str, text: str, start: tuple[int, int], end: tuple[int, int]) -> dict[str, Any]:
        """Return a selection counted from 1, without `fileUrl` and `isEmpty`."""
        places = {"start": position(start, 1), "end": position(end, 1)}
        return {"text": text, "filePath": path, "selection": places}

    def path_of(self, arguments: dict[str, Any]) -> str:
        """Return the file, which has another argument name here."""
        return str(arguments["path"])


SERVERS: tuple[type[ClaudeServer], ...] = (ClaudeServer, SublimeServer, NeovimServer, MonetServer, EmacsServer)
WITH_CONTENTS = SERVERS[1:]
"""Servers that send the accepted contents."""
