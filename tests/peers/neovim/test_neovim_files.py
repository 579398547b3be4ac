from pathlib import Path

import pytest

from isthmus.editors.neovim.editor import NeovimEditor, attach
from isthmus.ide.editor import (
    ContextChanged,
    DiagnosticsChanged,
    EditorError,
    FileMentioned,
    Position,
    Range,
    Severity,
    WorkspaceChanged,
)
from support.editing import active, content, delete, make_file, modified_at, review
from support.editor_deadlines import PATIENT_NEOVIM
from support.neovim import Heard, RunningNeovim, running_neovim
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def test_only_buffers_with_a_file_on_disk_are_open_files(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    kept = make_file(workspace, "kept.py")
    deleted = make_file(workspace, "deleted.py")
    await neovim.command(
        f"edit {deleted}", f"edit {kept}",
        "new", "call setline(1, 'unnamed')",
        "new scratch.txt | setlocal buftype=nofile",
        "new | terminal",
        "help",
        "call setqflist([{'filename': 'kept.py', 'lnum': 1}]) | copen",
        "new unsaved.txt | call setline(1, 'no file yet')",
        "edit .",
        "call bufadd('scheme://host/file.txt') | call setbufvar(bufnr('$'), '&buflisted', 1)",
    )  # fmt: skip
    await editor.open_diff(review(kept, "changed\n"))
    delete(deleted)
    assert [each.path for each in await editor.open_files()] == [kept]


async def test_a_file_stays_the_active_one_while_the_focus_is_in_something_else(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    await neovim.command(f"edit {path}", "2", "new | terminal")
    found = await active(editor)
    assert (found.path, found.cursor) == (path, Position(1, 0))


async def test_the_focus_time_of_a_file_is_when_it_was_entered_last(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    first, second = make_file(workspace, "first.py"), make_file(workspace, "second.py")
    await neovim.command(f"edit {first}", f"edit {second}")
    times = {each.path: each.focused_at for each in await editor.open_files()}
    assert times[first] < times[second]
    await neovim.command(f"buffer {first}")
    again = {each.path: each.focused_at for each in await editor.open_files()}
    assert again[first] > times[second] == again[second]
    assert (await active(editor)).path == first


async def test_files_that_were_open_before_the_companion_came_are_known(workspace: Path) -> None:
    paths = [make_file(workspace, "a.py"), make_file(workspace, "b.py")]
    async with running_neovim(workspace, *paths) as neovim:
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        files = await editor.open_files()
        assert {each.path for each in files} == set(paths)
        assert [each.path for each in files if each.is_active] == [paths[0]]
        assert await editor.workspace_folders() == (str(workspace),)
        assert editor.identity.pid == neovim.process.pid
        await editor.aclose()


async def test_the_file_before_the_companions_terminal_is_the_active_one(workspace: Path) -> None:
    paths = [make_file(workspace, "a.py"), make_file(workspace, "b.py")]
    async with running_neovim(workspace, *paths) as neovim:
        await neovim.command(f"edit {paths[1]}", "2", "terminal")
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        found = await active(editor)
        assert (found.path, found.cursor) == (paths[1], Position(1, 0))
        await editor.aclose()


async def test_the_cursor_is_counted_in_utf16_units(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await neovim.command(f"edit {make_file(workspace, 'a.txt', 'plain' + chr(10) + 'é😀漢x' + chr(10))}")
    await neovim.type("j$")
    assert (await active(editor)).cursor == Position(1, 4)
    await neovim.type("a")
    assert (await active(editor)).cursor == Position(1, 5)


LINES = "alpha beta\né😀漢 gamma\n\tdelta\n"


@pytest.mark.parametrize(
    ("keys", "text", "start", "end"),
    [
        ("wve", "beta", (0, 6), (0, 10)),
        ("$vb", "beta", (0, 6), (0, 10)),
        ("wvj", "beta\né😀漢 g", (0, 6), (1, 6)),
        ("jvl", "é😀", (1, 0), (1, 3)),
        ("jlvh", "é😀", (1, 0), (1, 3)),
        ("jV", "é😀漢 gamma", (1, 0), (1, 10)),
        ("jVk", "alpha beta\né😀漢 gamma", (0, 0), (1, 10)),
        ("l<C-v>jl", "lpha\n😀漢", (0, 1), (1, 4)),
        ("jll<C-v>kh", "pha\n漢", (0, 2), (1, 4)),
        ("l<C-v>j$", "lpha beta\n😀漢 gamma", (0, 1), (1, 10)),
        ("wgh<S-Right>", "be", (0, 6), (0, 8)),
    ],
)
async def test_the_selection_of_every_visual_mode_is_told(
    neovim: RunningNeovim,
    editor: NeovimEditor,
    workspace: Path,
    keys: str,
    text: str,
    start: tuple[int, int],
    end: tuple[int, int],
) -> None:
    await neovim.command(f"edit {make_file(workspace, 'a.txt', LINES)}", "set keymodel=startsel")
    await neovim.type(keys)
    selection = (await active(editor)).selection
    assert selection is not None
    assert selection.text == text
    assert selection.range == Range(Position(*start), Position(*end))


async def test_a_block_selection_is_what_neovim_itself_yanks(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = make_file(workspace, "a.txt", "abcdefgh\n\né\tyz\nab漢字xyz\n")
    await neovim.command(f"edit {path}")
    await neovim.type("ll<C-v>jjj3l")
    selection = (await active(editor)).selection
    await neovim.type("y")
    assert selection is not None
    # A block is yanked with its short lines padded.
    yanked = await neovim.lua("return vim.fn.getreg('\"', 1, true)")
    assert selection.text.split("\n") == [line.rstrip(" ") for line in yanked]


async def test_a_selection_ends_with_escape_but_stays_when_the_user_enters_the_terminal(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await neovim.command("botright new | terminal", f"topleft split {make_file(workspace, 'a.txt', LINES)}")
    await neovim.type("wve<Esc>")
    assert (await active(editor)).selection is None
    await neovim.type("0wve<C-w>j")
    assert (await neovim.mode()).startswith("n")
    selection = (await active(editor)).selection
    assert selection is not None
    assert selection.text == "beta"
    await neovim.type("<C-w>k")
    assert (await active(editor)).selection is None


async def test_a_huge_selection_is_cut_and_says_so(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await neovim.command(f"edit {make_file(workspace, 'a.txt', 'x' * 99 + chr(10) + ('y' * 99 + chr(10)) * 9999)}")
    await neovim.type("VG")
    selection = (await active(editor)).selection
    assert selection is not None
    assert selection.range.end == Position(9999, 99)
    assert len(selection.text) < 300_000
    assert selection.text.endswith("... [TRUNCATED]")


async def test_what_the_user_does_is_told_as_changes(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.txt", LINES)
    other = make_file(workspace, "b.txt", LINES)
    await neovim.command(f"edit {path}")
    for keys in ("j", "v", "l", "<Esc>", "ihello<Esc>", "u", f":edit {other}<CR>", ":bdelete<CR>"):
        heard.events.clear()
        await neovim.type(keys)
        await eventually_async(lambda: ContextChanged() in heard.events, what=f"a change after {keys}")


async def test_the_working_directories_are_the_workspace(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    other = workspace / "other"
    other.mkdir()
    await neovim.command("tabnew", f"tcd {other}")
    await eventually_async(lambda: WorkspaceChanged() in heard.events)
    assert await editor.workspace_folders() == (str(workspace), str(other))


async def test_lines_are_mentioned_with_a_command(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.txt")
    await neovim.command(f"edit {path}", "IsthmusMention", "2,3IsthmusMention")
    await eventually_async(lambda: FileMentioned(path, 1, 2) in heard.events)
    assert FileMentioned(path) in heard.events
    other = make_file(workspace, "b.txt")
    await neovim.command("IsthmusMention none.txt", "IsthmusMention b.txt")
    await eventually_async(lambda: FileMentioned(other) in heard.events)
    assert "none.txt is not a file on disk" in await neovim.lua("return vim.fn.execute('messages')")


# Files and diagnostics


async def test_a_file_is_shown_at_a_position_and_with_a_selection(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = make_file(workspace, "a file with 'quotes' | bar.txt", LINES)
    await neovim.type("i")
    await editor.open_file(path, Range(Position(1, 3), Position(1, 3)))
    assert (await active(editor)).cursor == Position(1, 3)
    await editor.open_file(path, Range(Position(0, 6), Position(1, 3)))
    selection = (await active(editor)).selection
    assert selection is not None
    assert selection.text == "beta\né😀"
    assert selection.range == Range(Position(0, 6), Position(1, 3))


async def test_a_file_opened_in_the_background_does_not_take_the_focus(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    first, second = make_file(workspace, "first.py"), make_file(workspace, "second.py")
    await editor.open_file(first)
    await editor.open_file(second, focus=False)
    assert {each.path: each.is_active for each in await editor.open_files()} == {first: True, second: False}


async def test_a_file_is_not_opened_in_the_window_of_a_terminal_or_a_review(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path, reviewed = make_file(workspace, "a.py"), make_file(workspace, "b.py")
    await neovim.command("terminal")
    await editor.open_diff(review(reviewed, "changed\n"))
    await editor.open_file(path)
    assert (await active(editor)).path == path
    assert await editor.close_diff("review-1") == "changed\n"


async def test_a_file_with_a_swap_file_is_opened_without_a_question(workspace: Path) -> None:
    path = make_file(workspace, "a.txt")
    async with running_neovim(workspace) as first, running_neovim(workspace) as second:
        await first.command("set directory=. updatecount=1", f"edit {path}", "preserve")
        await second.command("set directory=. updatecount=1")
        editor = await attach(second.address, PATIENT_NEOVIM)
        await editor.open_file(path)
        assert await second.lua("return vim.bo.readonly") is True
        await editor.aclose()


async def test_saving_writes_the_buffer_and_only_when_it_changed(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = make_file(workspace, "a.txt", "one\r\ntwo")
    assert await editor.is_dirty(path) is None
    await editor.open_file(path)
    assert await editor.is_dirty(path) is False
    before = modified_at(path)
    await editor.save(path)
    assert modified_at(path) == before
    await neovim.command("set nofixendofline")
    await neovim.set_lines("changed", "two")
    assert await editor.is_dirty(path) is True
    await editor.save(path)
    assert content(path) == b"changed\r\ntwo"
    assert await editor.is_dirty(path) is False


async def test_saving_never_overwrites_what_changed_on_disk_and_never_asks(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = make_file(workspace, "a.txt")
    await editor.open_file(path)
    await neovim.set_lines("mine")
    make_file(workspace, "a.txt", "theirs, and longer\n")
    for _ in range(2):
        with pytest.raises(EditorError, match="changed on disk"):
            await editor.save(path)
    assert content(path) == b"theirs, and longer\n"
    assert await neovim.lines() == ["mine"]


async def test_a_file_with_unsaved_changes_is_not_closed(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = make_file(workspace, "a.txt")
    await editor.open_file(path)
    await neovim.set_lines("mine")
    with pytest.raises(EditorError) as refused:
        await editor.close_file(path)
    assert str(refused.value) == f"{path}: it has unsaved changes"  # no traceback of the plugin's Lua
    await editor.save(path)
    await editor.close_file(path)
    await editor.close_file(path)
    assert await editor.open_files() == ()


async def test_diagnostics_are_those_of_neovim_in_utf16_units(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.txt", LINES)
    await editor.open_file(path)
    await neovim.lua(
        "vim.diagnostic.set(vim.api.nvim_create_namespace('test'), 0, {{ lnum = 1, col = 6, end_col = 9,"
        " severity = vim.diagnostic.severity.WARN, message = 'odd', source = 'linter', code = 7 }})"
    )
    await eventually_async(lambda: DiagnosticsChanged((path,)) in heard.events)
    (found,) = await editor.diagnostics()
    assert found.range == Range(Position(1, 3), Position(1, 4))
    assert (found.path, found.severity, found.message) == (path, Severity.WARNING, "odd")
    assert (found.source, found.code) == ("linter", "7")
    assert await editor.diagnostics(path) == (found,)
    assert await editor.diagnostics(str(workspace / "other.txt")) == ()
