"""Answers that break off in the middle are asked for again: the agent with the real Gemini provider over its wire."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.client import Delivery
from isthmus.events import RetryNotice, TaskState, TextContent
from isthmus.internal_events import ModelReply
from isthmus.task_view import TaskView
from support.scripted_wire import Call, Failure, Reply, Say, Think

pytestmark = pytest.mark.anyio

BROKEN = Reply.of(Say("It is f"), finish=None)


def texts(events: list[Any]) -> list[tuple[str, str | None]]:
    """Return the texts, with the text that each of them replaces in its own words."""
    said: dict[str, str] = {}
    replaced: dict[str, str | None] = {}
    for event in events:
        if isinstance(event, TextContent):
            if event.message_id not in said:
                replaced[event.message_id] = None if event.replaces is None else said[event.replaces]
            said[event.message_id] = said.get(event.message_id, "") + event.text
    return [(text, replaced[message_id]) for message_id, text in said.items()]


def shown(events: list[Any]) -> TaskView:
    view = TaskView()
    for number, event in enumerate(events, 1):
        view.apply(Delivery(number, float(number), event))
    return view


async def test_an_answer_that_broke_off_is_replaced_by_the_next_one(harness: Any) -> None:
    at = harness([BROKEN, Reply.of(Say("It is fine."))])
    assert (await at.prompt("is it?")).state is TaskState.COMPLETED
    assert texts(at.events) == [("It is f", None), ("It is fine.", "It is f")]
    (notice,) = [event for event in at.events if isinstance(event, RetryNotice)]
    assert "ended too early" in notice.reason
    view = shown(at.events)
    assert [message.text for message in view.messages.values()] == ["It is fine."]
    assert view.final_text == "It is fine."
    assert len([event for event in at.events if isinstance(event, ModelReply)]) == 1


async def test_a_text_that_is_followed_by_a_call_alone_is_void_too(harness: Any, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n", encoding="utf-8")
    call = Call("read_file", {"file_path": "a.txt"})
    at = harness([BROKEN, Reply.of(call), Reply.of(Say("done"))])
    assert (await at.prompt("is it?")).state is TaskState.COMPLETED
    assert texts(at.events) == [("It is f", None), ("", "It is f"), ("done", None)]


async def test_calls_of_an_answer_that_broke_off_are_not_run(harness: Any, workspace: Path) -> None:
    write = Call("write_file", {"file_path": "a.txt", "content": "x"})
    replies = [Reply.of(write, finish=None), Reply.of(Say("no"))]
    at = harness(replies, policy=Policy(ApprovalMode.YOLO))
    assert (await at.prompt("go")).state is TaskState.COMPLETED
    assert not at.calls
    assert not (workspace / "a.txt").exists()


async def test_thoughts_alone_are_asked_again(harness: Any) -> None:
    at = harness([Reply.of(Think("hm")), Reply.of(Think("hm")), Reply.of(Say("Recovered."))])
    assert (await at.prompt("think")).state is TaskState.COMPLETED
    assert texts(at.events) == [("Recovered.", None)]


async def test_a_key_that_is_revoked_after_a_broken_answer_is_named_as_the_reason(harness: Any) -> None:
    at = harness([BROKEN, Failure(401, kind="wrong_key")])
    end = await at.prompt("hi")
    assert (end.state, end.reason) == (TaskState.FAILED, "model_authentication")


@pytest.mark.slow
async def test_an_answer_that_breaks_off_each_time_fails_and_the_last_beginning_stays(harness: Any) -> None:
    at = harness([Reply.of(Say(f"Beginning {number}"), finish=None) for number in range(1, 9)])
    end = await at.prompt("is it?")
    assert (end.state, end.reason) == (TaskState.FAILED, "model_interrupted")
    assert len(at.wire.model_requests) == 5
    assert [message.text for message in shown(at.events).messages.values()] == ["Beginning 5"]
