"""Arguments that a model sends as null in order to omit them."""

from pathlib import Path

import pytest

from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import ToolScope
from support.mcp_hosting import hosting, scripted
from support.tool_calls import result_of, said, success_of, tool_context

pytestmark = pytest.mark.anyio


async def test_null_for_an_optional_argument_is_left_out_and_for_a_required_one_refused(
    home: Path, workspace: Path
) -> None:
    async with hosting(home, {"s": scripted("plain"), "strict": scripted("needs-y")}) as host:
        tools = (await host.tools(ToolScope(workspace))).tools
        context = tool_context(workspace)
        assert said(await success_of(tools["ok"], context, x=None)) == said(await success_of(tools["ok"], context))
        with pytest.raises(ToolFailure, match="'y' is a required property"):
            await result_of(tools["strict__ok"], context, z=None)
