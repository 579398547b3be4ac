from pathlib import Path

import pytest

from isthmus.editors.neovim.editor import NeovimEditor
from isthmus.ide.editor import (
    DiffAccepted,
    DiffRejected,
    EditorError,
)
from support.editing import active, content, make_file, names, review
from support.neovim import Heard, RunningNeovim, view_is_closed
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


async def test_a_review_is_a_real_diff_beside_the_file_on_disk(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = make_file(workspace, "a.py", "one\ntwo\nthree\n")
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


async def test_the_label_of_its_tab_says_which_file_is_reviewed(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    (workspace / "other").mkdir()
    for number, path in enumerate((make_file(workspace, "a.py"), make_file(workspace / "other", "a.py"))):
        await editor.open_diff(review(path, "new\n", number))
    labels = [Path(name).name for name in await neovim.buffers() if "proposed" in name]
    assert sorted(labels) == ["a.py (proposed)", "a.py in other (proposed)"]


@pytest.mark.parametrize(("lines", "syntax"), [(10, "python"), (20000, "")])
async def test_a_large_text_is_not_coloured_since_nothing_works_meanwhile(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path, lines: int, syntax: str
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py"), "0123456789abcdef\n" * lines))
    assert await neovim.lua("return vim.bo.syntax") == syntax


@pytest.mark.parametrize("command", ["write", "update", "wq", "x", "xit!", "wall", "normal! ZZ"])
async def test_writing_accepts_what_is_in_the_buffer_and_touches_no_disk(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, command: str
) -> None:
    path = make_file(workspace, "a.py")
    before = names(workspace)
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.set_lines("edited by the user", "é😀")
    await neovim.enter(command)
    assert await heard.decision() == DiffAccepted("review-1", "edited by the user\né😀\n")
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
    path = make_file(workspace, "a.py")
    await editor.open_diff(review(path, "proposed\n"))
    if edited:
        await neovim.set_lines("edited")
    await neovim.enter(command)
    assert await heard.decision() == DiffRejected("review-1", "edited\n" if edited else None)
    await view_is_closed(neovim)


@pytest.mark.parametrize("keys", [":bd<CR>", ":bwipeout<CR>", ":q<CR>", "<C-w>q", "ihello<Esc>:q<CR>"])
async def test_typed_commands_that_close_the_view_reject(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, keys: str
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await neovim.type(keys)
    assert await heard.decision() == DiffRejected("review-1", "helloproposed\n" if "hello" in keys else None)
    await view_is_closed(neovim)


async def test_the_user_stays_where_they_were_after_a_review(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    await neovim.command(f"edit {path}", "3", "vsplit", "2")
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.enter("wq")
    await heard.decision()
    await view_is_closed(neovim)
    assert await neovim.lua("return { vim.fn.winnr('$'), vim.fn.line('.'), vim.fn.bufname() }") == [2, 2, path]


@pytest.mark.parametrize("command", [":w<CR>", ":q<CR>"])
async def test_who_typed_in_a_terminal_goes_on_typing_there_after_the_review(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, command: str
) -> None:
    await neovim.command(f"edit {make_file(workspace, 'a.py')}", "terminal cat")
    await neovim.type("i")
    await editor.open_diff(review(f"{workspace}/a.py", "proposed\n"))
    await editor.open_diff(review(f"{workspace}/b.py", "proposed\n", 2))
    await eventually_async(lambda: _has_mode(neovim, "n"), what="the mode in which the review gets the keys")
    await neovim.type(command)
    await eventually_async(lambda: heard.decisions, what="a decision")
    assert await neovim.mode() == "n"
    await neovim.type(command)
    await view_is_closed(neovim)
    await eventually_async(lambda: _has_mode(neovim, "t"), what="the mode in which the terminal gets the keys")


async def _has_mode(neovim: RunningNeovim, mode: str) -> bool:
    return await neovim.mode() == mode


async def test_only_the_reviewed_text_on_the_whole_screen_is_no_decision(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await neovim.command("only", "split", "quit")
    assert await editor.close_diff("review-1") == "proposed\n"
    assert heard.decisions == []


@pytest.mark.parametrize("command", ["wall", "silent! wall", "bufdo update"])
async def test_saving_everything_from_elsewhere_decides_nothing(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path, command: str
) -> None:
    path = make_file(workspace, "a.py")
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
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await neovim.command("write copy.py")
    assert (workspace / "copy.py").read_text() == "proposed\n"
    assert await editor.close_diff("review-1") == "proposed\n"
    assert heard.decisions == []


async def test_undo_and_rereading_lead_back_to_the_proposal(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await neovim.type("u")
    assert await neovim.lines() == ["proposed"]
    await neovim.type("ohello<Esc>uuu")
    assert await neovim.lines() == ["proposed"]
    await neovim.type("dd")
    await neovim.command("edit!")
    assert await neovim.lines() == ["proposed"]
    await neovim.enter("x")
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
    await editor.open_diff(review(make_file(workspace, "a.txt"), proposed))
    await neovim.enter("write")
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
    await editor.open_diff(review(make_file(workspace, "a.txt"), proposed))
    await neovim.type("ggonew<Esc>:w<CR>")
    assert await heard.decision() == DiffAccepted("review-1", expected)


async def test_a_text_that_the_user_emptied_is_empty(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    await editor.open_diff(review(make_file(workspace, "a.txt"), "proposed\n"))
    await neovim.type("ggdG:w<CR>")
    assert await heard.decision() == DiffAccepted("review-1", "")


async def test_a_new_file_and_a_file_that_is_not_utf8_are_reviewed(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    new = str(workspace / "folder" / "100% new.py")
    latin = make_file(workspace, "latin.txt", b"caf\xe9\n")
    await editor.open_diff(review(new, "hello\n"))
    await editor.open_diff(review(latin, "café\n", 2))
    await neovim.enter("write")
    assert await heard.decision() == DiffAccepted("review-1", "hello\n")

    async def is_shown() -> bool:
        return await neovim.lines() == ["café"]

    await eventually_async(is_shown, what="the other review")
    await neovim.enter("write")
    await eventually_async(lambda: len(heard.decisions) == 2)
    assert heard.decisions[-1] == DiffAccepted("review-2", "café\n")
    assert names(workspace) == ["latin.txt"]
    assert content(latin) == b"caf\xe9\n"


async def test_a_dirty_target_keeps_its_unsaved_changes(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    await neovim.command(f"edit {path}")
    await neovim.set_lines("unsaved")
    await editor.open_diff(review(path, "proposed\n"))
    assert await neovim.lua("return vim.fn.getbufline(vim.fn.winbufnr(1), 1, '$')") == ["one", "two", "three"]
    await neovim.enter("wq")
    assert await heard.decision() == DiffAccepted("review-1", "proposed\n")
    await view_is_closed(neovim)
    assert await neovim.lines() == ["unsaved"]
    assert await editor.is_dirty(path) is True


async def test_an_accepted_file_is_read_again_when_the_agent_writes_it(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    await neovim.command(f"edit {path}")
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.enter("write")
    await heard.decision()
    await view_is_closed(neovim)
    make_file(workspace, "a.py", "proposed\n")

    async def shown() -> bool:
        return await neovim.lines() == ["proposed"]

    await eventually_async(shown)


async def test_two_reviews_are_decided_each_for_itself(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    await editor.open_diff(review(path, "first\n", 1))
    await editor.open_diff(review(path, "second\n", 2))
    await neovim.command("tabnext")
    await neovim.enter("write")
    await eventually_async(lambda: heard.decisions == [DiffAccepted("review-2", "second\n")])
    assert await neovim.lines() == ["first"]
    await neovim.command("quit")
    await eventually_async(lambda: heard.decisions[1:] == [DiffRejected("review-1")])
    await view_is_closed(neovim)


async def test_the_client_takes_a_review_back_with_the_text_that_is_in_it(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    await editor.open_diff(review(path, "proposed\n"))
    await neovim.type("ggihalf a wo")
    assert await editor.close_diff("review-1") == "half a woproposed\n"
    assert await editor.close_diff("review-1") is None
    await view_is_closed(neovim)
    assert await neovim.mode() == "n"
    await neovim.type("x")
    assert heard.decisions == []


@pytest.mark.parametrize(("keys", "mode"), [("ihel", "i"), ("wve", "v"), ("Vj", "V"), (":ec", "c")])
async def test_a_review_does_not_catch_the_keys_of_a_user_who_is_typing(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path, keys: str, mode: str
) -> None:
    path = make_file(workspace, "a.txt", "alpha beta\ngamma\n")
    await neovim.command(f"edit {path}")
    await neovim.type(keys)
    before = await active(editor)
    await editor.open_diff(review(path, "proposed\n"))
    assert await neovim.mode() == mode
    assert await neovim.lua("return vim.fn.bufname()") == path
    assert (await active(editor)).selection == before.selection
    assert await neovim.tabs() == 2
    assert await editor.close_diff("review-1") == "proposed\n"


async def test_a_user_who_was_typing_is_told_of_the_review_when_the_mode_line_is_gone(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    path = make_file(workspace, "a.txt", "alpha beta\n")
    await neovim.command(f"edit {path}")
    await neovim.lua("vim.notify = function(text) _G.told = { text = text, mode = vim.api.nvim_get_mode().mode } end")
    await neovim.type("ihel")
    await editor.open_diff(review(path, "proposed\n"))
    await eventually_async(lambda: neovim.lua("return _G.told and _G.told.mode == 'i'"), what="a message at once")
    await neovim.lua("_G.told = nil")
    assert await neovim.lua("return _G.told") is None
    await neovim.type("lo<Esc>")
    told = await eventually_async(lambda: neovim.lua("return _G.told"), what="the message")
    assert "tab 2" in told["text"]
    assert told["mode"] == "n"


@pytest.mark.parametrize("keys", ["", "itext<Esc>"])
async def test_the_user_is_told_that_unsaved_changes_are_not_in_the_view(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path, keys: str
) -> None:
    path = make_file(workspace, "a.txt", "alpha beta\n")
    await neovim.command(f"edit {path}")
    await neovim.type(keys)
    await editor.open_diff(review(path, "proposed\n"))
    bar = await neovim.lua("return vim.wo[vim.fn.win_getid(1)].winbar")
    assert "on disk" in bar
    assert ("without your unsaved changes" in bar) == (keys != "")


async def test_a_failed_review_leaves_nothing_behind(
    neovim: RunningNeovim, editor: NeovimEditor, heard: Heard, workspace: Path
) -> None:
    path = make_file(workspace, "a.py")
    await neovim.type("q:")
    with pytest.raises(EditorError, match=r"E11|command-line window"):
        await editor.open_diff(review(path, "proposed\n"))
    await neovim.type(":quit<CR>")
    await view_is_closed(neovim)
    assert heard.decisions == []


_BAR = "return vim.api.nvim_eval_statusline(vim.wo.winbar, { winid = 0, use_winbar = true }).str"


async def test_the_bar_of_a_review_fits_its_window_at_every_width(
    neovim: RunningNeovim, editor: NeovimEditor, workspace: Path
) -> None:
    (workspace / "source").mkdir()
    await neovim.lua("vim.o.columns = 85")  # two windows of 42 columns
    await editor.open_diff(review(make_file(workspace / "source", "a.py"), "proposed\n"))
    assert await neovim.lua(_BAR) == " :w accept  :q reject   by Gemini CLI  "

    async def shows(text: str) -> bool:
        return await neovim.lua(_BAR) == text

    for columns, text in (
        (87, " :w accept  :q reject   by Gemini CLI  a.py"),
        (160, " :w accept  :q reject   proposed by Gemini CLI  source/a.py"),
        (70, " :w accept  :q reject   "),
    ):
        await neovim.lua("vim.o.columns = ...", columns)
        await eventually_async(lambda text=text: shows(text), what=f"{text!r}")
