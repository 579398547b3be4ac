"""Generated JSON-RPC messages from an MCP server: no traceback, no hang, and everything else still works."""

import asyncio
import contextlib
import json
import logging
import random
import sys
from pathlib import Path
from typing import Any

import pytest

from isthmus.tools.base import ToolScope
from isthmus.tools.failure import ToolFailure
from support.fuzzing import TIMEOUT, cases
from support.mcp_hosting import HOSTILE, hostile, hosting
from support.tool_calls import items_of, said, success_of, tool_context

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(TIMEOUT)]

SHARE = 0.1
CALL_SECONDS = 120
"""How long one call may take on a loaded machine."""
METHODS = (
    *("notifications/progress", "notifications/cancelled", "notifications/message", "notifications/tools/list_changed"),
    *("notifications/elicitation/complete", "notifications/resources/updated", "ping", "roots/list"),
    *("sampling/createMessage", "elicitation/create", "initialize", "tools/call", "", "no/such\nmethod"),
)
KEYS = (
    *("id", "method", "params", "result", "error", "jsonrpc"),
    *("progressToken", "progress", "total", "requestId", "_meta"),
)


def value(chance: random.Random, depth: int = 0) -> Any:
    """Any JSON value, often one that does not fit."""
    leaves: list[Any] = [None, True, 0, -1, 10**400, 1e308, "", "x" * 2_000, "\x1b[2J\u202e", "half \ud83d", [], {}]
    if depth > 3 or chance.random() < 0.6:
        return chance.choice(leaves)
    if chance.random() < 0.5:
        return [value(chance, depth + 1) for _ in range(chance.randrange(4))]
    return {chance.choice(KEYS): value(chance, depth + 1) for _ in range(chance.randrange(4))}


def frame(chance: random.Random) -> bytes:
    """One line: a message with a few things wrong, nested far too deeply, or bytes that are none."""
    kind = chance.random()
    if kind < 0.1:
        return chance.randbytes(chance.randrange(200)).replace(b"\n", b"") + b"\n"
    if kind < 0.15:
        return b'{"jsonrpc":"2.0","method":"ping","id":' + b"[" * 5_000 + b"]" * 5_000 + b"}\n"
    message: dict[str, Any] = {"jsonrpc": "2.0"}
    if kind < 0.6:
        message |= {"method": chance.choice(METHODS), "params": value(chance)}
        if chance.random() < 0.5:
            message["id"] = chance.choice([value(chance), f"q{chance.randrange(5)}", chance.randrange(5)])
    else:
        message |= {chance.choice(["result", "error"]): value(chance), "id": value(chance)}
    if chance.random() < 0.2:
        message[chance.choice(KEYS)] = value(chance)
    if chance.random() < 0.1:
        message["id"] = "@ID@"
    line = json.dumps(message).replace('"@ID@"', "@ID@").encode()
    if chance.random() < 0.1:
        line = line[: chance.randrange(len(line))]
    return line + b"\n"


async def test_generated_messages_of_a_program_break_nothing_else(
    tmp_path: Path, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    home, frames = tmp_path / "person", tmp_path / "frames"
    home.mkdir()
    frames.write_bytes(b"")
    command = ["-S", str(HOSTILE.with_name("fuzzing_mcp_server.py")), str(frames)]
    servers = {"s": {"command": sys.executable, "args": command, "timeout": 60_000}, "good": hostile("plain")}
    async with hosting(home, servers) as host:
        scope, context = ToolScope(workspace), tool_context(workspace)
        for chance in cases("mcp messages of a program", SHARE, least=5):
            frames.write_bytes(b"".join(frame(chance) for _ in range(chance.randrange(1, 30))))
            tools = (await host.tools(scope)).tools
            with contextlib.suppress(ToolFailure):  # what came may have been its answer
                async with asyncio.timeout(CALL_SECONDS):
                    await items_of(tools["ok"], context)
            frames.write_bytes(b"")
            async with asyncio.timeout(CALL_SECONDS):
                assert said(await success_of(tools["good__ok"], context, x="1")) == "ok 1"
                assert said(await success_of(tools["ok"], context)) == "fine"
            told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
            assert told == []
