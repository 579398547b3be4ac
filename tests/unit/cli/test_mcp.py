import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.cli.main import run
from isthmus.cli.mcp.add import command as add

NOTHING: dict[str, Any] = {}


@pytest.fixture(autouse=True)
def here(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, which the user trusts."""
    monkeypatch.chdir(workspace)
    folder = Path.home() / ".gemini"
    folder.mkdir()
    (folder / "trustedFolders.json").write_text(json.dumps({str(workspace): "TRUST_FOLDER"}), "utf-8")
    return workspace


def file_of(scope: str) -> Path:
    return (Path.home() if scope == "user" else Path.cwd()) / ".gemini" / "settings.json"


def servers(scope: str = "project") -> dict[str, Any]:
    path = file_of(scope)
    return json.loads(path.read_text("utf-8"))["mcpServers"] if path.exists() else {}


def mcp(line: str) -> int:
    return run(["mcp", *shlex.split(line)])


HTTP = {"httpUrl": "https://api.example.com/mcp/"}
SSE = {"url": "https://api.example.com/sse/", "type": "sse"}
BEARER = {"headers": {"Authorization": "Bearer abc123"}}
ADDED = [
    pytest.param(
        "add my-stdio-server -e API_KEY=123 /path/to/server arg1 arg2 arg3",
        {"command": "/path/to/server", "args": ["arg1", "arg2", "arg3"], "env": {"API_KEY": "123"}},
        id="stdio",
        marks=pytest.mark.requirement("MCP-157", "MCP-159", "MCP-160", "MCP-170"),
    ),
    pytest.param(
        "add python-server python server.py --port 8080",
        {"command": "python", "args": ["server.py", "--port", "8080"]},
        id="options-of-the-server",
        marks=pytest.mark.requirement("MCP-171"),
    ),
    pytest.param(
        "add --transport http http-server https://api.example.com/mcp/",
        HTTP,
        id="http",
        marks=pytest.mark.requirement("MCP-162", "MCP-172"),
    ),
    pytest.param(
        'add --transport http secure-http https://api.example.com/mcp/ --header "Authorization: Bearer abc123"',
        HTTP | BEARER,
        id="header-behind-the-url",
        marks=pytest.mark.requirement("MCP-164", "MCP-173"),
    ),
    pytest.param(
        "add --transport sse sse-server https://api.example.com/sse/",
        SSE,
        id="sse",
        marks=pytest.mark.requirement("MCP-174"),
    ),
    pytest.param(
        'add --transport sse secure-sse https://api.example.com/sse/ --header "Authorization: Bearer abc123"',
        SSE | BEARER,
        id="sse-header",
        marks=pytest.mark.requirement("MCP-175"),
    ),
    pytest.param("add x server", {"command": "server"}, id="least"),
    pytest.param("add x -- server --trust", {"command": "server", "args": ["--trust"]}, id="double-dash-before"),
    pytest.param("add x npx -- -y pkg", {"command": "npx", "args": ["-y", "pkg"]}, id="double-dash-behind"),
    pytest.param("add x uv run -- a", {"command": "uv", "args": ["run", "--", "a"]}, id="the-servers-double-dash"),
    pytest.param("add x server --help", {"command": "server", "args": ["--help"]}, id="the-servers-help"),
    pytest.param("add x server -1 ''", {"command": "server", "args": ["-1", ""]}, id="odd-args"),
    pytest.param(
        "add x https://api.example.com/mcp/ -t http --timeout 5", HTTP | {"timeout": 5}, id="transport-behind-the-url"
    ),
    pytest.param(
        "add -t http -H 'X-Api-Key: a:b' x -H 'B:c' https://api.example.com/mcp/ -H 'D: e'",
        HTTP | {"headers": {"X-Api-Key": "a:b", "B": "c", "D": "e"}},
        id="repeated-headers-everywhere",
    ),
    pytest.param("add --type sse x '${BASE}'", {"url": "${BASE}", "type": "sse"}, id="a-variable-as-url"),
    pytest.param(
        "add -e A=1 -e B=x=y -e C= x server",
        {"command": "server", "env": {"A": "1", "B": "x=y", "C": ""}},
        id="env",
        marks=pytest.mark.requirement("MCP-163"),
    ),
    pytest.param(
        "add --timeout 2500 --trust --description 'What it does' --include-tools a,b --include-tools c "
        "--exclude-tools=d,e x server",
        {
            "command": "server",
            "timeout": 2500,
            "trust": True,
            "description": "What it does",
            "includeTools": ["a", "b", "c"],
            "excludeTools": ["d", "e"],
        },
        id="all-the-rest",
        marks=pytest.mark.requirement("MCP-165", "MCP-166", "MCP-167", "MCP-168"),
    ),
    pytest.param(
        "add x --exclude-tools d,e server",
        {"command": "server", "excludeTools": ["d", "e"]},
        id="exclude-tools",
        marks=pytest.mark.requirement("MCP-169"),
    ),
]


@pytest.mark.parametrize(("line", "expected"), ADDED)
def test_a_command_line_writes_its_server_into_the_projects_settings(
    line: str, expected: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert mcp(line) == 0
    ((name, entry),) = servers().items()
    assert entry == expected
    transport = "http" if "httpUrl" in entry else entry.get("type", "stdio")
    assert capsys.readouterr().out == f'MCP server "{name}" added to project settings. ({transport})\n'
    assert not file_of("user").exists()


@pytest.mark.requirement("MCP-161")
@pytest.mark.parametrize("option", ["-s user", "--scope user", "--scope=user"])
def test_the_scope_says_which_file_and_a_new_one_is_for_its_owner_alone(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mcp(f"add {option} mine server") == 0
    assert servers("user") == {"mine": {"command": "server"}}
    assert servers("project") == {}
    assert file_of("user").stat().st_mode & 0o777 == 0o600
    assert "added to user settings. (stdio)" in capsys.readouterr().out


@pytest.mark.requirement("MCP-158")
def test_a_name_that_exists_is_replaced_in_its_place_and_said(capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of("project")
    path.parent.mkdir()
    path.write_text('{\n\t// mine\n\t"mcpServers": {\n\t\t"a": {"command": "x"}, // A\n\t\t"b": {}\n\t},\n}\n', "utf-8")
    assert mcp("add a y") == 0
    assert path.read_text("utf-8") == (
        '{\n\t// mine\n\t"mcpServers": {\n\t\t"a": {\n\t\t\t"command": "y"\n\t\t}, // A\n\t\t"b": {}\n\t},\n}\n'
    )
    assert capsys.readouterr().out.splitlines() == [
        'MCP server "a" is already configured within project settings.',
        'MCP server "a" updated in project settings.',
    ]


WRONG = [
    ("add", "Missing argument 'NAME'"),
    ("add x", "Missing argument 'COMMAND_OR_URL'"),
    ("add x ''", "expected the command"),
    ("add -t tcp x y", "'tcp' is not one of"),
    ("add --unknown x y", "No such option"),
    ("add -s system x y", "'system' is not one of"),
    ("add --timeout 0 x y", "0 is not in the range"),
    ("add --timeout soon x y", "'soon' is not a valid integer"),
    ("add x https://example.com/mcp?token=abc", "'https://example.com/mcp' is a URL"),
    ("add -t http x server.py", "--transport http needs a URL such as https://example.com/mcp"),
    ("add -t sse x ftp://example.com", "--transport sse needs a URL such as https://example.com/sse"),
    ("add -t http x http://", "needs a URL"),
    ("add -t http x 'https://a b/'", "needs a URL"),
    ("add -t http x https://[/", "needs a URL"),
    ("add -t http x https://example.com/mcp more", "a URL takes no arguments, received 'more'"),
    ("add -t http -e A=1 x https://example.com/mcp", "--env is for --transport stdio"),
    ("add -t http x npx server", "--transport http needs a URL such as https://example.com/mcp, received 'npx'"),
    ("add -t http x https://a/b -H secret", '1a2b", received a text without a colon'),
    ("add -t http x https://a/b -H 'a b: secret'", "1a2b\", received a text that begins with 'a b'"),
    ("add -H 'A: b' x server", "--header is for --transport http and sse"),
    ("add -t http -H abc123 x https://example.com/mcp", 'expected "Name: value"'),
    ("add -t http -H ': b' x https://example.com/mcp", 'expected "Name: value"'),
    ("add -t http -H 'A:' x https://example.com/mcp", 'expected "Name: value"'),
    ("add -t http -H 'A B: c' x https://example.com/mcp", 'expected "Name: value"'),
    ("add -t http -H 'A: b\nC: d' x https://example.com/mcp", 'expected "Name: value"'),
    ("add -e TOKEN x server", "expected KEY=value; for the value that it has here write TOKEN='$TOKEN'"),
    ("add -e =1 x server", "expected KEY=value"),
    ("add --include-tools a,,b x server", "expected names of tools separated by commas"),
    ("add --exclude-tools '' x server", "expected names of tools separated by commas"),
    *((f"add -- {shlex.quote(name)} server", "expected letters, digits") for name in ("", "a b", "a/b", "-x", "a:b")),
    *((f"add -- {shlex.quote(name)} server", "expected letters, digits") for name in ("__proto__", "a\x1b", "x" * 65)),
]


@pytest.mark.parametrize(("line", "message"), WRONG)
def test_bad_input_says_what_was_expected_and_writes_nothing(
    line: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mcp(line) == 42
    err = capsys.readouterr().err
    assert message in err
    assert "abc123" not in err
    assert "token=abc" not in err
    assert not file_of("project").exists()


def test_bytes_that_json_cannot_hold_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp", "add", "x", "server", "\udcff"]) == 42
    assert "expected UTF-8 text" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["add x server", "remove x"])
def test_in_the_home_folder_the_projects_file_would_be_the_users_own_and_is_refused(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(Path.home())
    assert mcp(command) == 42
    assert "use --scope user" in capsys.readouterr().err
    assert not file_of("user").exists()
    assert mcp("add -s user x server") == 0
    assert mcp("remove -s user x") == 0


def test_a_file_with_an_error_is_not_touched_and_its_place_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    path = file_of("project")
    path.parent.mkdir()
    path.write_text('{\n  "mcpServers": {\n}', "utf-8")
    for line in ("add x server", "remove x"):
        assert mcp(line) == 1
        assert f"{path}:3:2: " in capsys.readouterr().err
    assert path.read_text("utf-8") == '{\n  "mcpServers": {\n}'
    path.write_text('{\n  "mcpServers": []\n}', "utf-8")
    assert mcp("add x server") == 1
    assert f"{path}:2:17: mcpServers: expected an object" in capsys.readouterr().err


def test_what_keeps_a_new_server_from_being_used_is_noted(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    assert mcp("add -t http x https://example.com/ -H 'Authorization: Bearer $NOT_SET'") == 0
    assert "it is not used yet" in (err := capsys.readouterr().err)
    assert "$NOT_SET is not set" in err
    assert mcp("add --trust y server") == 0
    assert "trust counts only in your own settings" in capsys.readouterr().err
    assert mcp("add -s user y server") == 0
    assert f"{file_of('project')} configures a server of that name, too" in capsys.readouterr().err
    (Path.home() / ".gemini" / "trustedFolders.json").unlink()
    assert mcp("add z server") == 0
    assert f"isthmus trust {here}" in capsys.readouterr().err


@pytest.mark.requirement("MCP-180", "MCP-181")
def test_a_server_is_removed_from_the_file_of_the_scope_and_the_rest_stays(capsys: pytest.CaptureFixture[str]) -> None:
    mcp("add a x")
    mcp("add b y")
    mcp("add -s user a z")
    capsys.readouterr()
    assert mcp("remove a") == 0
    assert capsys.readouterr().out == 'Server "a" removed from project settings.\n'
    assert (servers(), servers("user")) == ({"b": {"command": "y"}}, {"a": {"command": "z"}})
    assert mcp("remove --scope user a") == 0
    assert servers("user") == NOTHING


def test_the_name_of_a_server_that_the_scope_has_not_is_told_where_it_is(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mcp("add -s user notes x")
    (here / ".mcp.json").write_text('{"mcpServers": {"shared": {"command": "x"}}}', "utf-8")
    capsys.readouterr()
    for name, expected in (
        ("notes", "it is in the user settings: isthmus mcp remove --scope user notes"),
        ("shared", f"it is configured in {here / '.mcp.json'}"),
        ("Note", "did you mean 'notes'?"),
        ("zzz", "configured are: notes, shared"),
    ):
        assert mcp(f"remove {name}") == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert f'Server "{name}" not found in project settings; ' in err
        assert expected in err
    assert set(servers("user")) == {"notes"}


def test_a_server_is_switched_off_and_on_in_gemini_clis_file(capsys: pytest.CaptureFixture[str]) -> None:
    switches = Path.home() / ".gemini" / "mcp-server-enablement.json"
    mcp("add Notes x")
    capsys.readouterr()
    assert mcp("disable Notes") == 0
    assert json.loads(switches.read_text("utf-8")) == {"notes": {"enabled": False}}
    assert mcp("disable Notes") == 0
    assert mcp("enable Notes") == 0
    assert json.loads(switches.read_text("utf-8")) == {}
    assert mcp("enable Notes") == 0
    assert capsys.readouterr().out.splitlines() == [
        "MCP server 'Notes' disabled.",
        "MCP server 'Notes' is disabled already.",
        "MCP server 'Notes' enabled.",
        "MCP server 'Notes' is enabled already.",
    ]


def test_switching_names_near_names_and_what_else_is_in_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert mcp("enable nots") == 1
    assert "none is configured. Add one: isthmus mcp add" in capsys.readouterr().err
    file_of("user").write_text('{"mcpServers": {"notes": {"command": "x"}}, "mcp": {"excluded": ["notes"]}}', "utf-8")
    assert mcp("disable nots") == 1
    assert "did you mean 'notes'?" in capsys.readouterr().err
    assert mcp("disable notes --session") == 42
    assert "mcp.excluded" in capsys.readouterr().err
    assert mcp("enable notes") == 0
    assert f"mcp.excluded in {file_of('user')} names it" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", ["add b server", "remove a", "disable a", "enable a", "list --no-connect", "--help", "add --help"]
)
def test_what_only_looks_at_files_imports_nothing_of_mcp(line: str) -> None:
    mcp("add a server")
    program = f"""
import sys
from isthmus.cli.main import run
status = run({["mcp", *line.split()]!r})
assert not status, status
heavy = {{"mcp", "mcp_types", "httpx2", "pydantic", "anyio", "jsonschema", "keyring", "asyncio", "rich", "yaml"}}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr


TRICKY = st.sampled_from(
    ["-e", "--", "--trust", "-h", "--help", "x", "--header", "", "-", "https://x", "--timeout=0", "-s", "user", "-tsse"]
)


@given(args=st.lists(TRICKY, max_size=6), trusts=st.booleans(), after_name=st.booleans())
def test_whatever_follows_a_command_is_the_servers_own(args: list[str], trusts: bool, after_name: bool) -> None:
    options = ["--trust", "-e", "A=1"] if trusts else ["-e", "A=1"]
    line = ["name", *options, "program"] if after_name else [*options, "name", "program"]
    params = add.make_context("add", [*line, *args]).params
    assert params["args"] == tuple(args[1:] if args[:1] == ["--"] else args)
    assert (params["name"], params["command_or_url"], params["transport"]) == ("name", "program", "stdio")
    assert (params["trust"], params["env"], params["scope"]) == (trusts, ("A=1",), "project")


@given(line=st.lists(TRICKY, max_size=7))
def test_any_line_is_taken_or_refused_in_words(line: list[str]) -> None:
    try:
        add.make_context("add", list(line), resilient_parsing=False)
    except (click.UsageError, click.exceptions.Exit):
        return


@pytest.mark.parametrize(
    ("line", "option"),
    [
        ("add x prog --scope user", "--scope user"),
        ("add x prog --scope=user", "--scope=user"),
        ("add x prog a b --trust", "--trust"),
        ("add x prog -s user", "-s user"),
        ("add x prog a -t http b", "-t http"),
        ("add x prog --env A=b", "--env"),
    ],
)
def test_an_option_behind_the_program_is_the_programs_and_noted(
    line: str, option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mcp(line) == 0
    assert f"Note: {option} stands behind prog, which gets it;" in capsys.readouterr().err
    assert servers()["x"]["args"] == shlex.split(line)[3:]


@pytest.mark.parametrize(
    "line",
    [
        "add x docker run -i --rm -e TOKEN image",
        "add x prog -s value -t 5 -y --port 8080 -h",
        "add x -- prog --scope user",
        "add -s project x -- prog --trust",
        "add -t http x https://example.com/mcp --trust",
    ],
)
def test_options_that_are_meant_for_the_program_are_not_noted(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert mcp(line) == 0
    assert "stands behind" not in capsys.readouterr().err
