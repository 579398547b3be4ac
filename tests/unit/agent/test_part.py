"""Parts of an agent: what they tell the model, when, and in which order they are asked and closed."""

from pathlib import Path

import pytest
from typing_extensions import override

from isthmus.agent.part import AgentParts, PartBase, PartTurn
from isthmus.internal_events import ContextNote
from isthmus.tools.port.tool_set import ToolScope

pytestmark = pytest.mark.anyio

TURN = PartTurn(ToolScope(Path("/project"), "c", "t"), "c")


class RecordingPart(PartBase):
    """Part that notes in ``log`` for what it was asked."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self._log = log

    @override
    async def at_prompt(self, turn: PartTurn) -> str | None:
        self._log.append(f"{self.name} at the prompt of {turn.scope.task_id}")
        return f"{self.name} shows a.py"

    @override
    async def before_edit(self, turn: PartTurn, path: Path) -> None:
        self._log.append(f"{self.name} before an edit of {path}")

    @override
    def task_ended(self, task_id: str) -> None:
        self._log.append(f"{self.name} at the end of {task_id}")

    @override
    async def aclose(self) -> None:
        self._log.append(f"{self.name} closed")


async def test_a_note_has_the_name_of_its_part_and_is_not_asked_for_again() -> None:
    log: list[str] = []
    parts = AgentParts((RecordingPart("one", log), RecordingPart("two", log)))
    assert await parts.notes_at_prompt(TURN, {"one"}) == [ContextNote("two", "two shows a.py")]
    assert log == ["two at the prompt of t"]
    assert await parts.notes_before_model(TURN) == []


async def test_each_part_learns_of_edits_and_ends_and_the_last_one_is_closed_first() -> None:
    log: list[str] = []
    parts = AgentParts((RecordingPart("one", log), RecordingPart("two", log)))
    await parts.before_edit(TURN, Path("/project/a.py"))
    parts.task_ended("t")
    await parts.aclose()
    assert log == [
        "one before an edit of /project/a.py",
        "two before an edit of /project/a.py",
        "one at the end of t",
        "two at the end of t",
        "two closed",
        "one closed",
    ]


async def test_a_part_that_does_nothing_has_no_notes() -> None:
    class Nothing(PartBase):
        name = "nothing"

    parts = AgentParts((Nothing(),))
    assert await parts.notes_at_prompt(TURN, ()) == []
    assert await parts.notes_before_model(TURN) == []
    await parts.before_edit(TURN, Path("/project/a.py"))
    parts.task_ended("t")
    await parts.aclose()
