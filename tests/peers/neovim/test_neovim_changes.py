"""What agents wrote without a review, in a real Neovim: told, listed, shown, kept, undone and brought back."""

import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.neovim.editor import attach
from isthmus.ide.options import CompanionOptions
from isthmus.ide.written_changes.written_changes import WrittenChanges
from support.claude_cli import claude_cli
from support.companion import running_host
from support.editing import make_file
from support.editor_deadlines import PATIENT_NEOVIM
from support.isthmus_program import companion_program
from support.neovim import PLUGIN, RunningNeovim, another_program, running_neovim
from support.waiting import eventually_async
from support.written_changes import watching_agent

pytestmark = pytest.mark.anyio

OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n"
NEW = "ONE\ntwo\nthree\nadded\nfour\nfive\nseven\neight\nnine\n"
"""Changed, added, and removed: three hunks, on lines 1, 4 and 7."""
QUIET = ("--cmd", "let g:isthmus_changes = {'quiet': 0.2}")
SIGNS = """
local found = {}
for name, namespace in pairs(vim.api.nvim_get_namespaces()) do
  if name:find("isthmus_written", 1, true) then
    for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
      if mark[4].sign_text then
        found[#found + 1] = { mark[2] + 1, vim.trim(mark[4].sign_text) }
      end
    end
  end
end
return found
"""
NOTES = """
local found = {}
for name, namespace in pairs(vim.api.nvim_get_namespaces()) do
  for _, mark in ipairs(vim.api.nvim_buf_get_extmarks(0, namespace, 0, -1, { details = true })) do
    found[#found + 1] = mark[4].virt_text and vim.trim(mark[4].virt_text[1][1]) or nil
  end
end
return found
"""
SIDES = """
return vim.tbl_map(function(window)
  local buffer = vim.api.nvim_win_get_buf(window)
  return { table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\\n") .. "\\n", vim.wo[window].diff }
end, vim.api.nvim_tabpage_list_wins(0))
"""


@dataclass(slots=True)
class Writing:
    """A Neovim beside which an agent writes files."""

    neovim: RunningNeovim
    written: WrittenChanges
    workspace: Path

    def write(self, name: str, text: str) -> Path:
        """Write a file as an agent does."""
        return Path(make_file(self.workspace, name, text))

    async def shows(self, *lines: str) -> None:
        """Wait until the current buffer has these lines."""

        async def has_lines() -> bool:
            return await self.neovim.lines() == list(lines)

        await eventually_async(has_lines, what=f"the buffer has {lines}")

    async def has_signs(self, *signs: list[object]) -> None:
        """Wait until the current buffer has these signs."""

        async def are_there() -> bool:
            return sorted(await self.neovim.lua(SIGNS)) == sorted(signs)

        await eventually_async(are_there, what=f"the signs {signs}")

    async def is_told(self, text: str) -> None:
        """Wait for a message."""

        async def has_message() -> bool:
            messages: str = await self.neovim.lua("return vim.fn.execute('messages')")
            return text in " ".join(messages.split())

        await eventually_async(has_message, what=f"the message {text!r}")

    async def lists(self, *parts: str) -> list[str]:
        """Wait until the current buffer has lines with these parts, and return its lines."""

        async def has_parts() -> list[str]:
            lines = await self.neovim.lines()
            assert all(any(part in line for line in lines) for part in parts), lines
            return lines

        return await eventually_async(has_parts, what=f"a list with {parts}")

    async def lists_no(self, part: str) -> None:
        """Wait until no line of the current buffer, which is the list, has this part."""

        async def has_none() -> bool:
            lines = await self.neovim.lines()
            return lines[0].startswith("Since you last looked") and not any(part in line for line in lines)

        await eventually_async(has_none, what=f"a list without {part!r}")

    async def has_disk(self, path: Path, text: str) -> None:
        """Wait until a file has a text."""

        async def equals() -> bool:
            found = path.read_text() if path.exists() else None
            assert found == text, (found, await self.neovim.lua("return vim.fn.execute('messages')"))
            return True

        await eventually_async(equals, what=f"{path.name} is {text!r}")

    async def sides(self) -> list[list[Any]]:
        """Return the text of each window of the tab page, and whether it is part of a diff."""
        return await self.neovim.lua(SIDES)


@asynccontextmanager
async def writing(workspace: Path, *arguments: str, **files: str) -> AsyncGenerator[Writing]:
    """Start a Neovim with a companion, and an agent that writes beside it; the files are there before."""
    for name, text in files.items():
        make_file(workspace, name.replace("_", "."), text)
    async with running_neovim(workspace, *QUIET, *arguments) as neovim:
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        options = CompanionOptions(folders=(str(workspace),))
        async with running_host(editor, options) as (host, _, _), claude_cli(workspace):
            assert host.companion is not None
            written = host.companion.written

            async def follows() -> bool:
                return (await written.listing())["following"]

            await eventually_async(follows, what="the companion follows the workspace")
            yield Writing(neovim, written, workspace)


async def test_the_user_is_told_once_and_sees_signs(workspace: Path) -> None:
    async with writing(workspace, "a.txt", a_txt=OLD, b_txt="old\n") as agent:
        neovim = agent.neovim
        await neovim.lua(
            'vim.api.nvim_create_autocmd("User", { pattern = "IsthmusChanges", callback = function(event)'
            " _G.heard = event.data end })"
        )
        agent.write("a.txt", NEW)
        agent.write("b.txt", "new\n")
        await agent.is_told("2 files written by Claude Code; :IsthmusChanges")
        assert await neovim.lua("return vim.g.isthmus_written") == "2 files written"
        assert await neovim.lua("return _G.heard") == {"files": 2, "turns": 1, "agents": "Claude Code"}
        await agent.has_signs([1, "┃"], [4, "┃"], [7, "_"])
        assert await neovim.tabs() == 1
        assert await neovim.lua("return #vim.api.nvim_list_wins()") == 1
        await neovim.type("i")
        agent.write("c.txt", "created\n")

        async def is_known() -> bool:
            return await neovim.lua("return vim.g.isthmus_written") == "3 files written"

        await eventually_async(is_known, what="three files")
        assert await neovim.mode() == "i"
        await neovim.type("<Esc>")
        await agent.is_told("3 files written by Claude Code")
        messages: str = await neovim.lua("return vim.fn.execute('messages')")
        assert messages.count("written by") == 2


async def test_hunks_are_kept_undone_and_brought_back_where_the_cursor_is(workspace: Path) -> None:
    async with writing(workspace, "a.txt", a_txt=OLD) as agent:
        neovim, path = agent.neovim, agent.write("a.txt", NEW)
        await agent.has_signs([1, "┃"], [4, "┃"], [7, "_"])
        await neovim.enter("4", "IsthmusUndo")
        await agent.has_disk(path, NEW.replace("added\n", ""))
        await agent.shows("ONE", "two", "three", "four", "five", "seven", "eight", "nine")
        await neovim.command("undo")
        assert "added" in await neovim.lines()
        await neovim.command("redo")
        await agent.has_signs([1, "┃"], [4, "_"], [6, "_"])
        await neovim.enter("1", "IsthmusKeep")
        await agent.has_signs([4, "_"], [6, "_"])
        await neovim.enter("2", "IsthmusUndo")
        await agent.is_told("nothing that an agent wrote is on this line")
        await neovim.enter("4", "IsthmusRedo")
        await agent.has_disk(path, NEW)
        await agent.has_signs([4, "┃"], [7, "_"])
        await neovim.enter("%IsthmusUndo")
        await agent.has_disk(path, OLD.replace("one", "ONE"))


async def test_unsaved_text_is_never_lost_and_a_save_is_the_users(workspace: Path) -> None:
    async with writing(workspace, "a.txt", a_txt=OLD) as agent:
        neovim, path = agent.neovim, agent.write("a.txt", NEW)
        await agent.has_signs([1, "┃"], [4, "┃"], [7, "_"])
        await neovim.type("Gomine<Esc>")
        await neovim.enter("1", "IsthmusUndo")
        await agent.is_told("a.txt has unsaved text in Neovim; save it there first, then undo")
        assert path.read_text() == NEW
        assert (await neovim.lines())[-1] == "mine"
        await neovim.enter("$s/$/!/", "write", "1", "IsthmusUndo")  # at once: the save is the user's by then
        await agent.has_disk(path, NEW.replace("ONE", "one") + "mine!\n")
        await agent.shows(*NEW.replace("ONE", "one").splitlines(), "mine!")


async def test_a_file_is_shown_beside_its_former_text(workspace: Path) -> None:
    async with writing(workspace, "b.txt", a_txt=OLD, b_txt="other\n") as agent:
        neovim, path = agent.neovim, agent.write("a.txt", NEW)
        await agent.is_told("1 file written")
        await neovim.enter("IsthmusChanges a.txt")

        async def is_shown() -> bool:
            return await agent.sides() == [[OLD, True], [NEW, True]] and await neovim.lua(NOTES) != []

        await eventually_async(is_shown, what="both sides")
        assert await neovim.tabs() == 2
        assert await neovim.lua("return vim.fn.expand('%:p')") == str(path)
        notes: list[str] = await neovim.lua(NOTES)
        assert len(notes) == 3
        assert all(note.startswith("turn 1 Claude Code ") for note in notes)
        await neovim.type("4G\\x")
        await agent.has_disk(path, NEW.replace("added\n", ""))
        await agent.shows(*NEW.replace("added\n", "").splitlines())

        async def says_undone() -> bool:
            return "undone; :IsthmusRedo brings it back" in await neovim.lua(NOTES)

        await eventually_async(says_undone, what="the note about the undone hunk")
        await neovim.type("4G\\u")
        await agent.has_disk(path, NEW)
        await agent.shows(*NEW.splitlines())
        await neovim.type("<C-w>hggx")  # the same beside the former text
        await agent.has_disk(path, NEW.replace("ONE", "one"))
        await neovim.type("<C-w>l")
        await agent.shows(*NEW.replace("ONE", "one").splitlines())
        await eventually_async(says_undone, what="the note about the undone hunk")
        await neovim.type("\\A")

        async def is_kept() -> bool:
            return [side for side, _ in await agent.sides()] == [path.read_text()] * 2

        await eventually_async(is_kept, what="the former text follows what is kept")
        await neovim.enter("quit")

        async def is_closed() -> bool:
            return await neovim.tabs() == 1 and not any("isthmus:" in name for name in await neovim.buffers())

        await eventually_async(is_closed, what="the view is closed")
        assert await neovim.lua("return vim.fn.maparg('\\\\x', 'n')") == ""
        assert await neovim.lua("return vim.fn.expand('%:t')") == "b.txt"


async def test_the_list_has_turns_and_files_and_decides(workspace: Path) -> None:
    async with writing(workspace, "a.txt", a_txt=OLD, gone_txt="gone\n") as agent:
        neovim = agent.neovim
        path = agent.write("a.txt", NEW)
        await agent.has_signs([1, "┃"], [4, "┃"], [7, "_"])
        await agent.written.begin_turn("Claude Code", "then another\nfile")
        (workspace / "new").mkdir()
        created = agent.write("new/c.txt", "created\n")
        (workspace / "gone.txt").unlink()
        await neovim.enter("IsthmusChanges")
        lines = await agent.lists("Turn 2", "A new/c.txt  +1 -0", "D gone.txt  +0 -1", "Turn 1", "M a.txt  +2 -2")
        assert lines[0].startswith("Since you last looked")
        assert lines[0].endswith("2 turns, 3 files, +3 -3")
        (second,) = [line for line in lines if line.startswith("Turn 2")]
        assert 'Claude Code  "then another^@file"' in second
        assert lines.index(second) < next(number for number, line in enumerate(lines) if line.startswith("Turn 1"))
        await neovim.type("/new<CR>x")
        await eventually_async(lambda: not created.exists(), what="the created file is gone")
        await agent.lists("- new/c.txt  +0 -0  undone", "Undone ")
        await neovim.type("/^Undone<CR>u")
        await agent.has_disk(created, "created\n")
        await agent.lists("A new/c.txt  +1 -0")
        await neovim.type("/gone.txt<CR>")
        await neovim.type("<CR>")

        async def is_shown() -> bool:
            return await agent.sides() == [["gone\n", True], ["\n", True]]

        await eventually_async(is_shown, what="the deleted file")
        assert not (workspace / "gone.txt").exists()
        await neovim.type("\\X")
        await agent.has_disk(workspace / "gone.txt", "gone\n")
        await neovim.enter("tabclose")
        await agent.lists("- gone.txt")  # the user is back in the list
        await neovim.type("/^Turn 2<CR>a")
        await eventually_async(lambda: agent.written.waiting() == (1, 1), what="the turn is kept")
        await agent.lists_no("A new/c.txt")  # a list that is out of date decides nothing
        await neovim.enter("IsthmusUndo!")
        await agent.has_disk(path, OLD)
        assert created.exists()


async def test_what_came_since_the_list_was_shown_is_not_decided(workspace: Path) -> None:
    async with writing(workspace, "a.txt", a_txt=OLD, b_txt="old\n") as agent:
        neovim, path = agent.neovim, agent.write("a.txt", NEW)
        await agent.is_told("1 file written")
        await neovim.enter("IsthmusUndo!")
        await agent.is_told("this is all that waits; once more decides about all of it")
        await agent.lists("M a.txt")
        other = agent.write("b.txt", "new\n")
        await neovim.enter("IsthmusUndo!")
        await agent.is_told("more was written or decided since the list was shown; nothing was undone")
        assert (path.read_text(), other.read_text()) == (NEW, "new\n")
        await agent.lists("M a.txt", "M b.txt")
        await neovim.enter("IsthmusKeep b.txt")
        await eventually_async(lambda: agent.written.waiting() == (1, 1), what="a file is kept")


async def test_errors_of_the_companion_are_shown_as_they_are(workspace: Path) -> None:
    async with writing(workspace, "a.txt", a_txt=OLD) as agent:
        neovim, path = agent.neovim, agent.write("a.txt", NEW)
        await agent.has_signs([1, "┃"], [4, "┃"], [7, "_"])
        await neovim.enter("1s/ONE/my own/", "write", "1", "IsthmusUndo")
        await agent.is_told("You changed this hunk since; undo is off. Nothing was written.")
        assert path.read_text() == NEW.replace("ONE", "my own")
        await neovim.enter("IsthmusChanges nothing.txt")
        await agent.is_told("nothing.txt waits for you")
        assert await neovim.tabs() == 1


@pytest.mark.parametrize("name", ["IsthmusUndo", "IsthmusKeep", "%IsthmusUndo", "IsthmusUndo a.txt", "IsthmusRedo"])
async def test_a_program_decides_nothing(workspace: Path, name: str) -> None:
    async with writing(workspace, "a.txt", a_txt=OLD) as agent:
        neovim, path = agent.neovim, agent.write("a.txt", NEW)
        await agent.has_signs([1, "┃"], [4, "┃"], [7, "_"])
        async with another_program(neovim) as program:
            for method, *arguments in (
                ("nvim_command", name),
                ("nvim_input", f":{name}<CR>"),
                ("nvim_feedkeys", f":{name}\r", "t", False),
                ("nvim_exec_lua", "vim.cmd(...)", [name]),
            ):
                await program.request(method, *arguments, timeout=30)
                await neovim.wait_in_vain()
        await agent.is_told("once more does it")
        assert path.read_text() == NEW
        assert agent.written.waiting() == (1, 1)
        listing = await agent.written.listing()
        assert listing["files"][0]["written"] == 3


async def test_keys_of_a_program_in_the_list_decide_nothing(workspace: Path) -> None:
    async with writing(workspace, "b.txt", a_txt=OLD, b_txt="old\n") as agent:
        neovim, path = agent.neovim, agent.write("a.txt", NEW)
        await neovim.enter("IsthmusChanges")
        await agent.lists("M a.txt")
        await neovim.type("/a.txt<CR>")
        async with another_program(neovim) as program:
            for key in "xaXA":
                await program.request("nvim_input", key, timeout=30)
            await neovim.wait_in_vain()
        await agent.is_told("once more does it")
        assert (path.read_text(), agent.written.waiting()) == (NEW, (1, 1))
        await neovim.type("x")
        await agent.has_disk(path, OLD)


async def test_all_is_removed_with_the_companion_and_the_plugin_says_so(workspace: Path) -> None:
    async with running_neovim(workspace, *QUIET) as neovim:
        await neovim.command(f"set runtimepath^={PLUGIN}", "let g:loaded_isthmus = 1")
        await neovim.lua("require('isthmus').setup({ autostart = false, keys = '<leader>a' })")
        editor = await attach(neovim.address, PATIENT_NEOVIM)
        async with running_host(editor, CompanionOptions(folders=(str(workspace),))):
            await neovim.type("\\ac")

            async def is_listed() -> bool:
                return "Nothing was written" in (await neovim.lines())[0]

            await eventually_async(is_listed, what="an empty list")
        assert not any("isthmus:" in name for name in await neovim.buffers())
        await neovim.enter("IsthmusUndo")
        assert await neovim.has_message("no companion is attached to this Neovim")


async def test_lines_that_are_selected_are_decided_in_view_and_list(workspace: Path) -> None:
    async with writing(workspace, "b.txt", a_txt=OLD, b_txt="old\n", c_txt="old\n") as agent:
        neovim, path = agent.neovim, agent.write("a.txt", NEW)
        others = [agent.write(name, "new\n") for name in ("b.txt", "c.txt")]
        await agent.is_told("3 files written")
        await neovim.enter("IsthmusChanges a.txt")

        async def is_shown() -> bool:
            return len(await neovim.lua(NOTES)) == 3

        await eventually_async(is_shown, what="the diff")
        await neovim.type("ggV3j\\x")
        await agent.has_disk(path, OLD.replace("six\n", ""))
        await neovim.enter("tabclose", "IsthmusChanges")
        await agent.lists("M a.txt", "M b.txt", "M c.txt")
        await neovim.type("/b.txt<CR>Vjx")
        for other in others:
            await agent.has_disk(other, "old\n")
        assert path.read_text() == OLD.replace("six\n", "")


async def test_unsaved_text_outlives_the_view_and_mappings_of_the_user_stay(workspace: Path) -> None:
    async with writing(workspace, "b.txt", a_txt=OLD, b_txt="old\n") as agent:
        neovim = agent.neovim
        agent.write("a.txt", NEW)
        await agent.is_told("1 file written")
        await neovim.command("set nohidden", "autocmd BufRead a.txt nnoremap <buffer> <localleader>a Omapped<Esc>")
        await neovim.enter("IsthmusChanges a.txt")

        async def is_shown() -> bool:
            return len(await neovim.lua(NOTES)) == 3

        await eventually_async(is_shown, what="the diff")
        await neovim.type("G\\aiand typed<Esc>")
        typed = await neovim.lines()
        assert "and typed" in "".join(typed)
        await neovim.type("<C-w>hq")

        async def is_closed() -> bool:
            return not any("isthmus:" in name for name in await neovim.buffers())

        await eventually_async(is_closed, what="the former text is gone")
        assert await neovim.lua("return vim.fn.getbufline(vim.fn.bufnr('a.txt'), 1, '$')") == typed
        assert not await neovim.lua("return vim.wo[vim.fn.bufwinid('a.txt')].diff")
        assert await neovim.lua("return vim.fn.getbufvar('a.txt', '&modified')") == 1


async def test_what_is_no_text_is_decided_in_the_list_alone(workspace: Path) -> None:
    async with writing(workspace, "b.txt", b_txt="old\n") as agent:
        neovim, path = agent.neovim, workspace / "a.bin"
        path.write_bytes(b"\0\1\2")
        await agent.is_told("1 file written")
        await neovim.enter("IsthmusChanges a.bin")
        await agent.is_told("a.bin cannot be shown: it is not text")
        assert await neovim.lua("return vim.fn.getcompletion('IsthmusUndo ', 'cmdline')") == ["a.bin", "turn 1"]
        assert await neovim.lua("return vim.fn.getcompletion('IsthmusUndo turn ', 'cmdline')") == ["1"]
        await neovim.enter("IsthmusUndo turn 1")
        await eventually_async(lambda: not path.exists(), what="the file is gone")


async def test_without_hint_and_signs_only_the_status_is_set(workspace: Path) -> None:
    settings = ("--cmd", "let g:isthmus_changes = {'notify': v:false, 'signs': v:false, 'quiet': 0}")
    async with writing(workspace, "a.txt", *settings, a_txt=OLD) as agent:
        neovim, path = agent.neovim, agent.write("a.txt", NEW)

        async def is_known() -> bool:
            return await neovim.lua("return next(select(2, next(_G.isthmus_sessions)).changes.marked) ~= nil")

        await eventually_async(is_known, what="the hunks")
        await neovim.wait_in_vain()
        assert await neovim.lua(SIGNS) == []
        assert not await neovim.has_message("written by")
        await neovim.enter("4", "IsthmusUndo")
        await agent.has_disk(path, NEW.replace("added\n", ""))


async def test_signs_move_with_unsaved_text(workspace: Path) -> None:
    async with writing(workspace, "a.txt", a_txt=OLD) as agent:
        neovim, path = agent.neovim, agent.write("a.txt", NEW)
        await agent.has_signs([1, "┃"], [4, "┃"], [7, "_"])
        await neovim.type("ggOmine<Esc>")
        other = agent.write("b.txt", "new\n")
        await agent.is_told("2 files written")
        await agent.has_signs([2, "┃"], [5, "┃"], [8, "_"])
        await neovim.enter("1", "IsthmusKeep")
        await agent.is_told("nothing that an agent wrote is on this line")
        await neovim.enter("5", "IsthmusKeep")
        await agent.has_signs([2, "┃"], [8, "_"])
        assert (path.read_text(), other.read_text(), (await neovim.lines())[0]) == (NEW, "new\n", "mine")


async def test_nothing_is_left_of_a_companion_that_was_killed(workspace: Path) -> None:
    path = Path(make_file(workspace, "a.txt", OLD))
    async with running_neovim(workspace, str(path), *QUIET) as neovim:
        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address) as companion:
            async with watching_agent(companion):
                path.write_text(NEW, encoding="utf-8")

                async def has_signs() -> bool:
                    return len(await neovim.lua(SIGNS)) == 3

                await eventually_async(has_signs, what="signs")
                await neovim.enter("IsthmusChanges a.txt")
                companion.end(signal.SIGKILL)

                async def is_clean() -> bool:
                    names = await neovim.buffers()
                    return not await neovim.lua(SIGNS) and not any("isthmus:" in name for name in names)

                await eventually_async(is_clean, what="nothing is left")
                assert await neovim.lua("return vim.fn.exists(':IsthmusUndo')") == 0
