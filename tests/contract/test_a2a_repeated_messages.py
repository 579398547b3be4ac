"""A message sent again after a lost response: the response is the existing task, and nothing runs twice."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from isthmus.agent.hosted import ask, decision, is_allowed
from isthmus.agent.session.session import Session
from isthmus.development_tool import GenericDetails, ToolCall, ToolCallStatus
from isthmus.events import AgentEvent, StateChange, TaskState, TextContent, ToolCallUpdate
from support.a2a_hosting import Hosted, hosted
from support.a2a_serving import EXTENSION, allow
from support.a2a_serving import answer as answer_of
from support.a2a_serving import prompt as prompt_of

pytestmark = pytest.mark.anyio


def prompt(text: str, workspace: object = None, **more: Any) -> dict[str, Any]:
    return prompt_of(text, workspace, **{"messageId": "message-1", **more})


def answer(task_id: str, confirmation: dict[str, Any], message_id: str = "answer-1") -> dict[str, Any]:
    return answer_of(task_id, confirmation, messageId=message_id)


class Counting:
    """An agent that counts its effects; it asks before a dangerous one."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        if session.prompt == "dangerous" and decision(session, "c") is None:
            yield ask("c", "press", {}, GenericDetails("Press"))
            return
        if (taken := decision(session, "c")) is not None and is_allowed(taken):
            yield ToolCallUpdate(ToolCall("c", ToolCallStatus.EXECUTING, "press", {}))
            self.done.append("pressed")
            yield ToolCallUpdate(ToolCall("c", ToolCallStatus.SUCCEEDED, "press", {}))
            return
        self.done.append(session.prompt)
        yield TextContent("", f"did {session.prompt}")
        await self.gate.wait()
        if session.prompt == "question":
            yield StateChange(TaskState.INPUT_REQUIRED)


@pytest.fixture
def agent() -> Counting:
    return Counting()


@pytest.fixture
async def client(agent: Counting, workspace: Path) -> AsyncGenerator[Hosted]:
    async with hosted(agent, workspace) as served:
        yield served


async def test_the_same_message_is_answered_with_the_same_task(client: Hosted, agent: Counting) -> None:
    first = await client.call("message/send", prompt("work"))
    again = await client.call("message/send", prompt("work"))
    assert again["id"] == first["id"]
    assert again["artifacts"][0]["parts"] == [{"kind": "text", "text": "did work"}]
    message = {"role": "ROLE_USER", "messageId": "message-1", "parts": [{"text": "work"}]}
    new = await client.call("SendMessage", {"message": message}, **{"A2A-Version": "1.0"})
    assert new["task"]["id"] == first["id"]
    assert agent.done == ["work"]


async def test_a_stream_that_is_asked_for_again_tells_all_that_the_first_one_told(
    client: Hosted, agent: Counting
) -> None:
    first = await client.stream("message/stream", prompt("work"), {})
    again = await client.stream("message/stream", prompt("work"), {})
    assert [item.answer for item in again] == [item.answer for item in first]
    assert [item.id for item in again] == [item.id for item in first]
    assert agent.done == ["work"]


async def test_many_at_once_make_one_task_and_all_get_its_end(client: Hosted, agent: Counting) -> None:
    agent.gate.clear()
    calls = [asyncio.create_task(client.call("message/send", prompt("work"))) for _ in range(8)]
    await asyncio.sleep(0)
    agent.gate.set()
    answers = await asyncio.gather(*calls)
    assert len({task["id"] for task in answers}) == 1
    assert {task["status"]["state"] for task in answers} == {"completed"}
    assert agent.done == ["work"]


@pytest.mark.slow
async def test_a_message_survives_a_restart_and_is_still_taken_once(agent: Counting, workspace: Path) -> None:
    async with hosted(agent, workspace) as client:
        first = await client.call("message/send", prompt("work"))
    async with hosted(agent, workspace) as client:
        again = await client.call("message/send", prompt("work"))
    assert again["id"] == first["id"]
    assert agent.done == ["work"]


@pytest.mark.parametrize(
    "other",
    [
        prompt("other"),
        prompt("work", contextId="another"),
        prompt("work", messageId="message-2"),
        prompt("work", parts=[{"kind": "text", "text": "work"}, {"kind": "data", "data": {"n": 1}}]),
    ],
)
async def test_another_content_or_id_is_another_message(client: Hosted, other: dict[str, Any]) -> None:
    first = await client.call("message/send", prompt("work"))
    second = await client.call("message/send", other)
    assert second["id"] != first["id"]


async def test_an_id_that_comes_with_other_content_is_logged(client: Hosted, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "isthmus.journal")
    await client.call("message/send", prompt("work"))
    await client.call("message/send", prompt("other"))
    assert [record.message for record in caplog.records if "before with other content" in record.message]


async def test_a_message_that_goes_on_with_a_task_is_taken_once(client: Hosted, agent: Counting) -> None:
    task_id = (await client.call("message/send", prompt("question")))["id"]
    more = prompt("question", taskId=task_id, messageId="more")
    for _ in range(3):
        again = await client.call("message/send", more, **EXTENSION)
        assert again["id"] == task_id
    assert agent.done == ["question", "question"]
    at_once = prompt("question", taskId=task_id, messageId="at once")
    await asyncio.gather(*(client.call("message/send", at_once, **EXTENSION) for _ in range(4)))
    assert agent.done == ["question"] * 3


async def test_an_answer_that_comes_again_is_no_error_and_does_nothing(
    client: Hosted, agent: Counting, workspace: Path
) -> None:
    seen = await client.stream("message/stream", prompt("dangerous", workspace), EXTENSION)
    task_id = seen[0].result["id"]
    streams = [await client.stream("message/stream", answer(task_id, allow("c")), EXTENSION) for _ in range(3)]
    assert [stream[-1].state for stream in streams] == ["completed"] * 3
    assert agent.done == ["pressed"]
    other = answer(task_id, allow("c"), "another")
    response = await client.post("message/send", other, EXTENSION)
    assert response.json()["error"]["code"] == -32602


async def test_another_answer_under_the_id_of_an_earlier_one_is_not_its_repetition(
    client: Hosted, agent: Counting, workspace: Path
) -> None:
    """Its sender would believe that the call was rejected."""
    seen = await client.stream("message/stream", prompt("dangerous", workspace), EXTENSION)
    task_id = seen[0].result["id"]
    await client.stream("message/stream", answer(task_id, allow("c")), EXTENSION)
    response = await client.post("message/send", answer(task_id, allow("c", selected_option_id="cancel")), EXTENSION)
    assert response.json()["error"]["code"] == -32602
    assert agent.done == ["pressed"]


async def test_who_went_on_with_a_task_or_cancelled_it_may_send_its_first_message_anew(
    client: Hosted, agent: Counting
) -> None:
    first = await client.call("message/send", prompt("question"))
    await client.call("tasks/cancel", {"id": first["id"]})
    second = await client.call("message/send", prompt("question"))
    assert second["id"] != first["id"]
    await client.call("message/send", prompt("work", taskId=second["id"], messageId="more"), **EXTENSION)
    third = await client.call("message/send", prompt("question"))
    assert third["id"] not in (first["id"], second["id"])
    assert agent.done == ["question", "question", "work", "question"]


@pytest.mark.slow
async def test_a_client_that_left_before_the_answer_gets_it_by_the_same_message(
    client: Hosted, agent: Counting
) -> None:
    agent.gate.clear()
    with pytest.raises(httpx2.ReadTimeout):
        await client.post("message/send", prompt("work"), {}, timeout=0.5)
    agent.gate.set()
    again = await client.call("message/send", prompt("work"))
    assert again["status"]["state"] == "completed"
    assert agent.done == ["work"]
