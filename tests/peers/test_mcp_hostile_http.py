"""Servers over HTTP that answer calls with what no client should take."""

from pathlib import Path
from urllib.parse import urlsplit

import psutil
import pytest

from isthmus.mcp_host import connection
from isthmus.mcp_host.host import McpHost
from isthmus.tools.base import Tool, ToolScope
from isthmus.tools.failure import ToolFailure
from support.hostile_http_mcp_server import hostile_http
from support.mcp_hosting import hosting
from support.tool_calls import items_of, said, success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "person"
    folder.mkdir()
    return folder


async def tool_of(host: McpHost, workspace: Path) -> Tool:
    return (await host.tools(ToolScope(workspace))).tools["ok"]


@pytest.mark.requirement("MCP-012", "MCP-132")
@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("endless", "more than the 33554432 bytes that are taken"),
        ("compressed", r"is compressed \(gzip\), which was not asked for"),
        ("not-json", "Failed to parse JSON response"),
        ("html", "Unexpected content type: text/html"),
        ("error-500", "HTTP 500"),
    ],
)
async def test_an_answer_that_cannot_be_taken_fails_the_call_and_says_why(
    home: Path, workspace: Path, way: str, message: str
) -> None:
    with hostile_http(way) as (url, handler):
        async with hosting(home, {"s": {"httpUrl": url, "timeout": 10_000}}) as host:
            tool = await tool_of(host, workspace)
            before = psutil.Process().memory_info().rss
            with pytest.raises(ToolFailure, match=message):
                await items_of(tool, tool_context(workspace))
            assert psutil.Process().memory_info().rss - before < 120 * 1024**2
            assert handler.sent < 64 * 1024**2


async def test_no_compressed_answer_is_asked_for(home: Path, workspace: Path) -> None:
    with hostile_http("plain") as (url, _):
        async with hosting(home, {"s": {"httpUrl": url}}) as host:
            result = await success_of(await tool_of(host, workspace), tool_context(workspace))
            assert said(result) == "fine"


async def test_a_url_that_nobody_listened_at_is_tried_again_when_its_tools_are_wanted_later(
    home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "AGAIN_SECONDS", 0.0)
    with hostile_http("plain") as (url, _):
        port = urlsplit(url).port or 0
    async with hosting(home, {"s": {"httpUrl": url}}) as host:
        scope = ToolScope(workspace)
        assert (await host.tools(scope)).tools == {}
        with hostile_http("plain", port):

            async def has_tool() -> bool:
                return "ok" in (await host.tools(scope)).tools

            await eventually_async(has_tool, 20)
