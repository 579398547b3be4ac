"""The processes that are killed: a companion as its users run it, and its editor: none, a real Neovim, or an IDE.

Each setup starts them, causes their faults, and types and answers as the user.
"""

import asyncio
import json
import os
import signal
import subprocess
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isthmus.encoding.codec import from_json
from isthmus.ide.control.control_client import RefusedError, RunningCompanion, ask
from isthmus.rpc.messages import RpcError
from isthmus.rpc.pending import RpcClosedError
from support.claude_servers import NeovimServer
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS, CompanionProgram, TextProgram
from support.neovim import RunningNeovim, running_neovim
from support.waiting import eventually_async

if TYPE_CHECKING:
    from support.claude_ide import ClaudeServer

_GO_TO_PROPOSAL = """
for _, window in ipairs(vim.api.nvim_list_wins()) do
  local buffer = vim.api.nvim_win_get_buf(window)
  local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\\n")
  if vim.api.nvim_buf_get_name(buffer):find(" (proposed)", 1, true) and text:find(..., 1, true) then
    vim.api.nvim_set_current_win(window)
    return true
  end
end
return false
"""
_OPEN_SPARE_TAB = """
local window = vim.api.nvim_get_current_win()
if #vim.api.nvim_list_tabpages() < 3 then vim.cmd("tabnew") end
vim.api.nvim_set_current_win(window)
"""
"""A review that ends at the same moment leaves :quit another window: in the last one it would end Neovim."""
_BUFFERS = """
local found = {}
for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
  found[#found + 1] = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\\n")
end
return found
"""


class HeadlessSetup:
    """A run of ``isthmus companion --editor headless``; the user answers with ``isthmus ide``."""

    speaks_claude = True
    faults: tuple[str, ...] = ("kill", "kill", "term", "kill twice", "drop gemini", "drop claude")

    def __init__(self, workspace: Path, isolated_folders: IsolatedFolders) -> None:
        self.workspace = workspace
        self.isolated_folders = isolated_folders
        self.log = workspace.parent / "companion.log"
        self.companion: CompanionProgram | None = None
        self.lock: Path | None = None
        """The discovery file of an IDE that is not a companion."""

    async def begin(self) -> None:
        """Start the editor."""

    def command(self) -> tuple[str, ...]:
        """Return the arguments that start the companion."""
        return ("companion", "--editor", "headless", "--allow-agent-accept")

    def spawn(self) -> "subprocess.Popen[str]":
        """Start the companion without waiting until it is ready."""
        with self.log.open("a", encoding="utf-8") as log:
            return subprocess.Popen(
                [*ISTHMUS, *self.command(), "--json"],
                cwd=self.workspace, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
            )  # fmt: skip

    async def start(self) -> CompanionProgram:
        """Start the companion and wait until it is ready."""
        process = self.spawn()
        try:
            self.companion = await asyncio.to_thread(CompanionProgram, process)
            assert "error" not in self.companion.ready, f"the companion does not start: {self.companion.ready}"
        except BaseException:
            _reap(process)
            raise
        return self.companion

    async def cause(self, fault: str) -> None:
        """End the companion in this way, and wait until it has ended. The status of an orderly end is 0."""
        assert self.companion is not None
        match fault:
            case "kill" | "kill twice":
                await asyncio.to_thread(self.companion.end, signal.SIGKILL)
            case _:
                assert await asyncio.to_thread(self.companion.end) == 0, "the companion did not end well"
        self._reaped()

    def _reaped(self) -> None:
        companion, self.companion = self.companion, None
        assert companion is not None
        _reap(companion.process)

    async def end(self) -> None:
        """End all its processes."""
        if self.companion is not None:
            await self.cause("term")

    async def abandon(self) -> None:
        """Kill all its processes after a failure."""
        if self.companion is not None:
            self._reaped()

    # The user.

    async def asked(self, command: str, **arguments: object) -> dict[str, Any] | None:
        """Return the answer of an ``isthmus ide`` command; None: it was refused, or the companion died."""
        if self.companion is None:
            return None
        control = self.isolated_folders.runtime / "isthmus" / f"companion-{self.companion.process.pid}.json"
        try:
            running = from_json(RunningCompanion, json.loads(control.read_text(encoding="utf-8")))
            return dict(await asyncio.to_thread(ask, running, command, wait_seconds=30.0, **arguments))
        except (OSError, RefusedError):
            return None

    async def decide(self, file: Path, marker: str, *, accept: bool) -> None:
        """Answer the review of a file, if it still exists."""
        await self.asked("accept" if accept else "reject", path=str(file))

    async def type_into(self, marker: str, text: str) -> bool:
        """Type into the view with the marker; return whether it exists and Neovim ran to the end."""
        return False

    async def has_reported(self, typed: str) -> bool:
        """Return whether the editor has sent the companion the text typed before this call."""
        return False

    async def texts(self) -> list[str]:
        """Return the texts in the editor."""
        return []


class NeovimSetup(HeadlessSetup):
    """A companion at a real Neovim that the user types into."""

    faults = ("kill", "kill", "term", "kill twice", "nvim killed", "nvim killed", "nvim quits", "drop claude")

    def __init__(self, workspace: Path, isolated_folders: IsolatedFolders) -> None:
        super().__init__(workspace, isolated_folders)
        self._running = AsyncExitStack()
        self.neovim: RunningNeovim | None = None

    async def begin(self) -> None:
        self.neovim = await self._running.enter_async_context(running_neovim(self.workspace))

    def command(self) -> tuple[str, ...]:
        assert self.neovim is not None
        return ("companion", "--editor", "nvim", "--address", self.neovim.address, "--allow-agent-accept")

    async def cause(self, fault: str) -> None:
        if fault not in ("nvim killed", "nvim quits"):
            await super().cause(fault)
            return
        assert self.neovim is not None
        assert self.companion is not None
        if fault == "nvim killed":
            self.neovim.process.kill()
            await self.neovim.process.wait()
        else:
            await self.neovim.quit()
        neovim, self.neovim = self.neovim, None
        await self._running.aclose()
        Path(neovim.address).unlink(missing_ok=True)  # a killed Neovim leaves its socket
        Path(neovim.address).parent.rmdir()
        assert await asyncio.to_thread(self.companion.process.wait, 30) == 0, (
            "the companion did not end with its editor"
        )
        self._reaped()
        await self.begin()

    async def end(self) -> None:
        await super().end()
        await self.abandon()

    async def abandon(self) -> None:
        await super().abandon()
        if self.neovim is not None:
            neovim, self.neovim = self.neovim, None
            await self._running.aclose()
            Path(neovim.address).unlink(missing_ok=True)
            Path(neovim.address).parent.rmdir()

    async def decide(self, file: Path, marker: str, *, accept: bool) -> None:
        with suppress(RpcError, RpcClosedError):
            if self.neovim is not None and await self.neovim.lua(f"{_OPEN_SPARE_TAB}{_GO_TO_PROPOSAL}", marker):
                await self.neovim.enter("write" if accept else "quit")

    async def type_into(self, marker: str, text: str) -> bool:
        with suppress(RpcError, RpcClosedError):
            if self.neovim is not None and await self.neovim.lua(_GO_TO_PROPOSAL, marker):
                await self.neovim.type(f"ggO{text}<Esc>")
                return True
        return False

    async def has_reported(self, typed: str) -> bool:
        async def is_there() -> bool:
            return any(typed in text for text in await self.texts())

        async def have_timers_run() -> bool:
            return self.neovim is not None and bool(await self.neovim.lua("return vim.g.timers_ran"))

        assert self.neovim is not None
        await eventually_async(is_there, what="the typed text")
        # Neovim's timers end in the order of their times: this one after the one that reports the typed text.
        await self.neovim.lua("vim.g.timers_ran = false; vim.defer_fn(function() vim.g.timers_ran = true end, 1500)")
        await eventually_async(have_timers_run, what="the timers of Neovim")
        return True

    async def texts(self) -> list[str]:
        assert self.neovim is not None
        return await self.neovim.lua(_BUFFERS)


class BridgeSetup(HeadlessSetup):
    """A run of ``isthmus bridge`` at an IDE that speaks only the Claude protocol."""

    speaks_claude = False
    faults = ("kill", "kill", "term", "kill twice", "ide away", "drop gemini")

    def __init__(self, workspace: Path, isolated_folders: IsolatedFolders) -> None:
        super().__init__(workspace, isolated_folders)
        self.ide: ClaudeServer = NeovimServer(workspace)

    async def begin(self) -> None:
        await self.ide.start()
        self.lock = self.ide.lock()

    def command(self) -> tuple[str, ...]:
        return ("bridge",)

    async def cause(self, fault: str) -> None:
        if fault == "ide away":
            await self.ide.stop()
            await self.ide.start(self.ide.port)
        else:
            await super().cause(fault)
            await eventually_async(lambda: not self.ide.clients, what="the IDE sees that the bridge has disconnected")
            self.ide.views.clear()  # as an extension does whose client has disconnected

    async def end(self) -> None:
        await super().end()
        await self.abandon()

    async def abandon(self) -> None:
        await super().abandon()
        if self.lock is not None:
            self.lock.unlink()
            self.lock = None
            await self.ide.stop()

    async def decide(self, file: Path, marker: str, *, accept: bool) -> None:
        for tab, view in self.ide.views.items():
            if view.path == str(file) and not view.answer.done():
                view.answer.set_result(["FILE_SAVED", view.contents] if accept else ["DIFF_REJECTED", tab])


def _reap(process: TextProgram) -> None:
    process.send_signal(signal.SIGKILL)
    process.wait(30)
    if process.stdout is not None:
        process.stdout.close()


def processes_of(home: Path) -> list[str]:
    """Return the processes that run in the isolated folders of a test."""
    found: list[str] = []
    for folder in Path("/proc").glob("[0-9]*") if Path("/proc").is_dir() else ():
        with suppress(OSError):
            if f"HOME={home}\0".encode() in (folder / "environ").read_bytes() and int(folder.name) != os.getpid():
                found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found
