"""The tool call that restores a checkpoint, run as a command runs it."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.agent.calls.runner import CallRunner
from isthmus.agent.commands.builtin.restore_checkpoint import RestoreCheckpoint, checkpoint_list, restorable
from isthmus.agent.options import AgentOptions
from isthmus.agent.session.open_call import OpenCall
from isthmus.agent.session.session import Session
from isthmus.checkpoints.base import CheckpointFor, CheckpointInfo
from isthmus.checkpoints.store import CheckpointStore
from isthmus.development_tool import GenericDetails, ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, Command, ConfirmationAccepted, Prompt, ToolCallUpdate
from isthmus.internal_events import Checkpoint
from isthmus.models.port.base import ToolRequest
from isthmus.tools.port.tool_set import ToolSet
from support.emitting import collecting_turn, until_killed

pytestmark = pytest.mark.anyio


@pytest.fixture
async def store(tmp_path: Path) -> AsyncGenerator[CheckpointStore]:
    opened = CheckpointStore(tmp_path / "checkpoints.sqlite")
    yield opened
    await opened.aclose()


class Restoring:
    """A session with one edit, and the command that restores; its events are in ``events``."""

    def __init__(self, store: CheckpointStore, workspace: Path) -> None:
        self.store = store
        self.path = workspace / "a.txt"
        self.events: list[AgentEvent] = [Prompt("p", "do it", {"workspace_path": str(workspace)})]
        self.session = Session("c")

    async def edit(self) -> str:
        self.path.write_text("one", encoding="utf-8")
        taken = await self.store.take(CheckpointFor("c", "t", "edit", self.path.parent, "do it"), [self.path])
        self.path.write_text("two", encoding="utf-8")
        await self.store.edited(taken)
        self.events.append(Checkpoint(taken, "edit"))
        return taken

    def fold(self) -> None:
        self.session = Session("c")
        for event in self.events:
            self.session.apply(event)

    async def run(self, checkpoint_id: str, steps: int | None = None) -> None:
        """Run one segment of the command in a new process; with ``steps`` it is killed after that many events."""
        self.fold()
        tools = ToolSet.of(RestoreCheckpoint(self.store, self.session))
        request = ToolRequest("restore-1", "restore", {"checkpoint_id": checkpoint_id})
        self.session.calls.setdefault(request.id, OpenCall(request, is_models=False))
        turn = collecting_turn(self.session, self.events, steps)
        await until_killed(CallRunner(turn, tools, AgentOptions(Path("/outputs"), {})).settle())

    def answer(self, option: str) -> None:
        self.events.append(ConfirmationAccepted(ToolCallConfirmation("restore-1", option), "test"))

    @property
    def calls(self) -> list[ToolCall]:
        return [event.tool_call for event in self.events if isinstance(event, ToolCallUpdate)]


async def test_restoring_asks_with_the_files_and_puts_them_back_after_the_answer(
    store: CheckpointStore, workspace: Path
) -> None:
    at = Restoring(store, workspace)
    taken = await at.edit()
    at.events.append(Command("m", ("restore",), taken))
    await at.run(taken)
    asked = at.calls[-1].confirmation_request
    assert asked is not None
    assert isinstance(asked.details, GenericDetails)
    assert str(at.path) in asked.details.description
    assert at.path.read_text(encoding="utf-8") == "two"
    at.answer("proceed_once")
    await at.run(taken)
    assert at.path.read_text(encoding="utf-8") == "one"
    assert [call.status.name for call in at.calls] == ["PENDING", "EXECUTING", "SUCCEEDED"]


async def test_a_restore_that_is_refused_changes_nothing(store: CheckpointStore, workspace: Path) -> None:
    at = Restoring(store, workspace)
    taken = await at.edit()
    await at.run(taken)
    at.answer("cancel")
    await at.run(taken)
    assert at.calls[-1].status is ToolCallStatus.CANCELLED
    assert at.path.read_text(encoding="utf-8") == "two"


async def test_a_restore_that_was_interrupted_is_not_run_again(store: CheckpointStore, workspace: Path) -> None:
    at = Restoring(store, workspace)
    taken = await at.edit()
    await at.run(taken)
    at.answer("proceed_once")
    await at.run(taken, steps=1)
    assert at.calls[-1].status is ToolCallStatus.EXECUTING
    at.path.write_text("mine, since the crash", encoding="utf-8")
    await at.run(taken)
    assert at.calls[-1].error is not None
    assert at.calls[-1].error.type == "interrupted"
    assert at.path.read_text(encoding="utf-8") == "mine, since the crash"


@pytest.mark.parametrize("checkpoint_id", ["none", "", "x" * 500])
async def test_an_id_that_is_none_fails_without_a_question(
    store: CheckpointStore, workspace: Path, checkpoint_id: str
) -> None:
    at = Restoring(store, workspace)
    taken = await at.edit()
    await at.run(checkpoint_id)
    assert at.calls[-1].status is ToolCallStatus.FAILED
    assert at.calls[-1].error is not None
    assert taken in at.calls[-1].error.message or not checkpoint_id
    assert len(at.calls[-1].error.message) < 400


async def test_what_the_session_does_not_know_is_not_in_its_list(store: CheckpointStore, workspace: Path) -> None:
    at = Restoring(store, workspace)
    taken = await at.edit()
    await store.take(CheckpointFor("c", "t", "lost", workspace), [at.path])
    at.fold()
    assert [info.checkpoint_id for info in await restorable(at.session, store)] == [taken]


def test_the_list_has_id_file_and_the_first_line_of_the_prompt() -> None:
    lines = checkpoint_list([CheckpointInfo("id1", 0.0, "call", "translate it", ("/w/a.txt",))]).splitlines()
    assert lines[0].startswith("id1  19")
    assert lines[0].endswith("a.txt  translate it")
    assert "no checkpoint" in checkpoint_list([])
