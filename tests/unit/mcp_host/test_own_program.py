"""Servers that are Isthmus itself are recognised by their commands, and left out by a process that they would start."""

import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.mcp_host.config.own_program import LONGEST_CHAIN, own_words, self_refusal, started_server
from isthmus.mcp_host.config.server_config import Origin, ServerConfig, StdioEndpoint
from isthmus.mcp_host.config.workspace_config import UnusableCause, UnusableServer, load_configuration
from isthmus.runtime.server_chain import CHAIN, StartedServer, environment_below, server_chain

WORKSPACE = Path("/w")
SERVE = ("mcp", "serve")


def config(*command: str, name: str = "s", source: Path = Path("/file"), cwd: Path = WORKSPACE) -> ServerConfig:
    return ServerConfig(name, Origin.USER, StdioEndpoint(command[0], command[1:], {}, cwd), source)


def words_of(*command: str) -> tuple[str, ...] | None:
    return own_words(StdioEndpoint(command[0], command[1:], {}, WORKSPACE), "/nowhere")


@pytest.mark.parametrize(
    "command",
    [
        ("isthmus",),
        ("/opt/venv/bin/isthmus",),
        ("python", "-m", "isthmus"),
        ("/usr/bin/python3.12", "-u", "-X", "utf8", "-m", "isthmus.__main__"),
        ("python3", "/opt/venv/bin/isthmus"),
        ("env", "isthmus"),
        ("/usr/bin/env", "-i", "-u", "HOME", "A=b", "isthmus"),
        ("uvx", "isthmus@1.2"),
        ("uvx", "--from", "isthmus[otel]==1.2", "isthmus"),
        ("uvx", "--from", "git+https://example.org/isthmus.git", "isthmus"),
        ("uv", "tool", "run", "isthmus"),
        ("uv", "run", "--with", "isthmus", "isthmus"),
        ("pipx", "run", "isthmus"),
        ("python", "-m", "uv", "tool", "run", "isthmus"),
        ("sudo", "-u", "me", "nice", "-n", "5", "isthmus"),
        ("timeout", "60", "isthmus"),
    ],
)
def test_isthmus_is_known_in_each_form_of_its_command(command: tuple[str, ...]) -> None:
    assert words_of(*command, *SERVE) == SERVE


@pytest.mark.parametrize(
    "text",
    [
        "isthmus mcp serve",
        "cd ~/project && exec isthmus mcp serve",
        "export A=b; A=c isthmus mcp serve",
        "set -e\nPATH=/x:$PATH env -i python3 -m isthmus mcp serve",
        "true | (isthmus mcp serve)",
        "sh -c 'isthmus mcp serve'",
    ],
)
def test_isthmus_is_known_in_the_text_of_a_shell(text: str) -> None:
    assert words_of("bash", "-lc", text) == SERVE
    assert words_of("env", "-S", text.replace("\n", ";")) == SERVE


@pytest.mark.parametrize(
    "command",
    [
        ("npx", "-y", "@modelcontextprotocol/server-filesystem", "/home/me/isthmus"),
        ("uvx", "mcp-server-git", "--repository", "isthmus"),
        ("uvx", "--with", "isthmus", "mcp-server-time"),
        ("python", "-c", "import isthmus"),
        ("python", "server.py", "isthmus"),
        ("node", "isthmus/dist/index.js"),
        ("env", "A=isthmus", "node", "server.js", "--name", "isthmus"),
        ("bash", "-c", "echo isthmus; node server.js"),
        ("bash", "-c", "it's broken isthmus"),
        ("bash", "start.sh", "isthmus"),
        ("sh",),
        ("env",),
    ],
)
def test_another_program_is_not_taken_for_isthmus(command: tuple[str, ...]) -> None:
    assert words_of(*command) is None


def test_a_link_to_isthmus_is_isthmus(tmp_path: Path) -> None:
    program = tmp_path / "isthmus"
    program.touch(0o700)
    (tmp_path / "agent").symlink_to(program)
    assert own_words(StdioEndpoint("agent", SERVE, {}, WORKSPACE), str(tmp_path)) == SERVE
    assert self_refusal(config("agent", *SERVE), WORKSPACE, {"PATH": str(tmp_path)}) is not None


@pytest.mark.parametrize("options", [(), ("--no-ide", "-y"), ("--workspace", "/w"), ("--workspace=../w",)])
def test_the_same_agent_in_the_same_folder_is_left_out_with_the_remedy(options: tuple[str, ...]) -> None:
    said = self_refusal(config("isthmus", *SERVE, *options), WORKSPACE, {})
    assert said is not None
    assert "it is this agent itself" in said
    assert "remove it from /file, or switch it off for Isthmus alone: isthmus mcp disable s" in said


@pytest.mark.parametrize(
    "options",
    [("-m", "demo"), ("-mdemo",), ("--model=demo",), ("--workspace", "/v"), ("--strict-mcp-config",)],
)
def test_another_agent_may_be_a_server_but_not_of_a_server(options: tuple[str, ...]) -> None:
    server = config("isthmus", *SERVE, *options)
    assert self_refusal(server, WORKSPACE, {}) is None
    below = environment_below({}, StartedServer.of("other", None, ("x",)))
    assert "agents would start each other" in (self_refusal(server, WORKSPACE, below) or "")


def test_an_agent_that_a_server_starts_in_another_folder_is_another_agent() -> None:
    assert self_refusal(config("isthmus", *SERVE, cwd=Path("/v")), WORKSPACE, {}) is None


@pytest.mark.parametrize("words", [(), ("acp",), ("mcp", "list"), ("serve", "--port", "0")])
def test_a_command_that_is_no_mcp_server_is_left_out_and_named(words: tuple[str, ...]) -> None:
    said = self_refusal(config("isthmus", *words, "--workspace", "/v"), WORKSPACE, {})
    assert "is not an MCP server" in (said or "")
    assert "write `isthmus mcp serve`" in (said or "")


@pytest.mark.parametrize(
    "changed", [config("start.sh", "b"), config("start.sh", "a", name="t"), config("start.sh", "a", source=Path("/g"))]
)
def test_a_process_leaves_out_the_server_as_which_it_was_started(changed: ServerConfig) -> None:
    server = config("start.sh", "a")
    assert isinstance(server.endpoint, StdioEndpoint)
    below = environment_below({"A": "b"}, started_server(server, server.endpoint))
    assert below["A"] == "b"
    assert len(server_chain(below)) == 1
    assert "start.sh" not in below[CHAIN]
    assert "would start itself without end" in (self_refusal(changed, WORKSPACE, below) or "")
    assert self_refusal(config("other.sh", name="other"), WORKSPACE, below) is None
    assert self_refusal(server, WORKSPACE, {}) is None


def test_the_server_of_a_server_starts_no_programs() -> None:
    environment = environment_below({}, StartedServer.of("first", None, ("first.sh",)))
    for number in range(1, LONGEST_CHAIN):
        assert self_refusal(config("start.sh"), WORKSPACE, environment) is None
        environment = environment_below(environment, StartedServer.of(f"s{number}", None, (f"s{number}.sh",)))
    assert "the server of a server" in (self_refusal(config("start.sh"), WORKSPACE, environment) or "")


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({}, UnusableCause.ITSELF),
        ({"disabled": True}, UnusableCause.ENTRY),
        ({"required": True}, UnusableCause.ITSELF),
    ],
)
def test_a_folder_whose_file_names_the_agent_itself_needs_no_trust_for_it(
    tmp_path: Path, workspace: Path, change: dict[str, Any], cause: UnusableCause
) -> None:
    servers = {"me": {"command": "isthmus", "args": ["mcp", "serve"], **change}, "other": {"command": "x"}}
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": servers}), "utf-8")
    me, other = load_configuration(workspace, tmp_path, {}, lambda _: False).servers
    assert isinstance(me, UnusableServer)
    assert isinstance(other, UnusableServer)
    assert (me.cause, me.is_disabled, other.cause) == (cause, True, UnusableCause.TRUST)
