"""MCP servers that a settings file forbids or prescribes: the machine's, which wins over all, and others."""

import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.development_tool import McpServerSettings
from isthmus.mcp_host.config.workspace_config import load_configuration
from isthmus.tools.port.failure import ToolFailure
from support.loaded_program import LoadedProgram
from support.mcp_hosting import hosting, scripted, write_servers


@pytest.fixture
def system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of the administrator's settings file."""
    folder = tmp_path / "etc"
    folder.mkdir(mode=0o755)
    path = folder / "settings.json"
    monkeypatch.setenv("GEMINI_CLI_SYSTEM_SETTINGS_PATH", str(path))
    return path


def put(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(values), "utf-8")
    path.chmod(0o644)


def statuses(loaded: LoadedProgram, folder: Path, *options: str) -> dict[str, str]:
    """Return the status of each server in the output of a run for scripts."""
    done = loaded.run("-m", "demo", "-p", "hello", "-o", "json", *options, folder=folder)
    assert done.returncode == 0, done.stderr
    return {server["name"]: server["status"] for server in json.loads(done.stdout)["mcp_servers"]}


def test_the_administrators_names_count_for_every_server(
    system: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(Path.home(), {"good": scripted("plain"), "bad": scripted("plain")})
    put(system, mcp={"excluded": ["BAD"]})
    found = statuses(loaded_isthmus, workspace, "--mcp-config", json.dumps({"mcpServers": {"bad": scripted("plain")}}))
    assert found == {"good": "connected", "bad": "disabled"}
    listed = loaded_isthmus.run("mcp", "get", "bad", folder=workspace).stdout
    assert f"mcp.excluded in {system} names it" in listed


def test_the_administrators_own_server_replaces_others_of_its_name(
    system: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(Path.home(), {"corporate": scripted("dies")})
    put(system, mcpServers={"corporate": scripted("plain", trust=True)}, mcp={"allowed": ["corporate"]})
    given = json.dumps({"mcpServers": {"corporate": scripted("dies"), "other": scripted("plain")}})
    found = statuses(loaded_isthmus, workspace, "--mcp-config", given, "--strict-mcp-config")
    assert found == {"corporate": "connected", "other": "disabled"}
    shown = loaded_isthmus.run("mcp", "get", "corporate", folder=workspace).stdout
    assert f"Scope: system ({system})" in shown
    assert "Switches: trust" in shown


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"mcp": {"allowed": "good"}}', "expected a list of server names"),
        ('{"isthmus": {"mcp": {"denied": [{"serverUrl": "evil.test"}]}}}', "expected one of serverName"),
        ('{"mcp": []}', "expected objects"),
        ('{"mcpServers": []}', "expected an object"),
    ],
)
def test_no_server_is_used_while_the_administrators_rules_have_an_error(
    system: Path, workspace: Path, text: str, why: str, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(Path.home(), {"good": scripted("plain")})
    system.write_text(text)
    system.chmod(0o644)
    shown = loaded_isthmus.run("mcp", "list", "--no-connect", folder=workspace)
    assert "○ good: " in shown.stdout
    assert "the administrator's rules cannot be read: " in shown.stdout
    assert why in shown.stderr


def usable(home: Path, workspace: Path, values: dict[str, Any], servers: dict[str, Any]) -> set[str]:
    """Return the servers that are used under a user's own settings."""
    (home / ".gemini").mkdir(parents=True, exist_ok=True)
    (home / ".gemini" / "settings.json").write_text(json.dumps({**values, "mcpServers": servers}), "utf-8")
    configuration = load_configuration(workspace, home, {}, lambda _: True)
    assert configuration.problems == ()
    return {server.name for server in configuration.servers if not hasattr(server, "problem")}


SERVERS: dict[str, Any] = {
    "npx": {"command": "npx", "args": ["-y", "good"]},
    "other": {"command": "npx", "args": ["-y", "good", "--more"]},
    "api": {"httpUrl": "https://API.corp.test/mcp"},
    "deep": {"httpUrl": "https://a.b.corp.test/"},
    "faked": {"httpUrl": "https://evil.test/x.corp.test/"},
    "user": {"httpUrl": "https://x.corp.test@evil.test/"},
    "port": {"httpUrl": "https://x.corp.test:8443/mcp"},
}
COMMAND = {"serverCommand": ["npx", "-y", "good"]}
HOST = {"serverUrl": "https://*.corp.test/*"}
NPX, WEB = {"npx", "other"}, {"api", "deep", "faked", "user", "port"}


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ([], set[str]()),
        ([COMMAND], {"npx"}),
        ([HOST], {"api", "deep"}),
        ([COMMAND, HOST], {"npx", "api", "deep"}),
        ([{"serverName": "Port"}], {"port"}),
        ([COMMAND, {"serverName": "other"}, {"serverName": "port"}], {"npx", "port"}),
        ([{"serverUrl": "*://*/*"}], WEB - {"user"}),
    ],
)
def test_allowed_servers_are_told_by_their_command_and_url(
    tmp_path: Path, workspace: Path, allowed: list[Any], expected: set[str]
) -> None:
    assert usable(tmp_path, workspace, {"isthmus": {"mcp": {"allowed": allowed}}}, SERVERS) == expected


@pytest.mark.parametrize(
    ("denied", "gone"),
    [
        ([], set[str]()),
        ([COMMAND], {"npx"}),
        ([HOST], {"api", "deep"}),
        ([{"serverUrl": "https://evil.test/*"}], {"faked", "user"}),
        ([{"serverName": "USER"}], {"user"}),
    ],
)
def test_denied_servers_are_told_by_their_command_and_url(
    tmp_path: Path, workspace: Path, denied: list[Any], gone: set[str]
) -> None:
    assert usable(tmp_path, workspace, {"isthmus": {"mcp": {"denied": denied}}}, SERVERS) == (NPX | WEB) - gone


def test_the_administrators_list_replaces_commands_and_gives_no_trust(tmp_path: Path, workspace: Path) -> None:
    admin = {"npx": {"url": "https://corp.test/", "type": "http", "includeTools": ["look"], "trust": True}}
    values = {"admin": {"mcp": {"config": admin}}}
    assert usable(tmp_path, workspace, values, {**SERVERS, "npx": {**SERVERS["npx"], "excludeTools": ["a"]}}) == {"npx"}
    (server,) = [one for one in load_configuration(workspace, tmp_path, {}, bool).servers if one.name == "npx"]
    assert not hasattr(server, "problem")
    shown: Any = server
    assert (shown.endpoint.url, shown.endpoint.transport) == ("https://corp.test/", "http")
    assert (shown.trust, shown.include_tools, shown.exclude_tools) == (False, ("look",), ())
    assert usable(tmp_path, workspace, {"admin": {"mcp": {"enabled": False}}}, SERVERS) == set()


@pytest.mark.anyio
async def test_a_clients_own_server_obeys_the_administrator(system: Path, tmp_path: Path, workspace: Path) -> None:
    put(system, isthmus={"mcp": {"allowed": [HOST]}})
    async with hosting(tmp_path, {}) as host:
        host.check(workspace, [McpServerSettings(name="mine", url="https://a.corp.test/mcp")])
        with pytest.raises(ToolFailure, match="'mine' is not allowed by the administrator of this machine") as refused:
            host.check(workspace, [McpServerSettings(name="mine", url="https://evil.test/mcp")])
    assert str(system) not in str(refused.value)
