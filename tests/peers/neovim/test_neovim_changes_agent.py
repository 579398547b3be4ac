"""The real Qwen Code writes a file without asking; the user sees it in a real Neovim, and undoes one hunk of it."""

from pathlib import Path

import pytest

from support.isthmus_program import companion_program
from support.neovim import running_neovim
from support.qwen_cli import SETTINGS, qwen_code
from support.scripted_wire import Call, Reply, Say
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

OLD = b"one\r\ntwo\r\nthree\r\nfour\r\nfive"
NEW = "ONE\r\ntwo\r\nthree\r\nfour\r\nFIVE"


@pytest.mark.extended
async def test_one_hunk_of_what_qwen_code_wrote_is_undone(workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_bytes(OLD)
    settings = {**SETTINGS, "tools": {"useRipgrep": False}}  # without a mode it writes and does not ask
    async with running_neovim(workspace, str(path)) as neovim:
        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address):
            async with qwen_code(workspace, settings=settings) as cli:
                await cli.sees_file("a.py")
                cli.wire.add(Reply.of(Call("read_file", {"file_path": str(path)})))
                cli.wire.add(Reply.of(Call("write_file", {"file_path": str(path), "content": NEW})))
                cli.wire.add(Reply.of(Say("Written.")))
                await cli.type("write a.py")
                await cli.shows("Written.")
                after = path.read_bytes()
                assert after.startswith(b"ONE\r\ntwo")

                async def is_told() -> bool:
                    return await neovim.has_message("1 file written by Qwen Code; :IsthmusChanges")

                await eventually_async(is_told, what="the hint")
                await neovim.enter("IsthmusChanges a.py")

                async def is_shown() -> bool:
                    return await neovim.tabs() == 2 and await neovim.lua("return vim.wo.diff and vim.fn.line('.') == 1")

                await eventually_async(is_shown, what="the diff")

                async def undoes() -> bool:
                    await neovim.type("gg\\x" if path.read_bytes() == after else "")
                    return path.read_bytes() == after.replace(b"ONE", b"one")

                await eventually_async(undoes, what="exactly one hunk is written back")

                async def is_read() -> bool:
                    return await neovim.lines() == ["one", "two", "three", "four", "FIVE"]

                await eventually_async(is_read, what="the buffer follows")
