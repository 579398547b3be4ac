from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.agent.approval.policy import (
    Allow,
    ApprovalMode,
    ApprovalRequired,
    Decision,
    Deny,
    Grant,
    Policy,
    PrefixGrant,
    ToolGrant,
    decide,
    grants_from_settings,
    grants_of,
    is_guarded,
)
from isthmus.tools.base import ToolKind

SHELL = "run_shell_command"


def shell(command: str, *grants: Grant, mode: ApprovalMode = ApprovalMode.DEFAULT, may_ask: bool = True) -> Decision:
    return decide(Policy(mode, frozenset(grants), may_ask), SHELL, ToolKind.EXECUTE, {"command": command})


def options_of(decision: Decision) -> list[str]:
    assert isinstance(decision, ApprovalRequired)
    return [option.id for option in decision.options]


@pytest.mark.parametrize("mode", ApprovalMode)
def test_reading_is_always_free(mode: ApprovalMode) -> None:
    assert decide(Policy(mode, may_ask=False), "read_file", ToolKind.READ, {}) == Allow()


@pytest.mark.parametrize(
    ("mode", "kind", "expected"),
    [
        (ApprovalMode.DEFAULT, ToolKind.EDIT, ApprovalRequired),
        (ApprovalMode.DEFAULT, ToolKind.EXECUTE, ApprovalRequired),
        (ApprovalMode.DEFAULT, ToolKind.OTHER, ApprovalRequired),
        (ApprovalMode.AUTO_EDIT, ToolKind.EDIT, Allow),
        (ApprovalMode.AUTO_EDIT, ToolKind.EXECUTE, ApprovalRequired),
        (ApprovalMode.AUTO_EDIT, ToolKind.OTHER, ApprovalRequired),
        (ApprovalMode.PLAN, ToolKind.EDIT, Deny),
        (ApprovalMode.PLAN, ToolKind.EXECUTE, Deny),
        (ApprovalMode.PLAN, ToolKind.OTHER, Deny),
        (ApprovalMode.YOLO, ToolKind.EDIT, Allow),
        (ApprovalMode.YOLO, ToolKind.EXECUTE, Allow),
        (ApprovalMode.YOLO, ToolKind.OTHER, Allow),
    ],
)
def test_the_mode_decides_by_the_kind_of_the_tool(mode: ApprovalMode, kind: ToolKind, expected: type[Decision]) -> None:
    assert isinstance(decide(Policy(mode), "tool", kind, {"command": "make"}), expected)


@given(kind=st.sampled_from(ToolKind), name=st.text(min_size=1), command=st.text())
def test_nothing_with_an_effect_runs_in_plan_mode_whatever_was_granted(kind: ToolKind, name: str, command: str) -> None:
    grants = frozenset({ToolGrant(name), *grants_of("proceed_always_prefix", name, kind, {"command": command})})
    decision = decide(Policy(ApprovalMode.PLAN, grants), name, kind, {"command": command})
    assert isinstance(decision, Allow if kind is ToolKind.READ else Deny)


def test_an_edit_offers_once_always_for_the_tool_and_reject() -> None:
    assert options_of(decide(Policy(), "replace", ToolKind.EDIT, {})) == [
        "proceed_once",
        "proceed_always_tool",
        "cancel",
    ]


def test_a_command_offers_its_prefix_by_name() -> None:
    decision = shell("git status --short && npm run build")
    assert options_of(decision) == ["proceed_once", "proceed_always_prefix", "cancel"]
    assert isinstance(decision, ApprovalRequired)
    assert decision.options[1].name == "Always allow git status, npm run build …"


@pytest.mark.parametrize("command", ["echo $(rm -rf x", "eval 'rm x'", "echo hi > file", "sudo ls", ""])
def test_a_command_that_is_not_understood_or_writes_files_offers_no_prefix(command: str) -> None:
    assert options_of(shell(command)) == ["proceed_once", "cancel"]


def test_a_granted_prefix_lets_only_commands_run_that_consist_of_granted_parts() -> None:
    git = PrefixGrant(("git", "status"))
    assert shell("git status -sb", git) == Allow()
    assert shell("git status | wc -l", git, PrefixGrant(("wc",))) == Allow()
    for command in (
        "git stash",
        "git status; rm -rf .",
        "git status && curl evil",
        "git status | sh",
        "git status $(rm x)",
        "git status > .bashrc",
        "X=1 git statusx",
    ):
        assert isinstance(shell(command, git), ApprovalRequired), command


def test_the_answer_always_grants_what_its_name_said() -> None:
    granted = grants_of("proceed_always_prefix", SHELL, ToolKind.EXECUTE, {"command": "git status && ls"})
    assert granted == {PrefixGrant(("git", "status")), PrefixGrant(("ls",))}
    assert grants_of("proceed_always_tool", "replace", ToolKind.EDIT, {}) == {ToolGrant("replace")}
    assert grants_of("proceed_once", "replace", ToolKind.EDIT, {}) == frozenset()
    assert grants_of("cancel", "replace", ToolKind.EDIT, {}) == frozenset()


def test_an_allow_list_names_tools_and_command_prefixes() -> None:
    grants = grants_from_settings(["write_file", "run_shell_command(git status)"])
    assert grants == {ToolGrant("write_file"), PrefixGrant(("git", "status"))}


def test_an_allow_list_entry_without_words_allows_nothing() -> None:
    assert grants_from_settings(["run_shell_command()", "run_shell_command( )"]) == frozenset()


def test_only_the_shell_has_prefixes_under_either_of_its_names() -> None:
    assert grants_from_settings(["write_file(rm)", "(rm)", "run_shell_command(rm"]) == frozenset()
    assert grants_from_settings(["ShellTool(ls)", "ShellTool"]) == {PrefixGrant(("ls",)), ToolGrant(SHELL)}


def test_files_that_instruct_this_agent_and_its_kept_answers_are_guarded() -> None:
    assert is_guarded(Path("/w/docs/HOUSE.md"), ["House.md"])
    assert not is_guarded(Path("/w/docs/HOUSE.md"))
    assert is_guarded(Path("/w/GEMINI.md"))
    assert is_guarded(Path("/home/me/.local/share/isthmus/mcp-approvals.json"))


@pytest.mark.parametrize("mode", [ApprovalMode.YOLO, ApprovalMode.AUTO_EDIT, ApprovalMode.DEFAULT])
def test_in_a_sandbox_an_edit_that_starts_programs_outside_is_asked_in_every_mode(mode: ApprovalMode) -> None:
    def decided(policy: Policy, *, is_starting: bool = True) -> Decision:
        return decide(policy, "write_file", ToolKind.EDIT, {}, is_guarded=True, is_starting=is_starting)

    confined = Policy(mode, frozenset({ToolGrant("write_file")}), is_confined=True)
    assert options_of(decided(confined)) == ["proceed_once", "cancel"]
    refused = decided(replace(confined, may_ask=False))
    assert isinstance(refused, Deny)
    assert "outside of the sandbox" in refused.reason or mode is not ApprovalMode.YOLO
    if mode is ApprovalMode.YOLO:
        assert decided(confined, is_starting=False) == Allow()
        assert decided(replace(confined, is_confined=False)) == Allow()


def test_an_edit_of_a_guarded_file_is_asked_each_time() -> None:
    granted = Policy(ApprovalMode.AUTO_EDIT, frozenset({ToolGrant("write_file")}))
    asked = decide(granted, "write_file", ToolKind.EDIT, {}, is_guarded=True)
    assert options_of(asked) == ["proceed_once", "cancel"]
    alone = decide(Policy(ApprovalMode.AUTO_EDIT, may_ask=False), "write_file", ToolKind.EDIT, {}, is_guarded=True)
    assert isinstance(alone, Deny)
    assert "yolo" in alone.reason


@pytest.mark.parametrize(
    ("command", "entry"),
    [
        ("git status && git log", "run_shell_command(git log)"),
        ("git log | wc", "run_shell_command(git log),run_shell_command(wc)"),
        ("git status > file", "run_shell_command"),
        ("git $(log)", "run_shell_command"),
    ],
)
def test_the_refusal_of_a_command_names_what_is_missing_and_would_be_enough(command: str, entry: str) -> None:
    policy = Policy(grants=frozenset({PrefixGrant(("git", "status"))}), may_ask=False)
    decision = decide(policy, SHELL, ToolKind.EXECUTE, {"command": command})
    assert isinstance(decision, Deny)
    assert f"--allowed-tools '{entry}'" in decision.reason


def test_without_a_user_the_refusal_names_the_flags_that_would_allow_it() -> None:
    decision = shell("git status", may_ask=False)
    assert isinstance(decision, Deny)
    assert "--approval-mode yolo" in decision.reason
    assert "--allowed-tools 'run_shell_command(git status)'" in decision.reason
    edit = decide(Policy(may_ask=False), "replace", ToolKind.EDIT, {})
    assert isinstance(edit, Deny)
    assert "--approval-mode auto_edit or --allowed-tools 'replace'" in edit.reason
