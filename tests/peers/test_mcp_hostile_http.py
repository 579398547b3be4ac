"""Servers over HTTP that answer calls with responses that no client should accept."""

import asyncio
import time
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from isthmus.mcp_host.connection.connection_context import McpTimeouts
from isthmus.mcp_host.host import McpHost
from isthmus.mcp_host.transports.http_caps import FREE_STREAMS, STREAM_SECONDS
from isthmus.tools.port.base import Tool
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.hostile_http_mcp_server import hostile_http
from support.mcp_hosting import hosting, status_when
from support.tool_calls import result_of, said, success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def tool_of(host: McpHost, workspace: Path) -> Tool:
    return (await host.tools(ToolScope(workspace))).tools["ok"]


@pytest.mark.requirement("MCP-012", "MCP-132")
@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("endless", "more than the 33554432 bytes that are accepted"),
        ("compressed", r"is compressed \(gzip\), but compression was not requested"),
        ("not-json", "Failed to parse JSON response"),
        ("html", "Unexpected content type: text/html"),
        ("error-500", "HTTP 500"),
        ("many-values", "more than 500,000 objects and lists"),
        ("many-values-in-an-event", "more than 500,000 objects and lists"),
        ("deep", "Failed to parse JSON response: it is not a JSON-RPC message"),
        ("redirect", "Redirect to http://localhost:9/elsewhere not followed"),
        ("accepted", "answered a request with 202 Accepted"),
        ("own-error", r"^ok of the MCP server 's' failed with the error -32000: the quota is used up$"),
        ("wants-login", "HTTP 401: it wants a login; use /mcp auth s"),
    ],
)
async def test_an_answer_that_cannot_be_taken_fails_the_call_and_says_why(
    home: Path, workspace: Path, way: str, message: str
) -> None:
    with hostile_http(way) as (url, handler):
        async with hosting(home, {"s": {"httpUrl": url, "timeout": 60_000}}) as host:
            tool = await tool_of(host, workspace)
            before = psutil.Process().memory_info().rss
            with pytest.raises(ToolFailure, match=message):
                await result_of(tool, tool_context(workspace))
            assert psutil.Process().memory_info().rss - before < 120 * 1024**2
            assert handler.sent < 64 * 1024**2


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("a number", "expected a JSON-RPC answer, received 7"),
        ("null", "expected a JSON-RPC answer, received null"),
        ("an array", r"expected a JSON-RPC answer, received \[\{.jsonrpc.:"),
        ("no jsonrpc", r"expected a JSON-RPC answer, received \{.id.:"),
        ("another id", r"expected the answer to the request \d+, received one to 4711"),
        ("no id", r"expected the answer to the request \d+, received one to null"),
        ("an error of another", r"expected the answer to the request \d+, received one to 4711"),
        ("an error of none", r"error -32000: the quota is used up"),
        ("a request", "expected a JSON-RPC answer, received 'ping'"),
        ("a notification", "expected a JSON-RPC answer, received 'notifications/message'"),
    ],
)
async def test_a_json_body_that_answers_no_call_fails_it_at_once_and_says_what_came(
    home: Path, workspace: Path, way: str, message: str
) -> None:
    with hostile_http(way) as (url, _):
        async with hosting(home, {"s": {"httpUrl": url, "timeout": 4_000}}) as host:
            with pytest.raises(ToolFailure, match=message):
                await result_of(await tool_of(host, workspace), tool_context(workspace))


async def test_no_compressed_answer_is_asked_for(home: Path, workspace: Path) -> None:
    with hostile_http("plain") as (url, _):
        async with hosting(home, {"s": {"httpUrl": url}}) as host:
            result = await success_of(await tool_of(host, workspace), tool_context(workspace))
            assert said(result) == "fine"


async def test_an_answer_whose_id_is_a_number_in_a_string_is_taken(home: Path, workspace: Path) -> None:
    with hostile_http("id-as-text") as (url, _):
        async with hosting(home, {"s": {"httpUrl": url, "timeout": 4_000}}) as host:
            result = await success_of(await tool_of(host, workspace), tool_context(workspace))
            assert said(result) == "fine"


async def test_a_url_without_a_listener_is_tried_again_when_its_tools_are_wanted(home: Path, workspace: Path) -> None:
    with hostile_http("plain") as (url, _):
        port = urlsplit(url).port or 0
    async with hosting(home, {"s": {"httpUrl": url}}, timeouts=McpTimeouts(retry_seconds=0)) as host:
        scope = ToolScope(workspace)
        assert (await host.tools(scope)).tools == {}
        with hostile_http("plain", port):

            async def has_tool() -> bool:
                return "ok" in (await host.tools(scope)).tools

            await eventually_async(has_tool)


@pytest.mark.requirement("MCP-012")
async def test_a_body_that_trickles_is_not_waited_for_longer_than_silence_is(home: Path, workspace: Path) -> None:
    with hostile_http("slow") as (url, _):
        async with hosting(home, {"s": {"httpUrl": url, "timeout": 2_000}}) as host:
            tool = await tool_of(host, workspace)
            with pytest.raises(ToolFailure, match="showed no sign of life for 2 s"):
                await result_of(tool, tool_context(workspace))


@pytest.mark.requirement("MCP-083", "MCP-124")
@pytest.mark.parametrize(
    ("way", "timeout", "problem"),
    [
        ("slow-hello", 1_000, "no answer to initialize: none came within 1 s"),
        ("redirected-hello", 60_000, "Redirect to http://localhost:9/elsewhere not followed"),
    ],
)
async def test_a_url_that_cannot_be_used_says_why_in_time_and_the_others_go_on(
    home: Path, workspace: Path, way: str, timeout: int, problem: str
) -> None:
    with hostile_http(way) as (url, _), hostile_http("plain") as (good, _):
        servers = {"s": {"httpUrl": url, "timeout": timeout}, "good": {"httpUrl": good}}
        async with hosting(home, servers) as host:
            assert said(await success_of(await tool_of(host, workspace), tool_context(workspace))) == "fine"
            status = await status_when(host, ToolScope(workspace), "s", ServerState.DISCONNECTED)
            assert problem in (status.problem or "")


@pytest.mark.parametrize(
    ("way", "shown"), [("invalid-utf8", "a\ufffd\ufffdb"), ("gone", "fine"), ("forgotten", "fine")]
)
async def test_what_can_be_mended_is_invalid_utf_8_and_a_session_that_the_server_lost(
    home: Path, workspace: Path, way: str, shown: str
) -> None:
    with hostile_http(way) as (url, _):
        async with hosting(home, {"s": {"httpUrl": url}}) as host:
            assert said(await success_of(await tool_of(host, workspace), tool_context(workspace))) == shown


async def test_a_call_after_a_cut_off_answer_waits_for_the_connection_to_come_back(home: Path, workspace: Path) -> None:
    """Check this repeatedly: a server that answers in between is not given up."""
    with hostile_http("cut") as (url, handler):
        async with hosting(home, {"s": {"httpUrl": url}}) as host:
            tool, context = await tool_of(host, workspace), tool_context(workspace)
            for cuts in range(1, 10):
                with pytest.raises(ToolFailure, match="ended before it answered"):
                    await result_of(tool, context)
                assert said(await success_of(tool, context)) == "fine"
                assert handler.calls == 2 * cuts


async def test_many_events_that_are_small_are_no_large_one(home: Path, workspace: Path) -> None:
    with hostile_http("many-small-events") as (url, _):
        async with hosting(home, {"s": {"httpUrl": url}}) as host:
            with pytest.raises(ToolFailure, match="ended before it answered"):
                await result_of(await tool_of(host, workspace), tool_context(workspace))


async def test_a_server_that_ends_its_streams_at_once_is_asked_for_them_less_often(home: Path, workspace: Path) -> None:
    with hostile_http("streams-that-end") as (url, handler):
        began = time.monotonic()
        async with hosting(home, {"s": {"httpUrl": url}}) as host:
            await tool_of(host, workspace)
            await eventually_async(lambda: handler.streams >= FREE_STREAMS + 4)
            kept_waiting = handler.streams - FREE_STREAMS
            assert time.monotonic() - began >= kept_waiting * STREAM_SECONDS * 0.9


async def test_a_server_that_does_not_take_leave_is_connected_to_anew_all_the_same(home: Path, workspace: Path) -> None:
    with hostile_http("slow-goodbye") as (url, _):
        async with hosting(home, {"s": {"httpUrl": url}}) as host:
            await tool_of(host, workspace)
            scope = ToolScope(workspace)
            before = await status_when(host, scope, "s", ServerState.CONNECTED)
            assert before.problem is None
            async with asyncio.timeout(60):
                await host.refresh(scope, "s")
            await status_when(host, scope, "s", ServerState.CONNECTED, 60)
            assert said(await success_of(await tool_of(host, workspace), tool_context(workspace))) == "fine"
