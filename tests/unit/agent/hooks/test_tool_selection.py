from collections.abc import Sequence
from typing import Any

import pytest

from isthmus.agent.hooks.tool_selection import ToolSelection, selection_of
from isthmus.models.port.base import Message, ModelRequest, ToolChoice, ToolRequest, ToolSpec, requests_of

REQUEST = ModelRequest("", (), tuple(ToolSpec(name, "", {}) for name in ("read_file", "apply_patch", "lookup")))


def names(tool: str) -> Sequence[frozenset[str]]:
    """Return the names of a tool as hooks know it: one stands for two of another program, one is a server's."""
    others = {"apply_patch": {"replace", "write_file"}, "lookup": {"mcp_docs_lookup"}}
    return (frozenset((tool,)), *((frozenset(others[tool]),) if tool in others else ()))


def config(mode: str, *allowed: str) -> dict[str, Any]:
    return {"mode": mode, "allowedFunctionNames": [*allowed]}


@pytest.mark.parametrize(
    ("users", "projects", "selection"),
    [
        ([config("AUTO")], [], ToolSelection()),
        ([config("AUTO", "a"), config("ANY", "b")], [], ToolSelection(ToolChoice.ANY, frozenset("ab"))),
        ([config("ANY", "a"), config("NONE", "b")], [], ToolSelection(ToolChoice.NONE)),
        ([], [config("ANY", "a")], ToolSelection(ToolChoice.AUTO, frozenset("a"))),
        ([config("AUTO", "a", "b")], [config("AUTO", "b", "c")], ToolSelection(ToolChoice.AUTO, frozenset("b"))),
        ([config("AUTO", "a")], [config("AUTO", "c")], ToolSelection(ToolChoice.AUTO, frozenset())),
        ([config("ANY", "a")], [config("NONE")], ToolSelection(ToolChoice.NONE)),
    ],
)
def test_hooks_join_their_lists_and_a_projects_only_take_away(
    users: Any, projects: Any, selection: ToolSelection
) -> None:
    assert selection_of(users, projects) == selection


@pytest.mark.parametrize(
    ("allowed", "left"),
    [
        ({"read_file"}, ["read_file"]),
        ({"replace"}, []),
        ({"replace", "write_file"}, ["apply_patch"]),
        ({"mcp_docs_lookup", "lookup"}, ["lookup"]),
    ],
)
def test_a_tool_is_left_under_the_names_that_hooks_know(allowed: set[str], left: list[str]) -> None:
    sent = ToolSelection(ToolChoice.ANY, frozenset(allowed)).applied(REQUEST, names)
    if left:
        assert ([tool.name for tool in sent.tools], sent.choice) == (left, ToolChoice.ANY)
    else:
        # Providers want the tools beside earlier calls, although none may be called.
        assert (sent.tools, sent.choice) == (REQUEST.tools, ToolChoice.NONE)


def test_a_call_of_a_tool_that_was_left_out_cannot_be_made() -> None:
    message = Message("assistant", (ToolRequest("1", "read_file", {}), ToolRequest("2", "lookup", {})))
    kept, refused = requests_of(ToolSelection(names=frozenset(("read_file",))).refused(message, names))
    assert kept.invalid is None
    assert refused.invalid == "a hook of the settings left lookup out of this request"
