"""The real gemini-cli-a2a-server (npm, the locked version) as a process of its own, with a scripted model.

It speaks the dialect ``coderAgent``. It needs no network: its model is a GeminiWire. HOME is a folder of the test.
"""

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from support.gemini_wire import GeminiWire
from support.plain_http import plain_client
from support.ports import free_port
from support.programs import node_package, require
from support.waiting import eventually_async

SECONDS = 90
"""Maximum seconds for the start: it takes 2 s on a quiet machine, 20 s on a busy one."""
_SETTINGS: Mapping[str, Any] = {
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"checkpointing": {"enabled": False}},
}


@dataclass(frozen=True, slots=True)
class GeminiA2aServer:
    """A server that answers requests."""

    process: asyncio.subprocess.Process
    url: str
    workspace: Path
    wire: GeminiWire


@asynccontextmanager
async def gemini_a2a_server(
    folder: Path,
    workspace: Path,
    wire: GeminiWire,
    *,
    settings: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    script: Path | None = None,
) -> AsyncGenerator[GeminiA2aServer]:
    """Start the server with its HOME and its log in ``folder``; end it afterwards.

    ``settings`` are added to its ``settings.json``, e.g. ``mcpServers``. ``script`` is another program than
    that of the locked package.
    """
    program = script or node_package("@google/gemini-cli-a2a-server") / "dist" / "a2a-server.mjs"
    home = folder / "home"
    (home / ".gemini").mkdir(parents=True, exist_ok=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps({**_SETTINGS, **(settings or {})}), encoding="utf-8")
    port = free_port()
    variables = {
        "PATH": os.pathsep.join([str(require("node").parent), os.environ["PATH"]]),
        "HOME": str(home),
        "TMPDIR": os.environ.get("TMPDIR", "/tmp"),
        "GEMINI_API_KEY": "unused",
        "GOOGLE_GEMINI_BASE_URL": wire.base_url,
        "CODER_AGENT_PORT": str(port),
        "CODER_AGENT_WORKSPACE_PATH": str(workspace),
        "GIT_AUTHOR_NAME": "Test",
        "GIT_AUTHOR_EMAIL": "test@example.com",
        "GIT_COMMITTER_NAME": "Test",
        "GIT_COMMITTER_EMAIL": "test@example.com",
        "NO_PROXY": "*",
        **(environment or {}),
    }
    log_file = folder / "gemini-a2a-server.log"
    with log_file.open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            str(require("node")),
            str(program),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=workspace,
            env=variables,
            # The node of the virtual environment is a script that starts the real one: both are killed.
            start_new_session=True,
        )
    url = f"http://127.0.0.1:{port}/"
    try:

        async def answers() -> bool:
            assert process.returncode is None, log_file.read_text(encoding="utf-8")[-4000:]
            try:
                return (await http.get(f"{url}.well-known/agent-card.json")).status_code == 200
            except httpx2.TransportError:
                return False

        async with plain_client() as http:
            await eventually_async(answers, SECONDS, what="gemini-cli-a2a-server")
        yield GeminiA2aServer(process, url, workspace, wire)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
