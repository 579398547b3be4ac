"""Known risks of a call, in the question about it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.call_risks import RiskyFacts, risks_of
from isthmus.agent.approval.policy import Policy
from isthmus.development_tool import CommandTrial, ExecuteDetails, McpDetails, ToolCall
from isthmus.events import TaskState
from support.agent_harness import edit
from support.scripted_wire import Call, Reply, Say

CONFINED = Policy(is_confined=True, has_network=False)


def risks(command: str, policy: Policy = CONFINED, trial: CommandTrial | None = None) -> tuple[str, ...]:
    return risks_of("run_shell_command", ExecuteDetails(command, "/w", trial), policy, RiskyFacts())


@pytest.mark.parametrize(
    ("command", "known"),
    [
        ("ls", ()),
        ("rm -r build", ("deletes",)),
        ("cd a && /bin/rm b", ("deletes",)),
        ("git clean -fd", ("deletes",)),
        ("git -c x=y status", ()),
        ("echo rm", ()),
        ("curl https://example.org", ("network",)),
        ("git push origin main", ("network",)),
        ("psql -1 -f a.sql", ("network",)),
        ("npm test", ()),
        ("npm install", ("network",)),
        ("$(rm a)", ()),  # not understood: nothing is known of it
    ],
)
def test_a_command_is_risky_by_the_programs_that_it_runs(command: str, known: tuple[str, ...]) -> None:
    assert risks(command, Policy(is_confined=True)) == known
    assert risks(command, Policy()) == (*known, "no_sandbox")


def test_a_sandbox_without_network_and_a_trial_take_risks_away() -> None:
    assert risks("curl https://example.org") == ()
    assert risks("curl https://example.org", Policy(), CommandTrial("kept", "changes")) == ()
    assert risks("curl https://example.org", Policy(), CommandTrial("", "too much")) == ("network", "no_sandbox")


def test_facts_of_other_calls_are_stated_in_one_order() -> None:
    assert risks_of("web_fetch", None, CONFINED, RiskyFacts()) == ("network",)
    assert risks_of("ticket", McpDetails("tickets", "ticket"), Policy(), RiskyFacts()) == ()
    remote = RiskyFacts(reaches_network=True)
    assert risks_of("ticket", McpDetails("tickets", "ticket"), Policy(), remote) == ("network",)
    facts = RiskyFacts(is_removal=True, has_secrets=True, starts_programs=True)
    assert risks_of("apply_patch", None, CONFINED, facts) == ("deletes", "secrets", "starts_programs")


Harness = Callable[..., Any]


def question(at: Any) -> ToolCall:
    call = at.calls[-1]
    assert call.confirmation_request is not None
    return call


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("path", "known"), [("a.txt", ()), (".env", ("secrets",)), (".vscode/tasks.json", ("starts_programs",))]
)
async def test_a_question_says_what_it_touches_and_what_the_agent_wants(
    harness: Harness, workspace: Path, path: str, known: tuple[str, ...]
) -> None:
    file = workspace / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("one\ntwo\n", "utf-8")
    said = Say("It says two. ", "I translate\u202e it.")
    at = harness([Reply.of(said, edit(file, "two", "zwei")), Reply.of(edit(file, "one", "eins")), Reply.of(Say("x"))])
    assert (await at.prompt("translate")).state is TaskState.INPUT_REQUIRED
    call = question(at)
    assert call.confirmation_request is not None
    assert call.confirmation_request.wants == "I translate\\u202e it."
    assert call.confirmation_request.risks == (known or None)
    assert (await at.answer(call)).state is TaskState.INPUT_REQUIRED
    second = question(at)
    assert second.confirmation_request is not None
    assert second.confirmation_request.wants is None  # nothing was said before the second call


@pytest.mark.anyio
async def test_a_question_about_a_command_and_a_removal_names_their_risks(harness: Harness, workspace: Path) -> None:
    (workspace / "old.py").write_text("x = 1\n", "utf-8")
    patch = "*** Begin Patch\n*** Delete File: old.py\n*** End Patch"
    calls = [Call("run_shell_command", {"command": "rm a; cat .env"}), Call("apply_patch", {"input": patch})]
    at = harness([Reply.of(*calls)])
    await at.prompt("remove it")
    risky = {call.tool_name: call.confirmation_request.risks for call in at.calls}
    assert risky == {"run_shell_command": ("deletes", "no_sandbox", "secrets"), "apply_patch": ("deletes",)}
