from pathlib import Path
from typing import Any

import pytest

from isthmus.settings import load_folder_rules, load_settings, policy_files
from isthmus.settings.rules.rule_decision import RuleDecision
from isthmus.settings.rules.rules import PolicyRule
from unit.settings.test_guards import write_settings

DENY, ASK, ALLOW = RuleDecision.DENY, RuleDecision.ASK, RuleDecision.ALLOW


def write_policy(folder: Path, text: str, name: str = "p.toml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text, "utf-8")
    return path


def of_user(home: Path, text: str) -> Path:
    return write_policy(home / ".gemini" / "policies", text)


def rules(tmp_path: Path) -> tuple[PolicyRule, ...]:
    return load_settings(tmp_path / "project", tmp_path / "home", {}).rules.policies


def problems(tmp_path: Path) -> tuple[str, ...]:
    return load_settings(tmp_path / "project", tmp_path / "home", {}).guards


def test_a_rule_of_gemini_clis_documentation_is_read(tmp_path: Path) -> None:
    text = """
        [[rule]]
        toolName = "run_shell_command"
        commandPrefix = "rm -rf"
        decision = "deny"
        priority = 100
        denyMessage = "Deletion is permanent"
        modes = ["default", "autoEdit", "yolo"]
        interactive = true
    """
    path = of_user(tmp_path / "home", text)
    assert rules(tmp_path) == (
        PolicyRule(
            DENY,
            4.1,
            f"rule 1 of the policy {path}",
            "run_shell_command",
            prefix="rm -rf",
            modes=("default", "auto_edit", "yolo"),
            interactive=True,
            message="Deletion is permanent",
        ),
    )


def test_lists_of_tools_and_prefixes_become_a_rule_each(tmp_path: Path) -> None:
    of_user(
        tmp_path / "home",
        '[[rule]]\ntoolName = ["write_file", "replace"]\ndecision = "ask_user"\npriority = 10\n'
        '[[rule]]\ntoolName = "run_shell_command"\ncommandPrefix = ["git", "npm"]\ndecision = "allow"\npriority = 9\n'
        '[[rule]]\nmcpName = "s"\ndecision = "deny"\npriority = 8\ndeny_message = "no"\n'
        '[[rule]]\ntoolName = "run_shell_command"\ncommandRegex = "git (a|b)"\ndecision = "deny"\npriority = 7\n',
    )
    found = [(rule.tool, rule.server, rule.prefix, rule.pattern, rule.message) for rule in rules(tmp_path)]
    assert found == [
        ("write_file", None, None, None, ""),
        ("replace", None, None, None, ""),
        ("run_shell_command", None, "git", None, ""),
        ("run_shell_command", None, "npm", None, ""),
        ("*", "s", None, None, "no"),
        ("run_shell_command", None, None, '"command":"git (a|b)', ""),
    ]


def test_the_higher_priority_counts_first_and_of_equal_ones_the_stricter(tmp_path: Path) -> None:
    of_user(
        tmp_path / "home",
        "".join(
            f'[[rule]]\ntoolName = "{tool}"\ndecision = "{decision}"\npriority = {priority}\n'
            for tool, decision, priority in [
                ("a", "allow", 5),
                ("b", "deny", 5),
                ("c", "ask_user", 900),
                ("d", "allow", 7),
            ]
        ),
    )
    assert [rule.tool for rule in rules(tmp_path)] == ["c", "d", "b", "a"]


BASE = '[[rule]]\ntoolName = "glob"\ndecision = "allow"\npriority = 1\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("not TOML [", "is not TOML"),
        ("a = " + "[" * 10_000, "is not TOML"),
        ('[[safety_checker]]\ntoolName = "*"\n', "safety checkers are not run"),
        ("rule = 1\n", "expected [[rule]]"),
        ('[[rule]]\ntoolName = "glob"\ndecision = "deny"\n', "expected a priority from 0 to 999"),
        ('[[rule]]\ntoolName = "glob"\ndecision = "deny"\npriority = 1000\n', "expected a priority from 0 to 999"),
        ('[[rule]]\ntoolName = "glob"\ndecision = "no"\npriority = 1\n', "expected a decision"),
        ('[[rule]]\ntoolName = ""\ndecision = "deny"\npriority = 1\n', "must not be empty"),
        (
            '[[rule]]\ntoolName = 3\ndecision = "deny"\npriority = 1\n',
            "expected text, or a list of texts, for toolName",
        ),
        ('[[rule]]\nmodes = ["x"]\ndecision = "deny"\npriority = 1\n', "expected modes out of"),
        ('[[rule]]\nwhen = "x"\ndecision = "deny"\npriority = 1\n', "unknown field 'when'"),
        ('[[rule]]\nargsPattern = "(?!a)"\ndecision = "deny"\npriority = 1\n', "cannot be searched in linear time"),
        ('[[rule]]\nargsPattern = "a"\ncommandPrefix = "a"\ndecision = "deny"\npriority = 1\n', "expected only one of"),
        ('[[rule]]\ntoolName = "glob"\ncommandPrefix = "a"\ndecision = "deny"\npriority = 1\n', "need toolName"),
        ('[[rule]]\ntoolAnnotations = {readOnlyHint = true}\ndecision = "deny"\npriority = 1\n', "toolAnnotations"),
    ],
)
def test_a_rule_that_cannot_be_applied_refuses_yolo_and_nothing_is_allowed(
    tmp_path: Path, text: str, problem: str
) -> None:
    of_user(tmp_path / "home", text)
    write_policy(tmp_path / "home" / ".gemini" / "policies", BASE, "other.toml")
    settings = load_settings(tmp_path / "project", tmp_path / "home", {})
    assert len(settings.guards) == 1
    assert problem in settings.guards[0]
    assert str(tmp_path / "home" / ".gemini" / "policies" / "p.toml") in settings.guards[0]
    assert settings.rules.yolo_refusal is not None
    assert settings.rules.policies == ()


def test_rules_for_what_is_not_here_are_neither_applied_nor_a_problem(tmp_path: Path) -> None:
    of_user(
        tmp_path / "home",
        '[[rule]]\ntoolAnnotations = {readOnlyHint = true}\ndecision = "allow"\npriority = 1\n',
    )
    assert (rules(tmp_path), problems(tmp_path)) == ((), ())


def test_a_project_can_only_forbid_and_ask_whether_its_folder_is_trusted_or_not(tmp_path: Path) -> None:
    text = "".join(
        f'[[rule]]\ntoolName = "glob"\ndecision = "{decision}"\npriority = 1\n'
        for decision in ("allow", "deny", "ask_user")
    )
    write_policy(tmp_path / "project" / ".gemini" / "policies", text)
    rules = load_folder_rules(tmp_path / "project", tmp_path / "home", {})
    for found in (rules.untrusted, rules.trusted):
        assert [(rule.decision, rule.priority) for rule in found.policies] == [(DENY, 3.001), (ASK, 3.001)]


def test_the_users_policy_paths_replace_the_folder_and_a_projects_do_not_count(tmp_path: Path) -> None:
    of_user(tmp_path / "home", BASE)
    deny = '[[rule]]\ntoolName = "replace"\ndecision = "deny"\npriority = 1\n'
    elsewhere = write_policy(tmp_path / "elsewhere", deny)
    write_settings(tmp_path / "project", {"policyPaths": [str(elsewhere)]})
    assert [rule.tool for rule in rules(tmp_path)] == ["glob"]
    for path in (elsewhere, elsewhere.parent):
        write_settings(tmp_path / "home", {"policyPaths": [str(path)]})
        assert [(rule.tool, rule.priority) for rule in rules(tmp_path)] == [("replace", 4.001)]
    write_settings(tmp_path / "home", {"policyPaths": [str(tmp_path / "missing.toml")]})
    assert "missing.toml cannot be read" in problems(tmp_path)[0]


def test_policy_paths_of_the_administrator_count_before_those_of_the_user(tmp_path: Path) -> None:
    of_user(tmp_path / "home", '[[rule]]\ntoolName = "glob"\ndecision = "allow"\npriority = 999\n')
    deny = write_policy(tmp_path / "a", '[[rule]]\ntoolName = "glob"\ndecision = "deny"\npriority = 1\n')
    write_settings(tmp_path / "home", {"adminPolicyPaths": [str(deny)]})
    assert [(rule.decision, rule.priority) for rule in rules(tmp_path)] == [(DENY, 5.001), (ALLOW, 4.999)]


def test_policies_that_others_can_write_in_the_machines_folder_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(policy_files, "system_folder", lambda: tmp_path / "etc")
    path = write_policy(tmp_path / "etc" / "policies", BASE)
    assert [rule.priority for rule in rules(tmp_path)] == [5.001]
    path.chmod(0o666)
    settings = load_settings(tmp_path / "project", tmp_path / "home", {})
    assert settings.rules.policies == ()
    assert any(f"{path} is not used" in line for line in settings.ignored)


def test_clients_of_a_server_do_not_learn_where_a_policy_is(tmp_path: Path) -> None:
    of_user(tmp_path / "home", '[[rule]]\ntoolName = "glob"\ndecision = "deny"\npriority = 1\n')
    found = load_folder_rules(tmp_path / "project", tmp_path / "home", {}, names_files=False).untrusted
    assert [rule.where for rule in found.policies] == [
        "rule 1 of the policy files in the settings of the server's owner"
    ]


def test_what_only_one_of_two_folders_allows_is_not_allowed(tmp_path: Path) -> None:
    def one(decision: RuleDecision, tool: str) -> Any:
        of_user(tmp_path / tool, f'[[rule]]\ntoolName = "{tool}"\ndecision = "{decision.value}"\npriority = 1\n')
        return load_folder_rules(tmp_path / "project", tmp_path / tool, {}).untrusted

    allowed, denied = one(ALLOW, "a"), one(DENY, "b")
    assert [rule.tool for rule in (allowed | denied).policies] == ["b"]
    assert (allowed | allowed).policies == allowed.policies
