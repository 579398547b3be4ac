"""Questions of a hosted ACP agent are shown in its order, also if the file of the first one is read slowly."""

import asyncio
from typing import Any

import pytest

from isthmus.acp.host.agent_requests import AgentRequests
from isthmus.acp.host.files import AskedRead, Expected
from isthmus.acp.host.known_agent import UNKNOWN
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.host.prompt_turn import Permission, PromptTurn
from isthmus.acp.host.update_reader import UpdateReader

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
    requests = AgentRequests("Agent", "/", files, limits, lambda _: turn, lambda: True)
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
