"""Delay of a selection from the editor's event to an agent, without the intended debounce.

This process is both the plugin of an editor, over the standard streams of its own companion (see
docs/reference/editor-port.md), and an agent at the companion's WebSocket. Used by :mod:`bench.ide`.
"""

import asyncio
import json
import time
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from statistics import median
from typing import Any

from websockets.asyncio.client import ClientConnection

from bench.ide_socket import attached, greet
from bench.processes import program
from isthmus.ide.context_tracker import DEBOUNCE_SECONDS

SELECTIONS = 40
DEADLINE_SECONDS = 60.0


class Plugin:
    """An editor with one file, in which the user keeps changing the selection."""

    def __init__(self, process: asyncio.subprocess.Process, file: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._to, self._from = process.stdin, process.stdout
        self._file: dict[str, Any] = {"uri": file.as_uri(), "isActive": True}
        self._folders = [{"uri": file.parent.as_uri(), "name": "work"}]
        self.ready: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Answer the companion until it ends."""
        capabilities = {"selection": True}
        info = {"name": "bench", "displayName": "Bench"}
        params = {"editorInfo": info, "capabilities": capabilities, "workspaceFolders": self._folders}
        self._send(id=1, method="initialize", params=params)
        while message := await self._read():
            match message.get("method"):
                case None:
                    self._send(method="initialized", params={})
                case "companion/ready":
                    self.ready.set_result(message["params"])
                case "editor/openFiles":
                    self._send(id=message["id"], result=[self._file])
                case "workspace/workspaceFolders":
                    self._send(id=message["id"], result=self._folders)
                case _ if "id" in message:
                    self._send(id=message["id"], result=None)
                case _:
                    pass

    def select(self, characters: int) -> None:
        """Select the first ``characters`` of the first line, as a user would."""
        end = {"line": 0, "character": characters}
        self._file |= {
            "selection": {"start": {"line": 0, "character": 0}, "end": end},
            "selectedText": "x" * characters,
        }
        self._send(method="editor/didChange", params={})

    def _send(self, **message: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._to.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    async def _read(self) -> dict[str, Any] | None:
        length = 0
        while (line := await self._from.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(await self._from.readexactly(length)) if length else None


async def measure(environment: dict[str, str]) -> float:
    """Return the median time in seconds from the event to the agent, without the debounce."""
    file = Path(environment["PWD"]) / "selected.py"
    file.write_text("x" * (SELECTIONS + 1) + "\n", encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        program("isthmus"), "companion", "--editor", "stdio", "--fresh",
        env=environment, cwd=environment["PWD"], stdin=PIPE, stdout=PIPE, stderr=DEVNULL,
    )  # fmt: skip
    plugin = Plugin(process, file)
    running = asyncio.create_task(plugin.run())
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            ready = await plugin.ready
            (lock,) = [path for path in map(Path, ready["discoveryFiles"]) if ".claude" in path.parts]
            async with attached(lock) as agent:
                await greet(agent)
                return median([await _delay(plugin, agent, number) for number in range(1, SELECTIONS + 1)])
    finally:
        assert process.stdin is not None
        process.stdin.close()
        await process.wait()
        await running


async def _delay(plugin: Plugin, agent: ClientConnection, characters: int) -> float:
    begin = time.perf_counter()
    plugin.select(characters)
    while True:
        message = json.loads(await agent.recv())
        if message.get("method") == "selection_changed" and message["params"]["text"] == "x" * characters:
            return time.perf_counter() - begin - DEBOUNCE_SECONDS
