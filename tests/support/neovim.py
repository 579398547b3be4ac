"""A real Neovim for tests: without configuration, driven as a user does, over a connection with a screen.

It is headless until that screen, whose keys are the user's, is attached.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.editors.neovim.msgpack_rpc import RpcCodec, RpcConnection, connect
from isthmus.ide.editor import DiffAccepted, DiffRejected, Editor, EditorEvent
from isthmus.rpc.pending import RpcClosedError
from support.isthmus_program import ISTHMUS
from support.programs import require
from support.waiting import eventually_async

PLUGIN = Path(__file__).parents[2] / "plugins" / "neovim"
_JOBS = """
local pids = {}
for _, channel in ipairs(vim.api.nvim_list_chans()) do
  local runs, pid = pcall(vim.fn.jobpid, channel.id) -- a job that ended is listed for another moment
  if channel.argv and runs then
    pids[#pids + 1] = pid
  end
end
return pids
"""
_HAS_VIEW = """
for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
  if vim.b[buffer].isthmus_path or vim.b[buffer].isthmus_question then
    return true
  end
end
return false
"""
_NO_PROVIDER = ("--cmd", "let g:loaded_python3_provider = 0")
"""Arguments without which a Python file makes Neovim look for a Python plugin host: a second, ten on a busy machine."""

SCREEN = (80, 38)
"""Columns and rows of the user's screen."""
_MESSAGE_ROWS = 15
"""Rows for messages, enough that none waits for a key; the rows above are as many as without a screen."""

AT_ONCE = ("--cmd", "let g:isthmus_review = {'pause': 0, 'reading': 0}")
"""Arguments with which reviews and questions take keys at once: for tests that do not check that pause."""


@dataclass(slots=True)
class RunningNeovim:
    """The user at the keyboard. A companion attaches at `address`."""

    process: asyncio.subprocess.Process
    address: str
    connection: RpcConnection

    async def command(self, *commands: str) -> None:
        """Run Ex commands, as `:` does."""
        for command in commands:
            await self.connection.request("nvim_command", command, timeout=30)

    async def type(self, keys: str) -> None:
        """Type keys (`<Esc>`, `<C-v>`, ... as Neovim writes them) and wait until Neovim has taken them all."""
        await self.connection.request("nvim_input", keys, timeout=30)
        # A request is answered in its turn, after the keys that came before it.
        await self.lua("return 0")

    async def enter(self, *commands: str) -> None:
        """Type Ex commands and Enter, as a user does."""
        for command in commands:
            await self.type(f":{command}<CR>")

    async def lua(self, code: str, *arguments: object) -> Any:
        """Run Lua and return what it returns."""
        return await self.connection.request("nvim_exec_lua", code, list(arguments), timeout=30)

    async def has_message(self, text: str) -> bool:
        """Return whether Neovim has shown a message with this text; a long message comes line by line."""
        messages: str = await self.lua("return vim.fn.execute('messages')")
        return text in messages or text in " ".join(messages.split())

    async def mode(self) -> str:
        """Return the mode as `:help mode()` names it."""
        mode: dict[str, Any] = await self.connection.request("nvim_get_mode", timeout=30)
        return mode["mode"]

    async def lines(self) -> list[str]:
        """Return the lines of the current buffer."""
        return await self.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, true)")

    async def wait_in_vain(self) -> None:
        """Give what must not happen time to happen: programs, timers and autocommands of the test act within it."""
        await self.lua("vim.wait(120)")  # delay: that nothing happens can be seen only over a time
        await self.lua("return 0")  # keys that were fed meanwhile are taken before the next request

    async def set_lines(self, *lines: str) -> None:
        """Change the current buffer to these lines, as typing would."""
        await self.lua("vim.api.nvim_buf_set_lines(0, 0, -1, true, ...)", list(lines))

    async def tabs(self) -> int:
        """Return the number of tab pages."""
        return await self.lua("return vim.fn.tabpagenr('$')")

    async def buffers(self) -> list[str]:
        """Return the names of all buffers, hidden ones too."""
        return await self.lua("return vim.tbl_map(vim.api.nvim_buf_get_name, vim.api.nvim_list_bufs())")

    async def jobs(self) -> list[int]:
        """Return the process ids of the jobs that Neovim runs: with the plugin the companion is the only one."""
        return await self.lua(_JOBS)

    def show_screen(self, columns: int, rows: int) -> None:
        """Give a Neovim that was started with ``--embed`` its screen, as its own terminal program does."""
        assert self.process.stdin is not None
        self.process.stdin.write(RpcCodec().request(1, "nvim_ui_attach", [columns, rows, {"ext_linegrid": True}]))

    async def quit(self, command: str = "qall!") -> None:
        """Quit Neovim, and wait until it has ended."""
        with suppress(RpcClosedError):
            await self.command(command)
        await asyncio.wait_for(self.process.wait(), 30)


@asynccontextmanager
async def running_neovim(
    folder: Path, *arguments: str, reviews: Sequence[str] = AT_ONCE, mode: str = "--headless", has_screen: bool = True
) -> AsyncGenerator[RunningNeovim]:
    """Start Neovim with `folder` as its working directory; it is killed at the end.

    `reviews` are the arguments that set when reviews take keys; without any, the default applies. Without a screen, no
    key is the user's, and no message waits for one. With the mode ``--embed`` it starts only when it is given a screen.
    """
    address = str(Path(tempfile.mkdtemp(prefix="nvim-")) / "socket")
    process = await asyncio.create_subprocess_exec(
        require("nvim"), mode, "--clean", "-n", "--listen", address, *_NO_PROVIDER, *reviews, *arguments,
        cwd=folder, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        connection = await connected(address)
        try:
            if mode == "--headless" and has_screen:
                await connection.request("nvim_ui_attach", *SCREEN, {"ext_linegrid": True}, timeout=30)
                await connection.request("nvim_command", f"set cmdheight={_MESSAGE_ROWS}", timeout=30)
            yield RunningNeovim(process, address, connection)
        finally:
            await connection.aclose()
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@asynccontextmanager
async def another_program(neovim: RunningNeovim) -> AsyncGenerator[RpcConnection]:
    """Connect another program, without a screen, such as an agent that found Neovim's socket."""
    connection = await connected(neovim.address)
    try:
        yield connection
    finally:
        await connection.aclose()


@asynccontextmanager
async def neovim_with_plugin(
    folder: Path, *, has_screen: bool = False, **settings: Any
) -> AsyncGenerator[RunningNeovim]:
    """Start Neovim with the plugin, whose `settings` are those of `vim.g.isthmus`."""
    plugin = ("--cmd", f"set runtimepath^={PLUGIN}")
    configured = ("--cmd", f"let g:isthmus = {vim_literal({'program': list(ISTHMUS)} | settings)}")
    async with running_neovim(folder, *plugin, *configured, has_screen=has_screen) as neovim:
        yield neovim


def vim_literal(value: Any) -> str:
    """Return a value as Vim script: JSON, with a special case for true."""
    return json.dumps(value).replace("true", "v:true").replace("false", "v:false")


async def connected(address: str) -> RpcConnection:
    """Return a connection to a Neovim that is starting; its socket exists a moment before it listens on it."""
    made: list[RpcConnection] = []

    async def listens() -> bool:
        with suppress(RpcClosedError):
            made.append(await connect(address, lambda _: None, lambda: None))
        return bool(made)

    await eventually_async(listens, what="Neovim listens")
    return made[0]


class Heard:
    """The events of an editor, collected in the background."""

    def __init__(self, editor: Editor) -> None:
        self.events: list[EditorEvent] = []
        self.task = asyncio.create_task(self._listen(editor))

    async def _listen(self, editor: Editor) -> None:
        async for event in editor.changes():
            self.events.append(event)

    @property
    def decisions(self) -> list[DiffAccepted | DiffRejected]:
        """Return the decisions about reviews, in order."""
        return [event for event in self.events if isinstance(event, (DiffAccepted, DiffRejected))]

    async def decision(self) -> DiffAccepted | DiffRejected:
        """Wait for the only decision, and return it."""
        await eventually_async(lambda: self.decisions, what="a decision")
        assert len(self.decisions) == 1
        return self.decisions[0]


@asynccontextmanager
async def hearing(editor: Editor) -> AsyncGenerator[Heard]:
    """Collect the events of an editor until the end."""
    heard = Heard(editor)
    try:
        yield heard
    finally:
        heard.task.cancel()
        await asyncio.wait({heard.task})


async def view_is_closed(neovim: RunningNeovim) -> None:
    """Wait until no diff view is left."""
    await eventually_async(lambda: _no_view(neovim), what="the view is closed and its buffers are gone")


async def _no_view(neovim: RunningNeovim) -> bool:
    return await neovim.tabs() == 1 and not await neovim.lua(_HAS_VIEW)
