"""The commands of a page that is the editor: files found, shown and left, selections, mentions; what is refused."""

import os
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.ide.companion import Companion
from isthmus.ide.control import page_files
from isthmus.ide.control.commands import ControlCommandError
from isthmus.ide.control.page_commands import PAGE_COMMANDS
from isthmus.ide.editor import NotAvailableError, Position, Range
from isthmus.ide.options import CompanionOptions
from isthmus.ide.reviews.kept_text import KeptTexts
from isthmus.ide.workspace.workspace_files import FileStamp
from isthmus.programs.companion.page import WebEditor
from support.companion_recorder import Recorder

pytestmark = pytest.mark.anyio

TEXT = "one\r\ntw\U0001f600o\r\nthree\r\n"


@pytest.fixture
def companion(workspace: Path, tmp_path: Path) -> Companion:
    (workspace / "src").mkdir()
    (workspace / "src" / "a.py").write_bytes(TEXT.encode())
    (workspace / ".env").write_text("SECRET=1")
    (workspace / ".geminiignore").write_text("private/\n")
    (workspace / "private").mkdir()
    (workspace / "private" / "key.py").write_text("secret")
    (tmp_path / "outside.py").write_text("outside")
    (workspace / "link.py").symlink_to(tmp_path / "outside.py")
    (workspace / "inner.py").symlink_to(workspace / "src" / "a.py")
    (workspace / "to-secret.py").symlink_to(workspace / ".env")
    return Companion(WebEditor((str(workspace),)), kept=KeptTexts(tmp_path / "kept"))


async def ask(companion: Companion, command: str, **arguments: object) -> Any:
    return await PAGE_COMMANDS[f"page_{command}"](companion, arguments)


async def test_a_file_that_is_shown_is_open_and_its_selection_is_the_agents(
    companion: Companion, workspace: Path
) -> None:
    path = str(workspace / "src" / "a.py")
    shown = await ask(companion, "view", path=path)
    assert (shown["text"], shown["why"], shown["selection"]) == (TEXT, "", [0, 0, 0, 0])
    said = await ask(companion, "select", path=path, state=shown["state"], selection=[2, 2, 1, 2])
    assert said == {"selection": [2, 2, 1, 2]}
    (file,) = (await companion.context()).files
    assert (file.path, file.is_active) == (path, True)
    assert file.selection is not None
    assert (file.selection.range, file.selection.text) == (
        Range(Position(1, 2), Position(2, 2)), "\U0001f600o\r\nth"
    )  # fmt: skip
    assert (await ask(companion, "view", path=path))["selection"] == [1, 2, 2, 2]
    waiting = await PAGE_COMMANDS["waiting"](companion, {})
    assert waiting["files"] == [{"path": path, "active": True, "state": shown["state"]}]
    await ask(companion, "leave", path=path)
    assert (await companion.context()).files == ()


async def test_a_selection_in_a_text_that_was_written_since_selects_nothing(
    companion: Companion, workspace: Path
) -> None:
    path = str(workspace / "src" / "a.py")
    shown = await ask(companion, "view", path=path)
    (workspace / "src" / "a.py").write_text("other")
    said = await ask(companion, "select", path=path, state=shown["state"], selection=[0, 0, 0, 3])
    assert said == {"changed": True}
    (file,) = (await companion.context()).files
    assert file.selection is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../outside.py", "outside the workspace"),
        ("link.py", "outside the workspace"),
        (".env", "hidden from agents"),
        ("to-secret.py", "hidden from agents"),
        ("private/key.py", "hidden from agents"),
        ("private/../.env", "hidden from agents"),
        ("missing.py", "there is no file"),
        ("src", "cannot be shown"),
        ("pipe", "cannot be shown"),
    ],
)
async def test_what_the_page_may_not_show_is_refused_and_not_opened(
    companion: Companion, workspace: Path, name: str, reason: str
) -> None:
    os.mkfifo(workspace / "pipe")
    for command in ("view", "mention", "select") if reason != "cannot be shown" else ("view",):
        with pytest.raises(ControlCommandError, match=reason):
            await ask(companion, command, path=f"{workspace}/{name}", state="", selection=[0, 0, 0, 0])
    assert await companion.editor.open_files() == ()


@pytest.mark.parametrize(
    ("place", "reason"), [("../outside.py", "outside the workspace"), (".env", "hidden from agents")]
)
async def test_a_link_that_takes_the_place_of_a_file_after_its_check_is_not_followed(
    companion: Companion, workspace: Path, monkeypatch: pytest.MonkeyPatch, place: str, reason: str
) -> None:
    file = workspace / "src" / "a.py"
    stamped = FileStamp.of

    def replaced(path: str) -> FileStamp | None:
        found = stamped(path)
        if not file.is_symlink():
            file.unlink()
            file.symlink_to(workspace / place)
        return found

    monkeypatch.setattr(FileStamp, "of", replaced)
    with pytest.raises(ControlCommandError, match=reason):
        await ask(companion, "view", path=str(file))
    assert await companion.editor.open_files() == ()


@pytest.mark.parametrize("path", [None, 1, "", "a.py", "/x\0y", "/" + "x" * 5000, "/\udc80"])
async def test_what_is_not_the_absolute_path_of_a_file_is_refused(companion: Companion, path: object) -> None:
    for command in ("view", "select", "leave", "mention"):
        with pytest.raises(ControlCommandError, match="absolute path"):
            await ask(companion, command, path=path)


@pytest.mark.parametrize(
    "selection", [None, [1, 2, 3], [0, 0, 0, -1], [0, 0, 0, True], [0, 0, 0, 1.5], [0, 0, 0, 2**40]]
)
async def test_a_selection_of_a_wrong_shape_is_refused(
    companion: Companion, workspace: Path, selection: object
) -> None:
    path = str(workspace / "src" / "a.py")
    shown = await ask(companion, "view", path=path)
    with pytest.raises(ControlCommandError, match="4 whole numbers"):
        await ask(companion, "select", path=path, state=shown["state"], selection=selection)


async def test_a_selection_in_a_file_that_is_not_open_is_refused(companion: Companion, workspace: Path) -> None:
    path = str(workspace / "src" / "a.py")
    with pytest.raises(ControlCommandError, match="not open"):
        await ask(companion, "select", path=path, state="", selection=[0, 0, 0, 0])


async def test_binary_and_large_files_are_said_and_not_shown(
    companion: Companion, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workspace / "image.png").write_bytes(b"\x89PNG\r\n\x00\x01")
    monkeypatch.setattr(page_files, "MAXIMUM_SHOWN_BYTES", 100)
    (workspace / "large.txt").write_text("x" * 101)
    for name, why, size in (("image.png", "binary", 8), ("large.txt", "large", 101)):
        shown = await ask(companion, "view", path=str(workspace / name))
        assert (shown["text"], shown["why"], shown["size"]) == (None, why, size)
    assert await companion.editor.open_files() == ()


async def test_the_number_of_open_files_is_limited(
    companion: Companion, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_files, "MAXIMUM_OPEN", 1)
    await ask(companion, "view", path=str(workspace / "src" / "a.py"))
    await ask(companion, "view", path=str(workspace / "src" / "a.py"))
    with pytest.raises(ControlCommandError, match="close some"):
        await ask(companion, "view", path=str(workspace / "inner.py"))


async def test_a_mention_is_delivered_or_says_why_not(companion: Companion, workspace: Path) -> None:
    path = str(workspace / "src" / "a.py")
    shown = await ask(companion, "view", path=path)
    await ask(companion, "select", path=path, state=shown["state"], selection=[0, 1, 1, 1])
    said = await ask(companion, "mention", path=path, lines=[0, 1])
    assert (said["delivered"], "no agent is attached" in said["problem"]) == (False, True)
    agent = Recorder()
    companion.attach(agent)
    agent.active_at = 1.0
    assert await ask(companion, "mention", path=path, lines=[0, 1]) == {"delivered": True, "problem": ""}
    assert [(one.path, one.start_line, one.end_line) for one in agent.mentions] == [(path, 0, 1)]
    assert (await ask(companion, "view", path=path))["selection"] == [0, 1, 1, 1]
    with pytest.raises(ControlCommandError, match="last line not before the first"):
        await ask(companion, "mention", path=path, lines=[2, 1])


async def test_files_are_found_by_words_without_hidden_and_foreign_ones(companion: Companion, workspace: Path) -> None:
    found = await ask(companion, "find", words="")
    assert [file["name"] for file in found["files"]] == [".geminiignore", "inner.py", "src/a.py"]
    assert found["files"][2]["path"] == str(workspace / "src" / "a.py")
    assert [file["name"] for file in (await ask(companion, "find", words="A. SRC"))["files"]] == ["src/a.py"]
    assert (await ask(companion, "find", words="nothing")) == {"files": [], "more": False}


async def test_without_shared_context_the_page_shows_what_agents_do_not_get(workspace: Path, tmp_path: Path) -> None:
    (workspace / "a.py").write_text(TEXT)
    options = CompanionOptions(share_context=False)
    companion = Companion(WebEditor((str(workspace),)), options, kept=KeptTexts(tmp_path / "kept"))
    path = str(workspace / "a.py")
    await ask(companion, "view", path=path)
    assert [file["path"] for file in (await PAGE_COMMANDS["waiting"](companion, {}))["files"]] == [path]
    assert (await companion.context()).files == ()


async def test_an_editor_with_a_screen_of_its_own_shows_no_files_in_a_page(workspace: Path, tmp_path: Path) -> None:
    companion = Companion(HeadlessEditor((str(workspace),)), kept=KeptTexts(tmp_path / "kept"))
    assert (await PAGE_COMMANDS["waiting"](companion, {}))["files"] is None
    for command in ("find", "view", "select", "leave", "mention"):
        with pytest.raises(NotAvailableError, match="not in a page"):
            await ask(companion, command, path=str(workspace))
