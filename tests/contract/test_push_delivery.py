"""Push notifications of a real engine and journal to real HTTP receivers, working and failing ones."""

import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.a2a.push.sender import PushSender
from isthmus.agent.session.turn import AgentTurn
from isthmus.client import PromptMessage, PushTarget
from isthmus.events import ArtifactPart, ArtifactUpdate, StateChange, TaskState
from isthmus.journal.port.base import JournalError
from isthmus.journal.port.lease_owner import new_owner
from isthmus.journal.port.pushes import PushRow, PushState
from support.agents import AskingAgent, EchoAgent, WaitingAgent
from support.engines import once
from support.pushing import ALLOWED, FINE, QUICK, pushing, states, told
from support.turns import all_of
from support.waiting import eventually_async
from support.wire_server import Answer, Cut, Hold, WireRequest, WireServer

pytestmark = pytest.mark.anyio


async def test_each_state_is_told_in_order_with_the_questions_and_the_final_text(tmp_path: Path) -> None:
    gate = WaitingAgent()
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, gate) as served:
            turn = await served.engine.prompt(PromptMessage("hello"))
            target = PushTarget(f"{server.base_url}/hook?x=1", token="t-1", scheme="Bearer", credentials="c-1")
            shown = await served.pushes.set(turn.task_id, target, "0.3", None, after=turn.snapshot.seq)
            assert (shown.id, shown.token, shown.credentials) == (turn.task_id, "t-1", None)
            gate.release.set()
            await told(server, "working", "completed")
        first, last = server.requests
    assert (first.method, first.path, first.query) == ("POST", "/hook", "x=1")
    assert first.headers["x-a2a-notification-token"] == "t-1"
    assert first.headers["authorization"] == "Bearer c-1"
    assert first.headers["content-type"] == "application/json"
    assert first.headers["host"] == f"127.0.0.1:{server.port}"
    assert first.json["kind"] == "task"
    assert first.json["id"] == turn.task_id
    assert first.headers["idempotency-key"] != last.headers["idempotency-key"]


async def test_a_question_is_told_whole_and_its_answer_leads_to_further_news(tmp_path: Path) -> None:
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, AskingAgent(("one", "two"))) as served:
            task = await served.prompted()
            await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", "uri")
            await told(server, "input-required")
            parts = server.requests[0].json["status"]["message"]["parts"]
            assert [part["data"]["tool_call_id"] for part in parts] == ["one", "two"]
            await all_of(await served.engine.answer(task.task_id, once("one"), answered_by="me"))
            await eventually_async(lambda: states(server)[-1:] == ["input-required"] and len(server.requests) > 1)
            await all_of(await served.engine.answer(task.task_id, once("two"), answered_by="me"))
            await eventually_async(lambda: states(server)[-1] == "completed")
        parts = [request.json for request in server.requests if request.json["status"]["state"] == "input-required"]
    assert [part["data"]["tool_call_id"] for part in parts[-1]["status"]["message"]["parts"]] == ["two"]
    assert server.requests[0].headers["a2a-extensions"] == "uri"


async def test_a_completed_task_holds_its_final_text_also_when_the_session_has_gone_on(tmp_path: Path) -> None:
    hold = Hold()
    first = itertools.count()

    async def respond(_: WireRequest) -> Answer:
        if next(first) == 0:
            await hold.wait()
        return FINE

    with WireServer(respond) as server:
        async with pushing(tmp_path, EchoAgent()) as served:
            task = await served.prompted("one")
            await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None, after=1)
            await all_of(await served.engine.prompt(PromptMessage("two", task_id=task.task_id)))
            hold.release()
            await told(server, "working", "completed", "working", "completed")
        done = [request.json for request in server.requests if request.json["status"]["state"] == "completed"]
    assert [item["artifacts"][-1]["parts"][0]["text"] for item in done] == ["one", "two"]


class ReportingAgent:
    """An agent that appends to its report at each prompt."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        await turn.emit(StateChange(TaskState.WORKING))
        await turn.emit(ArtifactUpdate("report", (ArtifactPart(text="more"),), append=True))
        return StateChange(TaskState.COMPLETED)


async def test_a_task_that_rests_is_told_with_its_artifacts_as_they_were(tmp_path: Path) -> None:
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, ReportingAgent()) as served:
            task = await served.prompted("one")
            await all_of(await served.engine.prompt(PromptMessage("two", task_id=task.task_id)))
            await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None, after=1)
            await told(server, "working", "completed", "working", "completed")
    parts = [len(request.json["artifacts"][0]["parts"]) for request in server.requests if "artifacts" in request.json]
    assert parts == [1, 2]


async def test_a_target_that_is_deleted_and_set_again_is_told_where_the_task_rests(tmp_path: Path) -> None:
    """The state of the former target of this id does not count."""
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, EchoAgent()) as served:
            task = await served.prompted()
            target = PushTarget(server.base_url, id="p")
            await served.pushes.set(task.task_id, target, "0.3", None, after=1)
            await told(server, "working", "completed")
            await served.pushes.delete(task.task_id, "p")
            await served.pushes.set(task.task_id, target, "0.3", None)
            await told(server, "working", "completed", "completed")


async def test_a_task_that_rests_already_is_told_at_once(tmp_path: Path) -> None:
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, EchoAgent()) as served:
            task = await served.prompted()
            await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None)
            await told(server, "completed")


async def test_a_receiver_that_fails_is_tried_again_with_the_same_key_and_in_order(tmp_path: Path) -> None:
    count = itertools.count()

    def respond(_: WireRequest) -> Answer:
        return Answer.json({}, 500) if next(count) < 5 else FINE

    with WireServer(respond) as server:
        async with pushing(tmp_path, EchoAgent()) as served:
            task = await served.prompted()
            await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None, after=1)
            await eventually_async(lambda: len(server.requests) == 7)
            assert states(server) == ["working"] * 6 + ["completed"]
            assert len({request.headers["idempotency-key"] for request in server.requests}) == 2

            async def arrived() -> bool:
                (row,) = await served.pushes.rows(task.task_id)
                return (row.seq, row.attempts, row.error) == (task.seq, 0, None)

            await eventually_async(arrived)


@pytest.mark.slow
@pytest.mark.parametrize("status", [410, 500])
async def test_a_receiver_that_never_takes_it_is_given_up_until_it_is_set_again(
    tmp_path: Path, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    answers = {"now": Answer.json({}, status)}
    with WireServer(lambda _: answers["now"]) as server:
        async with pushing(tmp_path, EchoAgent()) as served:
            task = await served.prompted()
            target = PushTarget(f"{server.base_url}/secret-path", token="secret-token")
            await served.pushes.set(task.task_id, target, "0.3", None)

            async def given_up() -> bool:
                (row,) = await served.pushes.rows(task.task_id)
                return row.state is PushState.GIVEN_UP and str(status) in (row.error or "")

            await eventually_async(given_up)
            assert len(server.requests) == (1 if status == 410 else QUICK.attempts)
            assert "given up" in caplog.text
            assert "secret" not in caplog.text
            answers["now"] = FINE
            await served.pushes.set(task.task_id, target, "0.3", None)
            await eventually_async(lambda: server.requests[-1].answered.is_set() and len(server.requests) > 1)

            async def arrived() -> bool:
                (row,) = await served.pushes.rows(task.task_id)
                return row.seq == task.seq

            await eventually_async(arrived)


@pytest.mark.slow
@pytest.mark.parametrize(
    "bad",
    [
        Answer(302, {"location": "http://169.254.169.254/latest/", "content-length": "0"}),
        Answer(307, {"location": "/elsewhere", "content-length": "0"}),
        Answer(200, {"content-length": "99"}, (Cut(),)),
    ],
    ids=["redirect", "relative-redirect", "head-only"],
)
async def test_no_redirect_is_followed_and_no_body_waited_for(tmp_path: Path, bad: Answer) -> None:
    answers = iter([bad])
    with WireServer(lambda _: next(answers, FINE)) as server:
        async with pushing(tmp_path, EchoAgent()) as served:
            task = await served.prompted()
            await served.pushes.set(task.task_id, PushTarget(f"{server.base_url}/hook"), "0.3", None)
            arrived = 1 if bad.status == 200 else 2
            await eventually_async(lambda: len(server.requests) == arrived)
            assert {request.path for request in server.requests} == {"/hook"}


@pytest.mark.slow
async def test_a_receiver_that_hangs_or_resets_holds_up_neither_the_task_nor_others(tmp_path: Path) -> None:
    hold = Hold()

    async def hang(_: WireRequest) -> Answer:
        await hold.wait()
        return FINE

    def reset(_: WireRequest) -> Answer:
        raise ConnectionResetError

    with WireServer(hang) as hanging, WireServer(reset) as resetting, WireServer(lambda _: FINE) as good:
        async with pushing(tmp_path, EchoAgent(), PushSender(ALLOWED, deadline=60)) as served:
            tasks: list[str] = []
            for number in range(12):
                turn = await served.engine.prompt(PromptMessage(f"task {number}"))
                for index, server in enumerate((hanging, resetting, good)):
                    target = PushTarget(server.base_url, id=f"target-{index}")
                    await served.pushes.set(turn.task_id, target, "0.3", None, after=1)
                await all_of(turn)
                tasks.append(turn.task_id)
            await eventually_async(lambda: len(good.requests) == 24)
            for task_id in tasks:
                of_task = [request.json for request in good.requests if request.json["id"] == task_id]
                assert [item["status"]["state"] for item in of_task] == ["working", "completed"]
            assert 0 < len(hanging.requests) <= QUICK.at_once_to_host
        hold.release()


@pytest.mark.slow
async def test_a_receiver_that_hangs_is_left_at_the_deadline_and_tried_again(tmp_path: Path) -> None:
    hold = Hold()

    async def hang(_: WireRequest) -> Answer:
        await hold.wait()
        return FINE

    with WireServer(hang) as server:
        async with pushing(tmp_path, EchoAgent(), PushSender(ALLOWED, deadline=0.1)) as served:
            task = await served.prompted()
            await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None)
            await eventually_async(lambda: len(server.requests) >= 3)
            assert server.requests[0].disconnected.wait(30)
        hold.release()


async def test_what_was_not_told_before_the_end_of_a_process_is_told_by_the_next(tmp_path: Path) -> None:
    answers = {"now": Answer.json({}, 503)}
    with WireServer(lambda _: answers["now"]) as server:
        async with pushing(tmp_path, AskingAgent()) as served:
            task = await served.prompted()
            await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None, after=1)
            await eventually_async(lambda: len(server.requests) >= 2)
        answers["now"] = FINE
        async with pushing(tmp_path, AskingAgent()) as served:
            await eventually_async(lambda: states(server)[-1] == "input-required")
            assert (await served.engine.get(task.task_id)).pending
    each_once = {request.headers["idempotency-key"]: request for request in server.requests}
    assert [request.json["status"]["state"] for request in each_once.values()] == ["working", "input-required"]


async def test_what_another_process_was_sending_when_it_died_is_sent_again(tmp_path: Path) -> None:
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, EchoAgent()) as served:
            task = await served.prompted()
            delivery_owner = "0:no-such-host:1:0"
            name, host, _, start = new_owner().split(":")
            gone = f"{name}:{host}:999999999:{start}"
            journal = served.journal.pushes
            journal.on_change = None
            await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None)
            (row,) = await journal.of_task(task.task_id)
            assert await journal.claim(row, gone)
            assert not await journal.claim(row, delivery_owner)
        assert not server.requests
        async with pushing(tmp_path, EchoAgent()):
            await told(server, "completed")


async def test_what_another_process_was_sending_is_sent_again_also_amid_constant_news(tmp_path: Path) -> None:
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, EchoAgent(), limits=replace(QUICK, look_seconds=0.2)) as served:
            task = await served.prompted()
            journal = served.journal.pushes
            on_change, journal.on_change = journal.on_change, None
            assert on_change is not None
            name, host, _, start = new_owner().split(":")
            await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None)
            (row,) = await journal.of_task(task.task_id)
            assert await journal.claim(row, f"{name}:{host}:999999999:{start}")

            def keep_telling() -> bool:
                on_change()
                return bool(server.requests)

            await eventually_async(keep_telling)


async def test_news_whose_arrival_could_not_be_noted_is_sent_again_with_the_same_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, EchoAgent(), limits=replace(QUICK, look_seconds=0.2)) as served:
            task = await served.prompted()
            journal = served.journal.pushes
            delivered, failures = journal.delivered, iter([JournalError("the disk is full")])

            async def refuse_once(row: PushRow, owner: str, seq: int) -> None:
                if (failure := next(failures, None)) is not None:
                    raise failure
                await delivered(row, owner, seq)

            monkeypatch.setattr(journal, "delivered", refuse_once)
            await served.pushes.set(task.task_id, PushTarget(server.base_url), "0.3", None)

            async def noted() -> bool:
                return (await served.pushes.rows(task.task_id))[0].seq == task.seq

            await eventually_async(noted)
    first, again = server.requests
    assert first.headers["idempotency-key"] == again.headers["idempotency-key"]


async def test_a_host_with_more_news_than_are_looked_at_together_holds_up_no_other(tmp_path: Path) -> None:
    limits = replace(QUICK, rows=4, at_once_to_host=2)
    hold = Hold()

    async def hang(_: WireRequest) -> Answer:
        await hold.wait()
        return FINE

    with WireServer(hang) as hanging, WireServer(lambda _: FINE) as good:
        async with pushing(tmp_path, EchoAgent(), PushSender(ALLOWED, deadline=60), limits) as served:
            for _ in range(12):
                task = await served.prompted()
                await served.pushes.set(task.task_id, PushTarget(hanging.base_url), "0.3", None)
            task = await served.prompted()
            await served.pushes.set(task.task_id, PushTarget(good.base_url), "0.3", None)
            await told(good, "completed")
        hold.release()


async def test_two_servers_of_one_journal_tell_each_change_once(tmp_path: Path) -> None:
    with WireServer(lambda _: FINE) as server:
        async with pushing(tmp_path, EchoAgent()) as one, pushing(tmp_path, EchoAgent()) as other:
            ids: list[str] = []
            for number in range(10):
                served = (one, other)[number % 2]
                turn = await served.engine.prompt(PromptMessage("hello"))
                await served.pushes.set(turn.task_id, PushTarget(server.base_url), "0.3", None, after=1)
                await all_of(turn)
                ids.append(turn.task_id)
                for each in (one, other):
                    assert each.journal.pushes.on_change is not None
                    each.journal.pushes.on_change()
            await eventually_async(lambda: len(server.requests) >= 20)

            async def arrived() -> bool:
                rows = [row for task_id in ids for row in await one.pushes.rows(task_id)]
                return all(row.owner is None and row.seq > 1 for row in rows)

            await eventually_async(arrived)
    keys = [request.headers["idempotency-key"] for request in server.requests]
    assert len(keys) == len(set(keys)) == 20
