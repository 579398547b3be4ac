"""Editor whose plugin started the companion, over standard input and output (docs/reference/editor-port.md).

The methods of the port are requests with deadlines. A plugin that hangs, floods or answers nonsense makes its own
requests fail, and nothing else.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from typing_extensions import override

from isthmus.editors.editor_base import EditorBase
from isthmus.editors.plugin import lsp_diagnostics, wire
from isthmus.editors.plugin.connection import JsonRpcConnection, open_connection
from isthmus.editors.plugin.disk_text import text_on_disk
from isthmus.editors.plugin.limits import PluginLimits
from isthmus.editors.plugin.lsp_shapes import encode_range
from isthmus.editors.plugin.recoding import Recoder
from isthmus.editors.plugin.session import PluginSession
from isthmus.encoding.codec import JsonObject
from isthmus.errors import DecodeError
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
from isthmus.ide.mcp.mcp_peer import ToolDefinition
from isthmus.ide.processes import process_is_alive
from isthmus.ide.reviews.review import DiffReview
from isthmus.ide.written_changes.front import ChangesQuestion
from isthmus.rpc.messages import RpcError
from isthmus.rpc.pending import RpcClosedError, RpcTimeoutError
from isthmus.runtime.running_tasks import RunningTasks
from isthmus.text.offsets import OffsetEncoding

T = TypeVar("T")


class _NoAnswerError(EditorError):
    """The plugin did not answer before the deadline."""


async def attach(incoming: int, outgoing: int, limits: PluginLimits = PluginLimits()) -> "StdioEditor":
    """Attach to the plugin at the other end of two pipes, given as file descriptors, which are closed with the editor.

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
    """An editor with a plugin, made by :func:`attach`.

    Its process is the one that the plugin names, or the one that started the companion.
    """

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
        self._tasks = RunningTasks()

    @property
    @override
    def is_trusted(self) -> bool | None:
        """Whether the user trusts the workspace, as the plugin reported last."""
        return self._session.is_trusted

    async def start(self, incoming: int, outgoing: int) -> None:
        """Connect, and wait until the plugin has initialized.

        Raises:
            EditorError: it did not in time.
        """
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
        """Tell the plugin that agents can find the companion, and which variables terminals need for that."""
        if self._connection is not None:
            self._connection.notify("companion/ready", wire.encode_ready(environment, discovery_files))

    def agents_changed(self, titles: Mapping[str, str]) -> None:
        """Tell the plugin which agents are attached."""
        if self._connection is not None:
            self._connection.notify("companion/agentsChanged", wire.encode_agents(titles))

    def serve_changes(self, ask: ChangesQuestion) -> None:
        """Let the plugin ask for what agents wrote, by ``companion/written``."""
        self._session.ask = ask

    def changes_written(self, files: int, turns: int) -> None:
        """Tell the plugin how much waits for the user, once it has asked for that."""
        if self._connection is not None and self._session.shows_changes:
            self._connection.notify("companion/changesWritten", {"files": files, "turns": turns})

    @override
    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the plugin's folders, or else the one in which the companion was started."""
        self._require_alive()
        if self._session.folders_changed:
            self._session.folders_changed = False
            await asyncio.wait({self._in_background(self._take_folders())}, timeout=self._limits.snapshot_seconds)
        return self._session.folders or (str(Path.cwd()),)

    @override
    async def open_files(self) -> tuple[OpenFile, ...]:
        """Return the plugin's open files; while it does not answer, the last known ones."""
        self._require_alive()
        if self._late is None:
            snapshot = asyncio.create_task(self._take_snapshot())
            try:
                await asyncio.wait({snapshot}, timeout=self._limits.snapshot_seconds)
            finally:
                if not snapshot.done():
                    # A late answer still counts, and a busy plugin is not asked again meanwhile.
                    self._late = snapshot
                    snapshot.add_done_callback(self._came_late)
                elif not snapshot.cancelled():
                    snapshot.exception()  # if this task is cancelled, nobody else retrieves it
            if snapshot.done():
                snapshot.result()
        return self._files

    @override
    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        self._require(Capability.OPEN)
        if not await asyncio.to_thread(os.path.isfile, path):
            raise EditorError(f"{path}: no such file")
        params: dict[str, Any] = {**wire.encode_document(path), "takeFocus": focus}
        if at is not None:
            params["selection"] = encode_range(await self._recoder.to_plugin(path, at, self._text_of))
        if await self._ask(path, "window/showDocument", params) == {"success": False}:
            raise EditorError(f"{path}: {self._identity.display_name} did not show it")

    @override
    async def close_file(self, path: str) -> None:
        """Stop showing a file, unless it has unsaved changes, which not every plugin checks."""
        self._require(Capability.CLOSE)
        if Capability.DIRTY not in self.unavailable and await self.is_dirty(path):
            raise EditorError(f"{path}: it has unsaved changes; save it first")
        await self._ask(path, "editor/closeDocument", wire.encode_document(path))

    @override
    async def open_diff(self, review: DiffReview) -> None:
        self._require(Capability.DIFF)
        is_new = not await asyncio.to_thread(os.path.exists, review.file_path)
        self._session.reviews[review.id] = review
        try:
            await self._ask(review.file_path, "editor/openDiff", wire.encode_review(review, is_new=is_new))
        except BaseException:
            self._session.reviews.pop(review.id, None)
            # The view may still appear; this closes it then.
            self._in_background(self._ask(review.file_path, "editor/closeDiff", {"id": review.id}))
            raise

    @override
    async def close_diff(self, review_id: str) -> str | None:
        """Close a view and return its text, or the proposal if the plugin does not answer."""
        self._require_alive()
        reviews = self._session.reviews
        if (review := reviews.get(review_id)) is None:
            return None
        text: str | None = None
        try:
            answer = await self._ask(review.file_path, "editor/closeDiff", {"id": review_id})
            closed = self._decoded(wire.decode_closed, answer)
            if closed is None:
                reviews.pop(review_id, None)
                return None
            (text,) = closed
        except EditorGoneError:
            raise
        except EditorError as error:
            self._session.note(str(error))
        return self._session.final_text(review, text) if reviews.pop(review_id, None) is not None else None

    @override
    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        """Return the diagnostics that the plugin pushed, or that it answers with."""
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
            params = {"textDocument": wire.encode_document(path)}
            report = await self._ask(path, "textDocument/diagnostic", params, seconds=self._limits.snapshot_seconds)
            found = self._decoded(lambda value: lsp_diagnostics.decode_document_report(path, value), report)
        return await self._recoder.diagnostics(found, self._text_of)

    @override
    async def is_dirty(self, path: str) -> bool | None:
        self._require(Capability.DIRTY)
        files = self._decoded(wire.decode_files, await self._ask(path, "editor/openFiles", {}))
        return next((file.is_dirty for file in files if file.path == path), None)

    @override
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
        await self._ask(path, "editor/saveDocument", wire.encode_document(path))

    @override
    async def text(self, path: str) -> str | None:
        self._require(Capability.TEXT)
        text = await self._ask(path, "editor/text", wire.encode_document(path))
        if not isinstance(text, str):
            return None
        on_disk = await asyncio.to_thread(text_on_disk, path) if self._session.knows_only_lf else None
        return text if on_disk is None else wire.with_form_of(on_disk, text)

    @override
    async def reload(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Have the plugin read files again; one that does not answer at once may do so later."""
        self._require(Capability.RELOAD)
        seconds = self._limits.snapshot_seconds
        answer = await self._ask("files", "editor/reload", wire.encode_documents(paths), seconds=seconds)
        return self._decoded(wire.decode_reloaded, answer)

    @override
    async def show_message(self, text: str) -> None:
        self._require(Capability.MESSAGE)
        self._require_alive().notify("window/showMessage", {"type": 3, "message": text})

    @override
    async def confirm(self, title: str, text: str) -> bool:
        self._require(Capability.CONFIRM)
        params = wire.encode_question(title, text)
        # A question that stays open too long was not answered: the user can do so elsewhere.
        answer = await self._ask("question", "window/showMessageRequest", params, seconds=self._limits.confirm_seconds)
        return wire.decode_answer(answer)

    @override
    async def execute_code(self, code: str, notebook: str | None = None) -> CodeExecution:
        self._require(Capability.EXECUTE)
        answer = await self._ask(
            "code", "editor/executeCode", {"code": code, "notebook": notebook}, seconds=self._limits.execute_seconds
        )
        return self._decoded(wire.decode_execution, answer)

    @property
    def user_tools(self) -> tuple[ToolDefinition, ...]:
        """Tools that the plugin declared."""
        return self._session.attached.tools if self._session.attached is not None else ()

    async def call_user_tool(self, name: str, arguments: JsonObject) -> str:
        """Run a tool of the plugin."""
        params = {"name": name, "arguments": dict(arguments)}
        seconds = self._limits.tool_seconds
        answer = await self._ask(self._identity.display_name, "editor/callTool", params, seconds=seconds)
        return self._decoded(wire.decode_called, answer)

    @override
    async def set_terminal_environment(self, variables: Mapping[str, str | None]) -> None:
        self._require(Capability.TERMINAL)
        await self._ask("terminals", "editor/setTerminalEnvironment", {"variables": dict(variables)})

    @override
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
        await self._tasks.wait()
        if self._late is not None:
            await asyncio.gather(self._late, return_exceptions=True)

    # Notifications from the plugin.

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

    # Requests to the plugin.

    def _require_alive(self) -> JsonRpcConnection:
        if self._connection is None or self._connection.is_closed or self._session.has_left:
            raise EditorGoneError(f"{self._identity.display_name} has quit, or its plugin has ended")
        return self._connection

    @override
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
            raise _NoAnswerError(
                f"{subject}: {name} does not answer ({error}); see whether it waits for you"
            ) from error
        except RpcError as error:
            raise EditorError(f"{subject}: {error}") from error

    def _decoded(self, decode: Callable[[object], T], value: object) -> T:
        try:
            return decode(value)
        except DecodeError as error:
            self._session.note(f"the plugin sent an invalid answer: {error}")
            raise EditorError(f"the plugin of {self._identity.display_name} sent an invalid answer: {error}") from error

    async def _take_folders(self) -> None:
        """Ask for the folders, with a long deadline: an editor is busiest when a project is opened."""
        session = self._session
        try:
            answer = await self._ask(
                "workspace", "workspace/workspaceFolders", None, seconds=self._limits.late_snapshot_seconds
            )
        except _NoAnswerError:
            session.folders_changed = True
            return
        folders = self._decoded(wire.decode_folders, answer)
        if folders != session.folders:
            session.folders = folders
            self._events.put(WorkspaceChanged())

    async def _take_snapshot(self) -> None:
        answer = await self._ask("open files", "editor/openFiles", {}, seconds=self._limits.late_snapshot_seconds)
        files = self._decoded(wire.decode_files, answer)
        self._unsaved = frozenset(file.path for file in files if file.is_dirty)
        self._files = await self._recoder.files(files, self._text_of)

    def _came_late(self, snapshot: asyncio.Task[None]) -> None:
        self._late = None
        if not snapshot.cancelled() and snapshot.exception() is None:
            self._events.put(ContextChanged())

    async def _text_of(self, path: str) -> str | None:
        """Return the text of a file as it is in the editor: without unsaved changes, the one on disk."""
        if path in self._unsaved and Capability.TEXT not in self.unavailable:
            with contextlib.suppress(EditorError):
                return await self.text(path)
        return await asyncio.to_thread(text_on_disk, path)

    def _in_background(self, work: Coroutine[None, None, object]) -> asyncio.Task[None]:
        return self._tasks.start(_without_errors(work))


async def _without_errors(work: Coroutine[None, None, object]) -> None:
    with contextlib.suppress(EditorError):
        await work
