"""Models that answer in place of an overloaded one: the agent with real Gemini providers over their wires."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isthmus.events import RetryNotice, TaskState, TextContent
from isthmus.internal_events import ModelReply
from isthmus.programs.setup.setup import BadInputError, GivenOptions, decide
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Failure, Reply, Say

BUSY = Failure(503, "busy")


@pytest.fixture
def other() -> Iterator[GeminiWire]:
    with GeminiWire() as wire:
        yield wire


@pytest.mark.anyio
async def test_another_model_answers_while_the_first_is_overloaded(harness: Any, other: GeminiWire) -> None:
    at = harness([BUSY] * 9, fallback=other)
    other.add(Reply.of(Call("list_directory", {"dir_path": "."})), Reply.of(Say("From the other.")))
    assert (await at.prompt("hi")).state is TaskState.COMPLETED
    # It is not tried again in the same turn.
    assert (len(at.wire.model_requests), len(other.model_requests)) == (2, 2)
    notices = [event.reason for event in at.events if isinstance(event, RetryNotice)]
    assert "other is asked instead of test" in notices[-1]
    assert "gemini:gone cannot be used instead: Gemini needs a key" in notices[-1]
    assert [event.model for event in at.events if isinstance(event, ModelReply)] == ["other", "other"]


@pytest.mark.anyio
async def test_a_used_up_quota_is_an_overload_and_a_wrong_key_is_not(harness: Any, other: GeminiWire) -> None:
    other.add(Reply.of(Say("From the other.")))
    at = harness([Failure(402, "no credit"), Failure(401, kind="wrong_key")], fallback=other)
    assert (await at.prompt("hi")).state is TaskState.COMPLETED
    end = await at.prompt("again")
    assert (end.state, end.reason) == (TaskState.FAILED, "model_authentication")
    assert len(other.model_requests) == 1


@pytest.mark.anyio
async def test_when_every_model_is_overloaded_the_last_failure_counts(harness: Any, other: GeminiWire) -> None:
    at = harness([BUSY] * 9, fallback=other)
    other.add(*[Failure(503, "busy as well")] * 10)
    end = await at.prompt("hi")
    assert (end.state, end.reason) == (TaskState.FAILED, "model_overloaded")
    assert "busy as well" in (end.error or "")
    # The last model is waited for like an only one.
    assert len(other.model_requests) == 10


@pytest.mark.anyio
async def test_the_beginning_of_an_answer_is_replaced_by_the_other_model(harness: Any, other: GeminiWire) -> None:
    at = harness([Reply.of(Say("It is f"), finish=None), *[BUSY] * 9], fallback=other)
    other.add(Reply.of(Say("It is fine.")))
    assert (await at.prompt("hi")).state is TaskState.COMPLETED
    first, second = [event for event in at.events if isinstance(event, TextContent)]
    assert (second.text, second.replaces) == ("It is fine.", first.message_id)


def test_a_fallback_without_a_known_name_is_refused_at_the_start(workspace: Path) -> None:
    folder = Path.home() / ".gemini"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "settings.json").write_text('{"isthmus": {"fallbackModels": ["hal-9000"]}}', encoding="utf-8")
    with pytest.raises(BadInputError, match="hal-9000"):
        decide(GivenOptions(model="demo", workspace=workspace, ide=False), may_ask=True)
