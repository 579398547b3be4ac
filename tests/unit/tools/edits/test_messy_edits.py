"""Edits in other agents' forms: nearly all are carried out or refused as they are meant, and none is wrong."""

from collections import Counter
from pathlib import Path

import pytest

from isthmus.agent.calls.split_calls import with_split_calls
from isthmus.development_tool import FileDiff
from isthmus.models.port.base import Message, ToolRequest
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.base import Approved
from isthmus.tools.port.failure import ToolFailure
from support.messy_edits import EDITS, MessyEdit
from support.tool_calls import success_of, tool_context

pytestmark = pytest.mark.anyio
MINIMUM_SHARE = 0.95
TOOLS = builtin_tools().tools


async def outcome(edit: MessyEdit, workspace: Path) -> tuple[str, str]:
    """Return whether an edit was carried out as it is meant, refused or wrong, and what the model is told."""
    path = workspace / edit.file
    path.write_bytes(edit.before.encode())
    message = with_split_calls(Message("assistant", (ToolRequest("c", edit.tool, edit.arguments),)), TOOLS)
    told = "no such tool"
    try:
        for call in message.parts:
            if isinstance(call, ToolRequest) and (tool := TOOLS.get(call.name)) is not None:
                context = tool_context(workspace)
                proposal = await tool.propose(call.arguments, context)
                assert isinstance(proposal, FileDiff)
                told = (await success_of(tool, context, Approved(proposal), **call.arguments)).for_model
    except ToolFailure as failure:
        told = str(failure)
    after = path.read_bytes().decode()
    if after == edit.before:
        return ("right" if edit.after is None else "refused"), told
    return ("right" if after == edit.after else "wrong"), told


async def test_the_forms_of_other_agents_are_read_as_they_are_meant(workspace: Path) -> None:
    counts: Counter[str] = Counter()
    misses: list[str] = []
    for edit in EDITS:
        result, told = await outcome(edit, workspace)
        counts[result] += 1
        if result != "right":
            misses.append(f"{result}: {edit.agent}, {edit.form}: {told[:200]}")
    report = "\n".join([str(dict(counts)), *misses])
    assert len(EDITS) >= 150
    assert counts["wrong"] == 0, report
    assert counts["right"] >= MINIMUM_SHARE * len(EDITS), report
