from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.config.secrets import Secrets, summary
from isthmus.mcp_host.config.server_config import ConfigContext, Origin, ServerConfig, decode_server

WORKSPACE = Path("/home/me/project")


def server(**entry: Any) -> ServerConfig:
    context = ConfigContext(
        Origin.USER,
        Path("/home/me/.gemini/settings.json"),
        WORKSPACE,
        {"TOKEN": "from-variable", "PWD": str(WORKSPACE)},
    )
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


def test_what_a_variable_with_a_speaking_name_held_is_shown_nowhere() -> None:
    program = server(command="$PWD/run", args=["$TOKEN", "-x${TOKEN}y", "--dsn", "postgres://h/d?u=${TOKEN}"])
    assert summary(program, WORKSPACE) == ("Command: /home/me/project/run *** -x***y --dsn ***",)
    assert summary(server(url="https://h/$TOKEN/sse")) == ("URL: https://h/***/sse",)
    assert summary(server(command="x", cwd="/data/$TOKEN"))[1] == "Working Directory: /data/***"
    assert Secrets(program).hidden("failed: from-variable") == "failed: ***"


def test_a_folder_of_the_workspace_is_shown_from_there_and_the_workspace_itself_not() -> None:
    below = summary(server(command="python", cwd="./mcp-servers/python"), WORKSPACE)
    assert below == ("Command: python", "Working Directory: ./mcp-servers/python")
    assert summary(server(command="python"), WORKSPACE) == ("Command: python",)


@pytest.mark.requirement("MCP-117")
@pytest.mark.parametrize(
    ("args", "shown"),
    [
        (["run", "-i", "-e", "API_KEY", "-e", "LEVEL=info", "image"], "run -i -e API_KEY -e LEVEL=*** image"),
        (["--api-key", "abc"], "--api-key ***"),
        (["https://x.example/mcp?key=abc&v=2", "--header", "X-Team: red"],
         "'https://x.example/mcp?key=***&v=***' --header 'X-Team: ***'"),
        (["postgres://me:pw@db/x"], "postgres://***@db/x"),
        (["Authorization: Bearer abcdef"], "'Authorization: ***'"),
        (["--no-token-check", "--port", "80"], "--no-token-check --port 80"),
        (["http://[broken"], "http://***"),
    ],
)  # fmt: skip
def test_arguments_that_hold_secrets_are_shown_without_them(args: list[str], shown: str) -> None:
    assert summary(server(command="x", args=args))[0] == f"Command: x {shown}"


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
        ({"command": "x", "args": ["postgres://me:from-variable@db/x"]}, "bad token from-variable!"),
        ({"command": "x", "args": ["--header", "Authorization: Bearer from-variable"]}, "bad token from-variable!"),
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
