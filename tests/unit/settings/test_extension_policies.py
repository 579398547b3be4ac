"""Policy files of Gemini CLI's extensions: they forbid and ask, and allow nothing."""

from pathlib import Path

import pytest

from isthmus.settings import Settings, load_settings
from isthmus.settings.policy_files import MAXIMUM_POLICY_FILES
from isthmus.settings.rules.rule_decision import RuleDecision
from support.extension_folders import enable_extension, install_extension, link_extension
from unit.settings.test_policy_files import of_user, write_policy

DENY, ASK, ALLOW = RuleDecision.DENY, RuleDecision.ASK, RuleDecision.ALLOW


def rule(decision: str, tool: str = "glob", more: str = "") -> str:
    return f'[[rule]]\ntoolName = "{tool}"\ndecision = "{decision}"\npriority = 900\n{more}'


def install(tmp_path: Path, text: str, name: str = "greeter") -> Path:
    """Install an extension with a policy file; return the file."""
    return write_policy(install_extension(tmp_path / "home", name) / "policies", text)


def loaded(tmp_path: Path) -> Settings:
    return load_settings(tmp_path / "project", tmp_path / "home", {})


def test_an_extension_forbids_and_asks_after_the_users_rules_and_allows_nothing(tmp_path: Path) -> None:
    of_user(tmp_path / "home", '[[rule]]\ntoolName = "glob"\ndecision = "allow"\npriority = 1\n')
    path = install(tmp_path, rule("allow", "write_file") + rule("deny") + rule("ask_user", "replace"))
    settings = loaded(tmp_path)
    assert [(found.decision, found.tool, found.priority) for found in settings.rules.policies] == [
        (ALLOW, "glob", 4.001),
        (DENY, "glob", 2.9),
        (ASK, "replace", 2.9),
    ]
    assert settings.rules.policies[1].where == f"rule 2 of the policy {path}"
    assert (settings.guards, settings.rules.yolo_refusal, settings.ignored) == ((), None, ())


@pytest.mark.parametrize("modes", ['["yolo"]', '["default", "yolo"]'])
def test_a_rule_of_an_extension_for_yolo_is_named_and_not_applied(tmp_path: Path, modes: str) -> None:
    path = install(tmp_path, rule("deny", more=f"modes = {modes}\n") + rule("ask_user", "replace"))
    settings = loaded(tmp_path)
    assert [found.tool for found in settings.rules.policies] == ["replace"]
    assert settings.guards == ()
    (line,) = settings.ignored
    assert line.startswith(f"rule 1 of the policy {path} is not applied")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[", "is not TOML"),
        (rule("forbid"), "expected a decision"),
        (rule("deny", more='argsPattern = "(?!a)"\n'), "cannot be searched in linear time"),
        ("[[safety_checker]]\n", "safety checkers are not run"),
    ],
)
def test_a_rule_of_an_extension_that_cannot_be_applied_refuses_yolo(tmp_path: Path, text: str, problem: str) -> None:
    path = install(tmp_path, text)
    install(tmp_path, rule("deny"), "other")
    settings = loaded(tmp_path)
    (guard,) = settings.guards
    assert str(path) in guard
    assert problem in guard
    assert guard in str(settings.rules.yolo_refusal)
    assert [found.decision for found in settings.rules.policies] == [DENY]


def test_a_link_to_nowhere_instead_of_policies_refuses_yolo(tmp_path: Path) -> None:
    folder = install_extension(tmp_path / "home", "greeter")
    (folder / "policies").symlink_to(tmp_path / "missing")
    assert f"policy {folder / 'policies'} cannot be read" in str(loaded(tmp_path).rules.yolo_refusal)


def test_policies_of_an_extension_that_is_switched_off_do_not_count(tmp_path: Path) -> None:
    install(tmp_path, rule("deny") + "[[safety_checker]]\n")
    enable_extension(tmp_path / "home", "greeter", ["!/*"])
    settings = loaded(tmp_path)
    assert (settings.rules.policies, settings.guards) == ((), ())


def test_policies_of_a_linked_extension_are_read_where_it_is(tmp_path: Path) -> None:
    source = install_extension(tmp_path / "source", "linked")
    write_policy(source / "policies", rule("deny"))
    link_extension(tmp_path / "home", "linked", source)
    (found,) = loaded(tmp_path).rules.policies
    assert found.layer == str(source)


def test_many_policy_files_of_an_extension_leave_the_users_in_force(tmp_path: Path) -> None:
    of_user(tmp_path / "home", rule("deny", "replace"))
    path = install(tmp_path, rule("ask_user"))
    for number in range(MAXIMUM_POLICY_FILES):
        path.with_name(f"{number}.toml").write_text("", "utf-8")
    settings = loaded(tmp_path)
    assert settings.rules.policies[0].tool == "replace"
    assert f"more than {MAXIMUM_POLICY_FILES} policy files" in str(settings.rules.yolo_refusal)
