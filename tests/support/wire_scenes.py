"""The agent's steps and the client's messages in each golden transcript."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from isthmus.development_tool import (
    AgentThought,
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    GenericDetails,
    McpDetails,
    ToolCall,
    ToolCallStatus,
)
from isthmus.events import TextContent, Thought
from support.memory_agent import Ask, Step, write_file_call

_OPTIONS = (
    ConfirmationOption("proceed_once", "Allow once"),
    ConfirmationOption("proceed_always_tool", "Always allow", "For the rest of this session"),
    ConfirmationOption("cancel", "Reject"),
)


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene: ``call`` makes the call that asks, for a workspace; ``answer`` is the client's ToolCallConfirmation."""

    prompt: str
    call: Callable[[str], ToolCall]
    answer: Mapping[str, Any]
    text: str = "Done."
    thought: AgentThought = field(default_factory=lambda: AgentThought("Plan", "Change the file."))

    def steps(self, workspace: str) -> Sequence[Step]:
        """Return the agent's steps."""
        return (Thought(self.thought), Ask((self.call(workspace),)), TextContent("text-1", self.text))


def _asking(name: str, arguments: Mapping[str, Any], request: ConfirmationRequest) -> ToolCall:
    return ToolCall("call-1", ToolCallStatus.PENDING, name, arguments, f"Use {name}", confirmation_request=request)


def _execute(workspace: str) -> ToolCall:
    command = "make test && echo 'done'"
    details = ExecuteDetails(command, workspace)
    arguments = {"command": command, "timeout_ms": 9007199254740993}
    return _asking("run_shell_command", arguments, ConfirmationRequest(_OPTIONS, execute_details=details))


def _mcp(workspace: str) -> ToolCall:
    del workspace
    details = McpDetails("tracker", "create_issue")
    arguments = {"title": "A bug", "labels": ["bug"], "weight": 1}
    return _asking("create_issue", arguments, ConfirmationRequest(_OPTIONS, mcp_details=details))


def _generic(workspace: str) -> ToolCall:
    del workspace
    details = GenericDetails("Fetch https://example.org/")
    request = ConfirmationRequest(_OPTIONS, generic_details=details)
    return _asking("web_fetch", {"url": "https://example.org/"}, request)


def _once(**more: Any) -> dict[str, Any]:
    return {"tool_call_id": "call-1", "selected_option_id": "proceed_once", **more}


SCENES: Mapping[str, Scene] = MappingProxyType(
    {
        "appendix_a": Scene("Change a.txt", lambda at: write_file_call("call-1", f"{at}/a.txt"), _once()),
        "confirm_execute": Scene("Run the tests", _execute, _once()),
        "confirm_file_edit": Scene(
            "Change a.txt",
            lambda at: write_file_call("call-1", f"{at}/a.txt"),
            _once(file_details={"new_content": "changed by the user\n"}),
        ),
        "confirm_mcp": Scene("File an issue", _mcp, {**_once(), "selected_option_id": "proceed_always_tool"}),
        "confirm_generic": Scene("Look at the page", _generic, {**_once(), "selected_option_id": "cancel"}),
    }
)
"""Scenes by the name of the transcript; that of A2A 1.0 ends in ``_v1``."""
