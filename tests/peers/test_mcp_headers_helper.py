"""``headersHelper``: headers that a command prints at each connection, with a real server that checks them."""

import json
import socket
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.connection.errors import ConnectFailedError
from isthmus.mcp_host.connection.headers_helper import helper_headers
from isthmus.tools.port.servers import ServerState
from isthmus.tools.port.tool_set import ToolScope
from support.isthmus_program import InProcess
from support.loaded_program import LoadedProgram
from support.mcp_hosting import SUPPORT, hosting, status_when, write_servers
from support.ports import free_port
from support.waiting import eventually


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[str, Path]]:
    """Start the server that wants the ticket, and yield its URL and the ticket's file."""
    port, path = free_port(), tmp_path_factory.mktemp("server") / "ticket"
    path.touch()
    command = [sys.executable, str(SUPPORT / "ticket_mcp_server.py"), str(port), str(path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:

            def listens() -> bool:
                with socket.socket() as connection:
                    return connection.connect_ex(("127.0.0.1", port)) == 0

            eventually(listens, 60, what="the server listens")
            yield f"http://127.0.0.1:{port}/mcp", path
        finally:
            process.kill()


@pytest.fixture
def url(server: tuple[str, Path]) -> str:
    return server[0]


@pytest.fixture
def ticket(server: tuple[str, Path]) -> Path:
    """Return the file with the ticket that the server wants from now on."""
    server[1].write_text("first-secret")
    return server[1]


def helped(url: str, command: str, **more: Any) -> dict[str, Any]:
    return {"httpUrl": url, "headers": {"x-ticket": "stale"}, "headersHelper": command, **more}


@pytest.mark.anyio
async def test_each_connection_gets_the_headers_that_the_command_prints_then(
    url: str, ticket: Path, tmp_path: Path, workspace: Path
) -> None:
    command = f"""printf '{{"X-Ticket": "%s"}}' "$(cat {ticket})" """
    async with hosting(tmp_path, {"tickets": helped(url, command)}) as host:
        scope = ToolScope(workspace)
        await status_when(host, scope, "tickets", ServerState.CONNECTED)
        ticket.write_text("second-secret")
        await host.restart(scope, "tickets")
        await status_when(host, scope, "tickets", ServerState.CONNECTED)


def test_the_program_lists_a_server_with_such_headers_and_hides_their_values(
    url: str, ticket: Path, workspace: Path, isthmus_here: InProcess, loaded_isthmus: LoadedProgram
) -> None:
    command = 'test "$ISTHMUS_MCP_SERVER_NAME $PWD" = "tickets $HOME" && echo \'{"X-Ticket": "first-secret"}\''
    write_servers(Path.home(), {"tickets": helped(url, command)})
    _, listed, _ = isthmus_here("mcp", "list")
    assert f"✓ tickets: {url} (http) - Connected" in listed
    ticket.write_text("other")
    status, failed, _ = isthmus_here("mcp", "doctor", "tickets")
    assert status == 1
    assert "403" in failed
    shown = loaded_isthmus.run("-m", "demo", "-p", "hello", "--debug", folder=workspace)
    assert "headersHelper" in shown.stderr
    assert "stale" not in shown.stderr
    assert "first-secret" not in failed.replace(command, "") + shown.stderr.replace(command, "")


def test_only_your_own_settings_may_name_such_a_command(
    tmp_path: Path, workspace: Path, isthmus_here: InProcess
) -> None:
    ran = tmp_path / "ran"
    entry = helped("http://127.0.0.1:1/mcp", f"touch {ran}; echo '{{}}'")
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"theirs": entry}}))
    assert isthmus_here("trust")[0] == 0
    given = json.dumps({"mcpServers": {"given": entry}})
    _, _, errors = isthmus_here("-m", "demo", "-p", "hello", "--mcp-config", given)
    assert errors.count("headersHelper: it is allowed in your own settings file only") == 2
    assert not ran.exists()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("echo secret-text; echo no login >&2; exit 3", "ended with exit code 3: no login"),
        ("echo secret-text", "it is not JSON"),
        ("echo '[\"secret-text\"]'", "expected, a JSON object"),
        ("""printf '%s' '{"A": "x\\ny: secret-text"}'""", "the header 'A' has a wrong name or value"),
        ("""echo '{"A B": "secret-text"}'""", "the header 'A B' has a wrong name or value"),
        ("""echo '{"A": 7}'""", "the header 'A' has a wrong name or value"),
        ("head -c 10000000 /dev/zero", "printed more than 65536 bytes"),
        ("sleep 600 & sleep 600", "took longer than 1 s"),
    ],
)
@pytest.mark.anyio
async def test_a_command_that_fails_or_prints_something_else_is_explained(
    tmp_path: Path, command: str, why: str
) -> None:
    seconds = 1 if "sleep" in command else 30
    with pytest.raises(ConnectFailedError) as failed:
        await helper_headers(command, "x", "http://x.test/", {"PATH": "/usr/bin:/bin"}, tmp_path, seconds)
    assert why in str(failed.value)
    assert "secret-text" not in str(failed.value)


@pytest.mark.anyio
async def test_the_command_gets_no_variables_with_keys(tmp_path: Path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "GEMINI_API_KEY": "secret-text"}
    command = """printf '{"X": "%s"}' "$GEMINI_API_KEY-$CLAUDE_CODE_MCP_SERVER_URL" """
    found = await helper_headers(command, "x", "http://x.test/", environment, tmp_path)
    assert found == {"X": "-http://x.test/"}
