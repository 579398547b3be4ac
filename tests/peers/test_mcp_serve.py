"""``isthmus mcp serve``: the agent as an MCP server, with the official Python client as the judge."""

import asyncio
import json
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import ClientSession

from support.extended import first_of
from support.isthmus_program import ISTHMUS
from support.served_over_mcp import served
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

SCRIPT = """
name: mcp
scenarios:
  - prompt: 'write'
    replies:
      - call: {name: write_file, arguments: {file_path: made.txt, content: "one\\ntwo\\n"}}
      - text: written
  - prompt: 'run'
    replies:
      - call: {name: run_shell_command, arguments: {command: "touch ran.txt"}}
      - text: done
  - prompt: 'hang'
    replies:
      - call: {name: run_shell_command, arguments: {command: "touch began.txt; sleep 600"}}
      - text: done
  - prompt: '.'
    replies:
      - text: hello
"""


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT, "utf-8")
    return f"scripted:{path}"


async def listed(data: Path, workspace: Path) -> list[dict[str, Any]]:
    """Return the stored tasks."""
    process = await asyncio.create_subprocess_exec(
        *ISTHMUS, "tasks", "list", "--json", "--data-dir", str(data), cwd=workspace, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate()
    return json.loads(printed)


async def run_task(session: ClientSession, **arguments: Any) -> tuple[list[str], bool]:
    """Return the texts of the result, and whether it is an error."""
    result = await session.call_tool("run_task", arguments, read_timeout_seconds=60)
    assert isinstance(result, types.CallToolResult)
    return [block.text for block in result.content if isinstance(block, types.TextContent)], bool(result.is_error)


async def test_a_client_that_wants_it_is_told_of_each_call(workspace: Path, script: str) -> None:
    told: list[tuple[float, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with served(workspace, script, "-y") as session:
        await session.call_tool("run_task", {"prompt": "run"}, read_timeout_seconds=60, progress_callback=note)
        assert told == [(1.0, "run_shell_command: touch ran.txt")]
        await session.call_tool("run_task", {"prompt": "run"}, read_timeout_seconds=60)
        assert len(told) == 1


async def test_a_client_lists_the_tool_and_gets_the_answer_of_a_session_that_goes_on(
    workspace: Path, script: str
) -> None:
    async with served(workspace, script) as session:
        tools = {tool.name: set(tool.input_schema["properties"]) for tool in (await session.list_tools()).tools}
        assert tools == {  # none can answer a question
            "run_task": {"prompt", "session_id"},
            "start_task": {"prompt", "session_id"},
            "get_task": {"task_id", "wait_seconds"},
            "cancel_task": {"task_id"},
        }
        texts, is_error = await run_task(session, prompt="hi")
        assert (texts[0], is_error) == ("hello", False)
        session_id = texts[-1].removeprefix("Session: ")
        again, _ = await run_task(session, prompt="hi again", session_id=session_id)
        assert again == ["hello", f"Session: {session_id}"]
        for wrong in ({}, {"prompt": " "}, {"prompt": "x", "session_id": 3}, {"prompt": "x", "session_id": "none"}):
            assert (await run_task(session, **wrong))[1]


async def test_questions_go_to_the_clients_user_with_all_that_would_happen(workspace: Path, script: str) -> None:
    shown: list[types.ElicitRequestParams] = []

    def accept(params: types.ElicitRequestParams) -> types.ElicitResult:
        shown.append(params)
        assert isinstance(params, types.ElicitRequestFormParams)
        names = params.requested_schema["properties"]["answer"]["enum"]
        return types.ElicitResult(action="accept", content={"answer": names[0]})

    async with served(workspace, script, asked=accept) as session:
        assert (await run_task(session, prompt="write"))[0][0] == "written"
        assert (await run_task(session, prompt="run"))[0][0] == "done"
    assert (workspace / "made.txt").read_text() == "one\ntwo\n"
    assert (workspace / "ran.txt").exists()
    assert "+one\n+two" in shown[0].message
    assert "Command: touch ran.txt" in shown[1].message


@pytest.mark.parametrize(
    "answer",
    first_of(
        [
            types.ElicitResult(action="accept", content={"answer": "something else"}),
            types.ElicitResult(action="decline"),
            types.ElicitResult(action="cancel"),
        ]
    ),
)
async def test_any_answer_but_an_offered_one_refuses(workspace: Path, script: str, answer: types.ElicitResult) -> None:
    async with served(workspace, script, asked=lambda _params: answer) as session:
        await run_task(session, prompt="write")
    assert not (workspace / "made.txt").exists()


async def test_without_a_user_to_ask_only_what_is_allowed_happens(workspace: Path, script: str) -> None:
    async with served(workspace, script) as session:
        texts, _ = await run_task(session, prompt="write")
        assert "Refused, because no user could be asked: " in texts[1]
    assert not (workspace / "made.txt").exists()
    async with served(workspace, script, "--approval-mode", "auto_edit") as session:
        assert (await run_task(session, prompt="write"))[0][0] == "written"
    assert (workspace / "made.txt").exists()


async def test_the_work_ends_with_its_client(workspace: Path, script: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with served(workspace, script, "--yolo", "--data-dir", str(data)) as session:
        call = asyncio.create_task(run_task(session, prompt="hang"))

        async def began() -> bool:
            return (workspace / "began.txt").exists()

        await eventually_async(began, 60)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
    (task,) = await listed(data, workspace)
    assert task["state"] == "canceled"


async def called(session: ClientSession, name: str, **arguments: Any) -> tuple[list[str], bool]:
    """Return the texts of the result of a tool, and whether it is an error."""
    result = await session.call_tool(name, arguments, read_timeout_seconds=60)
    assert isinstance(result, types.CallToolResult)
    return [block.text for block in result.content if isinstance(block, types.TextContent)], bool(result.is_error)


def task_of(texts: list[str]) -> str:
    return next(text.removeprefix("Task: ") for text in texts if text.startswith("Task: "))


def accept(params: types.ElicitRequestParams) -> types.ElicitResult:
    """Answer with the first of the offered answers."""
    assert isinstance(params, types.ElicitRequestFormParams)
    return types.ElicitResult(
        action="accept", content={"answer": params.requested_schema["properties"]["answer"]["enum"][0]}
    )


async def test_a_started_task_waits_for_its_user_wherever_they_are(workspace: Path, script: str) -> None:
    async with served(workspace, script) as session:  # it cannot ask
        task_id = task_of((await called(session, "start_task", prompt="write"))[0])
        texts, is_error = await called(session, "get_task", task_id=task_id)
        assert not is_error
        assert texts[0] == "State: input-required (waits for the user's answer)"
        assert "no tool answers" in texts[1]
        assert "+one\n+two" in texts[1]
        again, _ = await called(session, "get_task", task_id=task_id, wait_seconds=1)
        assert again == texts
    for dismissed in (types.ElicitResult(action="cancel"), types.ElicitResult(action="decline")):
        async with served(workspace, script, asked=lambda _, result=dismissed: result) as session:
            assert (await called(session, "get_task", task_id=task_id))[0] == texts
    assert not (workspace / "made.txt").exists()
    async with served(workspace, script, asked=accept) as session:
        assert (await called(session, "get_task", task_id=task_id))[0][:2] == ["written", "State: completed"]
    assert (workspace / "made.txt").exists()


async def test_a_question_that_is_answered_elsewhere_is_closed(workspace: Path, script: str, tmp_path: Path) -> None:
    is_asked, is_closed = asyncio.Event(), asyncio.Event()
    told: list[str | None] = []

    async def wait(params: types.ElicitRequestParams) -> types.ElicitResult:
        is_asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            is_closed.set()
        raise AssertionError

    async def note(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    data = ("--data-dir", str(tmp_path / "data"))
    async with (
        served(workspace, script, *data, "--beat-seconds", "0.05", asked=wait) as first,
        served(workspace, script, *data, asked=accept) as second,
    ):
        running = asyncio.create_task(first.call_tool("run_task", {"prompt": "write"}, progress_callback=note))
        await is_asked.wait()
        await eventually_async(lambda: "waits for the user's answer" in told)
        (task,) = await listed(tmp_path / "data", workspace)
        assert (await called(second, "get_task", task_id=task["id"]))[0][0] == "written"
        result = await asyncio.wait_for(running, 60)
        assert isinstance(result, types.CallToolResult)
        assert isinstance(result.content[0], types.TextContent)
        assert result.content[0].text == "written"
        await asyncio.wait_for(is_closed.wait(), 60)


async def test_a_task_is_stopped_by_its_id(workspace: Path, script: str) -> None:
    async with served(workspace, script, "--yolo") as session:
        task_id = task_of((await called(session, "start_task", prompt="hang"))[0])
        await eventually_async(lambda: (workspace / "began.txt").exists(), 60)
        assert (await called(session, "cancel_task", task_id=task_id))[0][0] == "The task is canceled."
        texts, is_error = await called(session, "get_task", task_id=task_id)
        assert is_error
        assert "State: canceled" in texts
        for name in ("cancel_task", "get_task"):
            assert (await called(session, name, task_id="none"))[1]
        assert (await called(session, "cancel_task", task_id=task_id))[1]
        assert (await called(session, "get_task", task_id=task_id, wait_seconds=51))[1]
