"""``isthmus serve`` for all tests of a file that leave it unchanged: each start takes a second or two of CPU time.

Workspaces are folders in its ``root``, which the user trusts: each has its own servers, sessions and answers.
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a import RemoteAgent
from support.isolation import isolate
from support.mcp_hosting import write_servers
from support.serve_program import ServeProgram, serve_program


@dataclass(frozen=True, slots=True)
class SharedServe:
    """The server, and a client of it."""

    program: ServeProgram
    agent: RemoteAgent
    folder: Path
    """Folder with its data."""
    root: Path

    def workspace(self, name: str) -> Path:
        """Return a folder to work in, made at its first use."""
        folder = self.root / name
        folder.mkdir(exist_ok=True)
        return folder


@asynccontextmanager
async def shared_serve(
    folder: Path, script: str, *arguments: str, servers: Mapping[str, Any] | None = None
) -> AsyncGenerator[SharedServe]:
    """Start it in an environment of its own; ``servers`` are the user's MCP servers."""
    folder = folder.resolve()
    root = folder / "workspaces"
    root.mkdir()
    async with AsyncExitStack() as stack:
        with pytest.MonkeyPatch.context() as patch:
            places = stack.enter_context(isolate(patch))
            write_servers(places.home, servers or {})
            rules = json.dumps({str(root): "TRUST_FOLDER"})
            (places.home / ".gemini" / "trustedFolders.json").write_text(rules, encoding="utf-8")
            program = await stack.enter_async_context(serve_program(folder, root, *arguments, script=script))
        agent = await stack.enter_async_context(program.client())
        yield SharedServe(program, agent, folder, root)
