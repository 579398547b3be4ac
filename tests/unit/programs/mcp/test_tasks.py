"""The tools for tasks of an MCP server: what they refuse."""

from typing import Any, cast

import pytest

from isthmus.client import InvalidRequest
from isthmus.engine import Engine
from isthmus.programs.mcp.progress import ClientProgress
from isthmus.programs.mcp.questions import ClientQuestions
from isthmus.programs.mcp.tasks import MAXIMUM_RUNNING, ClientCall, TaskTools

pytestmark = pytest.mark.anyio


class BusyEngine:
    """An engine that has as many tasks at work as may be started."""

    running = MAXIMUM_RUNNING


async def nowhere(message: Any) -> None: ...


async def test_no_more_tasks_are_started_than_may_be_at_work() -> None:
    tools = TaskTools(cast(Engine, BusyEngine()), {"workspace_path": "/"}, ClientQuestions(nowhere))
    with pytest.raises(InvalidRequest, match="20 tasks are at work; wait for one of them with get_task"):
        await tools.call("start_task", {"prompt": "work"}, ClientCall(ClientProgress(nowhere, None)))
