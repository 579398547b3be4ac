"""ask_user: the question is a call that waits in the journal, in every mode, and runs only with an answer."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.call_effect import effect_of
from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.checkpoints.store import CheckpointStore
from isthmus.events import TaskState
from isthmus.forms.asked_question import asked_question, filled_answer
from isthmus.internal_events import Checkpoint
from isthmus.tools.ask_user import AskUserTool
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.failure import ToolFailure
from support.agent_harness import AgentHarness
from support.scripted_wire import Call, Reply, Say
from support.tool_calls import tool_context

pytestmark = pytest.mark.anyio

OPTIONS = [{"label": "SQLite", "description": "One file"}, {"label": "Postgres"}]
QUESTION = Call("ask_user", {"question": "Which database?", "options": OPTIONS})
FEATURES = [{"label": "Auth", "description": "Log in"}, {"label": "Search", "description": "Find"}, {"label": "Export"}]
SEVERAL = {"question": "Which features?", "header": "Features", "type": "choice", "multiSelect": True}
TEXT = {"question": "Which name?", "header": "Name", "type": "text", "placeholder": "my-project"}
Harness = Callable[..., AgentHarness]


def asking(*questions: dict[str, Any]) -> Call:
    return Call("ask_user", {"questions": list(questions)})


def answers(at: AgentHarness) -> list[dict[str, str]]:
    """Return the answers that the model got, in the order of its calls."""
    parts = [part for content in at.body(-1)["contents"] for part in content["parts"] if "functionResponse" in part]
    return [json.loads(part["functionResponse"]["response"]["output"])["answers"] for part in parts]


async def test_several_questions_of_a_call_are_asked_and_answered_each_by_itself(harness: Harness) -> None:
    questions = (
        {"question": "A database?", "header": "Database", "type": "choice", "options": OPTIONS},
        {"question": "Tests?", "header": "Tests", "type": "yesno"},
        TEXT,
        {**SEVERAL, "options": FEATURES},
    )
    at = harness([Reply.of(asking(*questions)), Reply.of(Say("Fine."))])
    assert (await at.prompt("Build it.")).state is TaskState.INPUT_REQUIRED
    assert [call.description for call in at.calls] == ["A database?", "Tests?", "Which name?", "Which features?"]
    # Each segment runs in a process of its own: the answers that are there already stay.
    assert (await at.answer(at.calls[1], "choice_1")).state is TaskState.INPUT_REQUIRED
    assert (await at.answer(at.calls[0], "choice_2")).state is TaskState.INPUT_REQUIRED
    assert (await at.answer(at.calls[2], content='{"answer": "Zephyr "}')).state is TaskState.INPUT_REQUIRED
    ended = await at.answer(at.calls[3], content='// chosen\n{"answer": ["Auth", "Export"]}')
    assert ended.state is TaskState.COMPLETED
    assert answers(at) == [{"0": "Postgres"}, {"0": "Yes"}, {"0": "Zephyr"}, {"0": "Auth, Export"}]
    assert not list(at.workspace.glob("agent-question*"))


@pytest.mark.parametrize(
    ("asked", "options"),
    [
        (TEXT, [("proceed_once", "Send"), ("cancel", "No answer")]),
        (
            {**SEVERAL, "options": FEATURES[:2]},
            [
                ("choice_1", "Auth"),
                ("choice_2", "Search"),
                ("proceed_once", "Send several"),
                ("cancel", "None of these"),
            ],
        ),
    ],
)
async def test_a_client_that_knows_options_alone_can_answer_or_refuse_what_is_filled_in(
    harness: Harness, asked: dict[str, Any], options: list[tuple[str, str]]
) -> None:
    at = harness([Reply.of(asking(asked)), Reply.of(Say("Fine."))])
    await at.prompt("Build it.")
    request = at.calls[0].confirmation_request
    assert request is not None
    assert [(option.id, option.name) for option in request.options] == options
    assert request.file_edit_details is not None
    assert asked["question"] in request.file_edit_details.new_content
    chosen, name = options[0]
    assert (await at.answer(at.calls[0], chosen)).state is TaskState.COMPLETED
    assert answers(at) == [{} if chosen == "proceed_once" else {"0": name}]


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        ('{"answer": null}', ""),
        ('{"answer": []}', ""),
        ('{"answer": "a\\n\u00e9"}', "a\n\u00e9"),
        ('{"answer": [1, "x", ["y"]]}', '1, x, ["y"]'),
        ('{"answer": 7}', "7"),
        ("{}", ""),
        ("7", "7"),
        ('{"answer": "x", "more": 1}', '{"answer": "x", "more": 1}'),
        ("just text", "just text"),
        ("[" * 5000, "[" * 5000),
        ("", ""),
    ],
)
def test_nothing_of_what_a_user_wrote_into_the_document_is_lost(document: str, answer: str) -> None:
    assert filled_answer(document) == answer


async def test_what_is_to_be_filled_in_is_no_edit_of_a_file_of_that_name(
    harness: Harness, workspace: Path, tmp_path: Path
) -> None:
    (workspace / "agent-question.json").write_text("mine")
    checkpoints = CheckpointStore(tmp_path / "checkpoints.sqlite")
    at = harness([Reply.of(asking(TEXT)), Reply.of(Say("Fine."))], checkpoints=checkpoints)
    await at.prompt("Build it.")
    proposal = await AskUserTool().propose({"questions": [TEXT]}, tool_context(workspace))
    assert "file_path" not in effect_of("ask_user", {}, proposal, workspace)
    assert (await at.answer(at.calls[0], content='{"answer": "x"}')).state is TaskState.COMPLETED
    assert answers(at) == [{"0": "x"}]
    assert (workspace / "agent-question.json").read_text() == "mine"
    assert not any(isinstance(event, Checkpoint) for event in at.events)
    await checkpoints.aclose()


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"questions": []},
        {"questions": [{"question": "a", "type": "text"}] * 2},
        {"question": "a", "type": "number"},
        {"question": 7},
        {"question": "a", "multiSelect": True},
        {"question": "a", "multiSelect": True, "options": [{"label": str(number)} for number in range(300)]},
        {"question": "a", "multiSelect": True, "options": [7, {"label": None}, {}]},
        {"question": "a", "type": "text", "header": {}, "placeholder": "x" * 100_000},
    ],
)
def test_a_question_of_an_agent_elsewhere_is_read_whatever_its_form(arguments: dict[str, Any]) -> None:
    asked = asked_question(arguments)
    assert asked is None or asked.form is None or len(asked.form.fields) == 1


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
    assert answers(at) == [{"0": labels[1]}]


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
        ({"questions": [{"question": "Which?"}]}, "options: expected a non-empty array of objects, received nothing"),
        ({"question": "Which?", "options": OPTIONS[:1]}, "options: expected"),
        ({"question": "Which?", "options": [{"label": f"{n}"} for n in range(7)]}, "at most 6 answers, received 7"),
        ({"question": "Which?", "options": [{"label": "a"}, {"label": "a "}]}, "labels that differ"),
        ({"question": "x" * 2001, "options": OPTIONS}, "question: expected"),
        ({"questions": [{"question": "a", "options": OPTIONS}] * 5}, "expected 1 to 4 questions, received 5"),
        ({"questions": [{"question": "a", "type": "number"}]}, "type: expected one of choice, text, yesno"),
        ({"questions": ["a"]}, "questions[0]: expected an object"),
        ({"questions": [{"header": "a"}]}, "question: expected a non-empty string"),
        ({"questions": 7}, "questions: expected a non-empty array"),
        ({"header": "a"}, "questions: expected a non-empty array"),
    ],
)
async def test_a_question_without_two_different_answers_is_refused(
    workspace: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ToolFailure, match=r"^ask_user: ") as caught:
        await AskUserTool().propose(arguments, tool_context(workspace))
    assert message in str(caught.value)


@pytest.mark.parametrize("value", [None, 7, [], {}, [7], [[]], "\ud800", "x" * 100_000, True, [{"label": 7}] * 9])
@pytest.mark.parametrize("name", ["questions", "question", "header", "type", "options", "multiSelect", "placeholder"])
async def test_no_argument_breaks_the_tool(workspace: Path, name: str, value: object) -> None:
    tool, whole = AskUserTool(), {**SEVERAL, "options": FEATURES}
    changed: list[dict[str, Any]] = [{**whole, name: value}, {"questions": [{**whole, name: value}, whole]}]
    changed += [{"questions": [whole], name: value}]
    refusals: list[str] = []
    for arguments in changed:
        for part in tool.split(arguments):
            try:
                assert await tool.propose(part, tool_context(workspace)) is not None
                assert tool.choices(part)
            except ToolFailure as refusal:
                refusals.append(str(refusal))
    assert all(0 < len(refusal) < 1_000 for refusal in refusals)


async def test_a_choice_can_be_answered_in_the_users_own_words(harness: Harness) -> None:
    question = {"question": "A database?", "header": "Database", "options": OPTIONS}
    at = harness([Reply.of(asking(question, {"question": "Sure?", "type": "yesno"})), Reply.of(Say("Fine."))])
    await at.prompt("Build it.")
    requests = [call.confirmation_request for call in at.calls]
    assert [request.words_option for request in requests if request is not None] == ["words", None]
    assert (await at.answer(at.calls[0], "words", content=" DuckDB\n")).state is TaskState.INPUT_REQUIRED
    assert (await at.answer(at.calls[1], "choice_1")).state is TaskState.COMPLETED
    assert answers(at) == [{"0": "DuckDB"}, {"0": "Yes"}]
