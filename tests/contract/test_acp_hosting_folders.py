"""Further folders of a session with a hosted ACP agent: passed on to one that takes them, refused by another."""

from pathlib import Path
from typing import Any

import pytest

from isthmus.client import PromptMessage
from isthmus.events import TaskState
from support.acp_hosting import AcpHosting, Seen, acp_hosting, received, seen_of

pytestmark = pytest.mark.anyio


async def prompt(hosting: AcpHosting, text: str, context_id: str | None, *folders: Path) -> Seen:
    """Send a message that states the further folders of its session."""
    settings: dict[str, Any] = {"workspace_path": str(made(hosting, "work"))}
    settings["additional_directories"] = list(map(str, folders))
    message = PromptMessage(text, context_id=context_id, settings=settings)
    return await seen_of(hosting.agent, await hosting.agent.prompt(message))


def made(hosting: AcpHosting, name: str) -> Path:
    """Return a folder of the server."""
    folder = hosting.workspace / name
    folder.mkdir(exist_ok=True)
    return folder


def told(method: str) -> list[Any]:
    """Return the further folders that the agents were told by a method."""
    return [item["params"].get("additionalDirectories") for item in received() if item.get("method") == method]


async def test_an_agent_that_takes_further_folders_writes_there(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path, "many-folders") as hosting:
        beside = made(hosting, "beside")
        seen = await prompt(hosting, "beside", None, beside)
        assert (seen.state, seen.text) == (TaskState.COMPLETED, "Written.")
        assert (beside / "beside.txt").read_text() == "here\n"
        assert told("session/new") == [[str(beside)]]
        more = made(hosting, "more")
        again = await prompt(hosting, "beside", seen.context_id, more)
        assert (again.state, told("session/load")) == (TaskState.COMPLETED, [[str(more)]])
        none = await prompt(hosting, "hello", seen.context_id)
        assert (none.state, told("session/load")) == (TaskState.COMPLETED, [[str(more)], None])


async def test_an_agent_that_takes_none_is_not_told_and_the_task_fails_with_the_reason(tmp_path: Path) -> None:
    async with acp_hosting(tmp_path) as hosting:
        beside = made(hosting, "beside")
        seen = await prompt(hosting, "beside", None, beside)
        assert (seen.state, seen.view.reason) == (TaskState.FAILED, "agent_error")
        assert seen.view.error is not None
        assert "works in one folder, and takes no further ones" in seen.view.error
        assert str(beside) in seen.view.error
        assert told("session/new") == []
        assert (await prompt(hosting, "hello", seen.context_id)).text == "You said: hello"
