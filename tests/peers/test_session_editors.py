"""The editors of sessions, over a real companion: their owners, and the addresses that the agent connects to."""

import os
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.agent.part import PartTurn
from isthmus.development_tool import AgentSettings, McpServerSettings, ToolCall, ToolCallStatus
from isthmus.engine.followers.open_questions import QuestionOpened
from isthmus.parts.editor.directory import EditorDirectory
from isthmus.parts.editor.session_editors import SessionEditors
from isthmus.tools.port.tool_set import ToolScope
from support.companion import RunningCompanion, running_companion
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

CALL = ToolCall("call", ToolCallStatus.PENDING, "replace", {})


@asynccontextmanager
async def editors_of(
    user: str = "", *, local: bool = False, address_policy: Callable[[str, str], str | None] | None = None
) -> AsyncGenerator[SessionEditors]:
    async def settings_of(_: str) -> AgentSettings | None:
        return None

    async def user_of(_: str) -> str:
        return user

    directory = EditorDirectory(os.environ) if local else None
    editors = SessionEditors(directory, address_policy, settings_of, user_of)
    yield editors
    await editors.aclose()
    if directory is not None:
        await directory.aclose()


def named(companion: RunningCompanion, url: str | None = None) -> tuple[McpServerSettings, ...]:
    headers = {"Authorization": f"Bearer {companion.token}"}
    return (McpServerSettings("docs"), McpServerSettings("mine", url or companion.url, headers))


async def open_file(companion: RunningCompanion, workspace: Path) -> None:
    (workspace / "a.py").write_text("one\n", encoding="utf-8")
    await companion.editor.open_file(str(workspace / "a.py"))


async def test_an_endpoint_of_the_settings_is_the_tasks_editor_until_it_ends(workspace: Path) -> None:
    async with running_companion(workspace) as companion, editors_of() as editors:
        await open_file(companion, workspace)
        shown = await editors.at_prompt(PartTurn(ToolScope(workspace, "c", "t", named(companion)), "c"))
        assert str(workspace / "a.py") in (shown or "")
        settings = AgentSettings(str(workspace), named(companion))
        editor = await editors.find(QuestionOpened("t", "c", str(workspace), CALL, "alice", settings))
        assert editor is not None
        assert editor.name == "mine"
        editors.task_ended("t")
        await eventually_async(lambda: not editor.peer.connected)


async def test_an_address_that_the_rule_refuses_is_not_connected_to(workspace: Path) -> None:
    asked: list[tuple[str, str]] = []

    def address_policy(host: str, address: str) -> str | None:
        asked.append((host, address))
        return "a loopback address"

    async with running_companion(workspace) as companion, editors_of(address_policy=address_policy) as editors:
        await open_file(companion, workspace)
        url = companion.url.replace("127.0.0.1", "localhost")
        assert await editors.at_prompt(PartTurn(ToolScope(workspace, "c", "t", named(companion, url)), "c")) is None
        assert asked
        assert asked[0][0] == "localhost"


async def test_the_editor_of_this_machine_is_for_the_local_users_tasks_alone(workspace: Path) -> None:
    async with running_companion(workspace) as companion:
        await open_file(companion, workspace)
        async with editors_of(local=True) as editors:
            assert await editors.at_prompt(PartTurn(ToolScope(workspace, "c", "t"), "c")) is not None
            assert await editors.find(QuestionOpened("t", "c", str(workspace), CALL)) is not None
            assert await editors.find(QuestionOpened("t", "c", str(workspace), CALL, "alice")) is None
        async with editors_of("alice", local=True) as editors:
            assert await editors.at_prompt(PartTurn(ToolScope(workspace, "c", "t"), "c")) is None


async def test_an_endpoint_that_nobody_listens_at_is_no_editor(workspace: Path) -> None:
    async with running_companion(workspace) as companion:
        servers = named(companion)
    async with editors_of() as editors:
        assert await editors.at_prompt(PartTurn(ToolScope(workspace, "c", "t", servers), "c")) is None


async def test_a_session_that_names_an_editor_sees_to_it_and_no_other_session_is_touched(workspace: Path) -> None:
    async with running_companion(workspace) as companion, editors_of("alice") as editors:
        await open_file(companion, workspace)
        scope = ToolScope(workspace, "c", "t", named(companion))
        assert "Connected to mine (Gemini CLI companion protocol" in await editors.status(scope)
        await editors.disable(scope)
        assert "switched it off" in await editors.status(scope)
        assert await editors.at_prompt(PartTurn(scope, "c")) is None
        settings = AgentSettings(str(workspace), named(companion))
        assert await editors.find(QuestionOpened("t", "c", str(workspace), CALL, "alice", settings)) is None
        assert await editors.at_prompt(PartTurn(ToolScope(workspace, "other", "o", named(companion)), "c")) is not None
        assert "Connected to mine" in await editors.enable(scope)
        assert await editors.at_prompt(PartTurn(scope, "c")) is not None


async def test_another_users_session_has_no_editor_of_this_machine(workspace: Path) -> None:
    async with running_companion(workspace), editors_of("alice", local=True) as editors:
        scope = ToolScope(workspace, "c", "t")
        assert "This session has no editor" in await editors.status(scope)
        assert await editors.client(scope) is None
        await editors.disable(scope)
        assert "switched it off" in await editors.status(scope)
