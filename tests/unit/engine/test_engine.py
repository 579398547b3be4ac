import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.session.turn import AgentTurn
from isthmus.client import (
    InvalidRequest,
    PromptMessage,
    TaskNotCancelable,
    TaskNotFound,
    TaskNotResumable,
    TaskSnapshot,
    Turn,
)
from isthmus.development_tool import AgentThought, ToolCall, ToolCallStatus
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import (
    AgentEvent,
    ConfirmationAccepted,
    Prompt,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from isthmus.journal.port.base import Journal
from isthmus.models.port.base import ToolRequest
from support.agents import AskingAgent, EchoAgent, WaitingAgent, reply
from support.engines import engine_on, events, once
from support.journals import journal_at
from support.turns import all_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def test_a_prompt_makes_a_task_that_streams_to_its_end(tmp_path: Path) -> None:
    async with engine_on(tmp_path, EchoAgent()) as engine:
        turn = await engine.prompt(PromptMessage("say hello", message_id="m1"))
        assert (turn.is_new, turn.snapshot.state, turn.snapshot.title) == (True, TaskState.SUBMITTED, "say hello")
        deliveries = await all_of(turn)
        assert events(deliveries)[0] == StateChange(TaskState.WORKING)
        assert events(deliveries)[-1] == StateChange(TaskState.COMPLETED)
        assert "".join(item.text for item in events(deliveries) if isinstance(item, TextContent)) == "say hello "
        assert [item.seq for item in deliveries] == list(range(2, len(deliveries) + 2))


def counted(journal: Journal, monkeypatch: pytest.MonkeyPatch, *methods: str) -> Counter[str]:
    """Return the number of calls of a journal's methods from now on."""
    calls = Counter[str]()

    def counting(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any, **named: Any) -> Any:
            calls[name] += 1
            return method(*values, **named)

        return call

    for name in methods:
        monkeypatch.setattr(journal, name, counting(name, getattr(journal, name)))
    return calls


class LastWordAgent:
    """An agent that sends a text and ends, both in one turn of the event loop, once ``release`` is set."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.release = asyncio.Event()

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        self.started.set()
        await self.release.wait()
        await turn.emit(Thought(AgentThought("the last word", "")))
        return StateChange(TaskState.COMPLETED)


async def test_the_last_words_before_a_message_that_came_meanwhile_are_kept_before_it(tmp_path: Path) -> None:
    agent = LastWordAgent()
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("one"))
        await asyncio.wait_for(agent.started.wait(), 30)
        await engine.prompt(PromptMessage("two", task_id=turn.task_id))
        agent.release.set()
        assert events(await all_of(turn))[-1] == StateChange(TaskState.COMPLETED)
        everything = await all_of(await engine.follow(turn.task_id, 0))
        names = [type(event).__name__ for event in events(everything)]
        assert names == ["Prompt", "StateChange", "Thought", "Prompt", "StateChange", "Thought", "StateChange"]


async def test_a_trivial_task_costs_two_writes_and_no_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = await journal_at(tmp_path / "journal.sqlite")
    calls = counted(journal, monkeypatch, "append", "events", "session")
    engine = Engine(EchoAgent(), journal, EngineOptions(WorkspaceRule(default=tmp_path)))
    await engine.start()
    first = await engine.prompt(PromptMessage("one"))
    assert events(await all_of(first))[-1] == StateChange(TaskState.COMPLETED)
    assert not calls
    second = await engine.prompt(PromptMessage("two", context_id=first.context_id))
    assert events(await all_of(second))[-1] == StateChange(TaskState.COMPLETED)
    assert calls == {"session": 1}
    await engine.aclose()


async def test_deltas_that_come_together_are_one_increment(tmp_path: Path) -> None:
    async with engine_on(tmp_path, EchoAgent()) as engine:
        found = await all_of(await engine.prompt(PromptMessage(" ".join(f"w{n}" for n in range(100)))))
        assert len([item for item in events(found) if isinstance(item, TextContent)]) <= 3


async def test_the_history_of_a_completed_task_holds_prompt_and_answer(tmp_path: Path) -> None:
    async with engine_on(tmp_path, EchoAgent()) as engine:
        turn = await engine.prompt(PromptMessage("hello", message_id="m1"))
        await all_of(turn)
        snapshot = await engine.get(turn.task_id)
        assert [(item.role, item.text) for item in snapshot.history] == [("user", "hello"), ("agent", "hello")]
        assert [item.text for item in (await engine.get(turn.task_id, 1)).history] == ["hello"]
        assert (await engine.get(turn.task_id, 0)).history == ()


async def test_calls_without_words_do_not_take_the_place_of_messages(tmp_path: Path) -> None:
    class Busy:
        async def advance(self, turn: AgentTurn) -> StateChange:
            for number in range(120):
                await turn.emit(reply(str(number), ToolRequest(f"c{number}", "look", {})))
            return StateChange(TaskState.FAILED, "too busy")

    async with engine_on(tmp_path, Busy()) as engine:
        turn = await engine.prompt(PromptMessage("look"))
        await all_of(turn)
        for length in (None, 1, 5, 10**30):
            assert [item.text for item in (await engine.get(turn.task_id, length)).history] == ["look"]
        assert (await engine.get(turn.task_id, 0)).history == ()


async def test_a_follower_that_names_an_event_gets_exactly_what_came_after_it(tmp_path: Path) -> None:
    async with engine_on(tmp_path, EchoAgent()) as engine:
        turn = await engine.prompt(PromptMessage("one two three"))
        seen = await all_of(turn)
        for position, delivery in enumerate(seen):
            replayed = await all_of(await engine.follow(turn.task_id, delivery.seq))
            assert replayed == seen[position + 1 :]
        assert await all_of(await engine.follow(turn.task_id)) == []


async def test_an_event_that_does_not_exist_cannot_be_followed(tmp_path: Path) -> None:
    async with engine_on(tmp_path, EchoAgent()) as engine:
        turn = await engine.prompt(PromptMessage("one"))
        await all_of(turn)
        with pytest.raises(InvalidRequest, match="event 99"):
            await engine.follow(turn.task_id, 99)


async def test_a_slow_reader_of_a_long_stream_misses_nothing(tmp_path: Path) -> None:
    class Talkative:
        async def advance(self, turn: AgentTurn) -> StateChange:
            for number in range(2000):
                await turn.emit(Thought(AgentThought(str(number), "")))
            return StateChange(TaskState.COMPLETED)

    async with engine_on(tmp_path, Talkative()) as engine:
        turn = await engine.prompt(PromptMessage("go"))
        await all_of(await engine.follow(turn.task_id))
        seen = await all_of(turn)
        assert [item.seq for item in seen] == list(range(2, 2003))


async def test_a_question_ends_the_segment_and_nothing_is_held(tmp_path: Path) -> None:
    async with engine_on(tmp_path, AskingAgent()) as engine:
        idle = len(asyncio.all_tasks())
        for _ in range(5):
            await all_of(await engine.prompt(PromptMessage("do it")))
        await eventually_async(lambda: len(asyncio.all_tasks()) == idle)


async def test_the_answer_starts_the_call_and_the_stream_begins_with_its_execution(tmp_path: Path) -> None:
    agent = AskingAgent()
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("do it"))
        assert events(await all_of(turn))[-1] == StateChange(TaskState.INPUT_REQUIRED)
        assert [call.tool_call_id for call in (await engine.get(turn.task_id)).pending] == ["one"]
        answered = await engine.answer(turn.task_id, once("one"), answered_by="test")
        first, *_, last = events(await all_of(answered))
        assert isinstance(first, ToolCallUpdate)
        assert first.tool_call.status is ToolCallStatus.EXECUTING
        assert last == StateChange(TaskState.COMPLETED)
        assert agent.ran == ["one"]
        kept = events(await all_of(await engine.follow(turn.task_id, 0)))
        assert ConfirmationAccepted(once("one")[0], "test") in kept


async def test_the_first_answer_wins_and_the_second_is_told(tmp_path: Path) -> None:
    agent = AskingAgent()
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("do it"))
        await all_of(turn)
        answers = [engine.answer(turn.task_id, once("one"), answered_by=str(number)) for number in range(8)]
        results = await asyncio.gather(*answers, return_exceptions=True)
        assert len([item for item in results if isinstance(item, Turn)]) == 1
        refused = [item for item in results if not isinstance(item, Turn)]
        assert all(isinstance(item, InvalidRequest) and "is not waiting" in str(item) for item in refused)
        await all_of(await engine.follow(turn.task_id))
        assert agent.ran == ["one"]


async def test_an_unknown_option_names_the_valid_ones_and_the_question_stays(tmp_path: Path) -> None:
    async with engine_on(tmp_path, AskingAgent()) as engine:
        turn = await engine.prompt(PromptMessage("do it"))
        await all_of(turn)
        with pytest.raises(InvalidRequest, match="expected one of proceed_once, cancel"):
            await engine.answer(turn.task_id, once("one", "maybe"), answered_by="test")
        assert (await engine.get(turn.task_id)).state is TaskState.INPUT_REQUIRED


async def test_of_several_questions_each_answer_runs_its_call_until_all_are_decided(tmp_path: Path) -> None:
    agent = AskingAgent(("one", "two"))
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("do both"))
        await all_of(turn)
        after_two = events(await all_of(await engine.answer(turn.task_id, once("two"), answered_by="test")))
        assert after_two[-1] == StateChange(TaskState.INPUT_REQUIRED)
        assert agent.ran == ["two"]
        assert [call.tool_call_id for call in (await engine.get(turn.task_id)).pending] == ["one"]
        after_one = events(await all_of(await engine.answer(turn.task_id, once("one", "cancel"), answered_by="test")))
        assert after_one[-1] == StateChange(TaskState.COMPLETED)
        assert agent.ran == ["two"]


async def test_an_answer_for_another_context_is_refused(tmp_path: Path) -> None:
    async with engine_on(tmp_path, AskingAgent()) as engine:
        turn = await engine.prompt(PromptMessage("do it"))
        await all_of(turn)
        with pytest.raises(InvalidRequest, match="another contextId"):
            await engine.answer(turn.task_id, once("one"), answered_by="test", context_id="other")


async def test_cancel_stops_what_runs_and_every_follower_is_told(tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("work"))
        other = await engine.follow(turn.task_id)
        reading = [asyncio.create_task(all_of(item)) for item in (turn, other)]
        await agent.started.wait()
        assert (await engine.cancel(turn.task_id)).state is TaskState.CANCELED
        assert agent.stopped.is_set()
        for seen in await asyncio.gather(*reading):
            assert events(seen)[-1] == StateChange(TaskState.CANCELED)


async def test_cancel_of_a_waiting_task_cancels_its_calls(tmp_path: Path) -> None:
    agent = AskingAgent()
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("do it"))
        await all_of(turn)
        assert (await engine.cancel(turn.task_id)).state is TaskState.CANCELED
        kept = events(await all_of(await engine.follow(turn.task_id, 0)))
        (last_call,) = [event.tool_call for event in kept if isinstance(event, ToolCallUpdate)][-1:]
        assert (last_call.status, last_call.confirmation_request) == (ToolCallStatus.CANCELLED, None)
        assert agent.ran == []
        with pytest.raises(TaskNotCancelable, match="is canceled"):
            await engine.cancel(turn.task_id)


async def test_all_who_cancel_a_task_at_once_are_told_that_it_is_cancelled_or_was_before(tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("work"))
        await agent.started.wait()
        cancels = (engine.cancel(turn.task_id) for _ in range(3))
        first, *others = await asyncio.gather(*cancels, return_exceptions=True)
        assert isinstance(first, TaskSnapshot)
        assert first.state is TaskState.CANCELED
        for other in others:
            # A check after the first answer comes too late, and is refused.
            if isinstance(other, TaskSnapshot):
                assert other.state is TaskState.CANCELED
            else:
                assert isinstance(other, TaskNotCancelable)
                assert "is canceled" in str(other)


async def test_a_completed_task_cannot_be_cancelled_and_an_unknown_one_is_not_found(tmp_path: Path) -> None:
    async with engine_on(tmp_path, EchoAgent()) as engine:
        turn = await engine.prompt(PromptMessage("hi"))
        await all_of(turn)
        with pytest.raises(TaskNotCancelable, match="completed"):
            await engine.cancel(turn.task_id)
        with pytest.raises(TaskNotFound, match="no task nothing"):
            await engine.cancel("nothing")


async def test_a_completed_task_goes_on_only_for_those_who_may(tmp_path: Path) -> None:
    async with engine_on(tmp_path, EchoAgent()) as engine:
        turn = await engine.prompt(PromptMessage("one"))
        await all_of(turn)
        with pytest.raises(TaskNotResumable):
            await engine.prompt(PromptMessage("two", task_id=turn.task_id, may_continue_completed=False))
        again = events(await all_of(await engine.prompt(PromptMessage("two", task_id=turn.task_id))))
        assert again[0] == StateChange(TaskState.WORKING)
        assert again[-1] == StateChange(TaskState.COMPLETED)


async def test_a_message_to_a_working_task_is_taken_when_the_work_ends(tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(tmp_path, agent) as engine:
        first = await engine.prompt(PromptMessage("one"))
        await agent.started.wait()
        second = await engine.prompt(PromptMessage("two", task_id=first.task_id, message_id="m2"))
        agent.release.set()
        for turn in (first, second):
            kept = events(await all_of(turn))
            assert Prompt("m2", "two") in kept
            assert kept.count(StateChange(TaskState.COMPLETED)) == 1


async def test_a_new_task_in_a_context_continues_its_conversation_and_workspace(tmp_path: Path) -> None:
    workspace = tmp_path / "w"
    workspace.mkdir()
    async with engine_on(tmp_path, EchoAgent()) as engine:
        first = await engine.prompt(PromptMessage("one", settings={"workspace_path": str(workspace)}))
        await all_of(first)
        second = await engine.prompt(PromptMessage("two", context_id=first.context_id))
        assert second.task_id != first.task_id
        assert second.snapshot.workspace == str(workspace)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (None, "workspace_path is missing"),
        ({}, "workspace_path is missing"),
        ({"workspace_path": "relative/path"}, "expected an absolute path"),
        ({"workspace_path": 7}, "expected an absolute path"),
        ({"workspace_path": "/nowhere/at/all"}, "not a folder"),
        ({"workspace_path": "/null\0byte"}, "cannot be a folder"),
    ],
)
async def test_settings_that_do_not_fit_make_no_task(tmp_path: Path, settings: dict[str, object], message: str) -> None:
    async with engine_on(tmp_path, EchoAgent()) as engine:
        with pytest.raises(InvalidRequest, match=message):
            await engine.prompt(PromptMessage("hi", settings=settings, requires_settings=True))
        assert await engine.tasks() == []


async def test_a_workspace_outside_the_allowed_roots_is_refused_also_through_a_link(tmp_path: Path) -> None:
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    allowed.mkdir()
    other.mkdir()
    (allowed / "link").symlink_to(other)
    rule = WorkspaceRule(default=allowed, roots=(allowed,))
    assert rule.choose({"workspace_path": str(allowed)}, None, required=True) == str(allowed)
    for path in (other, allowed / "link", allowed / ".." / "other"):
        with pytest.raises(InvalidRequest, match="not allowed"):
            rule.choose({"workspace_path": str(path)}, None, required=True)


async def test_further_folders_are_refused_as_a_workspace_is_and_make_no_task(tmp_path: Path) -> None:
    allowed, other = tmp_path / "allowed", tmp_path / "other"
    allowed.mkdir()
    other.mkdir()
    (allowed / "link").symlink_to(other)
    (allowed / "beside").mkdir()
    rule = WorkspaceRule(default=allowed, roots=(allowed,))
    async with engine_on(tmp_path, EchoAgent()) as engine:
        client = engine.for_user("", workspaces=rule)

        def message(folder: object) -> PromptMessage:
            settings: dict[str, object] = {"workspace_path": str(allowed), "additional_directories": [folder]}
            return PromptMessage("hi", settings=settings)

        for folder, why in (
            (other, "not allowed"),
            (allowed / "link", "not allowed"),
            (allowed / "no", "not a folder"),
        ):
            with pytest.raises(InvalidRequest, match=f"^additional_directories {folder} is {why}"):
                await client.prompt(message(str(folder)))
        with pytest.raises(InvalidRequest, match=r"^additional_directories is 'x'; expected an absolute path"):
            await client.prompt(message("x"))
        with pytest.raises(InvalidRequest, match="additional_directories"):
            await client.prompt(message(7))
        assert await client.tasks() == []
        (*_, last) = await all_of(await client.prompt(message(str(allowed / "beside"))))
        assert last.event == StateChange(TaskState.COMPLETED)


async def test_progress_is_shown_to_followers_without_a_number_and_not_kept(tmp_path: Path) -> None:
    def progress() -> AgentEvent:
        return ToolCallUpdate(ToolCall("c", ToolCallStatus.EXECUTING, "shell", {}, live_content="line 1\n"))

    agent = WaitingAgent(progress=progress)
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("work"))
        await agent.started.wait()
        reading = asyncio.create_task(all_of(turn))
        late = await engine.follow(turn.task_id)
        async with asyncio.timeout(60):
            unnumbered = (item.event async for item in late.deliveries if item.seq is None)
            assert await anext(unnumbered) == progress()
        agent.release.set()
        await reading
        kept = await all_of(await engine.follow(turn.task_id, 0))
        assert all(item.seq is not None for item in kept)
