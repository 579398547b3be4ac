from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.config import ConfigContext, Origin, ServerConfig, decode_server
from isthmus.mcp_host.secrets import Secrets, summary

WORKSPACE = Path("/home/me/project")


def server(**entry: Any) -> ServerConfig:
    context = ConfigContext(Origin.USER, Path("/home/me/.gemini/settings.json"), WORKSPACE, {"TOKEN": "from-variable"})
    return decode_server("s", entry, context)


@pytest.mark.requirement("MCP-116", "MCP-117")
def test_the_summary_of_a_program_has_its_command_folder_and_timeout_and_no_secret() -> None:
    args = ["-m", "tool", "--api-key", "abc-123", "--token=def-456", "-e", "DB_PASSWORD=ghi-789", "--port", "8080"]
    found = summary(server(command="python", args=args, env={"MY_TOKEN": "$TOKEN", "LEVEL": "info"}, timeout=15000))
    assert found == (
        "Command: python -m tool --api-key *** --token=*** -e DB_PASSWORD=*** --port 8080",
        "Working Directory: /home/me/project",
        "Environment: MY_TOKEN=***, LEVEL=***",
        "Timeout: 15000ms",
    )


@pytest.mark.requirement("MCP-117")
def test_the_summary_of_a_url_has_no_query_values_no_user_and_no_header_values() -> None:
    found = summary(
        server(httpUrl="https://me:pw-1234@x.example/mcp?key=abc-123&v=2#f", headers={"Authorization": "Bearer abc"})
    )
    assert found == ("URL: https://x.example/mcp?key=***&v=***", "Headers: Authorization: ***")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({"command": "x", "env": {"MY_TOKEN": "$TOKEN"}}, "bad token from-variable!"),
        ({"command": "x", "args": ["--secret", "from-variable"]}, "bad token from-variable!"),
        ({"httpUrl": "http://x/", "headers": {"Authorization": "Bearer from-variable"}}, "bad token from-variable!"),
        ({"httpUrl": "http://x/?k=from-variable"}, "bad token from-variable!"),
        ({"httpUrl": "http://x/", "oauth": {"clientSecret": "from-variable"}}, "bad token from-variable!"),
    ],
)
def test_what_a_server_says_is_shown_without_its_secrets(entry: dict[str, Any], said: str) -> None:
    assert Secrets(server(**entry)).hidden(said) == "bad token ***!"


def test_values_that_are_no_secrets_stay() -> None:
    secrets = Secrets(server(command="x", args=["--port", "8080"], env={"LEVEL": "info", "KEY": "1"}))
    assert secrets.hidden("info: port 8080 is taken, 1") == "info: port 8080 is taken, 1"
