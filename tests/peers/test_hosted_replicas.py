"""Hosted agents in several processes that keep their tasks in one PostgreSQL, and what operators see of them."""

import asyncio
import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from isthmus.client import PromptMessage, TaskSnapshot
from isthmus.development_tool import ToolCallConfirmation, ToolCallStatus
from isthmus.events import StateChange, TaskState, TextContent, ToolCallUpdate
from support.example_program import ExampleProgram
from support.hosted_program import TOKEN, hosted_program
from support.metrics_page import reader_of
from support.oidc_issuer import AUDIENCE, oidc_issuer
from support.otlp_collector import otlp_collector
from support.plain_http import plain_client
from support.postgres import Postgres, postgres
from support.remote_agents import remote_agent
from support.turns import all_of

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


async def asked(program: ExampleProgram, workspace: Path, token: str = TOKEN) -> TaskSnapshot:
    """Begin a task and read it up to its question."""
    async with remote_agent(program.url, token) as agent:
        turn = await agent.prompt(PromptMessage("the button", settings={"workspace_path": str(workspace)}))
        assert (await all_of(turn))[-1].event == StateChange(TaskState.INPUT_REQUIRED)
        return await agent.get(turn.task_id)


async def allowed(program: ExampleProgram, task: TaskSnapshot, token: str = TOKEN) -> str:
    """Allow the call of a task; return the answer."""
    confirmation = ToolCallConfirmation("press", "proceed_once")
    async with remote_agent(program.url, token) as agent:
        seen = await all_of(await agent.answer(task.task_id, [confirmation], answered_by="test"))
        assert seen[-1].event == StateChange(TaskState.COMPLETED)
        calls = [item.event.tool_call.status for item in seen if isinstance(item.event, ToolCallUpdate)]
        assert calls == [ToolCallStatus.EXECUTING, ToolCallStatus.SUCCEEDED]
    return "".join(item.event.text for item in seen if isinstance(item.event, TextContent))


async def test_the_question_of_a_killed_process_is_answered_at_the_other(
    tmp_path: Path, workspace: Path, server: Postgres
) -> None:
    journal = server.database()
    async with (
        hosted_program(tmp_path / "a", workspace, journal=journal) as first,
        hosted_program(tmp_path / "b", workspace, journal=journal) as second,
    ):
        task = await asked(first, workspace)
        await first.kill()
        assert await allowed(second, task) == "pressed at b"
        async with second.client() as agent:
            assert [each.task_id for each in await agent.tasks()] == [task.task_id]
    assert not (tmp_path / "b" / "journal.sqlite").exists()


async def test_another_agent_is_refused_the_database_of_this_one(
    tmp_path: Path, workspace: Path, server: Postgres
) -> None:
    journal = server.database()
    async with hosted_program(tmp_path / "a", workspace, journal=journal):
        pass
    with pytest.raises(AssertionError, match="journal of the agent 'Asking', and this one is 'Other'"):
        async with hosted_program(tmp_path / "b", workspace, journal=journal, name="Other"):
            pass


async def test_users_of_an_issuer_are_let_in_counted_and_audited_at_each_process(
    tmp_path: Path, workspace: Path, server: Postgres
) -> None:
    issuer = oidc_issuer()
    with issuer.server:
        options: dict[str, Any] = {
            "journal": server.database(),
            "slots": 3,
            "sign_in": {"issuer": issuer.url, "audience": AUDIENCE, "user_claim": "preferred_username"},
            "telemetry": {"metrics_users": 3},
        }
        files = {name: tmp_path / f"{name}.jsonl" for name in ("a", "b")}
        async with (
            hosted_program(tmp_path / "a", workspace, audit_log=str(files["a"]), **options) as first,
            hosted_program(tmp_path / "b", workspace, audit_log=str(files["b"]), **options) as second,
        ):
            alice, bob = (issuer.token(preferred_username=name) for name in ("alice", "bob"))
            task = await asked(first, workspace, alice)
            async with remote_agent(second.url, bob) as agent:
                assert await agent.tasks() == []
            assert await allowed(second, task, alice) == "pressed at b"
            async with plain_client(headers={"Authorization": f"Bearer {TOKEN}"}) as http:
                page = (await http.get(second.url + "metrics")).text
                refused = await http.get(second.url + "metrics", headers={"Authorization": f"Bearer {alice}"})
        user = f"{issuer.url}#preferred_username=alice"
    value = reader_of(page)
    assert value("tasks", state="completed", user=user) == 1
    assert value("slots") == 3
    assert value("replicas") == 2
    assert value("segment_seconds_count", state="completed") == 1
    assert refused.status_code == 403
    lines = [json.loads(line) for name in ("a", "b") for line in files[name].read_text("ascii").splitlines()]
    found = [(line["user"], line["auth"], line["task"]) for line in lines if line["method"] == "message/stream"]
    assert found == [(user, "jwt", task.task_id)] * 2


async def test_tasks_of_a_labelled_folder_run_in_the_process_with_the_label(
    tmp_path: Path, workspace: Path, server: Postgres
) -> None:
    vision = tmp_path / "vision"
    vision.mkdir()
    options: dict[str, Any] = {"journal": server.database(), "workspace_labels": {str(vision): "gpu"}}
    async with (
        hosted_program(tmp_path / "a", workspace, **options) as first,
        hosted_program(tmp_path / "b", workspace, labels=["gpu"], **options) as second,
    ):
        task = await asked(first, vision)
        assert await allowed(first, task) == "pressed at b"
        assert second.process.returncode is None


async def test_traces_of_a_hosted_agent_have_its_name(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with otlp_collector() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        async with hosted_program(tmp_path / "a", workspace) as program:
            task = await asked(program, workspace)
            program.process.terminate()
            assert await asyncio.wait_for(program.process.wait(), 60) == 0
    [worked] = collector.named("invoke_agent Asking")
    assert worked.attributes["isthmus.task.id"] == task.task_id
    assert worked.attributes["isthmus.task.state"] == "input-required"
    assert "isthmus_segment_seconds" in collector.metrics


async def test_at_sigterm_a_process_lets_its_work_end_and_begins_no_more(
    tmp_path: Path, workspace: Path, server: Postgres
) -> None:
    options: dict[str, Any] = {"journal": server.database(), "drain_seconds": 60}
    async with hosted_program(tmp_path / "a", workspace, **options) as first:
        task = await asked(first, workspace)
        first.process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(first.process.wait(), 60) == 0
    async with hosted_program(tmp_path / "b", workspace, **options) as second:
        assert await allowed(second, task) == "pressed at b"
