"""Logins without a browser: the page's address is printed, and the last address of a browser elsewhere is pasted."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import httpx2
import pytest

from isthmus.mcp_host.host import McpHost
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting, status_when
from support.oauth_login import ended_at, entries, page_in, query_of_page
from support.oauth_mcp_server import OAuthMcpServer, oauth_mcp_server
from support.plain_http import plain_client

pytestmark = pytest.mark.anyio

CONNECTED = "s is connected; it has 1 tool."


@pytest.fixture
async def server() -> AsyncGenerator[OAuthMcpServer]:
    async with oauth_mcp_server() as found:
        yield found


def no_browser(url: str) -> bool:
    """Return False: there are no windows here."""
    return False


async def begun(host: McpHost, scope: ToolScope) -> str:
    """Return the page of a login that was started without a browser."""
    told = [line async for line in host.login(scope, "s")]
    page = page_in(told[0])
    assert page is not None
    assert "/mcp auth s ADDRESS" in told[0]
    assert "waits for 5 minutes" in told[-1]
    return page


@pytest.mark.requirement("MCP-050", "MCP-052", "MCP-042")
async def test_a_login_without_a_browser_waits_for_the_address_that_one_ended_at(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}) as host:
        scope = ToolScope(workspace)
        with pytest.raises(ToolFailure, match="no login to s is going on; /mcp auth s begins one"):
            await anext(host.paste(scope, "s", "http://localhost:7777/oauth/callback?code=a&state=b"))
        page = await begun(host, scope)
        for wrong, words in (
            ("what?", "there is no code in it; expected the whole final address"),
            ("http://localhost:7777/oauth/callback?code=stolen&state=guessed", "the answer to another login"),
            ("http://localhost:7777/oauth/callback?code=stolen", "the state is missing"),
        ):
            with pytest.raises(ToolFailure, match=words):
                await anext(host.paste(scope, "s", wrong))
        address = await ended_at(page)
        broken = f"  {address[:40]}\n {address[40:]}\n"  # as a terminal wraps it
        told = [line async for line in host.paste(scope, "s", broken)]
        assert told[-1] == CONNECTED
        assert entries(home)[0]["token"]["accessToken"] in server.authorization.tokens
        assert "state" not in str(told)


async def test_the_code_alone_is_enough(home: Path, workspace: Path, server: OAuthMcpServer) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}) as host:
        scope = ToolScope(workspace)
        code = httpx2.URL(await ended_at(await begun(host, scope))).params["code"]
        assert [line async for line in host.paste(scope, "s", code)][-1] == CONNECTED


async def test_the_redirect_is_taken_too_when_the_browser_was_at_this_machine_after_all(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=no_browser) as host:
        scope = ToolScope(workspace)
        page = await begun(host, scope)
        async with plain_client(follow_redirects=True) as browser:
            assert "The login has arrived" in (await browser.get(page)).text
        await status_when(host, scope, "s", ServerState.CONNECTED)


async def test_a_login_that_is_begun_again_takes_the_place_of_the_one_before(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}) as host:
        scope = ToolScope(workspace)
        first = await ended_at(await begun(host, scope))
        second = await ended_at(await begun(host, scope))
        with pytest.raises(ToolFailure, match="another login"):
            await anext(host.paste(scope, "s", first))
        assert [line async for line in host.paste(scope, "s", second)][-1] == CONNECTED


async def test_who_waits_for_a_text_is_told_what_was_wrong_with_it_and_asked_again(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    pages: asyncio.Queue[str] = asyncio.Queue()
    texts = ["what is it", ""]

    async def paste() -> str:
        return texts.pop(0) if texts else await ended_at(await pages.get())

    async with hosting(home, {"s": {"httpUrl": server.url}}) as host:
        told: list[str] = []
        async for line in host.login(ToolScope(workspace), "s", paste):
            told.append(line)
            if (page := page_in(line)) is not None:
                pages.put_nowait(page)
        assert "paste it here" in told[0]
        assert [line.partition(";")[0] for line in told[1:3]] == ["there is no code in it"] * 2
        assert told[-1] == CONNECTED


async def test_when_nothing_can_be_pasted_any_more_the_redirect_is_awaited(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    async def paste() -> str:
        raise EOFError

    async with hosting(home, {"s": {"httpUrl": server.url}}) as host, plain_client(follow_redirects=True) as web:
        told: list[str] = []
        async for line in host.login(ToolScope(workspace), "s", paste):
            told.append(line)
            if (page := page_in(line)) is not None:
                await web.get(page)
        assert told[-1] == CONNECTED


@pytest.mark.requirement("MCP-045")
async def test_the_browser_opens_after_it_was_said_what_and_where(
    home: Path, workspace: Path, server: OAuthMcpServer
) -> None:
    happened: list[str] = []
    opened: asyncio.Queue[str] = asyncio.Queue()
    loop = asyncio.get_running_loop()

    def open_browser(url: str) -> bool:
        happened.append("opened")
        loop.call_soon_threadsafe(opened.put_nowait, url)
        return True

    async def browse() -> None:
        async with plain_client(follow_redirects=True) as browser:
            await browser.get(await opened.get())

    async with hosting(home, {"s": {"httpUrl": server.url}}, open_browser=open_browser) as host:
        browsing = asyncio.create_task(browse())
        async for line in host.login(ToolScope(workspace), "s"):
            await asyncio.sleep(0)
            happened.append(line)
        await browsing
    assert happened[1] == "opened"
    assert happened[-1] == CONNECTED
    page = page_in(happened[0])
    assert page is not None
    assert f"To log in to s ({server.url}), your browser opens this page of 127.0.0.1" in happened[0]
    assert query_of_page(page)["resource"] == server.url


async def test_a_refused_login_says_what_the_server_said(home: Path, workspace: Path, server: OAuthMcpServer) -> None:
    async with hosting(home, {"s": {"httpUrl": server.url}}) as host:
        scope = ToolScope(workspace)
        query = query_of_page(await begun(host, scope))
        answer = f"{query['redirect_uri']}?error=access_denied&error_description=Not%0Ayou&state={query['state']}"
        with pytest.raises(ToolFailure, match="the login to s failed: the login was refused: access_denied: Not you"):
            async for _ in host.paste(scope, "s", answer):
                pass
        with pytest.raises(ToolFailure, match="no login to s is going on"):
            await anext(host.paste(scope, "s", answer))
