"""``permissions`` in the settings files of Claude Code: whose count, and what is said about the others."""

from pathlib import Path

import pytest

from isthmus.settings import claude_files, load_folder_rules
from isthmus.settings.permission_files import MAXIMUM_RULES
from isthmus.settings.rules.rule_decision import RuleDecision
from unit.settings.test_guards import write_settings
from unit.settings.test_hook_files import loaded, write_claude

DENY, ASK, ALLOW = RuleDecision.DENY, RuleDecision.ASK, RuleDecision.ALLOW


def decisions(tmp_path: Path, *, is_trusted: bool = False) -> list[tuple[RuleDecision, str]]:
    return [(rule.decision, rule.tool) for rule in loaded(tmp_path, is_trusted=is_trusted).rules.permissions]


def test_rules_of_all_files_count_and_those_that_forbid_come_first(tmp_path: Path) -> None:
    write_claude(tmp_path / "home", {"permissions": {"allow": ["WebSearch"], "ask": ["Bash"], "deny": ["Skill(x)"]}})
    write_claude(tmp_path / "project", {"permissions": {"deny": ["WebFetch"]}})
    write_claude(tmp_path / "project", {"permissions": {"ask": ["Write"]}}, "settings.local.json")
    expected = [(DENY, "Skill"), (DENY, "WebFetch"), (ASK, "Bash"), (ASK, "Write"), (ALLOW, "WebSearch")]
    assert decisions(tmp_path) == expected


def test_a_project_allows_nothing_even_if_it_is_trusted_and_that_is_said(tmp_path: Path) -> None:
    path = write_claude(tmp_path / "project", {"permissions": {"allow": ["Bash"]}}, "settings.local.json")
    assert decisions(tmp_path, is_trusted=True) == []
    settings = loaded(tmp_path, is_trusted=True)
    assert f"permissions.allow in {path} allows nothing: only your own settings may allow" in settings.ignored
    assert settings.rules.yolo_refusal is None


def test_a_rule_that_forbids_and_is_not_understood_is_named_and_nothing_is_allowed(tmp_path: Path) -> None:
    permissions = {"allow": ["Bash(ls)"], "deny": ["Bash(rm *)", "Bash(command:x)", "Raed(x)", 7]}
    path = write_claude(tmp_path / "home", {"permissions": permissions})
    assert decisions(tmp_path) == [(DENY, "Bash")]
    settings = loaded(tmp_path)
    assert settings.guards == (
        f"'Bash(command:x)' in permissions.deny in {path}: rules on parameters are not supported",
        f"'Raed(x)' in permissions.deny in {path}: there is no tool 'Raed'",
        f"7 in permissions.deny in {path}: it is not text",
    )
    assert "Raed" in str(settings.rules.yolo_refusal)


def test_a_rule_that_allows_and_is_not_understood_allows_nothing_and_is_named(tmp_path: Path) -> None:
    write_claude(tmp_path / "home", {"permissions": {"allow": ["mcp__*", "B*", "Bash(ls)"]}})
    settings = loaded(tmp_path)
    assert decisions(tmp_path) == [(ALLOW, "Bash")]
    assert settings.guards == ()
    assert [line.split(" in ")[0] for line in settings.ignored] == ["'mcp__*'", "'B*'"]


@pytest.mark.parametrize("permissions", [[], "deny", {"deny": "Bash"}, {"ask": {"Bash": True}}])
def test_permissions_of_another_form_are_named_and_refuse_yolo(tmp_path: Path, permissions: object) -> None:
    write_claude(tmp_path / "home", {"permissions": permissions})
    settings = loaded(tmp_path)
    assert len(settings.guards) == 1
    assert settings.rules.yolo_refusal is not None


def test_a_file_that_cannot_be_read_refuses_yolo_even_in_a_folder_without_trust(tmp_path: Path) -> None:
    path = write_claude(tmp_path / "project", {})
    path.write_text("{", "utf-8")
    assert loaded(tmp_path).guards == (
        f"{path} cannot be read, so its hooks do not run and its permissions do not count",
    )


def test_too_many_rules_are_named_and_the_first_ones_that_forbid_are_used(tmp_path: Path) -> None:
    denied = [f"Bash(a{number})" for number in range(MAXIMUM_RULES + 1)]
    write_claude(tmp_path / "project", {"permissions": {"deny": denied}})
    assert len(decisions(tmp_path)) == MAXIMUM_RULES
    assert f"{MAXIMUM_RULES + 1} rules of permissions" in loaded(tmp_path).guards[0]


@pytest.mark.parametrize("value", ["disable", True])
def test_any_file_forbids_yolo(tmp_path: Path, value: object) -> None:
    path = write_claude(tmp_path / "project", {"permissions": {"disableBypassPermissionsMode": value}})
    expected = f"permissions.disableBypassPermissionsMode in {path} forbids it"
    assert loaded(tmp_path).rules.yolo_refusal == expected


@pytest.mark.parametrize(("mode", "ours"), [("default", "default"), ("acceptEdits", "auto_edit"), ("plan", "plan")])
def test_the_users_mode_is_that_of_a_session_unless_gemini_clis_file_names_one(
    tmp_path: Path, mode: str, ours: str
) -> None:
    write_claude(tmp_path / "home", {"permissions": {"defaultMode": mode}})
    assert loaded(tmp_path).approval_mode == ours
    write_settings(tmp_path / "home", {"general": {"defaultApprovalMode": "auto_edit"}})
    assert loaded(tmp_path).approval_mode == "auto_edit"


@pytest.mark.parametrize("mode", ["bypassPermissions", "dontAsk", "auto", 1])
def test_a_mode_without_a_counterpart_is_named_and_not_used(tmp_path: Path, mode: object) -> None:
    write_claude(tmp_path / "home", {"permissions": {"defaultMode": mode}})
    assert loaded(tmp_path).approval_mode is None
    assert len(loaded(tmp_path).ignored) == 1


def test_a_project_does_not_choose_the_mode(tmp_path: Path) -> None:
    write_claude(tmp_path / "project", {"permissions": {"defaultMode": "acceptEdits"}})
    assert loaded(tmp_path, is_trusted=True).approval_mode is None
    assert "only your own settings choose" in loaded(tmp_path, is_trusted=True).ignored[0]


def test_further_folders_of_a_project_need_trust(tmp_path: Path) -> None:
    write_claude(tmp_path / "home", {"permissions": {"additionalDirectories": ["~/a"]}})
    write_claude(tmp_path / "project", {"permissions": {"additionalDirectories": ["../b"]}})
    assert loaded(tmp_path).included_folders == ("~/a",)
    assert loaded(tmp_path, is_trusted=True).included_folders == ("~/a", "../b")


def test_what_only_one_of_two_folders_allows_is_not_allowed_in_both(tmp_path: Path) -> None:
    write_claude(tmp_path / "home", {"permissions": {"allow": ["Bash(ls)", "Edit(src/**)"]}})
    of = [load_folder_rules(tmp_path / name, tmp_path / "home", {}).untrusted for name in ("a", "b")]
    both = of[0] | of[1]
    assert [rule.tool for rule in both.permissions] == ["Bash"]


def test_all_files_of_the_machine_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claude_files, "_SYSTEM_FOLDERS", (tmp_path / "system",))
    folder = tmp_path / "system" / "managed-settings.d"
    folder.mkdir(parents=True)
    for number in range(150):
        (folder / f"{number:03}.json").write_text("{}")
    (folder / "last.json").write_text('{"permissions": {"deny": ["Bash"]}}')
    assert decisions(tmp_path) == [(DENY, "Bash")]


def test_a_folder_of_the_machine_that_cannot_be_listed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claude_files, "_SYSTEM_FOLDERS", (tmp_path / "system",))
    folder = tmp_path / "system" / "managed-settings.d"
    folder.parent.mkdir()
    folder.symlink_to(folder)
    settings = loaded(tmp_path)
    assert settings.guards == (f"{folder} cannot be read, so its hooks do not run and its permissions do not count",)
    assert str(folder) in str(settings.rules.yolo_refusal)
