"""Questions to the user in front of clients: who is asked, whose answer counts, and what happens without one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from isthmus.development_tool import ConfirmationOption, FileDiff
from isthmus.engine import Engine
from isthmus.errors import IsthmusError
from isthmus.events import ConfirmationAccepted, TaskState
from support.acp_front import ALLOW, CANCELLED, REJECT, FrontClient, RefusedError, front
from support.agents import AskingAgent
from support.engines import engine_on, once
from support.memory_agent import MemoryAgent
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def the_task(engine: Engine) -> str:
    (task,) = await engine.tasks()
    return task.task_id


async def state_of(engine: Engine) -> TaskState:
    (task,) = await engine.tasks()
    return task.state


async def asked(client: FrontClient, workspace: Path) -> "tuple[str, asyncio.Future[Any], dict[str, Any]]":
    """Begin a session and a turn; return both, and the turn's question."""
    session = await client.new(workspace)
    turn = await client.begin_prompt(session, "do it")
    return session, turn, await client.question()


async def end_of(turn: "asyncio.Future[Any]") -> str:
    return (await asyncio.wait_for(turn, 10))["stopReason"]


async def test_an_allowed_call_runs_once_and_its_states_are_shown(workspace: Path) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        _, turn, question = await asked(client, workspace)
        assert question["method"] == "session/request_permission"
        assert question["params"]["options"] == [
            {"optionId": "proceed_once", "name": "Allow once", "kind": "allow_once"},
            {"optionId": "cancel", "name": "Reject", "kind": "reject_once"},
        ]
        assert [update["toolCallId"] for update in client.of_kind("tool_call")] == ["one"]
        await client.respond(question, ALLOW)
        assert await end_of(turn) == "end_turn"
        assert agent.ran == ["one"]
        assert [update.get("status") for update in client.of_kind("tool_call_update")] == ["in_progress", "completed"]
        assert (len(client.questions), client.withdrawn) == (1, [])


async def test_a_rejected_call_does_not_run_and_is_shown_as_failed(workspace: Path) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        _, turn, question = await asked(client, workspace)
        await client.respond(question, REJECT)
        assert await end_of(turn) == "end_turn"
        assert agent.ran == []
        assert [update.get("status") for update in client.of_kind("tool_call_update")] == ["failed"]


async def test_several_calls_are_asked_one_after_the_other(workspace: Path) -> None:
    agent = AskingAgent(("one", "two", "three"))
    async with engine_on(workspace, agent) as engine, front(engine, answer=ALLOW) as client:
        assert await client.prompt(await client.new(workspace), "do it") == "end_turn"
        assert [question["params"]["toolCall"]["toolCallId"] for question in client.questions] == [
            "one",
            "two",
            "three",
        ]
        assert agent.ran == ["one", "two", "three"]


async def test_the_users_own_text_goes_to_the_agent_with_the_answer(workspace: Path) -> None:
    agent = MemoryAgent()
    async with front(agent) as client:
        session = await client.new(workspace)
        turn = await client.begin_prompt(session, "edit the file")
        question = await client.question()
        assert question["params"]["toolCall"]["content"] == [
            {"type": "diff", "path": "/workspace/a.txt", "newText": "new\n", "oldText": "old\n"}
        ]
        await client.respond(question, {**ALLOW, "_meta": {"isthmus": {"newContent": "mine\n"}}})
        assert await end_of(turn) == "end_turn"
        assert client.of_kind("tool_call_update")[-1]["content"] == [
            {"type": "diff", "path": "/workspace/a.txt", "newText": "mine\n", "oldText": "old\n"}
        ]
    await agent.aclose()


async def test_an_answer_that_does_not_reach_the_agent_says_where_the_turn_is(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with engine_on(workspace, AskingAgent()) as engine, front(engine) as client:
        _, turn, question = await asked(client, workspace)

        async def away(*_: object, **__: object) -> None:
            raise IsthmusError("nothing answers at http://localhost:1/; is the server running?")

        monkeypatch.setattr(engine, "answer", away)
        await client.respond(question, ALLOW)
        with pytest.raises(RefusedError, match=r"running\? The turn may go on: load the session\.$"):
            await end_of(turn)
        assert await state_of(engine) is TaskState.INPUT_REQUIRED


async def test_an_answer_given_elsewhere_withdraws_the_question_and_the_turn_goes_on(workspace: Path) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        _, turn, question = await asked(client, workspace)
        await engine.answer(await the_task(engine), once("one"), answered_by="terminal")
        assert await end_of(turn) == "end_turn"
        assert client.withdrawn == [question["id"]]
        assert agent.ran == ["one"]
        await client.respond(question, REJECT)  # too late
        await client.call("session/list")
        assert client.last_status == "completed"


async def test_an_answer_given_elsewhere_withdraws_its_question_while_another_call_waits(workspace: Path) -> None:
    agent = AskingAgent(("one", "two"))
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        _, turn, first = await asked(client, workspace)
        assert first["params"]["toolCall"]["toolCallId"] == "one"
        await engine.answer(await the_task(engine), once("one"), answered_by="terminal")
        second = await client.question(1)
        assert (second["params"]["toolCall"]["toolCallId"], client.withdrawn) == ("two", [first["id"]])
        await client.respond(first, REJECT)  # too late
        await client.respond(second, ALLOW)
        assert await end_of(turn) == "end_turn"
        assert agent.ran == ["one", "two"]


async def test_an_outcome_of_cancelled_stops_the_turn(workspace: Path) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine, front(engine, answer=CANCELLED) as client:
        assert await client.prompt(await client.new(workspace), "do it") == "cancelled"
        assert await state_of(engine) is TaskState.CANCELED
        assert agent.ran == []
        assert client.last_status == "failed"


@pytest.mark.parametrize("answers", [True, False])
async def test_a_turn_that_asks_is_cancelled_whether_the_client_answers_or_not(answers: bool, workspace: Path) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        session, turn, question = await asked(client, workspace)
        await client.notify("session/cancel", sessionId=session)
        if answers:
            await client.respond(question, CANCELLED)
        assert await end_of(turn) == "cancelled"
        assert await state_of(engine) is TaskState.CANCELED
        if not answers:
            assert client.withdrawn == [question["id"]]


async def test_the_request_of_a_prompt_can_be_cancelled_too(workspace: Path) -> None:
    async with engine_on(workspace, AskingAgent()) as engine, front(engine) as client:
        session = await client.new(workspace)
        number, turn = await client.begin(
            "session/prompt", sessionId=session, prompt=[{"type": "text", "text": "do it"}]
        )
        await client.question()
        await client.notify("$/cancel_request", requestId=number)
        assert await end_of(turn) == "cancelled"
        assert await state_of(engine) is TaskState.CANCELED


RUBBISH: list[dict[str, Any]] = [
    {"error": {"code": -32601, "message": "Method not found"}},
    {"result": None},
    {"result": "yes"},
    {"result": {"outcome": "selected"}},
    {"result": {"outcome": {"outcome": "selected", "optionId": "no such option"}}},
]


@pytest.mark.parametrize("rubbish", RUBBISH)
async def test_without_an_answer_the_question_stays_open_and_a_load_asks_again(
    rubbish: dict[str, Any], workspace: Path
) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        session, turn, question = await asked(client, workspace)
        await client.send({"id": question["id"], **rubbish})
        with pytest.raises(RefusedError) as caught:
            await asyncio.wait_for(turn, 10)
        assert caught.value.code == -32603
        assert await state_of(engine) is TaskState.INPUT_REQUIRED
        await client.load(session, workspace)
        await client.respond(await client.question(1), ALLOW)
        await eventually_async(lambda: agent.ran == ["one"])
        await eventually_async(lambda: client.last_status == "completed")
        assert len(client.questions) == 2


@pytest.mark.parametrize("loads", [False, True])
async def test_a_message_after_a_question_was_left_open_goes_to_its_task(loads: bool, workspace: Path) -> None:
    """Else there would be two turns in one session, and the older one would wait for ever."""
    agent = MemoryAgent()
    async with front(agent) as client:
        session = await client.new(workspace)
        turn = await client.begin_prompt(session, "edit the file")
        unable = {"error": {"code": 1, "message": "no window"}}
        await client.send({"id": (await client.question())["id"], **unable})
        with pytest.raises(RefusedError, match="the client did not ask the user: no window"):
            await asyncio.wait_for(turn, 10)
        if loads:
            await client.load(session, workspace)
            await client.send({"id": (await client.question(1))["id"], **unable})
        assert await client.prompt(session, "never mind") == "end_turn"
        (task,) = await agent.tasks()
        assert [message.task_id for message in agent.prompts] == [None, task.task_id]
        assert await client.prompt(session, "something else") == "end_turn"
        assert agent.prompts[-1].task_id is None
    await agent.aclose()


async def test_a_message_after_an_open_question_was_answered_elsewhere_is_a_new_task(workspace: Path) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as client:
        session, turn, question = await asked(client, workspace)
        await client.send({"id": question["id"], "error": {"code": 1, "message": "no window"}})
        with pytest.raises(RefusedError):
            await asyncio.wait_for(turn, 10)
        answered = await engine.answer(await the_task(engine), once("one"), answered_by="terminal")
        assert [delivery async for delivery in answered.deliveries]
        turn = await client.begin_prompt(session, "again")
        await client.respond(await client.question(1), ALLOW)
        assert await end_of(turn) == "end_turn"
        assert len(await engine.tasks()) == 2


async def test_a_waiting_question_is_asked_again_after_the_response_to_a_load(workspace: Path) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine:
        async with front(engine) as client:
            session, _, _ = await asked(client, workspace)
        async with front(engine) as client:
            await client.load(session, workspace)
            question = await client.question()
            response = next(i for i, message in enumerate(client.messages) if "modes" in message.get("result", {}))
            assert client.messages.index(question) > response
            assert question["params"]["toolCall"]["toolCallId"] == "one"
            assert client.text("user_message_chunk") == "do it"
            await client.respond(question, ALLOW)
            await eventually_async(lambda: client.last_status == "completed")
            assert (agent.ran, len(client.questions), len(client.of_kind("tool_call"))) == (["one"], 1, 1)


async def test_a_waiting_question_is_asked_again_after_a_resume(workspace: Path) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine:
        async with front(engine) as client:
            session, _, _ = await asked(client, workspace)
        async with front(engine, answer=ALLOW) as client:
            await client.call("session/resume", sessionId=session, cwd=str(workspace))
            await eventually_async(lambda: agent.ran == ["one"])
            assert client.text("user_message_chunk") == ""
            await eventually_async(lambda: client.last_status == "completed")


@pytest.mark.parametrize("first", [0, 1])
async def test_two_clients_are_asked_once_each_and_the_first_answer_counts(first: int, workspace: Path) -> None:
    options = (ConfirmationOption("proceed_once", "Allow once"), ConfirmationOption("cancel", "Reject"))
    agent = AskingAgent(edit=FileDiff("a", str(workspace / "a"), "new", None), options=options)
    async with (
        engine_on(workspace, agent) as engine,
        front(engine, name="one") as one,
        front(engine, name="two") as two,
    ):
        session, turn, _ = await asked(one, workspace)
        await two.load(session, workspace)
        await two.question()
        clients = (one, two)
        await clients[first].respond(clients[first].questions[0], ALLOW)
        assert await end_of(turn) == "end_turn"
        other = clients[1 - first]
        await eventually_async(lambda: other.withdrawn == [other.questions[0]["id"]])
        await other.respond(other.questions[0], REJECT)
        for client in clients:
            await eventually_async(lambda c=client: c.last_status == "completed")
            await client.call("session/list")
            assert len(client.questions) == 1
        assert agent.ran == ["one"]
        whole = await engine.follow(await the_task(engine), 0)
        accepted = [d.event async for d in whole.deliveries if isinstance(d.event, ConfirmationAccepted)]
        assert [event.answered_by for event in accepted] == [("one", "two")[first]]


async def test_both_clients_answer_at_once_and_one_answer_counts(workspace: Path) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine, front(engine) as one, front(engine) as two:
        session, turn, question = await asked(one, workspace)
        await two.load(session, workspace)
        await asyncio.gather(one.respond(question, ALLOW), two.respond(await two.question(), ALLOW))
        assert await end_of(turn) == "end_turn"
        assert agent.ran == ["one"]
        assert len(one.questions) == len(two.questions) == 1


async def test_a_client_that_ends_leaves_its_question_to_the_next_one(workspace: Path) -> None:
    agent = AskingAgent()
    async with engine_on(workspace, agent) as engine:
        for _ in range(3):
            async with front(engine) as client:
                sessions = (await client.call("session/list"))["sessions"]
                if sessions:
                    await client.load(sessions[0]["sessionId"], workspace)
                    await client.question()
                else:
                    await asked(client, workspace)
        assert (await state_of(engine), agent.ran) == (TaskState.INPUT_REQUIRED, [])
