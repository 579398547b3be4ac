"""The tools openDiff, close_tab and closeAllDiffTabs at a headless editor: every end that a review can have."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.options import CompanionOptions
from support.claude_tools import ToolUser, tool_user
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

TEXT = "one\ntwo 😀 zwei\nthree\n"


@pytest.fixture
def editor(workspace: Path) -> HeadlessEditor:
    return HeadlessEditor((str(workspace),))


@pytest.fixture
async def user(editor: HeadlessEditor) -> AsyncGenerator[ToolUser]:
    async with tool_user(editor) as user:
        yield user


@pytest.fixture
def file(workspace: Path) -> Path:
    path = workspace / "a b.py"
    path.write_bytes(TEXT.encode())
    return path


def _diff(path: Path, contents: str, tab: str = "tab") -> dict[str, object]:
    return {
        "old_file_path": str(path),
        "new_file_path": str(path),
        "new_file_contents": contents,
        "tab_name": tab,
    }


def _texts(result: Any) -> list[str]:
    assert not result.is_error, result
    return [block["text"] for block in result.content]


@pytest.mark.parametrize("contents", ["new\r\nlines", "", "\ufeffmark\n", "😀\n"], ids=repr)
async def test_an_accepted_diff_answers_with_the_final_contents_and_writes_nothing(
    user: ToolUser, editor: HeadlessEditor, file: Path, contents: str
) -> None:
    answer = user.start("openDiff", **_diff(file, "proposed\n"))
    review = await user.review()
    editor.edit_diff(review.id, contents)
    editor.accept_diff(review.id)
    assert _texts(await answer) == ["FILE_SAVED", contents]
    assert file.read_text(encoding="utf-8") == TEXT


async def test_a_rejected_diff_answers_with_the_name_of_its_tab(
    user: ToolUser, editor: HeadlessEditor, file: Path
) -> None:
    answer = user.start("openDiff", **_diff(file, "proposed\n"))
    editor.reject_diff((await user.review()).id)
    assert _texts(await answer) == ["DIFF_REJECTED", "tab"]
    assert await user.text("close_tab", tab_name="tab") == "TAB_CLOSED"


async def test_a_tab_that_is_closed_while_it_waits_is_rejected_and_may_be_closed_twice(
    user: ToolUser, editor: HeadlessEditor, file: Path
) -> None:
    answer = user.start("openDiff", **_diff(file, "proposed\n"))
    await user.review()
    assert await user.text("close_tab", tab_name="tab") == "TAB_CLOSED"
    assert _texts(await answer) == ["DIFF_REJECTED", "tab"]
    assert await user.text("close_tab", tab_name="tab") == "TAB_CLOSED"
    assert editor.open_reviews == ()


async def test_closing_all_diff_tabs_closes_those_of_the_client_alone(
    user: ToolUser, editor: HeadlessEditor, file: Path, workspace: Path
) -> None:
    other_user = ToolUser(user.companion)
    other_file = workspace / "other.py"
    answers = [
        user.start("openDiff", **_diff(file, "proposed\n", "first")),
        user.start("openDiff", **_diff(workspace / "new.py", "proposed\n", "second")),
    ]
    theirs = other_user.start("openDiff", **_diff(other_file, "proposed\n", "first"))
    await eventually_async(lambda: len(editor.open_reviews) == 3, what="three diffs")
    assert await user.text("closeAllDiffTabs") == "CLOSED_2_DIFF_TABS"
    assert [_texts(await answer) for answer in answers] == [["DIFF_REJECTED", "first"], ["DIFF_REJECTED", "second"]]
    (left,) = editor.open_reviews
    assert left.file_path == str(other_file)
    assert await user.text("close_tab", tab_name="first") == "TAB_CLOSED"
    assert editor.open_reviews == (left,)
    assert await other_user.text("closeAllDiffTabs") == "CLOSED_1_DIFF_TABS"
    assert _texts(await theirs) == ["DIFF_REJECTED", "first"]
    assert await user.text("closeAllDiffTabs") == "CLOSED_0_DIFF_TABS"


async def test_the_same_tab_again_rejects_the_one_before(user: ToolUser, editor: HeadlessEditor, file: Path) -> None:
    former = user.start("openDiff", **_diff(file, "first\n"))
    await user.review()
    newer = user.start("openDiff", **_diff(file, "second\n"))
    assert _texts(await former) == ["DIFF_REJECTED", "tab"]
    (review,) = await eventually_async(lambda: editor.open_reviews, what="the second diff")
    editor.accept_diff(review.id)
    assert _texts(await newer) == ["FILE_SAVED", "second\n"]


async def test_a_cancelled_call_closes_its_view(user: ToolUser, editor: HeadlessEditor, file: Path) -> None:
    answer = user.start("openDiff", **_diff(file, "proposed\n"))
    await user.review()
    answer.cancel()
    await asyncio.wait({answer}, timeout=30)
    await eventually_async(lambda: editor.open_reviews == (), what="the view is closed")
    assert user.companion.reviews.all() == ()


async def test_a_companion_that_shows_no_diffs_says_so(editor: HeadlessEditor, file: Path) -> None:
    async with tool_user(editor, CompanionOptions(show_diffs=False)) as user:
        assert "--no-diff" in await user.error("openDiff", **_diff(file, "proposed\n"))


async def test_what_is_no_file_cannot_be_reviewed(user: ToolUser, workspace: Path) -> None:
    assert "cannot be reviewed" in await user.error("openDiff", **_diff(workspace, "proposed\n"))


@pytest.mark.parametrize("form", ["label", "path", "uri"])
async def test_another_tab_is_a_file_that_is_closed_unless_it_has_unsaved_changes(
    user: ToolUser, editor: HeadlessEditor, file: Path, form: str
) -> None:
    name = {"label": file.name, "path": str(file), "uri": file.as_uri()}[form]
    await editor.open_file(str(file))
    editor.edit(str(file), "typed\n")
    assert "unsaved" in await user.error("close_tab", tab_name=name)
    await editor.save(str(file))
    assert await user.text("close_tab", tab_name=name) == "TAB_CLOSED"
    assert await editor.open_files() == ()


async def test_a_name_that_several_tabs_have_closes_none(
    user: ToolUser, editor: HeadlessEditor, workspace: Path
) -> None:
    paths = [workspace / folder / "a.py" for folder in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("x\n", encoding="utf-8")
        await editor.open_file(str(path))
    said = await user.error("close_tab", tab_name="a.py")
    assert all(str(path) in said for path in paths)
    assert len(await editor.open_files()) == 2
