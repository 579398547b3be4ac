from pathlib import Path

import pytest

from isthmus.events import TaskState
from support.command_harness import OpenHarness
from support.mcp_hosting import hosting
from support.oauth_login import ended_at, page_in
from support.oauth_mcp_server import oauth_mcp_server

pytestmark = pytest.mark.anyio


@pytest.mark.slow
@pytest.mark.requirement("MCP-051", "MCP-052", "MCP-050")
async def test_auth_lists_shows_the_page_and_takes_the_address_that_the_browser_ended_at(
    tmp_path: Path, open_harness: OpenHarness
) -> None:
    user = tmp_path / "its-user"
    user.mkdir()
    async with (
        oauth_mcp_server() as server,
        hosting(user, {"tickets": {"httpUrl": server.url}}) as host,
        open_harness(servers=host) as harness,
    ):
        await harness.run("/mcp refresh tickets")
        assert "\n- tickets\n" in (await harness.run("/mcp auth")).text
        begun = await harness.run("/mcp auth tickets")
        assert begun.state is TaskState.COMPLETED
        page = page_in(begun.text)
        assert page is not None
        assert "/mcp auth tickets ADDRESS" in begun.text
        address = await ended_at(page)
        refused = await harness.run("/mcp auth tickets http://localhost:7777/oauth/callback?code=x&state=y")
        assert refused.end.reason == "mcp_login"
        assert (await harness.run(f"/mcp auth tickets {address}")).text.endswith(
            "tickets is connected; it has 1 tool.\n"
        )
        assert "No MCP server needs a login." in (await harness.run("/mcp auth")).text
