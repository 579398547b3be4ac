"""Settings of ACP sessions: what a client may name, with an agent in this process and behind a server."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.acp.v1.sessions import CommandServer, HttpMcpServer, McpServer, NamedValue, SseServer
from isthmus.programs.acp import server_place as acp_server_place
from isthmus.programs.acp.place import LocalPlace
from isthmus.programs.acp.server_place import ServerPlace
from isthmus.rpc.messages import RpcError
from support.memory_agent import MemoryAgent

COMMAND = CommandServer("files", "npx", ("-y", "files"), (NamedValue("KEY", "1"),))
URL = HttpMcpServer("crm", "https://crm.example.org/mcp", (NamedValue("X-Key", "2"),))
OLDER_URL = SseServer("old", "https://old.example.org/sse")


@pytest.mark.parametrize(
    ("server", "setting"),
    [
        (COMMAND, {"name": "files", "command": "npx", "args": ["-y", "files"], "env": {"KEY": "1"}}),
        (URL, {"name": "crm", "url": "https://crm.example.org/mcp", "headers": {"X-Key": "2"}}),
        (OLDER_URL, {"name": "old", "url": "https://old.example.org/sse"}),
    ],
)
def test_mcp_servers_of_a_client_are_used_besides_the_configured_ones(
    tmp_path: Path, server: McpServer, setting: dict[str, Any]
) -> None:
    settings = LocalPlace({}).settings(str(tmp_path), [server], [])
    assert settings == {"workspace_path": str(tmp_path.resolve()), "mcp_servers": [{"name": "*"}, setting]}


def place_at(url: str, **more: Any) -> ServerPlace:
    """Return the sessions of an agent at a URL; the agent itself takes everything."""
    return ServerPlace(MemoryAgent(), url, **more)


def test_a_server_takes_urls_but_another_machines_is_told_of_no_commands() -> None:
    place = place_at("https://agent.example.org/")
    (_, crm) = place.settings("/srv/project", [URL], [])["mcp_servers"]
    assert crm["url"] == "https://crm.example.org/mcp"
    with pytest.raises(RpcError, match=r"files is a command.*another machine.*isthmus acp --in-process") as refused:
        place.settings("/srv/project", [URL, COMMAND], [])
    assert refused.value.code == -32602


@pytest.mark.anyio
async def test_a_server_on_this_machine_decides_about_commands() -> None:
    place = place_at("http://127.0.0.1:9/")
    await place.check(place.settings("/srv/project", [COMMAND], []))
    deaf = place_at("http://127.0.0.1:9/", takes_servers=False)
    with pytest.raises(RpcError, match="takes no MCP servers of its clients"):
        await deaf.check(deaf.settings("/srv/project", [COMMAND], []))
    await deaf.check(deaf.settings("/srv/project", [URL], []))


@pytest.mark.anyio
async def test_another_users_server_on_this_machine_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def another(port: int) -> str:
        return f"a process of another user (uid 7) listens on port {port}"

    monkeypatch.setattr(acp_server_place, "another_user_at", another)
    place = place_at("http://localhost:9/")
    with pytest.raises(RpcError, match=r"another user \(uid 7\) listens on port 9"):
        await place.check(place.settings("/srv/project", [COMMAND], []))


def test_a_folder_of_a_server_need_not_be_one_of_this_machine(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert place_at("https://agent.example.org/").settings(missing, [], []) == {"workspace_path": missing}
    with pytest.raises(RpcError, match="is not a folder on this machine"):
        LocalPlace({}).settings(missing, [], [])


def test_further_folders_of_a_server_are_those_of_its_machine(tmp_path: Path) -> None:
    place = place_at("https://agent.example.org/")
    settings = place.settings("/srv/project", [], ["/srv/shared", "/srv/shared", "/srv/docs"])
    assert settings == {"workspace_path": "/srv/project", "additional_directories": ["/srv/shared", "/srv/docs"]}
    with pytest.raises(RpcError, match="additionalDirectories: expected an absolute path, received 'shared'"):
        place.settings("/srv/project", [], ["shared"])
    with pytest.raises(RpcError, match="additionalDirectories: this server takes none of its clients"):
        place_at("https://agent.example.org/", takes_servers=False).settings("/srv/project", [], ["/srv/shared"])
