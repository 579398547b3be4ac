"""The tools for edits that a model is offered, and the prompt, which names the same ones."""

from typing import Any

import pytest

from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.tool_set import ToolSet
from support.scripted_wire import Reply, Say

pytestmark = pytest.mark.anyio

EDITS = {"replace", "write_file", "apply_patch"}


def without(*names: str) -> ToolSet:
    return ToolSet({name: tool for name, tool in builtin_tools().tools.items() if name not in names})


@pytest.mark.parametrize(
    ("model", "tools", "offered"),
    [
        ("gpt-5.2", without(), {"apply_patch"}),
        ("gpt-5.2", without("apply_patch"), {"replace", "write_file"}),
        ("gemini-3-pro", without(), {"replace", "write_file"}),
        ("gemini-3-pro", without("write_file", "replace"), {"apply_patch"}),
    ],
)
async def test_one_way_to_edit_is_offered_and_named(
    harness: Any, model: str, tools: ToolSet, offered: set[str]
) -> None:
    at = harness([Reply.of(Say("Done."))], tools=tools, model=model)
    await at.prompt("Hello.")
    body = at.body()
    assert {tool["name"] for tool in body["tools"][0]["functionDeclarations"]} & EDITS == offered
    system = body["systemInstruction"]["parts"][0]["text"]
    assert {name for name in EDITS if f"`{name}`" in system} == offered
