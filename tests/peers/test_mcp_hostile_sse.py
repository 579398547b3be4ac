"""Servers over SSE with answers that the SDK's own transport cannot handle, or waits for forever."""

from pathlib import Path

import pytest

from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting, status_when
from support.sse_mcp_server import LARGE, sse_server
from support.tool_calls import result_of, success_of, tool_context

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("MCP-005")
async def test_an_event_of_more_than_a_mebibyte_is_taken(home: Path, workspace: Path) -> None:
    with sse_server("large") as (url, _):
        async with hosting(home, {"s": {"url": url, "type": "sse"}}) as host:
            tool = (await host.tools(ToolScope(workspace))).tools["ok"]
            context = tool_context(workspace)
            await success_of(tool, context)
            (file,) = (path for path in context.output_folder.rglob("*") if path.is_file())
            assert file.stat().st_size == LARGE


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("refuses", "HTTP 500"),
        ("malformed", "its answer is not a JSON-RPC message"),
        ("many-values", "more than 500,000 objects and lists"),
        ("ends", "ended before it answered; whether the call had an effect is not known"),
    ],
)
async def test_a_call_that_is_refused_or_broken_off_fails_at_once_and_says_why(
    home: Path, workspace: Path, way: str, message: str
) -> None:
    with sse_server(way) as (url, handler):
        async with hosting(home, {"s": {"url": url, "type": "sse"}}) as host:
            tool = (await host.tools(ToolScope(workspace))).tools["ok"]
            with pytest.raises(ToolFailure, match=message):
                await result_of(tool, tool_context(workspace))
            assert handler.calls == 1


@pytest.mark.parametrize("way", ["forgets", "forgets-in-words"])
async def test_a_session_that_the_server_forgot_is_opened_anew_and_the_call_made_in_it(
    home: Path, workspace: Path, way: str
) -> None:
    with sse_server(way) as (url, handler):
        async with hosting(home, {"s": {"url": url, "type": "sse"}}) as host:
            tool = (await host.tools(ToolScope(workspace))).tools["ok"]
            assert "fine" in (await success_of(tool, tool_context(workspace))).for_model
            assert handler.calls == 2


@pytest.mark.parametrize(
    ("way", "timeout", "problem"),
    [
        ("elsewhere", 60_000, "its URL for requests is at another origin"),
        ("mute", 60_000, "before it gave the URL for requests"),
        ("no-place", 60_000, "Invalid IPv6 URL"),
        ("never", 1_000, "no answer to initialize: none came within 1 s"),
    ],
)
async def test_a_stream_that_is_none_of_mcp_is_told(
    home: Path, workspace: Path, way: str, timeout: int, problem: str
) -> None:
    with sse_server(way) as (url, _):
        async with hosting(home, {"s": {"url": url, "type": "sse", "timeout": timeout}}) as host:
            await host.tools(ToolScope(workspace))
            status = await status_when(host, ToolScope(workspace), "s", ServerState.DISCONNECTED)
            assert problem in (status.problem or "")


@pytest.mark.parametrize("way", ["flood", "invalid-utf8"])
async def test_what_comes_among_the_answers_does_not_hide_them(home: Path, workspace: Path, way: str) -> None:
    with sse_server(way) as (url, handler):
        async with hosting(home, {"s": {"url": url, "type": "sse"}}) as host:
            tool = (await host.tools(ToolScope(workspace))).tools["ok"]
            assert "fine" in (await success_of(tool, tool_context(workspace))).for_model
            assert handler.calls == 1
