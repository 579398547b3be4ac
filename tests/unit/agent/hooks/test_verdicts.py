import json

import pytest

from isthmus.agent.hooks.verdicts import HookOutcome, Verdict, strictest, verdict_of
from isthmus.settings.rules.hooks import Hook, HookDialect, HookEvent

BEFORE = HookEvent.BEFORE_TOOL
GEMINI = Hook(HookDialect.GEMINI, BEFORE, "BeforeTool", "c", "hooks.BeforeTool in f")
CLAUDE = Hook(HookDialect.CLAUDE, BEFORE, "PreToolUse", "c", "hooks.PreToolUse in f")
CLAUDE_AFTER = Hook(HookDialect.CLAUDE, HookEvent.AFTER_TOOL, "PostToolUse", "c", "hooks.PostToolUse in f")


def said(hook: Hook, status: int | None, output: object = "", errors: str = "") -> Verdict:
    text = output if isinstance(output, str) else json.dumps(output)
    return verdict_of(hook, HookOutcome(status, text, errors, "it took too long"))


def permission(decision: str) -> dict[str, object]:
    return {"hookSpecificOutput": {"permissionDecision": decision, "permissionDecisionReason": "why"}}


@pytest.mark.parametrize("hook", [GEMINI, CLAUDE])
def test_status_2_refuses_with_what_is_on_stderr(hook: Hook) -> None:
    assert said(hook, 2, "", "no\n") == Verdict(denial="no")
    assert said(hook, 2).denial == f"{hook.where} refused it without a reason"


@pytest.mark.parametrize("hook", [GEMINI, CLAUDE])
def test_another_failure_is_shown_and_refuses_nothing(hook: Hook) -> None:
    assert said(hook, 1, "", "broken") == Verdict(messages=(f"{hook.where} failed: broken",))
    assert said(hook, None) == Verdict(messages=(f"{hook.where}: it took too long",))


def test_gemini_cli_refuses_for_higher_statuses_with_text_and_claude_code_does_not() -> None:
    assert said(GEMINI, 127, "", "not found").denial == "not found"
    assert said(CLAUDE, 127, "", "not found").messages == ("hooks.PreToolUse in f failed: not found",)


@pytest.mark.parametrize(
    ("hook", "output"),
    [
        (GEMINI, {"decision": "deny", "reason": "why"}),
        (GEMINI, {"decision": "block", "reason": "why"}),
        (CLAUDE, {"decision": "block", "reason": "why"}),
        (CLAUDE, permission("deny")),
    ],
)
def test_json_refuses(hook: Hook, output: object) -> None:
    assert said(hook, 0, output) == Verdict(denial="why")


def test_gemini_cli_reads_json_from_stderr_and_twice_encoded() -> None:
    assert said(GEMINI, 0, "", '{"decision": "deny", "reason": "why"}').denial == "why"
    assert said(GEMINI, 0, json.dumps('{"decision": "deny", "reason": "why"}')).denial == "why"


@pytest.mark.parametrize(
    ("hook", "output"), [(GEMINI, {"decision": "ask", "reason": "why"}), (CLAUDE, permission("ask"))]
)
def test_json_asks(hook: Hook, output: object) -> None:
    assert said(hook, 0, output) == Verdict(question="why")


@pytest.mark.parametrize("hook", [GEMINI, CLAUDE])
@pytest.mark.parametrize("output", [{}, {"decision": "allow"}, {"decision": "approve"}, permission("allow"), "", "[1]"])
def test_an_approval_changes_nothing(hook: Hook, output: object) -> None:
    verdict = said(hook, 0, output)
    assert (verdict.denial, verdict.question, verdict.stop, verdict.arguments) == (None, None, None, None)


@pytest.mark.parametrize("hook", [GEMINI, CLAUDE])
def test_a_hook_can_stop_the_work_speak_to_the_user_and_add_text(hook: Hook) -> None:
    output = {"continue": False, "stopReason": "enough", "systemMessage": "hello"}
    verdict = said(hook, 0, {**output, "hookSpecificOutput": {"additionalContext": "more"}})
    assert (verdict.stop, verdict.messages, verdict.context) == ("enough", ("hello",), ("more",))


def test_a_hook_can_want_other_arguments() -> None:
    assert said(GEMINI, 0, {"hookSpecificOutput": {"tool_input": {"a": 1}}}).arguments == {"a": 1}
    assert said(CLAUDE, 0, {"hookSpecificOutput": {"updatedInput": {"a": 1}}}).arguments == {"a": 1}


def test_plain_text_is_shown_by_gemini_cli_alone() -> None:
    assert said(GEMINI, 0, "hello").messages == ("hello",)
    assert said(CLAUDE, 0, "hello") == Verdict()


def test_claude_code_leaves_the_result_of_a_tool_and_adds_the_reason() -> None:
    assert said(CLAUDE_AFTER, 2, "", "format it") == Verdict(context=("format it",))
    assert said(CLAUDE_AFTER, 0, {"decision": "block", "reason": "why"}) == Verdict(context=("why",))


@pytest.mark.parametrize("hook", [GEMINI, CLAUDE])
@pytest.mark.parametrize(
    "output", ["{" * 100_000, "[" * 100_000, '{"decision": 1, "hookSpecificOutput": [1], "reason": {}}']
)
def test_odd_output_refuses_nothing(hook: Hook, output: str) -> None:
    verdict = said(hook, 0, output)
    assert verdict.denial is None
    assert all(len(message) < 1000 for message in verdict.messages)


def test_the_strictest_of_several_verdicts_counts() -> None:
    found = [
        Verdict(question="a?"),
        Verdict(denial="no"),
        Verdict(messages=("m",), context=("c",)),
        Verdict(denial="never"),
    ]
    assert strictest(found) == Verdict("no\nnever", "a?", messages=("m",), context=("c",))
    assert strictest([]) == Verdict()
