from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode
from isthmus.agent.approval.policy_rules import NamedTool, RuledCall, arguments_text, exclusion, rule_on
from isthmus.settings.rules.rule_decision import RuleDecision
from isthmus.settings.rules.rules import PolicyRule, in_order
from isthmus.text import linear_pattern

DENY, ASK, ALLOW = RuleDecision.DENY, RuleDecision.ASK, RuleDecision.ALLOW
SHELL = NamedTool(frozenset({"run_shell_command", "ShellTool"}), "run_shell_command")
WRITE = NamedTool(frozenset({"write_file", "WriteFileTool"}), "write_file")
PATCH = NamedTool(frozenset({"apply_patch"}), "apply_patch", loose=frozenset({"write_file", "replace"}))
SEARCH = NamedTool(frozenset({"jira__search"}), "search", "jira", frozenset({"search"}))


def rule(decision: RuleDecision, tool: str = "*", priority: float = 1, **more: Any) -> PolicyRule:
    return PolicyRule(decision, priority, "rule 1 of p.toml", tool, **more)


def decided(
    rules: list[PolicyRule],
    tool: NamedTool,
    arguments: dict[str, Any],
    mode: ApprovalMode = ApprovalMode.DEFAULT,
    *,
    interactive: bool = True,
    effect: dict[str, Any] | None = None,
) -> RuleDecision | None:
    ruling = rule_on(in_order(rules), RuledCall(tool, arguments, mode, interactive, effect))
    return ruling.decision if ruling is not None else None


def on_command(rules: list[PolicyRule], command: str, mode: ApprovalMode = ApprovalMode.DEFAULT) -> RuleDecision | None:
    return decided(rules, SHELL, {"command": command}, mode)


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /",
        "rm -rf",
        "ls && rm -rf x",
        "ls; (rm -rf x)",
        "/bin/rm -rf x",
        'rm "-rf" x',
        "'rm' -rf x",
        "bash -c 'rm -rf x'",
        "sudo rm -rf x",
        "for f in *; do rm -rf $f; done",
        "X=$(rm -rf x) ls",
    ],
)
@pytest.mark.parametrize("mode", [ApprovalMode.DEFAULT, ApprovalMode.YOLO])
def test_a_denied_prefix_is_found_in_each_part_and_spelling(command: str, mode: ApprovalMode) -> None:
    assert on_command([rule(DENY, "run_shell_command", prefix="rm -rf")], command, mode) is DENY


@pytest.mark.parametrize("command", ["rm -rfx", "echo rm", "ls", "rmdir x"])
def test_a_denied_prefix_denies_no_other_command(command: str) -> None:
    assert on_command([rule(DENY, "run_shell_command", prefix="rm -rf")], command) is None


def test_a_command_that_may_hide_a_denied_one_is_asked_about() -> None:
    assert on_command([rule(DENY, "run_shell_command", prefix="rm -rf")], "a=rm; $a -r$b x", ApprovalMode.YOLO) is ASK
    assert on_command([rule(DENY, "run_shell_command", pattern='"command":"git (a|b)')], "eval $x") is ASK
    assert on_command([rule(ALLOW, "run_shell_command", prefix="rm -rf")], "a=rm; $a -r$b x") is None


def test_an_allowed_command_is_allowed_in_all_its_parts_or_not() -> None:
    git = [rule(ALLOW, "run_shell_command", prefix="git status")]
    assert on_command(git, "git status") is ALLOW
    assert on_command(git, "git status -s && git status") is ALLOW
    for other in ("git status; touch x", "git status > x", "git statusx", "git status $(touch x)", "$x git status"):
        assert on_command(git, other) is None, other
    with_redirection = [rule(ALLOW, "run_shell_command", prefix="git status", allows_redirection=True)]
    assert on_command(with_redirection, "git status > x") is ALLOW
    assert on_command(git, "git status > x", ApprovalMode.YOLO) is ALLOW


def test_an_allowed_prefix_does_not_allow_an_option_that_runs_programs() -> None:
    assert on_command([rule(ALLOW, "run_shell_command", prefix="find")], "find . -exec rm {} +") is None


def test_a_pattern_is_searched_in_sorted_json() -> None:
    assert arguments_text({"b": "é\n", "a": [1, True, None]}) == '{\0"a":[1,true,null]\0,\0"b":"é\\n"\0}'
    secret = [rule(DENY, "write_file", pattern=r'"file_path":"[^"]*\.env"')]
    assert decided(secret, WRITE, {"file_path": "/p/.env", "content": "x"}) is DENY
    assert decided(secret, WRITE, {"file_path": "/p/x", "content": "x"}) is None
    git = [rule(ASK, "run_shell_command", pattern='"command":"(git|npm)')]
    assert [on_command(git, command) for command in ("git x", "ls && npm x", "ls git")] == [ASK, ASK, None]


def test_a_forbidden_file_is_found_under_its_whole_path_too() -> None:
    rules = [rule(DENY, "write_file", pattern=r'"file_path":"/p/\.env"')]
    assert decided(rules, WRITE, {"file_path": ".env"}, effect={"file_path": "/p/.env"}) is DENY
    allowed = [rule(ALLOW, "write_file", pattern=r'"file_path":"/p/\.env"')]
    assert decided(allowed, WRITE, {"file_path": ".env"}, effect={"file_path": "/p/.env"}) is None


def test_a_rule_on_a_tool_forbids_another_one_with_its_effect_and_does_not_allow_it() -> None:
    effect = {"file_path": "/p/.env", "content": "x"}
    assert decided([rule(DENY, "replace")], PATCH, {"patch": "x"}) is DENY
    assert decided([rule(DENY, "write_file", pattern=r"\.env")], PATCH, {"patch": "x"}, effect=effect) is DENY
    assert decided([rule(ALLOW, "write_file")], PATCH, {"patch": "x"}) is None


@pytest.mark.parametrize(
    "named",
    [
        rule(DENY, "mcp_jira_search"),
        rule(DENY, "mcp_jira_*"),
        rule(DENY, "mcp_*"),
        rule(DENY, "mcp_*_search"),
        rule(DENY, "*"),
        rule(DENY, "search", server="jira"),
        rule(DENY, "*", server="jira"),
        rule(DENY, "*", server="*"),
    ],
)
def test_a_tool_of_a_server_is_known_by_gemini_clis_names(named: PolicyRule) -> None:
    assert decided([named], SEARCH, {}) is DENY


@pytest.mark.parametrize(
    "named",
    [
        rule(DENY, "mcp_jira_find"),
        rule(DENY, "mcp_jir_*"),
        rule(DENY, "search", server="other"),
        rule(DENY, "find", server="jira"),
        rule(ALLOW, "search"),
        rule(ALLOW, "write_file"),
    ],
)
def test_a_rule_on_other_tools_does_not_count_for_a_tool_of_a_server(named: PolicyRule) -> None:
    assert decided([named], SEARCH, {}) is None


def test_a_rule_on_servers_does_not_count_for_built_in_tools() -> None:
    for named in (rule(DENY, "mcp_*"), rule(DENY, "*", server="*"), rule(DENY, "write_file", server="jira")):
        assert decided([named], WRITE, {}) is None


def test_the_rule_with_the_highest_priority_decides() -> None:
    rules = [
        rule(DENY, "run_shell_command", 4.1, prefix="git"),
        rule(ALLOW, "run_shell_command", 4.2, prefix="git log"),
    ]
    assert [on_command(rules, command) for command in ("git log", "git push", "git log; git push")] == [
        ALLOW,
        DENY,
        DENY,
    ]


def test_modes_and_interactive_limit_a_rule() -> None:
    in_yolo = [rule(DENY, "write_file", modes=("yolo",))]
    assert decided(in_yolo, WRITE, {}) is None
    assert decided(in_yolo, WRITE, {}, ApprovalMode.YOLO) is DENY
    headless = [rule(DENY, "write_file", interactive=False)]
    assert decided(headless, WRITE, {}) is None
    assert decided(headless, WRITE, {}, interactive=False) is DENY


def test_a_search_that_is_too_much_work_forbids_and_does_not_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_pattern, "MAXIMUM_WORK", 50_000)  # the usual limit takes a second
    text = "".join(f"{number:b}" for number in range(2_000)).replace("0", "a").replace("1", "b")
    pattern = "(a|b)*a(a|b){200}c"
    assert decided([rule(DENY, "write_file", pattern=pattern)], WRITE, {"content": text}) is DENY
    assert decided([rule(ALLOW, "write_file", pattern=pattern)], WRITE, {"content": text}) is None


def test_a_tool_is_withheld_where_all_its_calls_are_denied() -> None:
    assert exclusion([rule(DENY, "write_file")], WRITE) == "rule 1 of p.toml forbids it"
    assert exclusion([rule(DENY, "*", message="not here")], WRITE) == "not here"
    assert exclusion([rule(DENY, "replace")], WRITE) is None
    assert exclusion([rule(DENY, "write_file", pattern="x")], WRITE) is None
    assert exclusion([rule(DENY, "write_file", modes=("plan",))], WRITE) is None
    assert exclusion(in_order([rule(ALLOW, "write_file", 2, pattern="x"), rule(DENY, "write_file", 1)]), WRITE) is None


@pytest.mark.parametrize("layers", [("project", "extension"), ("extension", "project"), ("one", "another")])
def test_of_a_project_and_extensions_none_hides_what_another_forbids(layers: tuple[str, str]) -> None:
    rules = [rule(ASK, "*", 3.9, layer=layers[0]), rule(DENY, "run_shell_command", 2.1, prefix="rm", layer=layers[1])]
    rules.append(rule(DENY, "write_file", 2.1, layer=layers[1]))
    assert on_command(rules, "ls && rm x", ApprovalMode.YOLO) is DENY
    assert on_command(rules, "ls") is ASK
    assert decided(rules, WRITE, {}) is DENY
    assert exclusion(in_order(rules), WRITE) is not None
    assert exclusion(in_order(rules), SEARCH) is None


def test_the_users_rules_count_before_those_of_each_project_and_extension() -> None:
    rules = [rule(ALLOW, "write_file", 4.1), rule(ASK, priority=3.1, layer="a"), rule(DENY, priority=2.1, layer="b")]
    assert decided(rules, WRITE, {}) is ALLOW
    assert exclusion(in_order(rules), WRITE) is None
    assert decided(rules, SEARCH, {}) is DENY


def test_inside_one_extension_the_first_rule_counts() -> None:
    rules = [rule(ASK, "write_file", 2.2, layer="a"), rule(DENY, priority=2.1, layer="a")]
    assert decided([*rules, rule(ASK, "glob", 3.1, layer="b")], WRITE, {}) is ASK
