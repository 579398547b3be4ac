"""``--mcp-config``, ``--strict-mcp-config`` and ``--allowed-mcp-server-names``: the servers of one run."""

import json
from pathlib import Path
from typing import Any

import pytest

from support.isthmus_program import InProcess
from support.mcp_hosting import scripted, write_servers


@pytest.fixture(autouse=True)
def servers() -> None:
    write_servers(Path.home(), {"mine": scripted("plain"), "both": scripted("dies")})


def states(run: InProcess, *options: str) -> dict[str, Any]:
    """Return the state of each server in the output of a run for scripts."""
    status, output, errors = run("-m", "demo", "-p", "hello", "-o", "json", *options)
    assert status == 0, errors
    return {server["name"]: server["status"] for server in json.loads(output).get("mcp_servers", ())}


def given(**servers: Any) -> str:
    return json.dumps({"mcpServers": servers})


def test_a_file_and_json_add_servers_that_win_over_those_of_the_settings(
    workspace: Path, isthmus_here: InProcess
) -> None:
    (workspace / "ci.json").write_text("// for CI\n" + given(both=scripted("plain"), file=scripted("plain")), "utf-8")
    found = states(isthmus_here, "--mcp-config", "ci.json", "--mcp-config", given(inline=scripted("plain")))
    assert found == dict.fromkeys(("mine", "both", "file", "inline"), "connected")


def test_only_the_given_servers_are_used_when_the_user_says_so(isthmus_here: InProcess) -> None:
    assert states(isthmus_here, "--strict-mcp-config", "--mcp-config", given(one=scripted("plain"))) == {
        "one": "connected"
    }
    assert states(isthmus_here, "--strict-mcp-config") == {}


def test_names_on_the_command_line_narrow_the_servers_of_one_run(isthmus_here: InProcess) -> None:
    config = given(one=scripted("plain"), two=scripted("plain"))
    found = states(isthmus_here, "--mcp-config", config, "--allowed-mcp-server-names", "MINE,two")
    assert found == {"mine": "connected", "both": "disabled", "one": "disabled", "two": "connected"}
    _, shown, _ = isthmus_here("-m", "demo", "-p", "/mcp both", "--allowed-mcp-server-names", "mine")
    assert "--allowed-mcp-server-names does not name it" in shown


def test_what_the_settings_forbid_stays_forbidden_for_given_servers(isthmus_here: InProcess) -> None:
    settings = Path.home() / ".gemini" / "settings.json"
    settings.write_text(json.dumps({"mcp": {"excluded": ["one"]}}), "utf-8")
    assert states(isthmus_here, "--mcp-config", given(one=scripted("plain"))) == {"one": "disabled"}


def test_a_given_file_cannot_make_its_servers_trusted(isthmus_here: InProcess) -> None:
    config = given(one=scripted("plain", trust=True))
    _, shown, errors = isthmus_here("-m", "demo", "-p", "/mcp one", "--mcp-config", config)
    assert "trust is ignored outside your own settings file" in shown, errors


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--mcp-config", "none.json"), "none.json cannot be read"),
        (("--mcp-config", "{"), "--mcp-config, line 1"),
        (("--mcp-config", '{"one": {"command": "x"}}'), 'expected {"mcpServers": {...}} with the servers'),
        (("--allowed-mcp-server-names", " , "), "expected names of servers"),
    ],
)
def test_a_wrong_option_ends_the_run_before_it_begins(
    isthmus_here: InProcess, options: tuple[str, ...], why: str
) -> None:
    status, _, errors = isthmus_here("-p", "hello", *options)
    assert status == 42
    assert why in errors


def test_a_warning_is_a_line_of_its_own_behind_the_reason_of_a_failure(isthmus_here: InProcess) -> None:
    entry: dict[str, object] = {"command": "no-such-program", "excludetools": []}
    reason = "the program 'no-such-program' was not found; check command and PATH"
    warning = "Warning: excludetools is not a known key; did you mean excludeTools?"
    _, shown, errors = isthmus_here("-m", "demo", "-p", "/mcp dead", "--mcp-config", given(dead=entry))
    assert f"Error: {reason}\n" in shown, errors
    assert f"    {warning}\n" in shown
    write_servers(Path.home(), {"dead": entry})
    _, listed, _ = isthmus_here("mcp", "list")
    assert f"    {reason}\n    {warning}\n" in listed
