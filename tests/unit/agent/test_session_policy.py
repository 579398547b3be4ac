from typing import Any

import pytest

from isthmus.agent.approval.grants import PrefixGrant, ToolGrant
from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.approval.session_policy import FREEDOM, SettingsRule, check_settings, policy_for
from isthmus.client import InvalidRequest
from isthmus.development_tool import AgentSettings, decode_agent_settings, merge_agent_settings

DEFAULT, YOLO = ApprovalMode.DEFAULT, ApprovalMode.YOLO


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"approval_mode": "all"}, "^approval_mode .*default"),
        ({"approval_mode": 1}, "approval_mode"),
        ({"allowed_tools": ["rm -rf /"]}, "^allowed_tools: expected"),
        ({"allowed_tools": "write_file"}, "allowed_tools"),
        ({"allowedTools": ["read_file(x)"]}, "^allowed_tools"),
        ({"allowed_tools": ["a"] * 201}, "^allowed_tools: expected at most 200"),
        ({"context_files": ["a/b"]}, "^context_files"),
        ({"context_files": [".."]}, "^context_files"),
        ({"model": "x" * 1001}, "^model"),
        ({"additional_directories": "/a"}, "additional_directories"),
        ({"additional_directories": ["/a"] * 201}, "^additional_directories: expected at most 200"),
        ({"mcp_servers": ["a", "a"]}, "^mcp_servers: expected each name once"),
        ({"mcp_servers": [{"name": " "}]}, "^mcp_servers: expected a name"),
        ({"mcp_servers": [{"name": "a", "headers": {"x": "y"}}]}, "^mcp_servers: a has headers without a url"),
        ({"mcp_servers": [{"name": "a", "env": {"X": "y"}}]}, "^mcp_servers: a has args or env without a command"),
        ({"mcp_servers": [{"name": "a", "command": "x", "url": "http://x/"}]}, "^mcp_servers: a has a url and a comm"),
        ({"mcp_servers": [{"name": "a", "command": ""}]}, "^mcp_servers: expected command, args and env of a"),
        ({"mcp_servers": [{"name": "a", "command": "x", "args": ["\0"]}]}, "^mcp_servers: expected command, args and"),
        ({"mcp_servers": [{"name": "a", "command": "x", "env": {"X": 1}}]}, "^mcp_servers: expected command, args and"),
        ({"mcp_servers": [{"name": "a", "command": "x", "env": {"A=B": "y"}}]}, "^mcp_servers: a has variables with"),
        ({"mcp_servers": [{"name": "a", "command": "x" * 100_001}]}, "^mcp_servers: the command of a is too long"),
        ({"mcp_servers": [{"name": "a", "url": "ftp://x/"}]}, "^mcp_servers: the url of a"),
        ({"mcp_servers": [{"name": "a", "url": "http://u:secret@x/"}]}, "^mcp_servers: the url of a"),
        ({"mcp_servers": [{"name": "a", "url": "http://[x/"}]}, "^mcp_servers: the url of a"),
        ({"mcp_servers": [{"name": "a", "url": "http://x/", "headers": {"x": "y\r\nz: 1"}}]}, "^mcp_servers: the head"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(value: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message) as refused:
        check_settings(value, SettingsRule())
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"approval_mode": "", "allowed_tools": [], "model": ""},
        {"approval_mode": "yolo", "allowed_tools": ["write_file", "run_shell_command(git status)", "ShellTool(ls)"]},
        {"mcp_servers": ["docs", {"name": "own", "url": "https://x.example:8443/mcp?key=1", "headers": {"a": "b"}}]},
        {"mcp_servers": ["*", {"name": "own", "command": "/bin/server", "args": ["-v"], "env": {"KEY": "k"}}]},
        {"context_files": ["CLAUDE.md"], "model": "gemini-2.5-flash", "something_new": True},
    ],
)
def test_settings_that_fit_are_taken(value: dict[str, Any]) -> None:
    check_settings(value, SettingsRule())


@pytest.mark.parametrize("ceiling", FREEDOM)
@pytest.mark.parametrize("own", FREEDOM)
@pytest.mark.parametrize("wanted", FREEDOM)
def test_no_mode_is_freer_than_the_ceiling_or_the_agents_own(
    wanted: ApprovalMode, own: ApprovalMode, ceiling: ApprovalMode
) -> None:
    rule = SettingsRule(ceiling)
    got = policy_for(Policy(own), AgentSettings("/", approval_mode=wanted), rule, yolo_refusal=None).mode
    assert FREEDOM.index(got) <= max(FREEDOM.index(own), FREEDOM.index(ceiling))
    is_allowed = FREEDOM.index(wanted) <= max(FREEDOM.index(own), FREEDOM.index(ceiling))
    assert (got is wanted) == is_allowed
    if is_allowed:
        check_settings({"approval_mode": wanted}, rule, own)
    else:
        with pytest.raises(InvalidRequest, match=r"^approval_mode .* not allowed on this server"):
            check_settings({"approval_mode": wanted}, rule, own)


@pytest.mark.parametrize("rule", [SettingsRule(DEFAULT), SettingsRule(may_widen=False)])
def test_below_yolo_no_tools_are_allowed_by_settings(rule: SettingsRule) -> None:
    settings = AgentSettings("/", allowed_tools=("write_file",))
    assert policy_for(Policy(grants=frozenset({ToolGrant("own")})), settings, rule, yolo_refusal=None).grants == {
        ToolGrant("own")
    }
    with pytest.raises(InvalidRequest, match=r"^allowed_tools"):
        check_settings({"allowed_tools": ["write_file"]}, rule)


def test_a_server_that_lets_nobody_widen_takes_no_model_and_only_stricter_modes() -> None:
    rule = SettingsRule(may_widen=False)
    check_settings({"approval_mode": "plan"}, rule)
    for value in ({"model": "gemini-2.5-pro"}, {"approval_mode": "auto_edit"}):
        with pytest.raises(InvalidRequest):
            check_settings(value, rule)


@pytest.mark.parametrize("own", FREEDOM)
def test_a_folder_that_refuses_yolo_gets_no_yolo_session_and_no_tools_by_settings(own: ApprovalMode) -> None:
    settings = AgentSettings("/", approval_mode="yolo", allowed_tools=("write_file",))
    policy = policy_for(Policy(own), settings, SettingsRule(), yolo_refusal="its settings forbid it")
    assert policy == Policy(DEFAULT if own is ApprovalMode.YOLO else own)
    with pytest.raises(InvalidRequest, match=r"^approval_mode yolo is refused in this folder: its settings forbid it;"):
        check_settings({"approval_mode": "yolo"}, SettingsRule(), own, yolo_refusal="its settings forbid it")
    with pytest.raises(InvalidRequest, match=r"^allowed_tools is not accepted .*: its settings forbid it\)$"):
        check_settings({"allowed_tools": ["glob"]}, SettingsRule(), own, yolo_refusal="its settings forbid it")
    check_settings({"approval_mode": "plan"}, SettingsRule(), own, yolo_refusal="its settings forbid it")


def test_what_settings_allow_is_added_to_the_agents_own() -> None:
    settings = AgentSettings("/", allowed_tools=("write_file", "run_shell_command(git status)"))
    policy = policy_for(Policy(grants=frozenset({ToolGrant("own")})), settings, SettingsRule(), yolo_refusal=None)
    assert policy.grants == {ToolGrant("own"), ToolGrant("write_file"), PrefixGrant(("git", "status"))}


def test_a_later_message_replaces_what_it_names_and_an_empty_value_gives_it_back() -> None:
    first = decode_agent_settings({"workspace_path": "/w", "model": "a", "allowed_tools": ["x"]})
    second = merge_agent_settings(first, {"workspace_path": "/w", "allowedTools": ["y"]})
    assert (second.model, second.allowed_tools) == ("a", ("y",))
    assert merge_agent_settings(second, {"workspace_path": "/w", "allowed_tools": []}).allowed_tools == ()


def test_an_effort_is_a_known_level_and_the_servers_own_where_nothing_may_widen() -> None:
    for effort in ("minimal", "low", "medium", "high", "xhigh", "max", "default"):
        check_settings({"effort": effort}, SettingsRule())
    with pytest.raises(
        InvalidRequest, match="effort is 'most'; expected one of minimal, low, medium, high, xhigh, max, default"
    ):
        check_settings({"effort": "most"}, SettingsRule())
    with pytest.raises(InvalidRequest, match="effort is not accepted on this server"):
        check_settings({"effort": "low"}, SettingsRule(may_widen=False))


def test_further_folders_are_refused_where_nothing_may_be_widened() -> None:
    check_settings({"additional_directories": ["/a"]}, SettingsRule())
    with pytest.raises(InvalidRequest, match="additional_directories is not accepted on this server"):
        check_settings({"additional_directories": ["/a"]}, SettingsRule(may_widen=False))
