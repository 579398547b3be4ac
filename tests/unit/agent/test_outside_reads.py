"""Reads of files outside the workspace: asked about where a user can answer, and refused elsewhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.development_tool import GenericDetails
from isthmus.events import TaskState
from support.agent_harness import AgentHarness
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio
Harness = Callable[..., AgentHarness]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "library"
    folder.mkdir()
    for name in ("one", "two"):
        (folder / f"{name}.txt").write_text(f"the text of {name}", "utf-8")
    return folder


def read(*paths: Path) -> list[Any]:
    return [*(Reply.of(Call("read_file", {"file_path": str(path)})) for path in paths), Reply.of(Say("Done."))]


async def test_a_file_is_read_once_if_the_user_allows_it(harness: Harness, outside: Path) -> None:
    at = harness(read(outside / "one.txt", outside / "two.txt"), may_include_folders=True)
    assert (await at.prompt("Look.")).state is TaskState.INPUT_REQUIRED
    asked = at.calls[-1].confirmation_request
    assert asked is not None
    assert asked.details == GenericDetails(f"Read a file outside the workspace: {outside}/one.txt")
    assert [option.id for option in asked.options] == ["proceed_once", "proceed_always_folder", "cancel"]
    assert (await at.answer(at.calls[-1])).state is TaskState.INPUT_REQUIRED
    assert "the text of one" in at.told()
    assert (await at.answer(at.calls[-1], "cancel")).state is TaskState.COMPLETED
    assert "the text of two" not in at.told()


async def test_an_answer_for_the_folder_covers_its_other_files(harness: Harness, outside: Path) -> None:
    at = harness(read(outside / "one.txt", outside / "two.txt"), may_include_folders=True)
    await at.prompt("Look.")
    assert (await at.answer(at.calls[-1], "proceed_always_folder")).state is TaskState.COMPLETED
    assert "the text of two" in at.told()


@pytest.mark.parametrize(
    "options",
    [
        {"policy": Policy(may_ask=False), "may_include_folders": True},
        {"policy": Policy(ApprovalMode.YOLO), "may_include_folders": True},
        {"may_include_folders": False},
        {"may_include_folders": True, "user": "alice"},
    ],
)
async def test_where_it_is_not_asked_it_is_refused_with_what_would_allow_it(
    harness: Harness, outside: Path, options: dict[str, Any]
) -> None:
    at = harness(read(outside / "one.txt"), **options)
    assert (await at.prompt("Look.")).state is TaskState.COMPLETED
    assert "the text of one" not in at.told()
    assert "--include-directories" in at.told()


async def test_an_included_folder_is_read_without_asking_and_named_to_the_model(
    harness: Harness, outside: Path
) -> None:
    at = harness(read(outside / "one.txt"), included_folders=(outside,))
    assert (await at.prompt("Look.")).state is TaskState.COMPLETED
    assert "the text of one" in at.told()
    assert f"Further folders, whose files have absolute paths: {outside}." in str(at.body()["systemInstruction"])
    others = harness(read(outside / "one.txt"), included_folders=(outside,), user="alice")
    await others.prompt("Look.")
    assert "the text of one" not in others.told()
