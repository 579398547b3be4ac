"""Messages for the work under way: the model reads them before its next message, and none is lost."""

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from isthmus.client import PromptMessage
from isthmus.events import Prompt, TaskState
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say
from support.subagents import Delegation, TwoModels, delegation, write
from support.turns import all_of
from support.waiting import eventually_async
from support.wire_server import Hold

pytestmark = pytest.mark.anyio
LOOK = Call("list_directory", {"dir_path": "."})


@pytest.fixture
def models() -> TwoModels:
    return TwoModels()


@pytest.fixture
def wire(models: TwoModels) -> Generator[GeminiWire]:
    with GeminiWire(models) as server:
        yield server


async def steered(at: Delegation, models: TwoModels, hold: Hold, *texts: str, is_steering: bool = True) -> None:
    """Send texts while the first answer of the model is held, let it go on, and wait for the end of the task."""
    settings = {"workspace_path": str(at.workspace)}
    turn = await at.engine.prompt(PromptMessage("Begin.", settings=settings))
    at.task_id = turn.task_id
    await eventually_async(lambda: len(models.asked) == 1)
    for text in texts:
        await at.engine.prompt(PromptMessage(text, task_id=at.task_id, is_steering=is_steering))
    hold.release()
    await all_of(turn)


def said(models: TwoModels, request: int) -> str:
    return str(models.asked[request][1]["contents"])


async def test_a_message_is_read_before_the_next_message_of_the_model(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    hold = Hold()
    models.agent = [Reply.of(LOOK, hold=hold, hold_after=0), Reply.of(Say("Both seen."))]
    async with delegation(tmp_path, wire) as at:
        await steered(at, models, hold, "Also look at b.", "And at c.")
        view = await at.view(at.task_id)
    assert len(models.asked) == 2
    assert "Also look at b." in said(models, 1)
    assert "And at c." in said(models, 1)
    assert [(prompt.text, prompt.is_steering) for prompt in view.prompts] == [
        ("Begin.", False),
        ("Also look at b.", True),
        ("And at c.", True),
    ]


async def test_another_message_waits_for_the_end_of_the_work(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    hold = Hold()
    models.agent = [Reply.of(LOOK, hold=hold, hold_after=0), Reply.of(Say("Seen.")), Reply.of(Say("And this."))]
    async with delegation(tmp_path, wire) as at:
        await steered(at, models, hold, "Then this.", is_steering=False)
    assert "Then this." not in said(models, 1)
    assert "Then this." in said(models, 2)


async def test_a_message_that_comes_with_the_last_answer_is_the_next_one(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    hold = Hold()
    models.agent = [Reply.of(Say("Done."), hold=hold, hold_after=0), Reply.of(Say("That, too."))]
    async with delegation(tmp_path, wire) as at:
        await steered(at, models, hold, "Not yet.")
        assert (await at.engine.get(at.task_id)).state is TaskState.COMPLETED
    assert "Not yet." in said(models, 1)


async def test_a_message_in_the_inbox_survives_the_end_of_the_process(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    hold = Hold()
    models.agent = [Reply.of(LOOK, hold=hold, hold_after=0), Reply.of(LOOK), Reply.of(Say("Seen.")), Reply.of(Say("x"))]
    async with delegation(tmp_path, wire) as first:
        turn = await first.engine.prompt(PromptMessage("Begin.", settings={"workspace_path": str(first.workspace)}))
        await eventually_async(lambda: len(models.asked) == 1)
        await first.engine.prompt(PromptMessage("Also this.", task_id=turn.task_id, is_steering=True))
    hold.release()
    async with delegation(tmp_path, wire, task_id=turn.task_id) as at:
        await at.at_rest(turn.task_id, TaskState.COMPLETED)
        events = [item.event for item in await at.engine.journal.events(turn.task_id, 0, 100)]
    assert [event.text for event in events if isinstance(event, Prompt)] == ["Begin.", "Also this."]
    assert any("Also this." in said(models, number) for number in range(1, len(models.asked)))


async def test_a_message_in_place_of_an_answer_gives_the_call_up(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    models.agent = [write("a.txt"), Reply.of(Say("As you like."))]
    async with delegation(tmp_path, wire) as at:
        assert (await at.prompt()).state is TaskState.INPUT_REQUIRED
        await all_of(await at.engine.prompt(PromptMessage("No.", task_id=at.task_id, is_steering=True)))
        assert (await at.engine.get(at.task_id)).state is TaskState.COMPLETED
        assert not (at.workspace / "a.txt").exists()


async def test_many_messages_at_once_come_in_order(tmp_path: Path, wire: GeminiWire, models: TwoModels) -> None:
    hold = Hold()
    models.agent = [Reply.of(LOOK, hold=hold, hold_after=0), *(Reply.of(Say("Seen.")) for _ in range(5))]
    async with delegation(tmp_path, wire) as at, asyncio.timeout(60):
        await steered(at, models, hold, *(f"number {number};" for number in range(20)))
        view = await at.view(at.task_id)
    assert [prompt.text for prompt in view.prompts[1:]] == [f"number {number};" for number in range(20)]
