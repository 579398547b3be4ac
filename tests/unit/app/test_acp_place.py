"""Settings of ACP sessions: what a client may name, with an agent in this process and behind a server."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.acp.v1.sessions import CommandServer, HttpMcpServer, McpServer, NamedValue, SseServer
from isthmus.app.acp_place import LocalPlace, ServerPlace
from isthmus.rpc.messages import RpcError

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


def test_a_server_takes_urls_but_no_commands_and_the_refusal_says_what_to_do(tmp_path: Path) -> None:
    place = ServerPlace()
    (_, crm) = place.settings("/srv/project", [URL], [])["mcp_servers"]
    assert crm["url"] == "https://crm.example.org/mcp"
    with pytest.raises(RpcError, match=r"files is a command.*isthmus acp --in-process") as refused:
        place.settings("/srv/project", [URL, COMMAND], [])
    assert refused.value.code == -32602


def test_a_folder_of_a_server_need_not_be_one_of_this_machine(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    assert ServerPlace().settings(missing, [], []) == {"workspace_path": missing}
    with pytest.raises(RpcError, match="is not a folder on this machine"):
        LocalPlace({}).settings(missing, [], [])
