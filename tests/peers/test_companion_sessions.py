"""Sessions and streams of the companion over a real socket: their begin, end, loss and return."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.ide.options import GeminiServerLimits
from isthmus.ide.reviews.review import DiffReview
from isthmus.ide.running import restart_state
from support.companion import BareAgent, bare_agent, running_companion
from support.editor_deadlines import PATIENT_LIMITS
from support.event_streams import strictly_parsed
from support.isthmus_program import user
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("GEM-002")
async def test_sessions_begin_with_initialize_and_end_with_delete(workspace: Path) -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        assert (await agent.post(ping)).status_code == 400
        assert (await agent.http.get("/mcp")).status_code == 400
        assert (await agent.post(ping, mcp_session_id="unknown")).status_code == 404
        no_version = await agent.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
        assert no_version.json()["error"]["code"] == -32602
        assert "mcp-session-id" not in no_version.headers
        await agent.initialize()
        assert (await agent.post(ping)).status_code == 200
        assert (await agent.http.delete("/mcp", headers=agent.session)).status_code == 200
        assert (await agent.post(ping)).status_code == 404
        assert (await agent.http.delete("/mcp", headers=agent.session)).status_code == 404


async def test_a_client_that_begins_again_and_again_is_always_let_in(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        for _ in range(70):
            agent.session = {}
            await agent.initialize()
        assert (await agent.request("ping"))["result"] == {}


async def test_delete_ends_the_stream_and_closes_the_views_of_the_session(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as stream:
            await stream.next()
            arguments = {"filePath": str(workspace / "a"), "newContent": "new\n"}
            await agent.request("tools/call", {"name": "openDiff", "arguments": arguments})
            assert len(companion.editor.open_reviews) == 1
            await agent.http.delete("/mcp", headers=agent.session)
            await stream.ended()
        assert companion.editor.open_reviews == ()


async def test_a_new_stream_takes_the_place_of_the_old_one(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as old:
            await old.next()
            async with agent.stream() as new:
                assert (await new.next())[1]["method"] == "ide/contextUpdate"
                await old.ended()
                file = workspace / "a.py"
                file.touch()
                await companion.editor.open_file(str(file))
                _, message = await new.next()
                assert message["params"]["workspaceState"]["openFiles"][0]["path"] == str(file)


async def test_a_quiet_stream_is_kept_alive_by_comments_that_no_parser_takes_for_events(workspace: Path) -> None:
    limits = replace(PATIENT_LIMITS, gemini=GeminiServerLimits(keep_alive_seconds=0.05))
    async with running_companion(workspace, limits=limits) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        headers = {"accept": "text/event-stream", **agent.session}
        text = ""
        async with asyncio.timeout(60), agent.http.stream("GET", "/mcp", headers=headers) as response:
            async for chunk in response.aiter_text():
                text += chunk
                if ": keep-alive\n" in text:
                    break
    assert text.startswith("retry: 5000\nid: ")
    assert text.endswith("\n\n: keep-alive\n")
    (event,) = strictly_parsed(text.encode())
    assert (event.retry, json.loads(event.data)["method"]) == (5000, "ide/contextUpdate")


async def test_a_call_that_the_client_cancels_is_stopped_and_not_answered(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        entered = asyncio.Event()

        async def hang(review: DiffReview) -> None:
            entered.set()
            await asyncio.Event().wait()

        monkeypatch.setattr(companion.editor, "open_diff", hang)
        await agent.initialize()
        arguments = {"filePath": str(workspace / "a"), "newContent": "new\n"}
        call = {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "openDiff", "arguments": arguments},
        }
        waiting = asyncio.create_task(agent.post(call))
        async with asyncio.timeout(60):
            await entered.wait()
            cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
            assert (await agent.post(cancelled)).status_code == 202
            answer = await waiting
        assert (answer.status_code, answer.content) == (202, b"")
        assert (await agent.request("ping"))["result"] == {}


@pytest.mark.requirement("GEM-086")
async def test_streams_end_properly_when_the_companion_stops(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as stream:
            await stream.next()
            companion.host.stop()
            await stream.ended()


async def test_clients_are_told_from_the_start_to_give_a_restart_its_time(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        headers = {"accept": "text/event-stream", **agent.session}
        async with agent.http.stream("GET", "/mcp", headers=headers) as response:
            lines = response.aiter_lines()
            assert await anext(lines) == "retry: 5000"  # a killed one cannot send it at its end


async def test_a_decision_right_before_the_editor_quits_is_still_delivered(workspace: Path) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as stream:
            await stream.next()
            arguments = {"filePath": str(workspace / "a"), "newContent": "new\n"}
            await agent.request("tools/call", {"name": "openDiff", "arguments": arguments})
            companion.editor.accept_diff(companion.editor.open_reviews[0].id)
            companion.editor.quit()
            _, message = await stream.until("ide/diffAccepted")
            assert message["params"]["content"] == "new\n"
            await stream.ended()
        await asyncio.wait_for(companion.task, 30)
        assert not Path(companion.ready.discovery_file).exists()


def _look_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the former companion look dead: both companions of a test are in this process."""

    def nobody_is_alive(pid: int) -> bool:
        return False

    monkeypatch.setattr(restart_state, "process_is_alive", nobody_is_alive)


async def test_a_restart_takes_over_port_token_and_sessions(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        async with agent.stream() as stream:
            last, _ = await stream.next()
        token, port = companion.token, companion.ready.port
    _look_dead(monkeypatch)
    async with running_companion(workspace) as again, bare_agent(again) as healed:
        assert (again.ready.port, again.token, again.ready.taken_over) == (port, token, True)
        healed.session = agent.session
        async with healed.stream(last) as stream:
            assert (await stream.next())[1]["method"] == "ide/contextUpdate"
            arguments = {"filePath": str(workspace / "a"), "newContent": "new\n"}
            answer = await healed.request("tools/call", {"name": "openDiff", "arguments": arguments})
            assert answer["result"] == {"content": []}
            again.editor.reject_diff(again.editor.open_reviews[0].id)
            await stream.until("ide/diffRejected")


async def test_a_fresh_start_takes_nothing_over(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_companion(workspace) as companion, bare_agent(companion) as agent:
        await agent.initialize()
        token = companion.token
    _look_dead(monkeypatch)
    async with running_companion(workspace, fresh=True) as again, bare_agent(again) as stranger:
        assert again.token != token
        assert not again.ready.taken_over
        stranger.session = agent.session
        assert (await stranger.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status_code == 404


async def test_another_workspace_takes_nothing_over(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running_companion(workspace) as companion:
        token = companion.token
    _look_dead(monkeypatch)
    async with running_companion(tmp_path) as again:
        assert again.token != token


async def test_the_discovery_file_comes_back_when_somebody_removes_it(workspace: Path) -> None:
    async with running_companion(workspace, limits=replace(PATIENT_LIMITS, housekeeping_seconds=0.05)) as companion:
        path = Path(companion.ready.discovery_file)
        path.unlink()
        await eventually_async(path.exists, what="the file is back")


async def test_views_of_an_agent_that_went_away_are_closed_and_those_of_others_stay(workspace: Path) -> None:
    limits = replace(PATIENT_LIMITS, housekeeping_seconds=0.05, gemini=GeminiServerLimits(lost_stream_seconds=0.2))

    async def propose(agent: BareAgent, name: str) -> None:
        arguments = {"filePath": str(workspace / name), "newContent": "new\n"}
        await agent.request("tools/call", {"name": "openDiff", "arguments": arguments})

    async with (
        running_companion(workspace, limits=limits) as companion,
        bare_agent(companion) as stays,
        bare_agent(companion) as leaves,
    ):
        await stays.initialize()
        await leaves.initialize()
        async with stays.stream() as stream:
            await stream.next()
            await propose(stays, "stays")
            async with leaves.stream() as other:
                await other.next()
                await propose(leaves, "leaves")
            await eventually_async(lambda: len(companion.editor.open_reviews) == 1, what="one view is closed")
            assert companion.editor.open_reviews[0].file_path == str(workspace / "stays")
            status = await user("status", folder=workspace)
            assert [agent["connected"] for agent in status["agents"]] == [True]  # a disconnected agent is not listed
            async with leaves.stream() as other:
                await other.next()
                assert len((await user("status", folder=workspace))["agents"]) == 2  # a reconnected one is
