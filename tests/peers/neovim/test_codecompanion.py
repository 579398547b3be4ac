"""``isthmus acp`` in CodeCompanion.nvim: a chat in a real Neovim.

ISTHMUS_CODECOMPANION names the folders of CodeCompanion.nvim and plenary.nvim, with a colon between them. Without it,
the test is skipped: plugins of Neovim are not packages that tests may install.
"""

import os
import re
from pathlib import Path

import pytest

from support.acp_client import acp_command
from support.neovim import RunningNeovim, running_neovim
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

PLUGINS = os.environ.get("ISTHMUS_CODECOMPANION", "")
"""Read once: tests do not see the variables of the developer."""
_PAGE = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "acp.md").read_text(encoding="utf-8")


def setup() -> str:
    """Return the settings that the page tells users to paste, for the command in the first argument."""
    (block,) = re.findall(r'```lua\n(require\("codecompanion"\).*?)```', _PAGE, flags=re.DOTALL)
    settings = block.replace('{ "isthmus", "acp" }', "command")
    assert settings != block
    return f"local command = ...\n{settings}vim.cmd.CodeCompanionChat()"


async def ask(neovim: RunningNeovim, words: str) -> None:
    """Type a message at the end of the chat, and send it."""
    await neovim.type("<Esc>G")
    await neovim.lua("vim.api.nvim_put({ ... }, 'l', true, true)", words)
    await neovim.type("<Esc><CR>")


async def shown(neovim: RunningNeovim, words: str) -> str:
    """Wait until the chat shows some words, and return all of its text."""

    async def text() -> str:
        whole = "\n".join(await neovim.lines())
        assert words in whole, whole
        return whole

    return await eventually_async(text)


@pytest.mark.slow
@pytest.mark.skipif(not PLUGINS, reason="ISTHMUS_CODECOMPANION names no folders of CodeCompanion.nvim and plenary.nvim")
async def test_a_chat_streams_an_answer_and_asks_before_it_writes(tmp_path: Path, workspace: Path) -> None:
    paths = ("--cmd", f"set runtimepath^={PLUGINS.replace(':', ',')}")
    async with running_neovim(workspace, *paths) as neovim:
        await neovim.lua(setup(), list(acp_command(tmp_path)))
        await ask(neovim, "say hello")
        await shown(neovim, "Hello from the agent.")
        await ask(neovim, "write new.txt")
        asked = await shown(neovim, "Please select an option:")
        assert "new.txt" in asked
        assert not (workspace / "new.txt").exists()
        key = await neovim.lua("return require('codecompanion.interactions.chat.tools.labels').keymaps().accept")
        await neovim.type(f"<Esc>{key}")
        await shown(neovim, "It is written.")

    assert (workspace / "new.txt").read_text(encoding="utf-8") == "one\ntwo\n"
    assert asked.count("Please select an option:") == 1
