"""The tokens, the context and the cost that a hosted ACP agent states: kept with the conversation, and shown."""

from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.acp.front.session_options import SessionOptions
from isthmus.client import CommandScope
from isthmus.events import TaskState
from isthmus.session_status import Cost, SessionStatus
from isthmus.task_view import ModelUsage
from support.acp_front import OPTIONS, front
from support.acp_hosting import AcpHosting, acp_hosting
from support.memory_agent import MemoryAgent

pytestmark = pytest.mark.anyio

ALL = SessionStatus(None, 53_000, 200_000, cost=Cost(0.42, "USD"))


async def status(hosting: AcpHosting, context_id: str) -> SessionStatus:
    """Return the state of a conversation as a client of the server reads it."""
    return await hosting.agent.session_status(CommandScope(context_id=context_id))


async def models(hosting: AcpHosting, text: str, context_id: str | None = None) -> tuple[str, dict[str, ModelUsage]]:
    """Send a prompt, and return its conversation and the tokens of its turn by model."""
    seen = await hosting.prompt(text, context_id)
    assert seen.state is TaskState.COMPLETED, seen.view
    return seen.context_id, (await hosting.whole(seen.task_id)).view.models


async def test_tokens_context_and_cost_are_kept_and_shown_also_after_a_restart(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path) as hosting:
        context_id, used = await models(hosting, "usage")
        expected = ModelUsage(1, 0, 0.0, 135, 17, 100, 5, unpriced=1)
        assert used == {"Agent": expected}
        assert await status(hosting, context_id) == ALL
    async with acp_hosting(tmp_path) as hosting:
        assert await status(hosting, context_id) == ALL
        await hosting.prompt("hello", context_id)
        assert await status(hosting, context_id) == ALL


@pytest.mark.parametrize(
    ("text", "used", "expected"),
    [
        (
            "usage-within",
            {"Agent": ModelUsage(1, 0, 0.0, 135, 17, 100, 5, unpriced=1)},
            SessionStatus(None, 1000, 200_000),
        ),
        ("usage-of-requests", {"Agent": ModelUsage(2, 0, 0.0, 300, 30, 100, 10, unpriced=2)}, SessionStatus()),
        ("quota", {"gemini-x": ModelUsage(1, 0, 0.0, 30, 4, unpriced=1)}, SessionStatus()),
        ("usage-wrong", {}, SessionStatus(None, 7, 100)),
        ("hello", {}, SessionStatus()),
    ],
)
async def test_what_is_not_stated_is_not_known_and_a_cost_is_never_made_up(
    text: str, used: dict[str, ModelUsage], expected: SessionStatus, tmp_path: Path
) -> None:
    async with acp_hosting(tmp_path) as hosting:
        context_id, found = await models(hosting, text)
        assert found == used
        assert await status(hosting, context_id) == expected


async def test_an_acp_client_of_a_hosted_agent_is_told_all_of_it(tmp_path: Path) -> None:
    options = replace(OPTIONS, options=SessionOptions(has_modes=False))
    async with acp_hosting(tmp_path) as hosting, front(hosting.engine, options=options) as client:
        session = await client.new(hosting.workspace)
        answer = await client.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "usage"}])
        counts = {"inputTokens": 35, "outputTokens": 12, "thoughtTokens": 5, "cachedReadTokens": 100}
        assert answer == {"stopReason": "end_turn", "usage": {"totalTokens": 152, **counts}}
        cost = {"amount": 0.42, "currency": "USD"}
        update = {"sessionUpdate": "usage_update", "used": 53_000, "size": 200_000, "cost": cost}
        assert client.of_kind("usage_update") == [update]
        answer = await client.call("session/prompt", sessionId=session, prompt=[{"type": "text", "text": "hello"}])
        assert answer == {"stopReason": "end_turn"}


async def test_an_agent_that_counts_nothing_has_no_usage(workspace: Path) -> None:
    agent = MemoryAgent()
    async with front(agent) as client:
        answer = await client.call(
            "session/prompt", sessionId=await client.new(workspace), prompt=[{"type": "text", "text": "hello"}]
        )
        assert answer == {"stopReason": "end_turn"}
    await agent.aclose()
