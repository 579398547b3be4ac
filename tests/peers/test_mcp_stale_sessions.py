"""Servers over HTTP that no longer know the session, or ask to wait: the call is made once, in a new session."""

import asyncio
import contextlib
import email.utils
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.base import Tool
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting, status_when
from support.stale_http_mcp_server import OWN_ERRORS, REFUSALS, forgetful_http
from support.tool_calls import result_of, said, success_of, tool_context
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def tool_of(host: McpHost, workspace: Path) -> Tool:
    return (await host.tools(ToolScope(workspace))).tools["ok"]


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_call_of_a_session_that_is_refused_is_made_once_in_a_new_one(
    home: Path, workspace: Path, refusal: str
) -> None:
    with forgetful_http(refusal=refusal) as (url, server):
        async with hosting(home, {"s": {"httpUrl": url, "timeout": 20_000}}) as host:
            tool, context = await tool_of(host, workspace), tool_context(workspace)
            for number in range(1, 3):
                server.forget()
                assert said(await success_of(tool, context)) == "fine"
                assert server.made == number
            await status_when(host, ToolScope(workspace), "s", ServerState.CONNECTED)


@pytest.mark.parametrize("own_error", OWN_ERRORS)
async def test_a_call_that_was_made_and_failed_is_not_repeated_and_says_why(
    home: Path, workspace: Path, own_error: str
) -> None:
    with forgetful_http(own_error=own_error) as (url, server):
        async with hosting(home, {"s": {"httpUrl": url, "timeout": 20_000}}) as host:
            with pytest.raises(ToolFailure, match="no such file"):
                await result_of(await tool_of(host, workspace), tool_context(workspace))
            assert server.made == 1
            assert server.session == 1


async def test_many_calls_of_a_forgotten_session_are_each_made_once(home: Path, workspace: Path) -> None:
    with forgetful_http(refusal="400 without an id") as (url, server):
        async with hosting(home, {"s": {"httpUrl": url}}) as host:
            tool, context = await tool_of(host, workspace), tool_context(workspace)
            for number in range(1, 4):
                server.forget()
                done = await asyncio.gather(*(success_of(tool, context) for _ in range(10)))
                assert [said(one) for one in done] == ["fine"] * 10
                assert server.made == 10 * number


async def test_a_server_that_refuses_each_session_fails_the_call_after_one_more(home: Path, workspace: Path) -> None:
    with forgetful_http(refusal="400 without an id") as (url, server):
        async with hosting(home, {"s": {"httpUrl": url}}) as host:
            tool = await tool_of(host, workspace)
            server.refuses_calls = True
            with pytest.raises(ToolFailure, match="no longer knows the session"):
                await result_of(tool, tool_context(workspace))
            assert (server.made, server.refused_calls) == (0, 2)


async def test_a_call_to_a_server_that_is_away_waits_until_it_is_back(home: Path, workspace: Path) -> None:
    async with contextlib.AsyncExitStack() as stack:
        with forgetful_http(keeps_connections=False) as (url, _):
            servers = {"s": {"httpUrl": url, "timeout": 20_000}}
            host = await stack.enter_async_context(hosting(home, servers))
            tool, port = await tool_of(host, workspace), urlsplit(url).port or 0
        calling = asyncio.create_task(success_of(tool, tool_context(workspace)))

        async def is_refused() -> bool:
            (status,) = await host.servers(ToolScope(workspace))
            return (status.problem or "").startswith("Connection refused")

        await eventually_async(is_refused)
        with forgetful_http(port=port) as (_, server):
            assert said(await calling) == "fine"
            assert server.made == 1


@pytest.mark.parametrize("by_date", [False, True])
async def test_a_server_that_asks_to_wait_is_asked_again_then(home: Path, workspace: Path, by_date: bool) -> None:
    with forgetful_http() as (url, server):
        async with hosting(home, {"s": {"httpUrl": url, "timeout": 20_000}}) as host:
            tool = await tool_of(host, workspace)
            wait = email.utils.formatdate(time.time() + 1, usegmt=True) if by_date else "0.3"
            server.waits[:] = [wait, "0"]
            began = time.monotonic()
            assert said(await success_of(tool, tool_context(workspace))) == "fine"
            assert by_date or time.monotonic() - began >= 0.3
            assert (server.made, server.waits) == (1, [])


@pytest.mark.parametrize(("waits", "received"), [(["3600"], 1), (["nonsense"], 1), (["0"] * 50, 6)])
async def test_a_server_that_asks_to_wait_long_or_for_ever_fails_the_call(
    home: Path, workspace: Path, waits: list[str], received: int
) -> None:
    with forgetful_http() as (url, server):
        async with hosting(home, {"s": {"httpUrl": url, "timeout": 20_000}}) as host:
            tool = await tool_of(host, workspace)
            server.waits[:], server.received = waits, 0
            with pytest.raises(ToolFailure, match="HTTP 429"):
                await result_of(tool, tool_context(workspace))
            assert (server.made, server.received) == (0, received)


async def test_a_server_that_asks_to_wait_at_first_is_connected_to_then(home: Path, workspace: Path) -> None:
    with forgetful_http() as (url, server):
        server.waits[:] = ["0.1", "0.1"]
        async with hosting(home, {"s": {"httpUrl": url, "timeout": 20_000}}) as host:
            assert said(await success_of(await tool_of(host, workspace), tool_context(workspace))) == "fine"


async def test_a_server_that_asks_to_wait_for_ever_at_first_is_told(home: Path, workspace: Path) -> None:
    with forgetful_http() as (url, server):
        server.waits[:] = ["30"] * 10
        async with hosting(home, {"s": {"httpUrl": url, "timeout": 500}}) as host:
            assert (await host.tools(ToolScope(workspace))).tools == {}
            (status,) = await host.servers(ToolScope(workspace))
            assert status.problem == f"{url} takes no requests now (HTTP 429)"


@pytest.mark.parametrize(("times", "tools"), [(1, ["ok"]), (2, [])])
async def test_a_server_that_forgets_the_session_at_once_gets_a_second_one(
    home: Path, workspace: Path, times: int, tools: list[str]
) -> None:
    with forgetful_http(refusal="400 without an id") as (url, server):
        server.forgets_at_list = times
        async with hosting(home, {"s": {"httpUrl": url, "timeout": 20_000}}) as host:
            assert list((await host.tools(ToolScope(workspace))).tools) == tools
