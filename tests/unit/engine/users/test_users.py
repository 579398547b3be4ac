from pathlib import Path

import pytest

from isthmus.client import (
    CommandMessage,
    InvalidRequest,
    LimitReached,
    PromptMessage,
    TaskNotFound,
    UserLimits,
)
from isthmus.engine import Engine
from isthmus.engine.followers.open_questions import QuestionOpened
from isthmus.events import StateChange, TaskState
from isthmus.journal.port.base import INBOX_MESSAGES
from support.agents import AskingAgent, EchoAgent, WaitingAgent
from support.engines import engine_on, events, once
from support.turns import all_of

pytestmark = pytest.mark.anyio


async def test_the_task_of_another_user_is_not_found_whatever_is_asked(tmp_path: Path) -> None:
    agent = AskingAgent()
    async with engine_on(tmp_path, agent) as engine:
        alice, bob = engine.for_user("alice"), engine.for_user("bob")
        turn = await alice.prompt(PromptMessage("do it"))
        await all_of(turn)
        for other in (bob, engine):
            for attempt in (
                other.get(turn.task_id),
                other.follow(turn.task_id, 0),
                other.cancel(turn.task_id),
                other.answer(turn.task_id, once("one"), answered_by="other"),
                other.prompt(PromptMessage("go on", task_id=turn.task_id)),
            ):
                with pytest.raises(TaskNotFound, match=f"there is no task {turn.task_id}"):
                    await attempt
            assert await other.tasks() == []
        assert agent.ran == []
        assert [task.task_id for task in await alice.tasks()] == [turn.task_id]
        await all_of(await alice.answer(turn.task_id, once("one"), answered_by="alice"))
        assert agent.ran == ["one"]


async def test_a_context_of_another_user_is_a_session_that_is_not_there(tmp_path: Path) -> None:
    async with engine_on(tmp_path, EchoAgent(), workspace=tmp_path) as engine:
        alice, bob = engine.for_user("alice"), engine.for_user("bob")
        turn = await alice.prompt(PromptMessage("my secret"))
        await all_of(turn)
        with pytest.raises(InvalidRequest, match="workspace_path is missing"):
            await bob.prompt(PromptMessage("what was it?", context_id=turn.context_id, requires_settings=True))
        same = await bob.prompt(PromptMessage("what was it?", context_id=turn.context_id))
        seen = events(await all_of(same))
        assert not any("secret" in str(event) for event in seen)
        assert len(await engine.for_user("bob").tasks()) == 1


async def test_a_question_says_whose_it_is_also_after_a_restart(tmp_path: Path) -> None:
    async with engine_on(tmp_path, AskingAgent()) as engine:
        await all_of(await engine.for_user("alice").prompt(PromptMessage("do it")))
        await all_of(await engine.prompt(PromptMessage("do it")))
        assert await _users_asked(engine) == ["", "alice"]
    async with engine_on(tmp_path, AskingAgent()) as engine:
        assert await _users_asked(engine) == ["", "alice"]


async def _users_asked(engine: Engine) -> list[str]:
    changes = engine.questions.changes()
    asked = [await anext(changes), await anext(changes)]
    await changes.aclose()
    return sorted(question.user for question in asked if isinstance(question, QuestionOpened))


async def test_a_command_that_is_one_task_too_many_is_not_started_and_says_why(tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(tmp_path, agent) as engine:
        alice = engine.for_user("alice", UserLimits(max_running=1))
        turn = await alice.prompt(PromptMessage("work"))
        await agent.started.wait()
        with pytest.raises(LimitReached, match="the limit is 1 at once"):
            await alice.prompt(PromptMessage("more"))
        assert (await alice.execute(CommandMessage(("none",)))).turn is None
        await engine.for_user("bob", UserLimits(max_running=1)).prompt(PromptMessage("work"))
        assert (await alice.cancel(turn.task_id)).state is TaskState.CANCELED
        await alice.prompt(PromptMessage("more"))


async def test_closing_a_users_view_stops_nothing(tmp_path: Path) -> None:
    agent = WaitingAgent()
    async with engine_on(tmp_path, agent) as engine:
        alice = engine.for_user("alice")
        turn = await alice.prompt(PromptMessage("work"))
        await agent.started.wait()
        await alice.aclose()
        agent.release.set()
        assert events(await all_of(await alice.follow(turn.task_id, 0)))[-1] == StateChange(TaskState.COMPLETED)


@pytest.mark.slow
async def test_messages_to_one_task_are_refused_beyond_the_cap_and_the_others_are_taken(
    tmp_path: Path,
) -> None:
    agent = WaitingAgent()
    async with engine_on(tmp_path, agent) as engine:
        turn = await engine.prompt(PromptMessage("work"))
        await agent.started.wait()
        refused = 0
        for number in range(4 * INBOX_MESSAGES):
            try:
                await engine.prompt(PromptMessage(f"message {number}", task_id=turn.task_id))
            except LimitReached:
                refused += 1
        assert refused == 3 * INBOX_MESSAGES
        agent.release.set()
        assert events(await all_of(await engine.follow(turn.task_id, 0)))[-1] == StateChange(TaskState.COMPLETED)
        history = (await engine.get(turn.task_id, 1000)).history
        expected = ["work", *(f"message {number}" for number in range(INBOX_MESSAGES))]
        assert [message.text for message in history] == expected
