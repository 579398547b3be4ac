from pathlib import Path

import pytest

from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.base import ToolSucceeded
from support.tool_calls import result_of, tool_context

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(("text", "lines"), [("", 0), ("one", 1), ("one\ntwo\n", 2)])
async def test_the_model_gets_the_number_of_lines(workspace: Path, text: str, lines: int) -> None:
    (workspace / "a.txt").write_text(text, "utf-8")
    result = await result_of(builtin_tools().tools["count_lines"], tool_context(workspace), file_path="a.txt")
    assert isinstance(result, ToolSucceeded)
    assert result.for_model == f"a.txt has {lines} lines"
