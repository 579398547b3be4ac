import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.editors.neovim import NeovimEditor, attach, default_address
from isthmus.ide.editor import (
    ContextChanged,
    DiagnosticsChanged,
    DiffAccepted,
    DiffRejected,
    EditorError,
    EditorEvent,
    EditorGoneError,
    FileMentioned,
    OpenFile,
    Position,
    Range,
    Severity,
    WorkspaceChanged,
)
from isthmus.ide.review import DiffReview
from support.neovim import RunningNeovim, running_neovim
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class Heard:
    """What an editor told, collected in the background."""

    def __init__(self, editor: NeovimEditor) -> None:
        self.events: list[EditorEvent] = []
        self.task = asyncio.create_task(self._listen(editor))

    async def _listen(self, editor: NeovimEditor) -> None:
        async for event in editor.changes():
            self.events.append(event)

    @property
    def decisions(self) -> list[DiffAccepted | DiffRejected]:
        return [event for event in self.events if isinstance(event, (DiffAccepted, DiffRejected))]

    async def decision(self) -> DiffAccepted | DiffRejected:
        await eventually_async(lambda: self.decisions, what="a decision")
        assert len(self.decisions) == 1
        return self.decisions[0]


@pytest.fixture
async def neovim(workspace: Path) -> AsyncGenerator[RunningNeovim]:
    async with running_neovim(workspace) as running:
        yield running


@pytest.fixture
async def editor(neovim: RunningNeovim) -> AsyncGenerator[NeovimEditor]:
    attached = await attach(neovim.address)
    yield attached
    await attached.aclose()


@pytest.fixture
async def heard(editor: NeovimEditor) -> AsyncGenerator[Heard]:
    listening = Heard(editor)
    yield listening
    listening.task.cancel()
    await asyncio.wait([listening.task])


def file(folder: Path, name: str, content: str | bytes = "one\ntwo\nthree\n") -> str:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def delete(path: str) -> None:
    Path(path).unlink()


def modified_at(path: str) -> int:
    return Path(path).stat().st_mtime_ns


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def content(path: str) -> bytes:
    return Path(path).read_bytes()


def review(path: str, proposed: str, number: int = 1) -> DiffReview:
    return DiffReview(f"review-{number}", path, proposed, "client", "Gemini CLI")


async def active(editor: NeovimEditor) -> OpenFile:
    return next(file for file in await editor.open_files() if file.is_active)


async def view_is_closed(neovim: RunningNeovim) -> None:
    await eventually_async(lambda: _no_view(neovim), what="the view is closed and its buffers are gone")


async def _no_view(neovim: RunningNeovim) -> bool:
    return await neovim.tabs() == 1 and not any("isthmus:" in name for name in await neovim.buffers())


# Open files, cursor and selection


async def test_only_buffers_with_a_file_on_disk_are_open_files(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    kept = file(workspace, "kept.py")
    deleted = file(workspace, "deleted.py")
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


async def test_a_file_keeps_being_the_active_one_while_the_focus_is_in_something_that_is_no_file(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = file(workspace, "a.py")
    await neovim.command(f"edit {path}", "2", "new | terminal")
    found = await active(editor)
    assert (found.path, found.cursor) == (path, Position(1, 0))


async def test_the_focus_time_of_a_file_is_when_it_was_entered_last(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    first, second = file(workspace, "first.py"), file(workspace, "second.py")
    await neovim.command(f"edit {first}", f"edit {second}")
    times = {each.path: each.focused_at for each in await editor.open_files()}
    assert times[first] < times[second]
    await neovim.command(f"buffer {first}")
    again = {each.path: each.focused_at for each in await editor.open_files()}
    assert again[first] > times[second] == again[second]
    assert (await active(editor)).path == first


async def test_files_that_were_open_before_the_companion_came_are_known(workspace: Path) -> None:
    paths = [file(workspace, "a.py"), file(workspace, "b.py")]
    async with running_neovim(workspace, *paths) as neovim:
        editor = await attach(neovim.address)
        files = await editor.open_files()
        assert {each.path for each in files} == set(paths)
        assert [each.path for each in files if each.is_active] == [paths[0]]
        assert await editor.workspace_folders() == (str(workspace),)
        assert editor.identity.pid == neovim.process.pid
        await editor.aclose()


async def test_the_cursor_is_counted_in_utf16_units(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await neovim.command(f"edit {file(workspace, 'a.txt', 'plain' + chr(10) + 'é😀漢x' + chr(10))}")
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
    await neovim.command(f"edit {file(workspace, 'a.txt', LINES)}", "set keymodel=startsel")
    await neovim.type(keys)
    selection = (await active(editor)).selection
    assert selection is not None
    assert selection.text == text
    assert selection.range == Range(Position(*start), Position(*end))


async def test_a_block_selection_is_what_neovim_itself_yanks(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = file(workspace, "a.txt", "abcdefgh\n\né\tyz\nab漢字xyz\n")
    await neovim.command(f"edit {path}")
    await neovim.type("ll<C-v>jjj3l")
    selection = (await active(editor)).selection
    await neovim.type("y")
    assert selection is not None
    # A block is yanked with its short lines filled up.
    yanked = await neovim.lua("return vim.fn.getreg('\"', 1, true)")
    assert selection.text.split("\n") == [line.rstrip(" ") for line in yanked]


async def test_a_selection_ends_with_escape_but_stays_when_the_person_goes_to_the_terminal(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    await neovim.command("botright new | terminal", f"topleft split {file(workspace, 'a.txt', LINES)}")
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
    await neovim.command(f"edit {file(workspace, 'a.txt', 'x' * 99 + chr(10) + ('y' * 99 + chr(10)) * 9999)}")
    await neovim.type("VG")
    selection = (await active(editor)).selection
    assert selection is not None
    assert selection.range.end == Position(9999, 99)
    assert len(selection.text) < 300_000
    assert selection.text.endswith("... [TRUNCATED]")


async def test_what_the_person_does_is_told_as_changes(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = file(workspace, "a.txt", LINES)
    other = file(workspace, "b.txt", LINES)
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
    path = file(workspace, "a.txt")
    await neovim.command(f"edit {path}", "IsthmusMention", "2,3IsthmusMention")
    await eventually_async(lambda: FileMentioned(path, 1, 2) in heard.events)
    assert FileMentioned(path) in heard.events


# Files and diagnostics


async def test_a_file_is_shown_at_a_position_and_with_a_selection(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = file(workspace, "a file with 'quotes' | bar.txt", LINES)
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
    first, second = file(workspace, "first.py"), file(workspace, "second.py")
    await editor.open_file(first)
    await editor.open_file(second, focus=False)
    assert {each.path: each.is_active for each in await editor.open_files()} == {first: True, second: False}


async def test_a_file_is_not_opened_in_the_window_of_a_terminal_or_a_review(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path, reviewed = file(workspace, "a.py"), file(workspace, "b.py")
    await neovim.command("terminal")
    await editor.open_diff(review(reviewed, "changed\n"))
    await editor.open_file(path)
    assert (await active(editor)).path == path
    assert await editor.close_diff("review-1") == "changed\n"


async def test_a_file_with_a_swap_file_is_opened_without_a_question(workspace: Path) -> None:
    path = file(workspace, "a.txt")
    async with running_neovim(workspace) as first, running_neovim(workspace) as second:
        await first.command("set directory=. updatecount=1", f"edit {path}", "preserve")
        await second.command("set directory=. updatecount=1")
        editor = await attach(second.address)
        await editor.open_file(path)
        assert await second.lua("return vim.bo.readonly") is True
        await editor.aclose()


async def test_saving_writes_the_buffer_and_only_when_it_changed(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = file(workspace, "a.txt", "one\r\ntwo")
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
    path = file(workspace, "a.txt")
    await editor.open_file(path)
    await neovim.set_lines("mine")
    file(workspace, "a.txt", "theirs, and longer\n")
    for _ in range(2):
        with pytest.raises(EditorError, match="changed on disk"):
            await editor.save(path)
    assert content(path) == b"theirs, and longer\n"
    assert await neovim.lines() == ["mine"]


async def test_a_file_with_unsaved_changes_is_not_closed(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = file(workspace, "a.txt")
    await editor.open_file(path)
    await neovim.set_lines("mine")
    with pytest.raises(EditorError, match="unsaved changes"):
        await editor.close_file(path)
    await editor.save(path)
    await editor.close_file(path)
    await editor.close_file(path)
    assert await editor.open_files() == ()


async def test_diagnostics_are_those_of_neovim_in_utf16_units(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = file(workspace, "a.txt", LINES)
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


# Reviews


async def test_a_review_is_a_real_diff_beside_the_file_on_disk(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = file(workspace, "a.py", "one\ntwo\nthree\n")
    await editor.open_diff(review(path, "one\nTWO\nthree\n"))
    seen = await neovim.lua(
        "return vim.tbl_map(function(w) local b = vim.api.nvim_win_get_buf(w); return "
        "{vim.wo[w].diff, vim.bo[b].modifiable, vim.api.nvim_buf_get_lines(b, 0, -1, true), vim.wo[w].winbar} end, "
        "vim.api.nvim_tabpage_list_wins(0))"
    )
    assert [(diff, modifiable, lines) for diff, modifiable, lines, _ in seen] == [
        (True, False, ["one", "two", "three"]),
        (True, True, ["one", "TWO", "three"]),
    ]
    assert ":w" in seen[1][3]
    assert "Gemini CLI" in seen[1][3]
    assert await neovim.lua("return vim.fn.line('.')") == 2


@pytest.mark.parametrize("command", ["write", "update", "wq", "x", "xit!", "wall", "normal! ZZ"])
async def test_writing_accepts_what_is_in_the_buffer_and_touches_no_disk(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, command: str
) -> None:
    path = file(workspace, "a.py")
    before = names(workspace)
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.set_lines("edited by the person", "é😀")
    await neovim.command(command)
    assert await heard.decision() == DiffAccepted("review-1", "edited by the person\né😀\n")
    await view_is_closed(neovim)
    assert content(path) == b"one\ntwo\nthree\n"
    assert names(workspace) == before


@pytest.mark.parametrize(
    "command",
    [
        "quit", "quit!", "close", "tabclose", "bdelete!", "bwipeout!", "normal! ZQ", "wincmd c",
        "wincmd h | quit", "wincmd h | only", "windo quit",
    ],
)  # fmt: skip
@pytest.mark.parametrize("edited", [False, True])
async def test_closing_the_view_rejects(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, command: str, edited: bool
) -> None:
    path = file(workspace, "a.py")
    await editor.open_diff(review(path, "proposed\n"))
    if edited:
        await neovim.set_lines("edited")
    await neovim.command(command)
    assert await heard.decision() == DiffRejected("review-1")
    await view_is_closed(neovim)


@pytest.mark.parametrize("keys", [":bd<CR>", ":bwipeout<CR>", ":q<CR>", "<C-w>q", "ihello<Esc>:q<CR>"])
async def test_typed_commands_that_close_the_view_reject(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, keys: str
) -> None:
    await editor.open_diff(review(file(workspace, "a.py"), "proposed\n"))
    await neovim.type(keys)
    assert await heard.decision() == DiffRejected("review-1")
    await view_is_closed(neovim)


async def test_the_person_stays_where_they_were_after_a_review(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = file(workspace, "a.py")
    await neovim.command(f"edit {path}", "3", "vsplit", "2")
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.command("wq")
    await heard.decision()
    await view_is_closed(neovim)
    assert await neovim.lua("return { vim.fn.winnr('$'), vim.fn.line('.'), vim.fn.bufname() }") == [2, 2, path]


async def test_only_the_reviewed_text_on_the_whole_screen_is_no_decision(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(file(workspace, "a.py"), "proposed\n"))
    await neovim.command("only", "split", "quit")
    assert await editor.close_diff("review-1") == "proposed\n"
    assert heard.decisions == []


@pytest.mark.parametrize("command", ["wall", "silent! wall", "bufdo update"])
async def test_saving_everything_from_elsewhere_decides_nothing(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, command: str
) -> None:
    path = file(workspace, "a.py")
    await neovim.command(f"edit {path}")
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.set_lines("edited")
    await neovim.command("tabprevious", "normal! ogo", command)
    assert await editor.is_dirty(path) is False
    assert await editor.close_diff("review-1") == "edited\n"
    assert heard.decisions == []


async def test_a_copy_can_be_written_without_deciding(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(file(workspace, "a.py"), "proposed\n"))
    await neovim.command("write copy.py")
    assert (workspace / "copy.py").read_text() == "proposed\n"
    assert await editor.close_diff("review-1") == "proposed\n"
    assert heard.decisions == []


async def test_undo_and_rereading_lead_back_to_the_proposal(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(file(workspace, "a.py"), "proposed\n"))
    await neovim.type("u")
    assert await neovim.lines() == ["proposed"]
    await neovim.type("ohello<Esc>uuu")
    assert await neovim.lines() == ["proposed"]
    await neovim.type("dd")
    await neovim.command("edit!")
    assert await neovim.lines() == ["proposed"]
    await neovim.command("x")
    assert await heard.decision() == DiffAccepted("review-1", "proposed\n")


@pytest.mark.parametrize(
    "proposed",
    [
        "", "\n", "\n\n", "no final newline", "a\r\nb\r\n", "a\r\nb", "mixed\r\nends\n", "lone\rcr\n", "trailing cr\r",
        "\ufeffwith a mark\n", "\ufeffa\r\nb\r\n", "\ufeff", "nul\0byte\n", "é😀漢\n", "form\ffeed\u2028line\n",
        "\t tabs and  spaces \t\n",
    ],
)  # fmt: skip
async def test_a_proposal_comes_back_as_it_was(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, proposed: str
) -> None:
    await editor.open_diff(review(file(workspace, "a.txt"), proposed))
    await neovim.command("write")
    assert await heard.decision() == DiffAccepted("review-1", proposed)


@pytest.mark.parametrize(
    ("proposed", "expected"),
    [
        ("a\r\nb\r\n", "a\r\nnew\r\nb\r\n"),
        ("a\nb", "a\nnew\nb"),
        ("\ufeffa\r\nb", "\ufeffa\r\nnew\r\nb"),
        ("a\r\nb\n", "a\r\nnew\nb\n"),
        ("a\0\nb\n", "a\0\nnew\nb\n"),
    ],
)
async def test_an_edit_keeps_line_ends_mark_and_missing_newline(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, proposed: str, expected: str
) -> None:
    await editor.open_diff(review(file(workspace, "a.txt"), proposed))
    await neovim.type("ggonew<Esc>:w<CR>")
    assert await heard.decision() == DiffAccepted("review-1", expected)


async def test_a_text_that_the_person_emptied_is_empty(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(file(workspace, "a.txt"), "proposed\n"))
    await neovim.type("ggdG:w<CR>")
    assert await heard.decision() == DiffAccepted("review-1", "")


async def test_a_new_file_and_a_file_that_is_not_utf8_are_reviewed(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    new = str(workspace / "folder" / "100% new.py")
    latin = file(workspace, "latin.txt", b"caf\xe9\n")
    await editor.open_diff(review(new, "hello\n"))
    await editor.open_diff(review(latin, "café\n", 2))
    await neovim.command("write", "write")
    await eventually_async(lambda: len(heard.decisions) == 2)
    assert heard.decisions == [DiffAccepted("review-2", "café\n"), DiffAccepted("review-1", "hello\n")]
    assert names(workspace) == ["latin.txt"]
    assert content(latin) == b"caf\xe9\n"


async def test_a_dirty_target_keeps_its_unsaved_changes(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = file(workspace, "a.py")
    await neovim.command(f"edit {path}")
    await neovim.set_lines("unsaved")
    await editor.open_diff(review(path, "proposed\n"))
    assert await neovim.lua("return vim.fn.getbufline(vim.fn.winbufnr(1), 1, '$')") == ["one", "two", "three"]
    await neovim.command("wq")
    assert await heard.decision() == DiffAccepted("review-1", "proposed\n")
    await view_is_closed(neovim)
    assert await neovim.lines() == ["unsaved"]
    assert await editor.is_dirty(path) is True


async def test_an_accepted_file_is_read_again_when_the_agent_writes_it(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = file(workspace, "a.py")
    await neovim.command(f"edit {path}")
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.command("write")
    await heard.decision()
    await view_is_closed(neovim)
    file(workspace, "a.py", "proposed\n")

    async def shown() -> bool:
        return await neovim.lines() == ["proposed"]

    await eventually_async(shown)


async def test_two_reviews_are_decided_each_for_itself(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = file(workspace, "a.py")
    await editor.open_diff(review(path, "first\n", 1))
    await editor.open_diff(review(path, "second\n", 2))
    await neovim.command("tabprevious")
    await neovim.command("write")
    await eventually_async(lambda: heard.decisions == [DiffAccepted("review-1", "first\n")])
    assert await neovim.lines() == ["second"]
    await neovim.command("quit")
    await eventually_async(lambda: heard.decisions[1:] == [DiffRejected("review-2")])
    await view_is_closed(neovim)


async def test_the_client_takes_a_review_back_with_the_text_that_is_in_it(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = file(workspace, "a.py")
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.type("ggihalf a wo")
    assert await editor.close_diff("review-1") == "half a woproposed\n"
    assert await editor.close_diff("review-1") is None
    await view_is_closed(neovim)
    assert await neovim.mode() == "n"
    await neovim.type("x")
    assert heard.decisions == []


@pytest.mark.parametrize(("keys", "mode"), [("ihel", "i"), ("wve", "v"), ("Vj", "V"), (":ec", "c")])
async def test_a_review_does_not_catch_the_keys_of_a_person_who_is_typing(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path, keys: str, mode: str
) -> None:
    path = file(workspace, "a.txt", LINES)
    await neovim.command(f"edit {path}")
    await neovim.type(keys)
    before = await active(editor)
    await editor.open_diff(review(path, "proposed\n"))
    assert await neovim.mode() == mode
    assert await neovim.lua("return vim.fn.bufname()") == path
    assert (await active(editor)).selection == before.selection
    assert await neovim.tabs() == 2
    assert await editor.close_diff("review-1") == "proposed\n"


async def test_a_failed_review_leaves_nothing_behind(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = file(workspace, "a.py")
    await neovim.type("q:")
    with pytest.raises(EditorError, match=r"E11|command-line window"):
        await editor.open_diff(review(path, "proposed\n"))
    await neovim.type("<C-c><C-c>")
    await neovim.command("stopinsert")
    await view_is_closed(neovim)
    assert heard.decisions == []


# Life and death


async def test_a_neovim_at_a_prompt_costs_a_deadline_and_not_the_companion(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("isthmus.editors.neovim._COMMAND_SECONDS", 0.3)
    path = file(workspace, "a.py")
    await neovim.command(f"edit {path}")
    known = await editor.open_files()
    await neovim.connection.request("nvim_input", "r", timeout=5)  # waits for a character, and answers nothing else
    assert await editor.open_files() == known
    with pytest.raises(EditorError, match="waits at a prompt"):
        await editor.open_diff(review(path, "proposed\n"))
    await neovim.connection.request("nvim_input", "<Esc>", timeout=5)
    await view_is_closed(neovim)


@pytest.mark.parametrize("command", ["qall", "wqall", "quitall!", "xall", "cquit"])
async def test_quitting_ends_the_changes_at_once_and_rejects_what_is_open(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, command: str
) -> None:
    path = file(workspace, "a.py")
    await neovim.command(f"edit {path}")
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.command("tabprevious")
    await neovim.quit(command)
    await asyncio.wait_for(heard.task, 2)
    assert heard.decisions == [DiffRejected("review-1")]
    with pytest.raises(EditorGoneError):
        await editor.open_files()
    with pytest.raises(EditorGoneError):
        await editor.open_diff(review(path, "proposed\n"))


async def test_a_crash_ends_the_changes_at_once(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(file(workspace, "a.py"), "proposed\n"))
    neovim.process.kill()
    await asyncio.wait_for(heard.task, 2)
    with pytest.raises(EditorGoneError):
        await editor.close_diff("review-1")


async def test_a_companion_that_leaves_takes_everything_with_it(neovim: RunningNeovim, workspace: Path) -> None:
    path = file(workspace, "a.py")
    editor = await attach(neovim.address)
    await editor.open_diff(review(path, "proposed\n"))
    await editor.aclose()
    await view_is_closed(neovim)
    assert await neovim.lua("return vim.fn.exists(':IsthmusMention')") == 0
    assert await neovim.lua("return vim.tbl_isempty(_G.isthmus_sessions)") is True
    groups = await neovim.lua("return vim.fn.getcompletion('isthmus', 'augroup')")
    assert groups == []
    with pytest.raises(EditorGoneError):
        await editor.open_files()


async def test_a_companion_that_dies_leaves_what_the_person_typed(neovim: RunningNeovim, workspace: Path) -> None:
    editor = await attach(neovim.address)
    await editor.open_diff(review(file(workspace, "a.py"), "untouched\n"))
    await editor.open_diff(review(file(workspace, "b.py"), "proposed\n", 2))
    await neovim.set_lines("typed by the person")
    # Cut the line without a word, as kill -9 does.
    await neovim.lua("for c in pairs(_G.isthmus_sessions) do vim.fn.chanclose(c) end")
    await neovim.type("l")
    await eventually_async(lambda: _orphaned(neovim), what="the script noticed")
    assert await neovim.lines() == ["typed by the person"]
    await neovim.command("write rescued.txt")
    assert (workspace / "rescued.txt").read_text() == "typed by the person\n"
    await editor.aclose()


async def _orphaned(neovim: RunningNeovim) -> bool:
    names = await neovim.buffers()
    return await neovim.tabs() == 2 and not any("isthmus://proposed" in name for name in names)


async def test_two_companions_at_one_neovim_do_not_disturb_each_other(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = file(workspace, "a.py")
    other = await attach(neovim.address)
    await editor.open_diff(review(path, "for the first\n", 1))
    await other.open_diff(review(path, "for the second\n", 2))
    await other.aclose()
    assert await neovim.lines() == ["for the first"]
    await neovim.command("write")
    assert await heard.decision() == DiffAccepted("review-1", "for the first\n")


async def test_attaching_where_nobody_listens_names_the_address(tmp_path: Path) -> None:
    with pytest.raises(EditorError, match="no-socket"):
        await attach(str(tmp_path / "no-socket"))
    with pytest.raises(EditorError, match="127"):
        await attach("127.0.0.1:1")
    with pytest.raises(EditorError, match="--address"):
        default_address({})
    assert default_address({"NVIM": "/run/nvim"}) == "/run/nvim"


async def test_neovim_is_attached_to_over_tcp(workspace: Path) -> None:
    async with running_neovim(workspace) as neovim:
        address = await neovim.lua("return vim.fn.serverstart('127.0.0.1:0')")
        editor = await attach(address)
        assert await editor.open_files() == ()
        await editor.aclose()
