"""A command whose process ends after any of its events, and that another process continues from the stored ones."""

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.coding.coding_agent import CodingAgent
from isthmus.agent.options import AgentOptions
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.session import Session
from isthmus.events import (
    AgentEvent,
    Command,
    StateChange,
    TaskState,
    TextContent,
    ToolCallUpdate,
    event_from_json,
    event_to_json,
)
from isthmus.models.choose import choose, open_model
from isthmus.models.port.base import ChatModel
from isthmus.tools.builtin import builtin_tools
from isthmus.tools.port.tool_set import FixedTools
from support.emitting import emitted

pytestmark = pytest.mark.anyio


@dataclass
class Folder:
    """A workspace and a home of one run, made again at the same place."""

    top: Path
    workspace: Path = field(init=False)
    home: Path = field(init=False)

    def __post_init__(self) -> None:
        shutil.rmtree(self.top, ignore_errors=True)
        self.workspace, self.home = self.top / "workspace", self.top / ".gemini"
        self.workspace.mkdir(parents=True)
        self.home.mkdir()
        commands = self.home / "commands"
        commands.mkdir()
        (commands / "look.toml").write_text("prompt = 'Seen: !{printf x >> count; echo a} !{printf x >> count}'")

    @property
    def traces(self) -> int:
        """Return the number of times that the effect happened."""
        count, own = self.workspace / "count", self.home / "GEMINI.md"
        return (len(count.read_text()) if count.exists() else 0) + (
            own.read_text().count("- fact\n") if own.exists() else 0
        )

    async def go_on(self, kept: list[AgentEvent]) -> list[AgentEvent]:
        """Return the events that follow the stored ones."""
        session = Session("c")
        for event in kept:
            session.apply(event_from_json(json.loads(json.dumps(event_to_json(event)))), "t")

        async def opened(_: str | None) -> ChatModel:
            return open_model(choose("demo", None, {}), {})

        resources = AgentResources(opened, FixedTools(builtin_tools()), home=self.home)
        # No request is made: the task ends where the model would be asked.
        options = AgentOptions(
            self.top / "out", {"PATH": "/usr/bin:/bin"}, Policy(ApprovalMode.YOLO), max_model_turns=0
        )
        found = await emitted(CodingAgent(resources, options), session)
        return [event for event in found if not (isinstance(event, ToolCallUpdate) and event.is_ephemeral)]


def text(events: list[AgentEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextContent))


COMMANDS = {"help": ("help",), "memory": ("memory", "add"), "look": ("look",)}
EFFECTS = {"help": 0, "memory": 1, "look": 2}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
async def test_after_every_event_a_command_goes_on_without_saying_or_doing_anything_twice(
    tmp_path: Path, name: str
) -> None:
    def begun(folder: Folder) -> AgentEvent:
        return Command("m", COMMANDS[name], "fact", {"workspace_path": str(folder.workspace)})

    first = Folder(tmp_path / "run")
    whole = await first.go_on([begun(first)])
    assert first.traces == EFFECTS[name]
    for cut in range(len(whole) - 1):
        folder = Folder(tmp_path / "run")
        kept: list[AgentEvent] = [begun(folder), *whole[: cut + 1]]
        executed = sum(
            isinstance(event, ToolCallUpdate) and event.tool_call.status.name == "EXECUTING" for event in kept
        )
        rest = await folder.go_on(kept)
        assert folder.traces <= EFFECTS[name] - executed, kept[-1]
        said = text([*kept, *rest])
        assert said in (text(whole), ""), kept[-1]
        last = rest[-1]
        assert isinstance(last, StateChange)
        was_interrupted = isinstance(kept[-1], ToolCallUpdate) and kept[-1].tool_call.status.name == "EXECUTING"
        if was_interrupted:
            assert last.state is TaskState.FAILED
            assert "interrupted" in (last.error or "")
        else:
            assert last == whole[-1]
