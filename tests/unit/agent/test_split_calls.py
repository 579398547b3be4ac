import pytest

from isthmus.agent.calls.split_calls import with_split_calls
from isthmus.models.port.base import Message, ProviderState, Text, ToolRequest
from isthmus.tools.builtin import builtin_tools

TOOLS = builtin_tools().tools
TWO = "*** Begin Patch\n*** Delete File: a\n*** Delete File: b\n*** End Patch"


def test_the_first_part_of_a_patch_keeps_the_id_and_what_the_provider_wants_back() -> None:
    state = ProviderState("gemini", {"signature": "s"})
    message = Message("assistant", (Text("Now."), ToolRequest("c1", "apply_patch", {"patch": TWO}, state)))
    assert with_split_calls(message, TOOLS).parts == (
        Text("Now."),
        ToolRequest("c1", "apply_patch", {"patch": "*** Begin Patch\n*** Delete File: a\n*** End Patch"}, state),
        ToolRequest("c1_2", "apply_patch", {"patch": "*** Begin Patch\n*** Delete File: b\n*** End Patch"}),
    )


@pytest.mark.parametrize("arguments", [{}, {"input": 3}, {"input": "nonsense"}])
def test_other_calls_stay_as_they_are(arguments: dict[str, object]) -> None:
    message = Message("assistant", (ToolRequest("c1", "apply_patch", arguments), ToolRequest("c2", "glob", {})))
    assert with_split_calls(message, TOOLS) is message
