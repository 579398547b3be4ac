from collections.abc import Sequence
from typing import Any

import pytest

from isthmus.agent.hooks.tool_selection import ALL_TOOLS, ToolSelection, selection_of
from isthmus.models.port.base import Message, ModelRequest, Text, ToolChoice, ToolRequest, ToolSpec, requests_of
from isthmus.tools.port.tool_set import CALL_TOOL

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
    assert sent.tools == REQUEST.tools  # They stay in the provider's cache.
    assert sent.choice is (ToolChoice.ANY if left else ToolChoice.NONE)
    assert sent.allowed == (frozenset(left) if left else None)


def test_a_call_of_a_tool_that_was_left_out_cannot_be_made() -> None:
    message = Message("assistant", (ToolRequest("1", "read_file", {}), ToolRequest("2", "lookup", {})))
    kept, refused = requests_of(ToolSelection(names=frozenset(("read_file",))).refused(message, names))
    assert kept.invalid is None
    assert refused.invalid == "a hook of the settings left lookup out of this request"


def test_a_call_through_call_tool_is_judged_as_the_call_that_is_meant() -> None:
    def through(name: str) -> ToolRequest:
        return ToolRequest(name, CALL_TOOL, {"name": name, "arguments": {}})

    message = Message(
        "assistant", (through("late"), through("lookup"), ToolRequest("3", CALL_TOOL, {"name": "lookup"}))
    )
    selection = ToolSelection(names=frozenset(("late",)))
    calls = requests_of(selection.refused(message, names))
    assert [call.invalid is None for call in calls] == [True, False, True]  # the last one asks for the parameters
    request = ModelRequest("", (), (*REQUEST.tools, ToolSpec(CALL_TOOL, "", {})))
    assert selection.applied(request, names).allowed == {CALL_TOOL}
    assert ToolSelection(names=frozenset(("lookup",))).applied(request, names).allowed == {"lookup"}


def test_the_model_is_told_of_a_selection_when_it_changes() -> None:
    messages: tuple[Message, ...] = ()
    said: list[str | None] = []
    some, others = ToolSelection(names=frozenset(("lookup",))), ToolSelection(names=frozenset(("read_file",)))
    for selection in (
        ToolSelection(),
        some,
        some,
        others,
        ToolSelection(ToolChoice.NONE),
        ToolSelection(),
        ToolSelection(),
    ):
        text = selection.told(ModelRequest("", messages, REQUEST.tools), names)
        messages = (*messages, *(() if text is None else (Message("user", (Text(text),)),)))
        said.append(text)
    assert [text if text is None else "lookup" in text for text in said] == [None, True, None, False, None, False, None]
    assert said[5] == ALL_TOOLS
    assert some.told(ModelRequest("", ()), names) is None  # a request without tools
