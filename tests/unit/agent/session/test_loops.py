"""A model that repeats itself: the rule, and the guard in the agent with the real Gemini provider over its wire."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.agent.approval.policy import Policy
from isthmus.agent.session.loops import CallLoops, TextLoop, repeated_passage
from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import StateChange, TaskState, TextContent
from isthmus.models.port.base import ToolRequest
from support.scripted_wire import Call, Reply, Say, Think

READ = Call("read_file", {"file_path": "a.txt"})


def loops(names: str) -> CallLoops:
    found = CallLoops()
    for number, name in enumerate(names):
        found.add([ToolRequest(str(number), name, {"b": 1, "a": 2} if number % 2 else {"a": 2, "b": 1})])
    return found


@pytest.mark.parametrize(
    ("calls", "is_loop"),
    [
        ("aaaa", False),
        ("aaaaa", True),
        ("xyzaaaaa", True),
        ("aaabaa", False),
        ("ababababa", False),
        ("ababababab", True),
        ("xabcdeabcdeabcdeabcdeabcde", True),
        ("abcdefabcdefabcdefabcdefabcdef", False),
    ],
)
def test_five_equal_calls_or_cycles_of_up_to_five_are_a_loop(calls: str, is_loop: bool) -> None:
    assert (loops(calls).found is not None) is is_loop


def test_other_arguments_make_another_call() -> None:
    found = CallLoops()
    found.add([ToolRequest(str(number), "read_file", {"start_line": number}) for number in range(50)])
    assert found.found is None


@given(st.text(max_size=3_000))
def test_any_text_can_be_checked(text: str) -> None:
    repeated_passage(text)
    TextLoop().add(text)


@given(st.text(min_size=1, max_size=300).filter(str.strip), st.text(max_size=40))
def test_a_passage_that_comes_again_and_again_is_found_whatever_it_is(passage: str, before: str) -> None:
    count = max(12, 2_500 // len(passage) + 1)
    assert repeated_passage(before + passage * count) is not None


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"{number}. This is a line of a list, much like the others." for number in range(400)),
        "-" * 1_500,
        "| a | b |\n|---|---|\n" + "| 0 | 0 |\n" * 150,
        "The same paragraph, nine times over, as a chorus. " * 39,
    ],
)
def test_lists_rules_and_tables_are_no_repetition(text: str) -> None:
    assert repeated_passage(text) is None


def test_the_repetition_in_a_code_block_is_let_be() -> None:
    loop = TextLoop()
    assert loop.add("```\n") is None
    assert all(loop.add("0x00, 0x00, 0x00, 0x00,\n") is None for _ in range(1_000))


@pytest.mark.anyio
async def test_the_model_is_told_first_and_then_the_user_is_asked(harness: Any, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n", encoding="utf-8")
    at = harness([*[Reply.of(READ)] * 6, Reply.of(Say("done"))])
    assert (await at.prompt("go")).state is TaskState.INPUT_REQUIRED
    assert len(at.wire.model_requests) == 6
    assert [at.told(number).count("You have made the same call 5 times") for number in (4, 5)] == [0, 1]
    question: ToolCall = at.calls[-1]
    assert question.confirmation_request is not None
    assert question.confirmation_request.generic_details is not None
    assert "read_file" in question.confirmation_request.generic_details.description
    assert [option.id for option in question.confirmation_request.options] == ["proceed_once", "cancel"]
    assert await at.answer(question) == StateChange(TaskState.COMPLETED)
    assert at.calls[-1].status is ToolCallStatus.SUCCEEDED


@pytest.mark.anyio
async def test_the_user_may_stop_a_model_that_repeats_itself(harness: Any, workspace: Path) -> None:
    at = harness([*[Reply.of(READ)] * 6, Reply.of(Say("never"))])
    await at.prompt("go")
    end = await at.answer(at.calls[-1], "cancel")
    assert (end.state, end.reason) == (TaskState.FAILED, "loop")
    assert len(at.wire.model_requests) == 6
    at.wire.forget()
    at.wire.add(Reply.of(Say("something else")))
    assert (await at.prompt("do something else")).state is TaskState.COMPLETED


@pytest.mark.anyio
async def test_without_a_user_a_loop_fails_the_task_with_a_reason_of_its_own(harness: Any, workspace: Path) -> None:
    at = harness([Reply.of(READ)] * 20, policy=Policy(may_ask=False), limit=100)
    end = await at.prompt("go")
    assert (end.state, end.reason) == (TaskState.FAILED, "loop")
    assert len(at.wire.model_requests) == 6


@pytest.mark.parametrize(
    ("told", "then", "is_loop"),
    [
        ("aaaaa", "", False),
        ("aaaaa", "a", True),
        ("aaaaa", "b", False),
        ("aaaaa", "ba", False),
        ("aaaaa", "baaaa", False),
        ("aaaaa", "baaaaa", True),
        ("ababababab", "a", False),
        ("ababababab", "ab", True),
        ("ababababab", "ba", True),
        ("ababababab", "aa", True),
        ("ababababab", "acb", False),
    ],
)
def test_after_the_word_one_more_cycle_is_enough(told: str, then: str, is_loop: bool) -> None:
    found = loops(told)
    assert found.found is not None
    found.note_warning()
    for name in then:
        found.add([ToolRequest("x", name, {"a": 2, "b": 1})])
    assert (found.found is not None) is is_loop
    found.reset()
    found.add([ToolRequest("x", told[0], {"a": 2, "b": 1})])
    assert found.found is None


@pytest.mark.anyio
async def test_a_model_that_changes_its_ways_is_not_stopped(harness: Any, workspace: Path) -> None:
    at = harness([*[Reply.of(READ)] * 5, Reply.of(Say("I see"))], policy=Policy(may_ask=False))
    assert (await at.prompt("go")).state is TaskState.COMPLETED


@pytest.mark.anyio
@pytest.mark.parametrize("step", [Say, Think])
async def test_a_text_without_end_is_stopped_and_discarded(harness: Any, step: Any) -> None:
    endless = Reply.of(step(*["I will now do it. "] * 1_000))
    at = harness([endless, Reply.of(Say("Done.")), endless, endless], policy=Policy(may_ask=False))
    assert (await at.prompt("go")).state is TaskState.COMPLETED
    assert "repeated the same passage" in at.told()
    said = [event for event in at.events if isinstance(event, TextContent)]
    assert sum(len(event.text) for event in said) < 10_000
    end = await at.prompt("again")
    assert (end.state, end.reason) == (TaskState.FAILED, "loop")
