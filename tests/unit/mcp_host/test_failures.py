from pathlib import Path

import httpx2
import pytest

from isthmus.mcp_host.config.server_config import HttpEndpoint, HttpKind, StdioEndpoint
from isthmus.mcp_host.diagnosis.failures import explain
from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.mcp_host.transports.endpoints import HttpWatch


def test_a_host_without_an_address_is_told_in_words_without_number_and_query() -> None:
    error = httpx2.ConnectError("[Errno -2] Name or service not known")
    endpoint = HttpEndpoint("http://nowhere.test/mcp?key=secret", HttpKind.PROBE, {})
    said = explain(error, "initialize", endpoint, ServerLog(), HttpWatch())
    assert said == "Name or service not known (http://nowhere.test/mcp)"


@pytest.mark.parametrize(
    ("command", "args", "advice"),
    [
        ("no-such-program", (), "check command and PATH"),
        ('npx -y "my server"', (), 'put the arguments into args: "command": "npx", "args": ["-y", "my server"]'),
        ("uvx a", ("b",), 'put the arguments into args, before those that are there: "command": "uvx", "args": ["a"]'),
        ('open "quote', (), "check command and PATH"),
        ("/Program Files/x", (), 'put the arguments into args: "command": "/Program", "args": ["Files/x"]'),
        (" ", (), "check command and PATH"),
    ],
)
def test_a_command_line_in_place_of_a_program_is_taken_apart(
    tmp_path: Path, command: str, args: tuple[str, ...], advice: str
) -> None:
    endpoint = StdioEndpoint(command, args, {}, tmp_path)
    said = explain(FileNotFoundError(2, "No such file"), "start", endpoint, ServerLog(), HttpWatch())
    assert said == f"the program {command!r} was not found; {advice}"
