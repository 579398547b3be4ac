"""Editor that is a running Neovim (0.8 or newer), over its own RPC, without a plugin. It starts no process.

The Lua files beside this one are injected at the start and removed at the end; they do what has to happen inside
Neovim. Neovim does not answer while it waits at a prompt: every request has a deadline, and the last known files are
used meanwhile.
"""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final
from uuid import uuid4

from typing_extensions import override

from isthmus.editors.editor_base import EditorBase, existing
from isthmus.editors.neovim import msgpack_rpc
from isthmus.editors.neovim.changes import NeovimChanges
from isthmus.editors.neovim.msgpack_rpc import RpcConnection
from isthmus.editors.neovim.shown_file import read_shown
from isthmus.editors.neovim.startup import start_in
from isthmus.editors.neovim.text import BufferText, final_text
from isthmus.editors.neovim.tools import NeovimTools
from isthmus.editors.neovim.wire import decode_diagnostics, decode_error, decode_files, encode_range, encode_review
from isthmus.encoding.codec import JsonObject
from isthmus.ide.editor import (
    Capability,
    ContextChanged,
    Diagnostic,
    DiagnosticsChanged,
    DiffAccepted,
    DiffEdited,
    DiffRejected,
    EditorError,
    EditorGoneError,
    EditorIdentity,
    FileMentioned,
    FileSaved,
    OpenFile,
    Range,
    WorkspaceChanged,
)
from isthmus.ide.mcp.mcp_peer import ToolDefinition
from isthmus.ide.reviews.review import DiffReview
from isthmus.ide.written_changes.front import ChangesQuestion
from isthmus.record import record
from isthmus.rpc.messages import Notification, RpcError
from isthmus.rpc.pending import RpcClosedError, RpcTimeoutError

_UNAVAILABLE: Final[Mapping[Capability, str]] = MappingProxyType(
    {Capability.EXECUTE: "it has no notebooks; start the companion with --editor jupyter"}
)
_CALL: Final = "local channel, name = ...; return _G.isthmus_sessions[channel][name](select(3, ...))"
_TYPING: Final = "iRvVsS\x16\x13"
"""Modes in which keys would change or select text: insert, replace, visual and select."""
_WAITS: Final = "it waits at a prompt, or is busy or still starting; answer it there and try again"
_GONE: Final = "Neovim has quit, or the connection to it is lost"


@record
class NeovimLimits:
    """Limits of one attached Neovim, which does not answer while it waits at a prompt."""

    start_seconds: float = 10.0
    """Maximum time for each of the two requests that attach to it, and for its own start between them."""
    command_seconds: float = 10.0
    """Maximum wait for most answers."""
    view_seconds: float = 3.0
    """Maximum wait for a view or question to appear; it may still do so later, and the user can answer elsewhere."""
    snapshot_seconds: float = 0.5
    """Maximum wait for folders and files, after which the last known ones are used."""
    oldest_version: tuple[int, int, int] = (0, 8, 0)


class _BusyError(EditorError):
    """Neovim did not answer in time; the request waits there."""


def default_address(environment: Mapping[str, str]) -> str:
    """Return the address of the Neovim in whose terminal we run.

    Raises:
        EditorError: no variable names one.
    """
    address = environment.get("NVIM") or environment.get("NVIM_LISTEN_ADDRESS")
    if not address:
        raise EditorError(
            "no Neovim found: $NVIM is not set. Start this inside Neovim's :terminal, or name the address that "
            "`:echo v:servername` shows with --address"
        )
    return address


async def attach(address: str, limits: NeovimLimits = NeovimLimits()) -> "NeovimEditor":
    """Attach to the Neovim that listens at ``address``, the path of a Unix socket or host:port.

    Raises:
        EditorError: no Neovim listens there, it is older than 0.8, or it did not answer in time (it waits at a prompt).
    """
    editor = NeovimEditor(address, limits)
    try:
        await editor.start()
    except BaseException:
        await editor.aclose()
        raise
    return editor


class NeovimEditor(EditorBase):
    """A Neovim, made by :func:`attach`. Its process id is the Neovim's that has the buffers."""

    def __init__(self, address: str, limits: NeovimLimits) -> None:
        super().__init__(EditorIdentity("neovim", "Neovim", os.getpid()), _UNAVAILABLE)
        self._address = address
        self._limits = limits
        self._connection: RpcConnection | None = None
        self._channel = 0
        self._reviews: dict[str, DiffReview] = {}
        self._reading = asyncio.Lock()
        self._questions: dict[str, asyncio.Future[bool]] = {}
        self._tools = NeovimTools()
        self._changes = NeovimChanges(self._later)
        self._files: tuple[OpenFile, ...] = ()
        self._folders: tuple[str, ...] = ()

    async def start(self) -> None:
        """Connect and inject the Lua.

        Raises:
            EditorError: as :func:`attach` does.
        """
        try:
            self._connection = await msgpack_rpc.connect(self._address, self._notified, self._ended)
            started = await start_in(self._connection, self._limits.oldest_version, self._limits.start_seconds)
            self._channel = started.channel
            self._identity = EditorIdentity("neovim", "Neovim", started.pid)
            self._folders = started.folders
            self._tools.offer(started.tools)
        except RpcTimeoutError as error:
            raise EditorError(f"Neovim at {self._address} does not answer: {_WAITS}") from error
        except (RpcError, RpcClosedError) as error:
            raise EditorError(f"found no Neovim to attach to: {error}") from error
        except (TypeError, ValueError, KeyError) as error:
            raise EditorError(f"{self._address} does not answer as Neovim does: {error}") from error

    @override
    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the working directories of Neovim and of its tab pages."""
        self._require_alive()
        with suppress(RpcTimeoutError):
            self._folders = tuple(await self._call("folders", timeout=self._limits.snapshot_seconds))
        return self._folders

    @override
    async def open_files(self) -> tuple[OpenFile, ...]:
        """Return the listed buffers whose file exists; while Neovim waits at a prompt, the last known ones."""
        self._require_alive()
        with suppress(RpcTimeoutError):
            self._files = decode_files(await self._call("state", timeout=self._limits.snapshot_seconds))
        return await asyncio.to_thread(existing, self._files)

    @override
    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        """Show a file; if another Neovim has a swap file of it, open it read-only instead of asking the user."""
        if not await asyncio.to_thread(os.path.isfile, path):
            raise EditorError(f"{path}: no such file")
        if focus:
            await self._leave_typing(path)
        await self._command(path, "open_file", path, encode_range(at), focus)

    @override
    async def close_file(self, path: str) -> None:
        await self._command(path, "close_file", path)

    @override
    async def open_diff(self, review: DiffReview) -> None:
        """Show the review, in a tab page of its own unless the user chose otherwise; ``:w`` accepts, ``:q`` rejects.

        While the user is typing, it opens without the focus, and a message says so. A busy Neovim, or
        one that waits at a prompt, shows it later; that is not an error, because an agent would give up its edit.
        """
        async with self._reading:  # in the order of the requests, in which the user sees the reviews
            current, note = await asyncio.to_thread(read_shown, review.file_path)
        options = encode_review(review, self._label(review.file_path), note, current)
        self._reviews[review.id] = review
        try:
            await self._command(review.file_path, "open_diff", review.id, options, timeout=self._limits.view_seconds)
        except _BusyError:
            pass  # the user can answer with `isthmus ide` meanwhile
        except BaseException:
            # The view may still appear; this closes it then.
            self._reviews.pop(review.id, None)
            self._later("close_diff", review.id)
            raise

    @override
    async def close_diff(self, review_id: str) -> str | None:
        """Close a view and return its text, or the proposal if Neovim waits at a prompt and closes the view later."""
        review = self._reviews.get(review_id)
        if review is None:
            return None
        try:
            closed = await self._command(review.file_path, "close_diff", review_id)
        except EditorGoneError:
            raise
        except EditorError:
            if self._reviews.pop(review_id, None) is None:
                return None
            return review.proposed
        if closed is None:
            return None
        self._reviews.pop(review_id, None)
        return final_text(review.proposed, closed.get("text"))

    @override
    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        """Return what ``vim.diagnostic`` has."""
        return decode_diagnostics(await self._command(path or "diagnostics", "diagnostics", path))

    @override
    async def is_dirty(self, path: str) -> bool | None:
        dirty = await self._command(path, "is_dirty", path)
        return dirty if isinstance(dirty, bool) else None

    @override
    async def save(self, path: str) -> None:
        """Run ``:write`` with the user's autocommands, unless the file has changed on disk."""
        await self._command(path, "save", path)

    @override
    async def text(self, path: str) -> str | None:
        text = await self._command(path, "text", path)
        return None if text is None else BufferText.from_neovim(text).text()

    @override
    async def reload(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Read files again with ``:checktime``, if 'autoread' is set; a Neovim at a prompt does so later."""
        with suppress(_BusyError):
            return tuple(await self._command("files", "reload", list(paths), timeout=self._limits.snapshot_seconds))
        return ()

    @override
    async def confirm(self, title: str, text: str) -> bool:
        """Ask in a small window; the user answers with ``y``, ``n``, ``:IsthmusAllow`` or ``:IsthmusRefuse``."""
        question_id = uuid4().hex
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._questions[question_id] = answer
        try:
            with suppress(_BusyError):  # the user can answer elsewhere meanwhile
                await self._command("question", "ask", question_id, title, text, timeout=self._limits.view_seconds)
            return await answer
        finally:
            del self._questions[question_id]
            if not answer.done() or answer.cancelled():
                self._later("close_question", question_id)

    @override
    async def set_terminal_environment(self, variables: Mapping[str, str | None]) -> None:
        """Set variables of Neovim itself, which its terminals and jobs inherit.

        A Neovim that waits at a prompt sets them later, or removes all of ours if we have left by then.
        """
        values = {name: False if value is None else value for name, value in variables.items()}
        with suppress(_BusyError):
            await self._command("terminals", "set_environment", values, timeout=self._limits.view_seconds)

    @override
    async def show_message(self, text: str) -> None:
        """Show one line at the bottom of the screen, cut to its width; ``:messages`` has it, too."""
        await self._command("message", "message", text)

    @property
    def user_tools(self) -> tuple[ToolDefinition, ...]:
        """Tools that the user declared in Lua."""
        return self._tools.offered

    async def call_user_tool(self, name: str, arguments: JsonObject) -> str:
        """Run a tool of the user in Neovim, and wait for its result; a Neovim that waits at a prompt runs it later."""
        self._require_alive()
        call_id, result = self._tools.begin()
        try:
            self._later("run_tool", {"id": call_id, "name": name, "arguments": dict(arguments)})
            return await result
        finally:
            self._tools.end(call_id)

    def agents_changed(self, titles: Mapping[str, str]) -> None:
        """Run the user's autocommands for agents that attached or left."""
        self._later("agents_changed", dict(titles))

    def serve_changes(self, ask: ChangesQuestion) -> None:
        """Let the user see what agents wrote, and decide about it, by ``:IsthmusChanges`` and its commands."""
        self._changes.serve(ask)

    def changes_written(self, files: int, turns: int) -> None:
        """Show how much waits for the user, without taking the focus."""
        self._changes.written(files, turns)

    @override
    async def aclose(self) -> None:
        """Close our views, remove the Lua, and disconnect."""
        connection, self._connection = self._connection, None
        self._ended()
        if connection is None:
            return
        if self._channel and not connection.is_closed:
            with suppress(RpcError, RpcTimeoutError, RpcClosedError):
                await connection.request("nvim_exec_lua", _CALL, [self._channel, "detach"], timeout=2.0)
        await connection.aclose()

    def _require_alive(self) -> RpcConnection:
        if self._connection is None or self._connection.is_closed:
            raise EditorGoneError(_GONE)
        return self._connection

    async def _call(self, name: str, *arguments: object, timeout: float) -> Any:
        connection = self._require_alive()
        try:
            return await connection.request("nvim_exec_lua", _CALL, [self._channel, name, *arguments], timeout=timeout)
        except RpcClosedError as error:
            raise EditorGoneError(_GONE) from error
        except RpcError as error:
            raise EditorError(decode_error(str(error))) from error

    async def _command(self, subject: str, name: str, *arguments: object, timeout: float | None = None) -> Any:
        seconds = self._limits.command_seconds if timeout is None else timeout
        try:
            return await self._call(name, *arguments, timeout=seconds)
        except RpcTimeoutError as error:
            raise _BusyError(f"{subject}: Neovim does not answer: {_WAITS}") from error
        except EditorGoneError:
            raise
        except EditorError as error:
            raise EditorError(f"{subject}: {error}") from error

    async def _leave_typing(self, subject: str) -> None:
        """Switch to normal mode, so that the keys of a user who is typing or selecting do not change the next file."""
        connection, seconds = self._require_alive(), self._limits.command_seconds
        try:
            async with asyncio.timeout(seconds):
                while (await connection.request("nvim_get_mode", timeout=seconds))["mode"][0] in _TYPING:
                    connection.notify("nvim_input", "<C-\\><C-n>")
                    await asyncio.sleep(0.01)
        except (TimeoutError, RpcTimeoutError) as error:
            raise EditorError(f"{subject}: Neovim does not answer: {_WAITS}") from error
        except RpcClosedError as error:
            raise EditorGoneError(_GONE) from error

    def _ended(self) -> None:
        """End the events and fail the open questions: Neovim quits, or is gone."""
        self._events.end()
        self._tools.fail_all(EditorGoneError(_GONE))
        self._changes.end()
        for answer in self._questions.values():
            if not answer.done():
                answer.set_exception(EditorGoneError(_GONE))

    def _later(self, name: str, argument: object) -> None:
        """Call a function without waiting for it, such as one that closes a view."""
        if self._connection is not None and not self._connection.is_closed:
            self._connection.notify("nvim_exec_lua", _CALL, [self._channel, name, argument])

    def _label(self, file_path: str) -> str:
        path = Path(file_path)
        return str(next((path.relative_to(folder) for folder in self._folders if path.is_relative_to(folder)), path))

    def _notified(self, message: Notification) -> None:
        match message.params:
            case ("changed",):
                self._events.put(ContextChanged())
            case ("folders",):
                self._events.put(WorkspaceChanged())
            case ("diagnostics", str(path)):
                self._events.put(DiagnosticsChanged((path,)))
            case ("saved", str(path)):
                self._events.put(FileSaved(path))
                self._changes.saved(path)
            case ("mentioned", str(path), *lines):
                first, last = lines if len(lines) == 2 else (None, None)
                self._events.put(FileMentioned(path, first, last))
            case ("accepted", str(review_id), text) if review_id in self._reviews:
                review = self._reviews.pop(review_id)
                self._events.put(DiffAccepted(review_id, final_text(review.proposed, text)))
            case ("rejected", str(review_id), *left) if review_id in self._reviews:
                review = self._reviews.pop(review_id)
                typed = final_text(review.proposed, left[0]) if left and left[0] is not None else None
                self._events.put(DiffRejected(review_id, typed))
            case ("edited", str(review_id), text) if review_id in self._reviews:
                self._events.put(DiffEdited(review_id, final_text(self._reviews[review_id].proposed, text)))
            case ("answered", str(question_id), bool(yes)) if question_id in self._questions:
                if not (answer := self._questions[question_id]).done():
                    answer.set_result(yes)
            case ("changes", str(question_id), str(name), params):
                self._changes.asked(question_id, name, params)
            case ("tools", tools):
                self._tools.offer(tools)
            case ("tool_result", str(call_id), bool(is_result), str(text)):
                self._tools.answer(call_id, text, is_error=not is_result)
            case ("leaving",):
                self._ended()
            case _:
                pass
