"""Claude Code's permission rules on calls: which tools, commands, paths and hosts they mean."""

import time
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.permission_rules import PermittedCall, may_permit, permission_on, withheld
from isthmus.agent.approval.policy_rules import NamedTool
from isthmus.settings.rules.permissions import PathFolders, PermissionRule, parse_rule
from isthmus.settings.rules.rule_decision import RuleDecision
from support.processor_time import seconds_here

WORDS = {"deny": RuleDecision.DENY, "ask": RuleDecision.ASK, "allow": RuleDecision.ALLOW}


def rules(folder: Path, **lists: list[str]) -> list[PermissionRule]:
    folders = PathFolders(folder, folder / "home", (folder,))
    return [parse_rule(text, WORDS[name], name, folders) for name, texts in lists.items() for text in texts]


def decided(folder: Path, tool: str, effect: dict[str, Any], server: str | None, **lists: list[str]) -> str:
    """Return the decision on a call by its name in settings; empty without one."""
    named = NamedTool(frozenset({tool}), tool, server)
    ruling = permission_on(rules(folder, **lists), PermittedCall(named, effect, folder))
    return "" if ruling is None else next(word for word, decision in WORDS.items() if decision is ruling.decision)


def run(folder: Path, command: str, **lists: list[str]) -> str:
    return decided(folder, "run_shell_command", {"command": command}, None, **lists)


def test_deny_counts_before_ask_and_ask_before_allow(tmp_path: Path) -> None:
    lists = {"allow": ["Bash", "Bash(git push origin main)"], "ask": ["Bash(git push *)"], "deny": ["Bash(git * -f)"]}
    assert run(tmp_path, "git push origin main", **lists) == "ask"
    assert run(tmp_path, "git push -f", **lists) == "deny"
    assert run(tmp_path, "git status", **lists) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "git push -f",
        "npm test && git push",
        "npm test; git push",
        "npm test | git push",
        "npm test\ngit push",
        "(git push)",
        "if true; then git push; fi",
        "echo $(git push)",
        'g"it" push',
        "git  push",
        "/usr/bin/git push",
        "timeout 30 git push",
        "A=1 git push",
        "bash -c 'git push'",
    ],
)
def test_a_command_is_denied_in_each_part_of_a_compound_one(tmp_path: Path, command: str) -> None:
    assert run(tmp_path, command, deny=["Bash(git push *)"]) == "deny"


def test_a_command_that_is_not_understood_is_asked_about_if_some_are_denied(tmp_path: Path) -> None:
    assert run(tmp_path, "eval $X", deny=["Bash(git push *)"]) == "ask"
    assert run(tmp_path, "eval $X", allow=["Bash(git push *)"]) == ""
    assert run(tmp_path, "A=1 format x", deny=["Bash(rm *)"]) == "ask"


def test_a_command_is_allowed_if_all_its_parts_are_and_it_writes_no_file(tmp_path: Path) -> None:
    lists = {"allow": ["Bash(npm run test:*)", "Bash(ls)"]}
    assert run(tmp_path, "npm run test && ls", **lists) == "allow"
    assert run(tmp_path, "npm run test -- -x", **lists) == "allow"
    for command in ("npm run testing", "npm run test && rm x", "ls > x", "ls -l", "A=1 ls", "'npm run' test"):
        assert run(tmp_path, command, **lists) == ""
    assert run(tmp_path, "ls > x; eval $X", allow=["Bash(*)"]) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "cat .env",
        "cat ./a/../.env",
        "cat *env",
        "head -n1 x .env",
        "grep -r x .env",
        "cd a && cat ../.env",
        "cat < .env",
        "cat<'.env'",
        "sort --files0-from=.env",
        "dd if=.env",
        "cp .env x",
        "cat link",
        "A=1 cat .env",
        "bash -c 'cat .env'",
    ],
)
def test_a_path_that_may_not_be_read_is_denied_to_commands_that_read_it(tmp_path: Path, command: str) -> None:
    (tmp_path / ".env").touch()
    (tmp_path / "link").symlink_to(tmp_path / ".env")
    assert run(tmp_path, command, deny=["Read(./.env)"]) == "deny"


def test_a_path_that_may_not_be_edited_is_denied_to_commands_that_write_it(tmp_path: Path) -> None:
    deny = ["Edit(*.lock)"]
    for command in ("rm a.lock", "sed -i s/a/b/ a.lock", "echo x > a.lock", "tee a.lock", "mv x a.lock"):
        assert run(tmp_path, command, deny=deny) == "deny", command
    assert run(tmp_path, "cat a.lock", deny=deny) == ""
    assert run(tmp_path, "cat b", deny=[*deny, "Read(a)"]) == ""


@pytest.mark.parametrize(
    ("tool", "effect"),
    [
        ("read_file", {"file_path": "/w/secrets/a"}),
        ("read_many_files", {"include": ["secrets/a"]}),
        ("read_many_files", {"paths": ["secrets/a"]}),
        ("grep_search", {"dir_path": "/w/secrets/a"}),
        ("glob", {"dir_path": "/w/secrets/a"}),
        ("list_directory", {"dir_path": "/w/secrets/a"}),
        ("replace", {"file_path": "/w/secrets/a"}),
        ("write_file", {"file_path": "/w/secrets/a"}),
        ("apply_patch", {"file_path": "/w/secrets/a"}),
        ("notebook_edit", {"file_path": "/w/secrets/a"}),
    ],
)
def test_a_read_rule_is_about_all_tools_for_files(tool: str, effect: dict[str, Any]) -> None:
    assert decided(Path("/w"), tool, effect, None, deny=["Read(./secrets/**)"]) == "deny"
    assert decided(Path("/w"), tool, effect, None, ask=["Read(./secrets/**)"]) == "ask"
    assert decided(Path("/w"), tool, effect, None, deny=["Read(./other/**)"]) == ""


def test_an_edit_rule_is_about_all_tools_that_change_files_and_no_others(tmp_path: Path) -> None:
    effect = {"file_path": str(tmp_path / "a")}
    for tool in ("replace", "write_file", "apply_patch", "notebook_edit"):
        for text in ("Edit(a)", "Edit", "Write(a)"):
            assert decided(tmp_path, tool, effect, None, deny=[text]) == "deny"
        assert decided(tmp_path, tool, effect, None, allow=["Edit(/*)"]) == "allow"
    assert decided(tmp_path, "read_file", effect, None, deny=["Edit", "Edit(a)"]) == ""


def test_a_link_is_denied_by_either_path_and_allowed_by_both(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "out" / "file")
    effect = {"file_path": str(tmp_path / "in" / "link")}
    for text in ("Read(in/**)", "Read(out/**)"):
        assert decided(tmp_path, "read_file", effect, None, deny=[text]) == "deny"
    for text in ("Edit(in/**)", "Edit(out/**)"):
        assert decided(tmp_path, "write_file", effect, None, allow=[text]) == ""
    assert decided(tmp_path, "write_file", effect, None, allow=["Edit(/**)"]) == "allow"


@pytest.mark.parametrize(
    ("url", "decision"),
    [
        ("https://example.com/a", "deny"),
        ("http://EXAMPLE.com.:80", "deny"),
        ("https://docs.example.com", ""),
        ("https://example.com.evil.net", ""),
        ("https://good.net@example.com/", "deny"),
        ("https://example.net\\@good.net", "deny"),
    ],
)
def test_a_host_is_compared_and_an_unusual_url_is_denied(tmp_path: Path, url: str, decision: str) -> None:
    assert decided(tmp_path, "web_fetch", {"url": url}, None, deny=["WebFetch(domain:example.com)"]) == decision


def test_a_host_is_allowed_by_its_own_name_or_a_pattern(tmp_path: Path) -> None:
    def fetched(url: str) -> str:
        return decided(tmp_path, "web_fetch", {"url": url}, None, allow=["WebFetch(domain:*.example.com)"])

    assert fetched("https://docs.example.com/") == "allow"
    assert fetched("https://example.com/") == ""
    assert fetched("https://evil.net/#@docs.example.com") == ""
    assert fetched("https://docs.example.com\\@evil.net/") == ""


@pytest.mark.parametrize(
    "text", ["mcp__my_mail", "mcp__my_mail__*", "mcp__my_mail__send", "mcp__*", "*", "mcp__*__se*"]
)
def test_tools_of_servers_are_named_by_server_and_tool(tmp_path: Path, text: str) -> None:
    assert decided(tmp_path, "send", {}, "my mail", deny=[text]) == "deny"
    assert decided(tmp_path, "send", {}, "other", deny=["mcp__my_mail", "mcp__my_mail__send"]) == ""


def test_a_server_does_not_get_the_permission_of_anothers_tool(tmp_path: Path) -> None:
    assert decided(tmp_path, "b", {}, "a", allow=["mcp__a__b"]) == "allow"
    assert decided(tmp_path, "x", {}, "a__b", allow=["mcp__a__b"]) == ""
    assert decided(tmp_path, "x", {}, "a__b", deny=["mcp__a__b"]) == "deny"


def test_subagents_and_skills_are_named(tmp_path: Path) -> None:
    assert decided(tmp_path, "invoke_agent", {"agent_name": "Explore"}, None, deny=["Agent(Explore)"]) == "deny"
    assert decided(tmp_path, "invoke_agent", {"agent_name": "Plan"}, None, deny=["Task(Explore)"]) == ""
    assert decided(tmp_path, "activate_skill", {"name": "commit"}, None, ask=["Skill(com*)"]) == "ask"


def test_a_tool_that_is_denied_as_a_whole_is_withheld() -> None:
    def reason(tool: str, text: str) -> str | None:
        return withheld(rules(Path("/w"), deny=[text]), NamedTool(frozenset({tool}), tool))

    assert reason("run_shell_command", "Bash") == "'Bash' in deny forbids it"
    assert all(reason(tool, "Read") for tool in ("read_file", "read_many_files", "grep_search", "glob"))
    assert reason("replace", "Read") is None
    assert reason("run_shell_command", "Bash(rm *)") is None


def test_a_tool_may_be_permitted_if_a_rule_allows_some_calls() -> None:
    shell = NamedTool(frozenset({"run_shell_command"}), "run_shell_command")
    assert may_permit(rules(Path("/w"), allow=["Bash(ls)"]), shell)
    assert not may_permit(rules(Path("/w"), allow=["Edit(x)"], deny=["Bash(ls)"]), shell)


def test_a_command_with_very_many_files_is_asked_about_in_a_short_time(tmp_path: Path) -> None:
    command = "cat " + " ".join(f"x{number}" for number in range(3_000))
    deny = [f"Read(a{number}/**)" for number in range(100)]
    limit, started = seconds_here(5), time.thread_time()
    assert run(tmp_path, command, deny=deny) == "ask"
    assert run(tmp_path, command, deny=["Bash(rm *)"]) == ""
    assert time.thread_time() - started < limit
