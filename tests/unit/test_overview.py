"""The diagrams of docs/explanation/overview.md against the source."""

import ast
import re
from pathlib import Path
from typing import get_args

import pytest

from isthmus.events import TaskState
from isthmus.ide.reviews.review import ReviewState

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "isthmus"
_, TASK, REVIEW, ROOMS = re.findall(
    r"```mermaid\n(.*?)```", (ROOT / "docs/explanation/overview.md").read_text("utf-8"), flags=re.DOTALL
)


def arrows(diagram: str) -> list[tuple[str, str]]:
    """Return the names at both ends of each arrow; the texts in boxes are left out."""
    return re.findall(r"^ *([\w\[*\]]+) --> ([\w\[*\]]+)", re.sub(r'\["[^"]*"\]', "", diagram), flags=re.MULTILINE)


def imported_rooms(room: str) -> set[str]:
    """Return the rooms that a folder's modules import."""
    trees = [ast.parse(path.read_text("utf-8")) for path in (SOURCE / room).rglob("*.py")]
    assert trees, f"the room {room} has moved"
    imports = [node.module for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    return {name.split(".")[1] for name in imports if name is not None and name.startswith("isthmus.")}


def test_the_diagram_of_a_task_has_the_states_that_there_are() -> None:
    drawn = {name for arrow in arrows(TASK) for name in arrow} - {"[*]"}
    assert drawn == {state.value.replace("-", "_") for state in TaskState}
    ends = {start for start, end in arrows(TASK) if end == "[*]"}
    assert ends == {state.value for state in TaskState if state.is_terminal}


def test_the_diagram_of_a_review_has_the_states_that_there_are() -> None:
    drawn = {name for arrow in arrows(REVIEW) for name in arrow} - {"[*]", "waiting"}  # Waiting is open, and not shown.
    assert drawn == {state.__name__.lower() for state in get_args(ReviewState)}


@pytest.mark.slow
def test_the_diagram_of_the_rooms_has_imports_that_there_are() -> None:
    drawn = arrows(ROOMS)
    assert len(drawn) > 10
    found = {room: imported_rooms(room) for room in {start for start, _ in drawn} | {"programs"}}
    found["cli"] |= found["programs"]  # They share a box.
    assert [(start, end) for start, end in drawn if end not in found[start]] == []
