"""An editor whose plugin started the companion and speaks to it over standard input and output.

docs/reference/editor-port.md describes the messages.

The port's methods as requests with deadlines. What the plugin tells is in :mod:`plugin_session`, the wire's shapes are
in :mod:`editor_wire`, the pipes in :mod:`json_rpc_connection`. A plugin that hangs, floods or answers nonsense costs
its own requests and nothing else.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

from isthmus.editors.editor_base import EditorBase
from isthmus.editors.plugin import lsp_diagnostics
from isthmus.editors.plugin import wire as editor_wire
from isthmus.editors.plugin.connection import JsonRpcConnection, PipeLimits, open_connection
from isthmus.editors.plugin.lsp_shapes import encode_range
from isthmus.editors.plugin.recoding import Recoder
from isthmus.editors.plugin.session import PluginSession
from isthmus.encoding.codec import JsonObject
from isthmus.errors import DecodeError
from isthmus.files.atomic import read_regular
from isthmus.ide.editor import (
    Capability,
    CodeExecution,
    ContextChanged,
    Diagnostic,
    EditorError,
    EditorGoneError,
    EditorIdentity,
    OpenFile,
    Range,
    WorkspaceChanged,
)
from isthmus.ide.processes import process_is_alive
from isthmus.ide.reviews.review import DiffReview
from isthmus.rpc.messages import RpcError
from isthmus.rpc.pending import RpcClosedError, RpcTimeoutError
from isthmus.text.offsets import OffsetEncoding
from isthmus.text.text_file import BinaryContentError, decode_text

MAXIMUM_READ_BYTES: Final = 4 * 1024 * 1024
"""Of a file whose lines are looked at: to convert positions, and for its newlines."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginLimits(PipeLimits):
    """Limits of one attached plugin."""

    start_seconds: float = 10.0
    """Maximum time until it has initialized."""
    snapshot_seconds: float = 1.0
    """Maximum wait for folders, files and diagnostics: the former stand in then."""
    late_snapshot_seconds: float = 30.0
    """Maximum time after which late folders and files still count."""
    command_seconds: float = 10.0
    """Maximum wait for any other answer."""
    confirm_seconds: float = 900.0
    """Maximum wait for the user's answer to a question."""
    execute_seconds: float = 3600.0
    """Maximum time for code to run."""
    close_seconds: float = 2.0
    """Maximum wait for the views to close at the end."""


class _NoAnswerError(EditorError):
    """The deadline passed."""


async def attach(incoming: int, outgoing: int, limits: PluginLimits = PluginLimits()) -> "StdioEditor":
    """Attach to the plugin at the other end of two pipes, given as file descriptors, which are taken.

    Raises:
        EditorError: the plugin did not initialize in time.
    """
    editor = StdioEditor(limits)
    try:
        await editor.start(incoming, outgoing)
    except BaseException:
        await editor.aclose()
        raise
    return editor


class StdioEditor(EditorBase):
    """Made by :func:`attach`. Its process is the one that the plugin names, or the one that started the companion."""

    def __init__(self, limits: PluginLimits) -> None:
        super().__init__(EditorIdentity("stdio", "The editor", os.getppid()), {})
        self._limits = limits
        self._connection: JsonRpcConnection | None = None
        self._session = PluginSession()
        self._started = asyncio.Event()
        self._recoder = Recoder(OffsetEncoding.UTF_16)
        self._files: tuple[OpenFile, ...] = ()
        self._unsaved: frozenset[str] = frozenset()
        self._late: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_trusted(self) -> bool | None:
        """What the plugin said last."""
        return self._session.is_trusted

    async def start(self, incoming: int, outgoing: int) -> None:
        """Wait until the plugin has initialized; see :func:`attach`."""
        seconds = self._limits.start_seconds
        try:
            self._connection = await open_connection(
                incoming, outgoing, self._session.requested, self._notified, self._closed, self._limits
            )
            async with asyncio.timeout(seconds):
                await self._started.wait()
        except TimeoutError as error:
            raise EditorError(f"the plugin did not send initialize and initialized within {seconds:g} s") from error
        attached = self._session.attached
        if attached is None or self._session.has_left or self._connection.is_closed:
            raise EditorGoneError("the plugin ended before it had sent initialize and initialized")
        pid = attached.pid if attached.pid is not None and process_is_alive(attached.pid) else os.getppid()
        self._identity = EditorIdentity(attached.name, attached.display_name, pid)
        self._unavailable = attached.unavailable
        self._recoder = Recoder(attached.encoding)

    def announce(self, environment: Mapping[str, str], discovery_files: Sequence[str]) -> None:
        """Tell the plugin that agents can find the companion, and what terminals need for that."""
        if self._connection is not None:
            ready = {"environment": dict(environment), "discoveryFiles": list(discovery_files)}
            self._connection.notify("companion/ready", ready)

    async def workspace_folders(self) -> tuple[str, ...]:
        """The plugin's, as far as it has told them; when it has none the folder in which the companion was started."""
        self._require_alive()
        if self._session.folders_changed:
            self._session.folders_changed = False
            await asyncio.wait({self._later(self._take_folders())}, timeout=self._limits.snapshot_seconds)
        return self._session.folders or (str(Path.cwd()),)

    async def open_files(self) -> tuple[OpenFile, ...]:
        """Return the plugin's; while it does not answer, those that were known last."""
        self._require_alive()
        if self._late is None:
            snapshot = asyncio.create_task(self._take_snapshot())
            try:
                await asyncio.wait({snapshot}, timeout=self._limits.snapshot_seconds)
            finally:
                if not snapshot.done():
                    # It still counts when it comes, and nothing is asked of a busy plugin meanwhile.
                    self._late = snapshot
                    snapshot.add_done_callback(self._came_late)
                elif not snapshot.cancelled():
                    snapshot.exception()  # looked at, also when this is cancelled: it must not take that one's place
            if snapshot.done():
                snapshot.result()
        return self._files

    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        self._require(Capability.OPEN)
        if not await asyncio.to_thread(os.path.isfile, path):
            raise EditorError(f"{path}: no such file")
        params: dict[str, Any] = {**editor_wire.encode_document(path), "takeFocus": focus}
        if at is not None:
            params["selection"] = encode_range(await self._recoder.to_plugin(path, at, self._text_of))
        if await self._ask(path, "window/showDocument", params) == {"success": False}:
            raise EditorError(f"{path}: {self._identity.display_name} did not show it")

    async def close_file(self, path: str) -> None:
        """See the port. Unsaved changes are looked for here too: not every plugin does."""
        self._require(Capability.CLOSE)
        if Capability.DIRTY not in self.unavailable and await self.is_dirty(path):
            raise EditorError(f"{path}: it has unsaved changes; save it first")
        await self._ask(path, "editor/closeDocument", editor_wire.encode_document(path))

    async def open_diff(self, review: DiffReview) -> None:
        self._require(Capability.DIFF)
        is_new = not await asyncio.to_thread(os.path.exists, review.file_path)
        self._session.reviews[review.id] = review
        try:
            await self._ask(review.file_path, "editor/openDiff", editor_wire.encode_review(review, is_new=is_new))
        except BaseException:
            self._session.reviews.pop(review.id, None)
            # It may still appear; this comes right after it.
            self._later(self._ask(review.file_path, "editor/closeDiff", {"id": review.id}))
            raise

    async def close_diff(self, review_id: str) -> str | None:
        """See the port. Of a plugin that does not answer, the text is the proposal."""
        self._require_alive()
        reviews = self._session.reviews
        if (review := reviews.get(review_id)) is None:
            return None
        text: str | None = None
        try:
            answer = await self._ask(review.file_path, "editor/closeDiff", {"id": review_id})
            closed = self._decoded(editor_wire.decode_closed, answer)
            if closed is None:
                reviews.pop(review_id, None)
                return None
            (text,) = closed
        except EditorGoneError:
            raise
        except EditorError as error:
            self._session.note(str(error))
        return self._session.final_text(review, text) if reviews.pop(review_id, None) is not None else None

    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        """What the plugin pushed, else what it answers."""
        found: tuple[Diagnostic, ...]
        self._require(Capability.DIAGNOSTICS)
        if self._session.pushes_diagnostics:
            found = tuple(one for of, every in self._session.pushed.items() if path in (None, of) for one in every)
        elif path is None:
            report = await self._ask(
                "diagnostics", "workspace/diagnostic", {"previousResultIds": []}, seconds=self._limits.snapshot_seconds
            )
            found = self._decoded(lsp_diagnostics.decode_workspace_report, report)
        else:
            params = {"textDocument": editor_wire.encode_document(path)}
            report = await self._ask(path, "textDocument/diagnostic", params, seconds=self._limits.snapshot_seconds)
            found = self._decoded(lambda value: lsp_diagnostics.decode_document_report(path, value), report)
        return await self._recoder.diagnostics(found, self._text_of)

    async def is_dirty(self, path: str) -> bool | None:
        self._require(Capability.DIRTY)
        files = self._decoded(editor_wire.decode_files, await self._ask(path, "editor/openFiles", {}))
        return next((file.is_dirty for file in files if file.path == path), None)

    async def save(self, path: str) -> None:
        self._require(Capability.SAVE)
        if Capability.DIRTY not in self.unavailable:
            match await self.is_dirty(path):
                case None:
                    raise EditorError(f"{path}: it is not open; open it first")
                case False:
                    return
                case True:
                    pass
        await self._ask(path, "editor/saveDocument", editor_wire.encode_document(path))

    async def text(self, path: str) -> str | None:
        self._require(Capability.TEXT)
        text = await self._ask(path, "editor/text", editor_wire.encode_document(path))
        if not isinstance(text, str):
            return None
        on_disk = await asyncio.to_thread(_text_on_disk, path) if self._session.knows_only_lf else None
        return text if on_disk is None else editor_wire.with_form_of(on_disk, text)

    async def show_message(self, text: str) -> None:
        self._require(Capability.MESSAGE)
        self._require_alive().notify("window/showMessage", {"type": 3, "message": text})

    async def confirm(self, title: str, text: str) -> bool:
        self._require(Capability.CONFIRM)
        params = editor_wire.encode_question(title, text)
        with contextlib.suppress(_NoAnswerError):
            answer = await self._ask(
                "question", "window/showMessageRequest", params, seconds=self._limits.confirm_seconds
            )
            return editor_wire.decode_answer(answer)
        return False

    async def execute_code(self, code: str, notebook: str | None = None) -> CodeExecution:
        self._require(Capability.EXECUTE)
        answer = await self._ask(
            "code", "editor/executeCode", {"code": code, "notebook": notebook}, seconds=self._limits.execute_seconds
        )
        return self._decoded(editor_wire.decode_execution, answer)

    async def set_terminal_environment(self, variables: Mapping[str, str | None]) -> None:
        self._require(Capability.TERMINAL)
        await self._ask("terminals", "editor/setTerminalEnvironment", {"variables": dict(variables)})

    async def aclose(self) -> None:
        """Take back the open reviews, and close our end of the pipes."""
        connection = self._connection
        self._events.end()
        if connection is None:
            return
        if not (connection.is_closed or self._session.has_left):
            requests = [
                connection.request("editor/closeDiff", {"id": review_id}, timeout=self._limits.close_seconds)
                for review_id in self._session.reviews
            ]
            await asyncio.gather(*requests, return_exceptions=True)
        self._connection = None
        await connection.aclose()
        await asyncio.gather(*self._tasks, *([self._late] if self._late else []), return_exceptions=True)

    # What the plugin tells.

    def _notified(self, method: str, params: JsonObject) -> None:
        event = self._session.notified(method, params)
        if event is not None:
            self._events.put(event)
        if self._session.is_ready or self._session.has_left:
            self._started.set()
        if self._session.has_left:
            self._events.end()

    def _closed(self, problem: str | None) -> None:
        if problem is not None:
            self._session.note(problem)
        self._started.set()
        self._events.end()

    # Asking it.

    def _require_alive(self) -> JsonRpcConnection:
        if self._connection is None or self._connection.is_closed or self._session.has_left:
            raise EditorGoneError(f"{self._identity.display_name} has quit, or its plugin has ended")
        return self._connection

    def _require_present(self) -> None:
        self._require_alive()

    async def _ask(self, subject: str, method: str, params: JsonObject | None, *, seconds: float | None = None) -> Any:
        name = self._identity.display_name
        seconds = self._limits.command_seconds if seconds is None else seconds
        try:
            return await self._require_alive().request(method, params, timeout=seconds)
        except RpcClosedError as error:
            raise EditorGoneError(f"{name} has quit, or its plugin has ended") from error
        except RpcTimeoutError as error:
            raise _NoAnswerError(f"{subject}: {name} does not answer ({error}); look whether it waits there") from error
        except RpcError as error:
            raise EditorError(f"{subject}: {error}") from error

    def _decoded(self, decode: Callable[[object], T], value: object) -> T:
        try:
            return decode(value)
        except DecodeError as error:
            self._session.note(f"the plugin answered wrongly: {error}")
            raise EditorError(f"the plugin of {self._identity.display_name} answered wrongly: {error}") from error

    async def _take_folders(self) -> None:
        """Also late: an editor is busiest when a project is opened in it."""
        session = self._session
        try:
            answer = await self._ask(
                "workspace", "workspace/workspaceFolders", None, seconds=self._limits.late_snapshot_seconds
            )
        except _NoAnswerError:
            session.folders_changed = True
            return
        folders = self._decoded(editor_wire.decode_folders, answer)
        if folders != session.folders:
            session.folders = folders
            self._events.put(WorkspaceChanged())

    async def _take_snapshot(self) -> None:
        answer = await self._ask("open files", "editor/openFiles", {}, seconds=self._limits.late_snapshot_seconds)
        files = self._decoded(editor_wire.decode_files, answer)
        self._unsaved = frozenset(file.path for file in files if file.is_dirty)
        self._files = await self._recoder.files(files, self._text_of)

    def _came_late(self, snapshot: asyncio.Task[None]) -> None:
        self._late = None
        if not snapshot.cancelled() and snapshot.exception() is None:
            self._events.put(ContextChanged())

    async def _text_of(self, path: str) -> str | None:
        """Return the text that positions of a file are in; of one without unsaved changes it is on disk."""
        if path in self._unsaved and Capability.TEXT not in self.unavailable:
            with contextlib.suppress(EditorError):
                return await self.text(path)
        return await asyncio.to_thread(_text_on_disk, path)

    def _later(self, work: Coroutine[None, None, object]) -> asyncio.Task[None]:
        task = asyncio.create_task(_without_errors(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _without_errors(work: Coroutine[None, None, object]) -> None:
    with contextlib.suppress(EditorError):
        await work


def _text_on_disk(path: str) -> str | None:
    with contextlib.suppress(OSError, ValueError, BinaryContentError):
        return decode_text(read_regular(Path(path), MAXIMUM_READ_BYTES)).text
    return None
