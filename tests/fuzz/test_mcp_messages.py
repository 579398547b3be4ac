"""Generated JSON-RPC messages of MCP, from servers over each transport and to the companion: no traceback, no hang,
and everything else still works."""

import asyncio
import contextlib
import json
import logging
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isthmus.encoding.json_text import encode_ascii
from isthmus.ide.mcp.mcp_peer import CallTool, CallToolResult, CancelCall, Ignored, McpPeer, Reply, ToolDefinition
from isthmus.rpc.messages import Notification, RequestId
from isthmus.tools.base import ToolScope
from isthmus.tools.failure import ToolFailure
from support.fuzzing import TIMEOUT, cases
from support.fuzzing_http_mcp_server import TEXT, Plan, fuzzing_http
from support.mcp_frames import METHODS, frame, value
from support.mcp_hosting import HOSTILE, hostile, hosting
from support.tool_calls import result_of, said, success_of, tool_context

pytestmark = [pytest.mark.timeout(TIMEOUT)]

SHARE = 0.04
CALL_SECONDS = 120
"""How long one call may take on a loaded machine."""


async def hold(
    name: str,
    server: dict[str, Any],
    attack: Callable[[random.Random, bool], None],
    fine: str,
    home: Path,
    workspace: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Call a server that misbehaves as `attack` says for each case, and then behaves, which it is told by False; its
    answer is `fine`."""
    async with hosting(home, {"s": {**server, "timeout": 60_000}, "good": hostile("plain")}) as host:
        scope, context = ToolScope(workspace), tool_context(workspace)
        await host.tools(scope)  # what it imports is no part of the time for the cases
        for chance in cases(name, SHARE, least=5):
            attack(chance, True)
            tools = (await host.tools(scope)).tools
            with contextlib.suppress(ToolFailure):  # what came may have been its answer
                async with asyncio.timeout(CALL_SECONDS):
                    await result_of(tools["ok"], context)
            attack(chance, False)
            async with asyncio.timeout(CALL_SECONDS):
                assert said(await success_of(tools["good__ok"], context, x="1")) == "ok 1"
                assert said(await success_of(tools["ok"], context)) == fine
            told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
            assert told == []


@pytest.fixture
def own_home(tmp_path: Path) -> Path:
    home = tmp_path / "user"
    home.mkdir()
    return home


@pytest.mark.anyio
async def test_generated_messages_of_a_program_break_nothing_else(
    own_home: Path, tmp_path: Path, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    frames = tmp_path / "frames"
    frames.write_bytes(b"")
    command = ["-S", str(HOSTILE.with_name("fuzzing_mcp_server.py")), str(frames)]

    def attack(chance: random.Random, is_on: bool) -> None:
        frames.write_bytes(b"".join(frame(chance) for _ in range(chance.randrange(1, 30) if is_on else 0)))

    server = {"command": sys.executable, "args": command}
    await hold("mcp messages of a program", server, attack, "fine", own_home, workspace, caplog)


@pytest.mark.anyio
@pytest.mark.parametrize("path", ["/mcp", "/sse"])
async def test_generated_events_and_bodies_over_http_break_nothing_else(
    path: str, own_home: Path, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They come in chunks of any size, cut at any byte."""
    with fuzzing_http() as (origin, handler):

        def attack(chance: random.Random, is_on: bool) -> None:
            handler.plan = Plan.of(chance) if is_on else Plan.good(chance)

        server = {"url": f"{origin}{path}", "type": "sse"} if path == "/sse" else {"httpUrl": f"{origin}{path}"}
        await hold(f"mcp messages over {path}", server, attack, TEXT, own_home, workspace, caplog)


_FOR_A_SERVER = (*METHODS, *("tools/list", "tools/call", "tools/call", "prompts/list", "notifications/initialized"))
_TOOL = ToolDefinition("ok", "Works.", {"type": "object"})


def message_to_a_server(chance: random.Random) -> bytes:
    """A frame; often one that comes close to a call, or to the end of one."""
    if chance.random() < 0.5:
        return frame(chance, _FOR_A_SERVER).replace(b"@ID@", b"1")
    message: dict[str, Any] = {"jsonrpc": "2.0", "id": chance.choice([0, 1, "1", 1.0, True, None, "\ud83d"])}
    match chance.randrange(4):
        case 0:
            message |= {"method": "initialize", "params": {"protocolVersion": chance.choice(["2025-06-18", "x", 1])}}
        case 1:
            number = value(chance) if chance.random() < 0.3 else message["id"]
            message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
        case _:
            message |= {"method": "tools/call", "params": {"name": "ok"}}
            if chance.random() < 0.3:
                message["params"]["arguments"] = value(chance)
    return json.dumps(message).encode()


def test_generated_messages_to_the_companion_have_one_answer_each_that_can_be_sent() -> None:
    """Every call that is handed out is one of a known tool, with an id that no other running call has, and is answered
    once, or not at all when it was cancelled."""
    for chance in cases("mcp messages to the companion", SHARE / 2, least=50):
        peer = McpPeer("server", "0.1", (_TOOL,))
        running: list[RequestId] = []
        is_initialized = False
        for _ in range(chance.randrange(1, 60)):
            match peer.receive(message_to_a_server(chance)):
                case Reply(answer):
                    text = json.loads(encode_ascii(answer))
                    assert text["jsonrpc"] == "2.0"
                    assert ("result" in text) != ("error" in text)
                    is_initialized = is_initialized or "protocolVersion" in text.get("result", ())
                case CallTool(number, name, arguments):
                    assert is_initialized
                    assert (type(number) in (int, str), name, isinstance(arguments, dict)) == (True, "ok", True)
                    assert number not in running
                    running.append(number)
                case CancelCall(number):
                    assert type(number) in (int, str)
                    running.remove(number)
                    assert peer.finish(number, CallToolResult.text("late")) is None
                case Notification(method, params):
                    assert isinstance(method, str)
                    assert isinstance(params, dict)
                case Ignored():
                    pass
            if running and chance.random() < 0.3:
                number = running.pop(chance.randrange(len(running)))
                answer = peer.finish(number, CallToolResult.text("fine"))
                assert answer is not None
                assert json.loads(encode_ascii(answer))["id"] == number
                assert peer.finish(number, CallToolResult.text("fine")) is None
        ping = peer.receive(b'{"jsonrpc":"2.0","id":"last","method":"ping"}')
        assert ping == Reply({"jsonrpc": "2.0", "id": "last", "result": {}})
