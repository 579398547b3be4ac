from pathlib import Path

import pytest

from isthmus.events import TaskState
from support.command_desk import OpenDesk
from support.mcp_hosting import hosting
from support.oauth_mcp_server import oauth_mcp_server
from support.oauth_person import ended_at, page_in

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("MCP-051", "MCP-052", "MCP-050")
async def test_auth_lists_shows_the_page_and_takes_the_address_that_the_browser_ended_at(
    tmp_path: Path, open_desk: OpenDesk
) -> None:
    person = tmp_path / "its-person"
    person.mkdir()
    async with (
        oauth_mcp_server() as server,
        hosting(person, {"tickets": {"httpUrl": server.url}}) as host,
        open_desk(servers=host) as desk,
    ):
        await desk.run("/mcp refresh tickets")
        assert "\n- tickets\n" in (await desk.run("/mcp auth")).text
        begun = await desk.run("/mcp auth tickets")
        assert begun.state is TaskState.COMPLETED
        page = page_in(begun.text)
        assert page is not None
        assert "/mcp auth tickets ADDRESS" in begun.text
        address = await ended_at(page)
        refused = await desk.run("/mcp auth tickets http://localhost:7777/oauth/callback?code=x&state=y")
        assert refused.end.reason == "mcp_login"
        assert (await desk.run(f"/mcp auth tickets {address}")).text.endswith("tickets is connected; it has 1 tool.\n")
        assert "No MCP server needs a login." in (await desk.run("/mcp auth")).text
