"""The injection of our Lua into a Neovim, once that has started."""

import asyncio
from importlib import resources
from typing import Any, Final

from isthmus.editors.neovim.msgpack_rpc import RpcConnection
from isthmus.editors.neovim.wire import require_version
from isthmus.record import record
from isthmus.rpc.pending import RpcTimeoutError

LOOK_SECONDS: Final = 0.05
"""Time between two looks whether Neovim has started."""
_START: Final = """
local channel, names, scripts = ...
local session
for number, script in ipairs(scripts) do
  local made = assert(loadstring(script, "=isthmus/" .. names[number]))(session or channel)
  session = session or made
end
return { pid = vim.fn.getpid(), folders = session.folders(), tools = session.tools() }
"""
_SCRIPTS: Final = (
    *("session.lua", "programs.lua", "focus.lua", "write_command.lua", "documents.lua", "reload.lua", "bars.lua"),
    *("layouts.lua", "review.lua", "decisions.lua", "hunks.lua", "unified.lua", "saved_sessions.lua", "trees.lua"),
    *("user.lua", "tools.lua"),
    *("changes.lua", "changes_view.lua", "changes_list.lua", "changes_commands.lua"),
)
"""The scripts in the order in which they are run; the first one makes the session for the others."""


@record
class StartedLua:
    """The Lua in a Neovim. ``channel`` is the number of our connection there; ``tools`` are undecoded."""

    channel: int
    pid: int
    folders: tuple[str, ...]
    tools: object


async def start_in(connection: RpcConnection, oldest: tuple[int, int, int], seconds: float) -> StartedLua:
    """Inject the Lua; ``seconds`` is the maximum time for each request, and for the wait until Neovim has started.

    Raises:
        EditorError: Neovim is older than ``oldest``.
        RpcTimeoutError: it does not answer, or has not started.
        RpcError: it answers with an error.
        RpcClosedError: the connection is lost.
        TypeError, ValueError, KeyError: the answers are not Neovim's.
    """
    channel, api = await connection.request("nvim_get_api_info", timeout=seconds)
    require_version(api, oldest)
    await _wait_for_start(connection, seconds)
    scripts = [(resources.files("isthmus.editors.neovim") / name).read_text("utf-8") for name in _SCRIPTS]
    arguments = [channel, list(_SCRIPTS), scripts]
    started: dict[str, Any] = await connection.request("nvim_exec_lua", _START, arguments, timeout=seconds)
    return StartedLua(channel, int(started["pid"]), tuple(started["folders"]), started["tools"])


async def _wait_for_start(connection: RpcConnection, seconds: float) -> None:
    """Wait until Neovim has loaded its files, and draws.

    Before, it answers while it waits for its terminal or pauses in the user's configuration. It would load the files of
    its command line into the windows of a review, and draw its first screen over a message.
    """
    try:
        async with asyncio.timeout(seconds):
            while not await connection.request("nvim_get_vvar", "vim_did_enter", timeout=seconds):
                await asyncio.sleep(LOOK_SECONDS)
    except TimeoutError as error:
        raise RpcTimeoutError(f"Neovim has not started within {seconds:g} s") from error
