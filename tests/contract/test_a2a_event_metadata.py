"""Metadata of events besides their kind, and answers that do not fit their question, in both versions."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.extension import URI
from isthmus.agent.session.turn import AgentTurn
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import StateChange, TaskState, TextContent
from isthmus.models.port.base import Text
from support.a2a_serving import EXTENSION, TOKEN, RawClient, allow, answer, prompt, serving
from support.a2a_v1 import chosen, said
from support.agents import reply
from support.journals import journal_at
from support.script_agent import serve_with
from support.wire_scenes import SCENES

pytestmark = pytest.mark.anyio


class TwoModels:
    """An agent that replies with one model, continues with another, and then fails."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        """Run one turn."""
        await turn.emit(StateChange(TaskState.WORKING))
        for name in ("large", "small"):
            await turn.emit(TextContent(f"before-{name}", "x"))
            await turn.emit(replace(reply(f"before-{name}", Text("x")), model=name))
            await turn.emit(TextContent(f"after-{name}", "x"))
        return StateChange(TaskState.FAILED, "the provider is gone", "provider")


@asynccontextmanager
async def two_models(folder: Path) -> AsyncGenerator[RawClient]:
    """Serve that agent, for a user with the tier ``gold``; the model of a new task is ``first``."""
    journal = await journal_at(folder / "journal.sqlite")
    engine = Engine(TwoModels(), journal, EngineOptions(WorkspaceRule(folder), lambda: "first"))
    await engine.start()
    async with serving(engine, ServerOptions(TOKEN, user_tier="gold")) as client:
        yield client


def metadata_of(result: dict[str, Any]) -> dict[str, Any]:
    """Return the extension's object in an event of either version."""
    return result.get("statusUpdate", result)["metadata"][URI]


@pytest.mark.requirement("A2A-093", "A2A-094", "A2A-095")
@pytest.mark.parametrize("method", ["message/stream", "SendStreamingMessage"])
async def test_events_tell_the_model_that_was_used_the_tier_and_the_error(
    method: str, tmp_path: Path, workspace: Path
) -> None:
    async with two_models(tmp_path) as server:
        params = prompt("go", workspace) if method == "message/stream" else said("go", workspace)
        first, *items = await server.stream(method, params)
        found = [metadata_of(item.result) for item in items]
        assert [item["model"] for item in found] == ["first", "first", "large", "large", "small", "small"]
        assert {item["user_tier"] for item in found} == {"gold"}
        assert found[-1] == {
            "kind": "STATE_CHANGE",
            "model": "small",
            "user_tier": "gold",
            "error": "the provider is gone",
            "reason": "provider",
        }
        task = first.result.get("task", first.result)
        follow = "tasks/resubscribe" if method == "message/stream" else "SubscribeToTask"
        for index in range(len(items) - 1):
            headers = {**EXTENSION, "Last-Event-ID": items[index].id or ""}
            rest = await server.stream(follow, {"id": task["id"]}, headers)
            assert [metadata_of(item.result) for item in rest] == found[index + 1 :]


@pytest.mark.requirement("A2A-104")
@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_details_that_do_not_belong_to_the_question_are_refused_and_it_stays_open(
    version: str, tmp_path: Path, workspace: Path
) -> None:
    steps = SCENES["confirm_execute"].steps(str(workspace))
    async with serve_with("engine", tmp_path)(lambda _: steps) as server:
        task = await server.result("message/send", prompt("run", workspace))
        modified = allow(file_details={"new_content": "x"})
        method, params = "message/stream", answer(task["id"], modified)
        if version == "1.0":
            method, params = "SendStreamingMessage", chosen(task["id"], modified)
        error = await server.error(method, params)
        assert error["code"] == -32602
        assert "file_details" in error["message"]
        assert (await server.result("tasks/get", {"id": task["id"]}))["status"]["state"] == "input-required"
