"""A message beside an answer: kept with the answer, read once the answered call has run, and never without it."""

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from isthmus.client import InvalidRequest, PromptMessage
from isthmus.development_tool import ToolCallConfirmation, ToolCallStatus
from isthmus.events import ConfirmationAccepted, Prompt, TaskState
from support.agents import AskingAgent
from support.engines import engine_on, events, once
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say
from support.subagents import Delegation, TwoModels, delegation, write
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio
WORDS = "a.txt:1: > hello\nSay it in French."
MESSAGE = PromptMessage(WORDS, "message-1")
WAIT = "touch began; until [ -e go ]; do read -t 0.05 <> <(:) || true; done; echo went"
"""A command that makes the file ``began``, and runs until the test makes the file ``go``."""


@pytest.fixture
def models() -> TwoModels:
    return TwoModels()


@pytest.fixture
def wire(models: TwoModels) -> Generator[GeminiWire]:
    with GeminiWire(models) as server:
        yield server


def said(models: TwoModels, request: int = -1) -> str:
    return str(models.asked[request][1]["contents"])


async def begun(at: Delegation) -> list[str]:
    """Begin a task; return the ids of the calls that wait."""
    settings = {"workspace_path": str(at.workspace)}
    turn = await at.engine.prompt(PromptMessage("Begin.", settings=settings))
    at.task_id = turn.task_id
    await all_of(turn)
    return [call.tool_call_id for call in (await at.engine.get(at.task_id)).pending]


def allow(call_id: str) -> ToolCallConfirmation:
    return ToolCallConfirmation(call_id, "proceed_once")


async def prompts(at: Delegation) -> list[str]:
    events = await at.engine.journal.events(at.task_id, 0, 1000)
    return [each.event.text for each in events if isinstance(each.event, Prompt)]


async def test_the_edit_is_written_and_the_words_are_read(tmp_path: Path, wire: GeminiWire, models: TwoModels) -> None:
    models.agent = [write("a.txt"), Reply.of(Say("Bonjour."))]
    async with delegation(tmp_path, wire) as at:
        (call,) = await begun(at)
        await all_of(await at.engine.answer_with(at.task_id, [allow(call)], MESSAGE, answered_by="page"))
        assert (at.workspace / "a.txt").exists()
        assert await prompts(at) == ["Begin.", WORDS]
    assert len(models.asked) == 2
    assert "French" in said(models)


async def test_another_open_question_stays_open(tmp_path: Path, wire: GeminiWire, models: TwoModels) -> None:
    both = [step for name in ("a.txt", "b.txt") for step in write(name).steps]
    models.agent = [Reply.of(*both), Reply.of(Say("Bonjour."))]
    async with delegation(tmp_path, wire) as at:
        one, other = await begun(at)
        await all_of(await at.engine.answer_with(at.task_id, [allow(one)], MESSAGE, answered_by="page"))
        left = await at.engine.get(at.task_id)
        assert (left.state, [call.tool_call_id for call in left.pending]) == (TaskState.INPUT_REQUIRED, [other])
        await all_of(await at.engine.answer(at.task_id, [allow(other)], answered_by="page"))
        view = await at.view(at.task_id)
    assert {each.call.status for each in view.calls.values()} == {ToolCallStatus.SUCCEEDED}
    assert "French" in said(models)


async def test_a_refusal_goes_on_with_the_words(tmp_path: Path, wire: GeminiWire, models: TwoModels) -> None:
    models.agent = [write("a.txt"), Reply.of(Say("Bonjour."))]
    async with delegation(tmp_path, wire) as at:
        (call,) = await begun(at)
        refusal = ToolCallConfirmation(call, "cancel")
        await all_of(await at.engine.answer_with(at.task_id, [refusal], MESSAGE, answered_by="page"))
        assert not (at.workspace / "a.txt").exists()
        assert (await at.engine.get(at.task_id)).state is TaskState.COMPLETED
    assert "French" in said(models)


async def test_a_repetition_is_read_once(tmp_path: Path, wire: GeminiWire, models: TwoModels) -> None:
    models.agent = [write("a.txt"), Reply.of(Say("Bonjour."))]
    async with delegation(tmp_path, wire) as at:
        (call,) = await begun(at)
        for _ in range(2):
            await all_of(await at.engine.answer_with(at.task_id, [allow(call)], MESSAGE, answered_by="page"))
        assert await prompts(at) == ["Begin.", WORDS]


async def test_words_beside_a_late_answer_are_refused_with_it(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    models.agent = [write("a.txt"), Reply.of(Say("Done."))]
    async with delegation(tmp_path, wire) as at:
        (call,) = await begun(at)
        await all_of(await at.engine.answer(at.task_id, [allow(call)], answered_by="terminal"))
        with pytest.raises(InvalidRequest):
            await at.engine.answer_with(at.task_id, [allow(call)], MESSAGE, answered_by="page")
        assert await prompts(at) == ["Begin."]


async def test_words_are_read_after_the_process_has_ended(tmp_path: Path, wire: GeminiWire, models: TwoModels) -> None:
    models.agent = [
        Reply.of(Call("run_shell_command", {"command": WAIT}, id="call-1")),
        *(Reply.of(Say(text)) for text in ("Bonjour.", "Again.")),
    ]
    async with delegation(tmp_path, wire) as first:
        (call,) = await begun(first)
        await first.engine.answer_with(first.task_id, [allow(call)], MESSAGE, answered_by="page")
        # The engine ends when the command runs: asyncio leaves pipes open of a program that is just being started.
        await eventually_async((first.workspace / "began").exists, what="the command runs")
        assert await prompts(first) == ["Begin."]
    async with delegation(tmp_path, wire, task_id=first.task_id) as at, asyncio.timeout(60):
        await at.at_rest(at.task_id, TaskState.COMPLETED)
        events = [each.event for each in await at.engine.journal.events(at.task_id, 0, 1000)]
        assert await prompts(at) == ["Begin.", WORDS]
    assert sum(isinstance(event, ConfirmationAccepted) for event in events) == 1
    assert any("French" in said(models, number) for number in range(1, len(models.asked)))


async def test_an_agent_that_reads_nothing_meanwhile_goes_on_with_the_words(tmp_path: Path) -> None:
    names = ("one", "two")
    async with engine_on(tmp_path, AskingAgent(names)) as engine:
        turn = await engine.prompt(PromptMessage("do both"))
        await all_of(turn)
        for name in names:
            before = events(await all_of(await engine.follow(turn.task_id, 0)))
            assert WORDS not in [event.text for event in before if isinstance(event, Prompt)]
            await all_of(await engine.answer_with(turn.task_id, once(name), MESSAGE, answered_by="page"))
        kept = events(await all_of(await engine.follow(turn.task_id, 0)))
        assert [event.text for event in kept if isinstance(event, Prompt)][1:] == [WORDS, WORDS]
        assert (await engine.get(turn.task_id)).state is TaskState.COMPLETED
