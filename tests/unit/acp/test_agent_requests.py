"""Requests of a hosted ACP agent: questions in its order, and refusals of what could not be answered."""

import asyncio
from typing import Any

import pytest

from isthmus.acp.host.agent_requests import AgentRequests
from isthmus.acp.host.files import AskedRead, Expected
from isthmus.acp.host.known_agent import UNKNOWN
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.host.prompt_turn import Permission, PromptTurn
from isthmus.acp.host.update_reader import UpdateReader
from isthmus.acp.v1.updates import ToolCallStarted
from isthmus.events import ToolCallUpdate
from isthmus.rpc.messages import RpcError

pytestmark = pytest.mark.anyio


class SlowFiles:
    """Files of which the first is read last."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    async def read(self, path: str) -> str:
        if path == "/first":
            await self.gate.wait()
        self.gate.set()
        return "old"

    async def write(self, path: str, text: str, expected: Expected | None = None) -> None:
        raise NotImplementedError

    def asked_read(self, path: str) -> AskedRead | None:
        return None

    def is_same(self, path: str, other: str) -> bool:
        return path == other


def question(name: str) -> dict[str, Any]:
    diff = {"type": "diff", "path": f"/{name}", "oldText": "old", "newText": "new"}
    options = [{"optionId": "once", "name": "Allow", "kind": "allow_once"}]
    return {"sessionId": "s", "toolCall": {"toolCallId": name, "content": [diff]}, "options": options}


async def test_questions_keep_the_order_in_which_the_agent_asked() -> None:
    files, limits = SlowFiles(), HostLimits()
    turn = PromptTurn("t", UpdateReader(UNKNOWN, limits))
    requests = AgentRequests("Agent", "/", files, limits, lambda _: turn, lambda: True, "s".__eq__)
    asking = [
        asyncio.create_task(requests.answer("session/request_permission", question(name)))
        for name in ("first", "second")
    ]
    asyncio.get_running_loop().call_later(0.05, files.gate.set)
    shown: list[str] = []
    for _ in asking:
        item = await turn.next(30)
        assert isinstance(item, Permission)
        shown.append(item.request.tool_call.tool_call_id)
    turn.answer_all()
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert shown == ["first", "second"]


def permission(*ids: str, session: str = "s") -> dict[str, Any]:
    options = [{"optionId": one, "name": "Allow", "kind": "allow_once"} for one in ids]
    return {"sessionId": session, "toolCall": {"toolCallId": "a"}, "options": options}


@pytest.mark.parametrize(
    ("method", "params", "problem"),
    [
        ("session/request_permission", permission("a", "b", "a"), "two options have the optionId 'a'"),
        ("session/request_permission", permission(), "expected 1 to 20 options, received 0"),
        ("session/request_permission", permission(*map(str, range(21))), "expected 1 to 20 options, received 21"),
        ("session/request_permission", permission("a" * 100_000), "at most 2000 characters, received 100000"),
        ("session/request_permission", permission("a", session="other"), "there is no session 'other'"),
        ("session/request_permission", permission("a", session="o" * 100_000), "there is no session 'ooo"),
        ("fs/read_text_file", {"sessionId": "other", "path": "/second"}, "there is no session 'other'"),
        ("fs/write_text_file", {"sessionId": "other", "path": "/second", "content": ""}, "there is no session 'other'"),
    ],
)
async def test_a_request_that_cannot_be_answered_is_refused_by_name(
    method: str, params: dict[str, Any], problem: str
) -> None:
    turn = PromptTurn("t", UpdateReader(UNKNOWN, HostLimits()))
    requests = AgentRequests("Agent", "/", SlowFiles(), HostLimits(), lambda _: turn, lambda: True, "s".__eq__)
    with pytest.raises(RpcError) as refused:
        await requests.answer(method, params)
    assert refused.value.code == -32602
    assert problem in str(refused.value)
    assert len(str(refused.value)) < 300


def test_long_ids_of_calls_stay_apart_and_short() -> None:
    reader = UpdateReader(UNKNOWN, HostLimits())
    shown: set[str] = set()
    for end in ("a", "b"):
        (event,) = reader.take(ToolCallStarted("c" * 100_000 + end, "Do it", "other", "pending"))
        assert isinstance(event, ToolCallUpdate)
        shown.add(event.tool_call.tool_call_id)
    assert len(shown) == 2
    assert max(map(len, shown)) < 300
