"""Properties that the turn loop needs from every tool. A new tool needs one line in CALLS: a call that succeeds."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from isthmus.development_tool import ConfirmationRequest, ExecuteDetails, FileDiff, ToolOutput
from isthmus.encoding.codec import from_json, to_json
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.base import Approved, Tool, ToolFailed, ToolKind, ToolSucceeded, is_search_tool
from isthmus.tools.port.failure import ToolFailure
from support.tool_calls import result_of, running, tool_context

pytestmark = pytest.mark.anyio

CALLS: dict[str, dict[str, Any]] = {
    "list_directory": {"dir_path": "."},
    "read_file": {"file_path": "a.txt"},
    "grep_search": {"pattern": "two"},
    "glob": {"pattern": "**/*"},
    "replace": {"file_path": "a.txt", "old_string": "two", "new_string": "2"},
    "write_file": {"file_path": "new/b.txt", "content": "b\n"},
    "run_shell_command": {"command": "echo one; echo two >> a.txt"},
    "read_many_files": {"include": ["*.txt"]},
    "write_todos": {"todos": [{"description": "Read", "status": "in_progress"}]},
    "apply_patch": {
        "input": "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** End Patch\n",
    },
    "notebook_edit": {"notebook_path": "n.ipynb", "cell_id": "cell-0", "new_source": "2"},
}
NOTEBOOK = '{"cells": [{"cell_type": "raw", "metadata": {}, "source": "1"}], "metadata": {}, "nbformat": 4}'
TOOLS: list[Tool] = [
    # Tools of other kinds have tests of their own: they need an answer or a server.
    tool
    for tool in builtin_tools().tools.values()
    if tool.kind is not ToolKind.OTHER and not is_search_tool(tool)
]


@pytest.fixture(params=TOOLS, ids=lambda tool: tool.name)
def tool(request: pytest.FixtureRequest, workspace: Path) -> Tool:
    (workspace / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    (workspace / "n.ipynb").write_text(NOTEBOOK, "utf-8")
    return request.param


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def test_a_call_that_succeeds_has_a_result_for_the_user_and_the_model(tool: Tool, workspace: Path) -> None:
    result = await result_of(tool, tool_context(workspace), **CALLS[tool.name])
    assert isinstance(result, ToolSucceeded)
    assert result.for_model
    assert result.output != ToolOutput()


async def test_a_proposal_has_no_effect_and_fits_the_kind_of_the_tool(tool: Tool, workspace: Path) -> None:
    before = contents(workspace.parent)
    proposal = await tool.propose(CALLS[tool.name], tool_context(workspace))
    expected = {ToolKind.READ: type(None), ToolKind.EDIT: FileDiff, ToolKind.EXECUTE: ExecuteDetails}
    assert isinstance(proposal, expected[tool.kind])
    assert contents(workspace.parent) == before


async def test_only_tools_with_an_effect_change_files(tool: Tool, workspace: Path) -> None:
    before = contents(workspace)
    await result_of(tool, tool_context(workspace), **CALLS[tool.name])
    assert (contents(workspace) == before) is (tool.kind is ToolKind.READ)


async def test_proposals_and_results_survive_being_kept_as_json(tool: Tool, workspace: Path) -> None:
    proposal = await tool.propose(CALLS[tool.name], tool_context(workspace))
    if isinstance(proposal, FileDiff):
        request = ConfirmationRequest((), file_edit_details=proposal)
        kept = from_json(ConfirmationRequest, json.loads(json.dumps(to_json(request)))).file_edit_details
        assert kept == proposal
        proposal = kept
    last = await result_of(tool, tool_context(workspace), Approved(proposal), **CALLS[tool.name])
    assert isinstance(last, ToolSucceeded)
    assert from_json(ToolOutput, json.loads(json.dumps(to_json(last.output)))) == last.output


async def test_a_call_is_described_in_one_short_text(tool: Tool) -> None:
    described = tool.describe(CALLS[tool.name])
    assert described
    assert len(described) < 200


@pytest.mark.slow
@pytest.mark.parametrize("value", [None, 7, [], {}, "\ud800", "../../outside", "a\0b", "x" * 100_000, "{[*" * 9_999])
async def test_no_argument_breaks_a_tool(tool: Tool, workspace: Path, value: object) -> None:
    context = tool_context(workspace)
    failures: list[ToolFailure] = []
    for name in tool.parameters["properties"]:
        if name == "command" and value == "../../outside":
            continue  # The shell would run it.
        arguments = {**CALLS[tool.name], name: value}
        try:
            approved = Approved(await tool.propose(arguments, context))
            last = await result_of(tool, context, approved, **arguments)
        except ToolFailure as refusal:
            failures.append(refusal)
        else:
            assert isinstance(last, ToolSucceeded | ToolFailed)
        tool.describe(CALLS[tool.name])
    assert all(failure.category and str(failure) and len(str(failure)) < 1_000 for failure in failures)
    assert not (workspace.parent.parent / "outside").exists()


async def test_a_tool_runs_without_a_proposal_as_well(tool: Tool, workspace: Path) -> None:
    last = await result_of(tool, tool_context(workspace), Approved(), **CALLS[tool.name])
    assert isinstance(last, ToolSucceeded)


async def test_a_cancelled_call_ends_and_leaves_nothing_running(tool: Tool, workspace: Path) -> None:
    context = tool_context(workspace)
    approved = Approved(await tool.propose(CALLS[tool.name], context))
    before = asyncio.all_tasks()
    call = asyncio.create_task(tool.run(CALLS[tool.name], running(context, approved)))
    await asyncio.sleep(0)
    call.cancel()
    async with asyncio.timeout(60):
        await asyncio.wait({call})
    assert call.cancelled() or call.exception() is None
    assert asyncio.all_tasks() <= before
