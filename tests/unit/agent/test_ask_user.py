"""ask_user: the question is a call that waits in the journal, in every mode, and runs only with an answer."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.events import TaskState
from isthmus.tools.ask_user import AskUserTool
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.failure import ToolFailure
from support.agent_harness import AgentHarness
from support.scripted_wire import Call, Reply, Say
from support.tool_calls import tool_context

pytestmark = pytest.mark.anyio

OPTIONS = [{"label": "SQLite", "description": "One file"}, {"label": "Postgres"}]
QUESTION = Call("ask_user", {"question": "Which database?", "options": OPTIONS})
Harness = Callable[..., AgentHarness]


@pytest.mark.parametrize("mode", ApprovalMode)
async def test_a_question_waits_in_every_mode_and_its_answer_reaches_the_model(
    harness: Harness, mode: ApprovalMode
) -> None:
    at = harness([Reply.of(QUESTION), Reply.of(Say("Postgres it is."))], policy=Policy(mode))
    assert (await at.prompt("Build it.")).state is TaskState.INPUT_REQUIRED
    assert at.states("ask_user") == ["PENDING"]
    asked = at.calls[0].confirmation_request
    assert asked is not None
    assert asked.generic_details is not None
    assert asked.generic_details.description == "Which database?"
    assert [(option.id, option.name, option.description) for option in asked.options] == [
        ("choice_1", "SQLite", "One file"),
        ("choice_2", "Postgres", None),
        ("cancel", "None of these", "The agent goes on without an answer; you can say more in your next message"),
    ]
    # Each segment runs in a process of its own, which knows the journal alone.
    assert (await at.answer(at.calls[0], "choice_2")).state is TaskState.COMPLETED
    assert "The user chose: Postgres" in at.told()
    assert at.states("ask_user") == ["PENDING", "EXECUTING", "SUCCEEDED"]


async def test_an_answer_that_is_none_of_the_options_is_told_as_that(harness: Harness) -> None:
    at = harness([Reply.of(QUESTION), Reply.of(Say("Then I choose."))])
    await at.prompt("Build it.")
    assert (await at.answer(at.calls[0], "cancel")).state is TaskState.COMPLETED
    assert "The user chose none of the answers" in at.told()
    assert "rejected" not in at.told()


@pytest.mark.parametrize(
    ("asked", "labels"),
    [
        ({"header": "Database", "type": "choice", "options": OPTIONS, "multiSelect": False}, ["SQLite", "Postgres"]),
        ({"header": "Database", "type": "yesno", "placeholder": "why"}, ["Yes", "No"]),
        ({"header": "Database", "options": OPTIONS}, ["SQLite", "Postgres"]),
    ],
)
async def test_a_question_in_the_form_of_gemini_cli_is_asked(
    harness: Harness, asked: dict[str, Any], labels: list[str]
) -> None:
    call = Call("ask_user", {"questions": [{"question": "A database?", **asked}]})
    at = harness([Reply.of(call), Reply.of(Say("Fine."))])
    await at.prompt("Build it.")
    request = at.calls[0].confirmation_request
    assert request is not None
    assert request.generic_details is not None
    assert request.generic_details.description == "A database?"
    assert [option.name for option in request.options][:2] == labels
    assert (await at.answer(at.calls[0], "choice_2")).state is TaskState.COMPLETED
    assert f"The user chose: {labels[1]}" in at.told()


async def test_an_earlier_answer_answers_no_later_question(harness: Harness) -> None:
    at = harness([Reply.of(QUESTION), Reply.of(QUESTION)], tools=replace(builtin_tools(), keeps_answers=False))
    await at.prompt("Build it.")
    assert (await at.answer(at.calls[0], "choice_1")).state is TaskState.INPUT_REQUIRED
    asked = at.calls[1].confirmation_request
    assert asked is not None
    assert len(asked.options) == 3


async def test_without_a_user_the_tool_is_neither_offered_nor_waits(harness: Harness) -> None:
    at = harness([Reply.of(QUESTION), Reply.of(Say("I chose SQLite."))], policy=Policy(may_ask=False))
    assert (await at.prompt("Build it.")).state is TaskState.COMPLETED
    assert "ask_user" not in str(at.body(0)["tools"])
    assert "No user can answer here" in at.told()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"question": "Which?"}, "options: expected a non-empty array of objects, received nothing"),
        ({"question": "Which?", "options": OPTIONS[:1]}, "options: expected"),
        ({"question": "Which?", "options": [{"label": f"{n}"} for n in range(7)]}, "at most 6 answers, received 7"),
        ({"question": "Which?", "options": [{"label": "a"}, {"label": "a "}]}, "labels that differ"),
        ({"question": "x" * 2001, "options": OPTIONS}, "question: expected"),
        ({"questions": [{"question": "a", "options": OPTIONS}] * 2}, "expected one question a call, received 2"),
        ({"questions": [{"question": "a", "type": "text"}]}, "ask an open question in your reply"),
        ({"questions": ["a"]}, "question: expected"),
        ({"questions": 7}, "question: expected"),
    ],
)
async def test_a_question_without_two_different_answers_is_refused(
    workspace: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ToolFailure, match=r"^ask_user: ") as caught:
        await AskUserTool().propose(arguments, tool_context(workspace))
    assert message in str(caught.value)
