"""The syntax of Claude Code's permission rules."""

from pathlib import Path

import pytest

from isthmus.files.path_rules import PathRule, compiled
from isthmus.settings.rules.permissions import (
    MAXIMUM_CHARACTERS,
    CommandPattern,
    Condition,
    DomainPattern,
    NamePattern,
    PathFolders,
    PermissionRule,
    PermissionRuleError,
    parse_rule,
)
from isthmus.settings.rules.rule_decision import RuleDecision

DENY, ASK, ALLOW = RuleDecision.DENY, RuleDecision.ASK, RuleDecision.ALLOW


def parsed(text: str, decision: RuleDecision = DENY, root: Path = Path("/")) -> PermissionRule:
    folders = PathFolders(root / "w", root / "home", (root / "home" / ".claude", root / "w"))
    return parse_rule(text, decision, "f", folders)


def is_about(text: str, path: str, decision: RuleDecision = DENY, root: Path = Path("/")) -> bool:
    condition = parsed(text, decision, root).condition
    assert isinstance(condition, PathRule)
    return compiled((condition,)).find(path) is not None


@pytest.mark.parametrize(
    ("text", "tool", "condition"),
    [
        ("Bash", "Bash", None),
        ("Bash(*)", "Bash", None),
        (" Bash() ", "Bash", None),
        ("Bash(npm run test:*)", "Bash", CommandPattern("npm run test *")),
        ("Bash(git push *)", "Bash", CommandPattern("git push *")),
        ("Bash(git:* push)", "Bash", CommandPattern("git:* push")),
        ("Bash(timeout:*)", "Bash", CommandPattern("timeout *")),
        ("Bash(npm run a:b)", "Bash", CommandPattern("npm run a:b")),
        ("Bash(echo (a))", "Bash", CommandPattern("echo (a)")),
        ("WebFetch(domain:Example.com.)", "WebFetch", DomainPattern("example.com")),
        ("WebFetch(domain: *.example.com)", "WebFetch", DomainPattern("*.example.com")),
        ("Agent(Explore)", "Agent", NamePattern("Explore")),
        ("Task(a*)", "Task", NamePattern("a*")),
        ("Skill(commit)", "Skill", NamePattern("commit")),
        ("Skill(commit:*)", "Skill", NamePattern("commit")),
        ("Skill(plugin:commit)", "Skill", NamePattern("plugin:commit")),
        ("mcp__github", "mcp__github", None),
        ("mcp__github__*", "mcp__github__*", None),
        ("mcp__*", "mcp__*", None),
        ("*", "*", None),
        ("read_file", "read_file", None),
        ("PowerShell", "PowerShell", None),
    ],
)
def test_a_rule_names_a_tool_and_a_condition(text: str, tool: str, condition: Condition) -> None:
    rule = parsed(text)
    assert (rule.tool, rule.condition) == (tool, condition)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "expected Tool"),
        ("Bash(rm", "expected Tool"),
        ("Bash rm", "expected Tool"),
        ("bash(rm *)", "no tool 'bash'"),
        ("Bash(command:rm *)", "parameters"),
        ("Bash(run_in_background:true)", "parameters"),
        ("Agent(model:opus)", "parameters"),
        ("WebFetch(https://example.com)", "domain:HOST"),
        ("WebFetch(domain:)", "domain:HOST"),
        ("WebSearch(x)", "has no specifier"),
        ("PowerShell(x)", "has no specifier"),
        ("mcp__github__create(x)", "no specifier"),
        ("mcp__*(x)", "no specifier"),
        ("B*(x)", "without a specifier"),
        ("Read()", "empty"),
        ("Read(!x)", "must not begin with !"),
        ("Read([)", "not a pattern of paths"),
        ("Read(/)", "not a pattern of paths"),
        ("Read(a/../b)", "not a pattern of paths"),
        ("Read(a\nb)", "not a pattern of paths"),
        ("Read(" + "*a" * 200 + ")", "too long or has too many"),
        ("Bash(" + "a" * MAXIMUM_CHARACTERS + ")", "longer than"),
    ],
)
def test_a_rule_of_another_form_is_not_understood(text: str, problem: str) -> None:
    with pytest.raises(PermissionRuleError, match=problem):
        parsed(text)


@pytest.mark.parametrize("text", ["*", "B*", "mcp__*", "mcp__*__x", "Write(x)", "Grep(x)"])
def test_a_rule_without_a_certain_tool_allows_nothing(text: str) -> None:
    with pytest.raises(PermissionRuleError):
        parsed(text, ALLOW)


@pytest.mark.parametrize(
    ("pattern", "fitting", "others"),
    [
        ("git push *", ("git push", "git push -f"), ("git pushx", "git pull", "x git push y")),
        ("ls*", ("ls", "lsof", "ls -l"), ("als",)),
        ("git * main", ("git push origin main",), ("git main", "git push main2")),
        ("* --version", ("npm --version",), ("--version", "npm --version x")),
        ("git * x *", ("git a x b",), ("git a x",)),
        ("npm run build", ("npm run build",), ("npm run build x", "npm run")),
        ("ls [a]?", ("ls [a]?",), ("ls ab",)),
    ],
)
def test_a_star_stands_for_any_text_of_a_command(
    pattern: str, fitting: tuple[str, ...], others: tuple[str, ...]
) -> None:
    assert all(CommandPattern(pattern).matches(command) for command in fitting)
    assert not any(CommandPattern(pattern).matches(command) for command in others)


@pytest.mark.parametrize(
    ("text", "fitting", "others"),
    [
        ("Read(.env)", ("/w/.env", "/w/a/b/.env", "/w/.env/x"), ("/.env", "/w/.envrc", "/home/.env")),
        ("Read(./.env)", ("/w/.env", "/w/a/.env"), ("/w2/.env",)),
        ("Read(**/.env)", ("/w/.env", "/w/a/.env"), ("/.env",)),
        ("Read(./secrets/**)", ("/w/secrets/a", "/w/secrets/a/b", "/w/x/secrets/a"), ("/w/secrets", "/secrets/a")),
        ("Read(secrets/)", ("/w/secrets/a", "/w/secrets"), ("/w/secret",)),
        ("Read(*.pem)", ("/w/a.pem", "/w/x/a.pem"), ("/w/pem",)),
        ("Read(src/*)", ("/w/src/a", "/w/src/a/b"), ("/w/src",)),
        ("Read(//etc/**)", ("/etc/passwd", "/etc/a/b"), ("/w/etc/passwd",)),
        ("Read(//**/.env)", ("/.env", "/x/.env"), ("/env",)),
        ("Read(//**)", ("/w", "/etc/passwd"), ()),
        ("Read(~/.ssh/**)", ("/home/.ssh/id",), ("/w/.ssh/id",)),
        ("Read(~/*.pdf)", ("/home/a.pdf",), ("/home/b/a.pdf",)),
        ("Read(/a/**)", ("/home/.claude/a/b", "/w/a/b"), ("/a/b", "/w/x/a/b")),
        ("Read(../other/**)", ("/other/a",), ("/w/other/a",)),
        ("Read(#x)", ("/w/#x",), ("/w/x",)),
        ("Read(ü/**)", ("/w/ü/a",), ("/w/u/a",)),
        ("Grep(x)", ("/w/x",), ()),
        ("Edit(docs/**)", ("/w/docs/a",), ("/w/docs",)),
    ],
)
def test_a_path_is_compared_as_in_ignore_files(text: str, fitting: tuple[str, ...], others: tuple[str, ...]) -> None:
    assert [path for path in fitting if not is_about(text, path)] == []
    assert [path for path in others if is_about(text, path)] == []


def test_a_relative_path_with_a_slash_is_allowed_in_the_current_folder_alone() -> None:
    assert is_about("Edit(src/**)", "/w/src/a", ALLOW)
    assert not is_about("Edit(src/**)", "/w/x/src/a", ALLOW)
    assert is_about("Edit(*.md)", "/w/x/a.md", ALLOW)


def test_a_folder_in_a_rule_that_is_a_link_means_the_folder_it_leads_to_too(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "home" / ".config").symlink_to(tmp_path / "real")
    assert is_about("Read(~/.config/fish/**)", str(tmp_path / "real" / "fish" / "x"), root=tmp_path)
    assert not is_about("Read(~/.config/fish/**)", str(tmp_path / "real" / "other"), root=tmp_path)


def test_a_file_in_a_rule_that_is_a_link_means_the_file_it_leads_to_too(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "a*b").touch()
    (tmp_path / "home" / ".netrc").symlink_to(tmp_path / "a*b")
    assert is_about("Read(~/.netrc)", str(tmp_path / "a*b"), root=tmp_path)
    assert not is_about("Read(~/.netrc)", str(tmp_path / "axb"), root=tmp_path)


def test_a_long_command_is_compared_in_linear_time() -> None:
    pattern = CommandPattern("a* " * 300 + "b")
    assert not pattern.matches("a " * 300_000)
