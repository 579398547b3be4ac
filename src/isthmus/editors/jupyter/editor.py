"""Editor that is a running Jupyter server, or a kernel without one. It starts no process.

A server knows the open notebooks and runs their kernels, but it does not control the browser: it cannot show, close or
select anything there, and does not have unsaved text. So open files, focus and execution come from the server, and
the user reviews on our own page (:mod:`isthmus.editors.review_page`) or with ``isthmus ide``. Where our extension is
enabled, its part in the browser tells which documents are open, and reads them again that agents write.
"""

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from typing_extensions import override

from isthmus.editors.editor_base import EditorBase, existing
from isthmus.editors.jupyter.connection_file import connection_file_kernel, require_jupyter_client
from isthmus.editors.jupyter.finding import KernelAddress, find
from isthmus.editors.jupyter.kernel import Kernel
from isthmus.editors.jupyter.server import EXTENSION, JupyterServer, JupyterSession, ServerAddress
from isthmus.editors.jupyter.server_kernel import server_kernel
from isthmus.editors.review_page.pending_reviews import PendingReviews
from isthmus.editors.review_page.server import ReviewPageServer
from isthmus.files.locations import absolute
from isthmus.ide.editor import (
    Capability,
    CodeExecution,
    Consent,
    ContextChanged,
    EditorError,
    EditorGoneError,
    EditorIdentity,
    OpenFile,
)
from isthmus.ide.reviews.review import DiffReview
from isthmus.text.visible import without_control_characters

POLL_SECONDS: Final = 1.5
FAILURES: Final = 3
"""Number of polls in a row without an answer after which the server is gone."""

_UNSEEN: Final = "its server does not have the unsaved text in the browser; Jupyter saves by itself every two minutes"
_UNAVAILABLE: Final[Mapping[Capability, str]] = MappingProxyType(
    {
        Capability.OPEN: "its server cannot open a tab in the browser; open the file there",
        Capability.CLOSE: "its server cannot close a tab in the browser; close it there",
        Capability.TEXT: f"{_UNSEEN}; read the file",
        Capability.DIRTY: _UNSEEN,
        Capability.SAVE: "its server does not have the text in the browser; save it there",
        Capability.SELECTION: "its server does not know cursor and selection",
        Capability.DIAGNOSTICS: "it has no linters; start the companion with --diagnostics ruff",
    }
)
_NO_EXTENSION: Final = (
    f"its terminals get the variables from the server extension {EXTENSION}, which is not enabled; copy the file that "
    "`isthmus plugin jupyter` names into ~/.jupyter/jupyter_server_config.d and start Jupyter again"
)
_NO_FRONT: Final = (
    f"a part of the extension {EXTENSION} in the browser does it, which is not enabled; choose File, Reload from Disk "
    "there, or enable it as `isthmus plugin` says"
)
_NO_BROWSER: Final = "a kernel alone has no documents"
_NO_SERVER: Final = "a kernel alone has no terminals; start agents with `isthmus companion exec`"


async def attach(
    address: str | None = None,
    folders: Sequence[str] = (),
    *,
    opened: Sequence[str] = (),
    poll_seconds: float = POLL_SECONDS,
) -> "JupyterEditor":
    """Attach to a server or kernel.

    ``address`` and ``folders`` (absolute) are as in :func:`isthmus.editors.jupyter.finding.find`. ``opened`` are
    absolute paths of more open files; the last one has the focus until a kernel runs.

    Raises:
        EditorError: no server or kernel was found, it does not answer, or it refuses the token.
    """
    found = await asyncio.to_thread(find, address, tuple(folders))
    editor = JupyterEditor(found, tuple(folders), tuple(opened), poll_seconds)
    try:
        await editor.start()
    except BaseException:
        await editor.aclose()
        raise
    return editor


class JupyterEditor(EditorBase):
    """A Jupyter server or kernel, made by :func:`attach`. Files and focus are polled.

    Its process id is the server's if that is on this machine, or else the companion's.
    """

    def __init__(
        self,
        address: ServerAddress | KernelAddress,
        folders: tuple[str, ...],
        opened: tuple[str, ...],
        poll_seconds: float,
    ) -> None:
        pid = address.pid if isinstance(address, ServerAddress) else None
        super().__init__(EditorIdentity("jupyter", "Jupyter", pid or os.getpid()), _UNAVAILABLE)
        self._address = address
        self._server = JupyterServer(address) if isinstance(address, ServerAddress) else None
        self._folders = folders or ((os.path.realpath(address.root),) if isinstance(address, ServerAddress) else ())
        self._opened = {path: 0.0 + number for number, path in enumerate(opened)}
        self._poll_seconds = poll_seconds
        self._reviews = PendingReviews(self._events.put)
        self._page = ReviewPageServer(self._reviews)
        self._kernels: dict[str, Kernel] = {}
        self._choosing_kernel = asyncio.Lock()
        self._files: tuple[OpenFile, ...] = ()
        self._has_front = True
        """Whether browsers tell the server which documents are open; set by the first answer."""
        self._polling: asyncio.Task[None] | None = None

    @property
    def messages(self) -> tuple[str, ...]:
        """Messages to the user, oldest first; the newest twenty."""
        return self._reviews.messages

    def review_page(self) -> str:
        """Return a new link to the review page, which can be opened once."""
        return self._page.link()

    async def start(self) -> None:
        """Read the open files, then begin to poll them, and serve the review page."""
        if self._server is None:
            require_jupyter_client()
            self._unavailable = {**_UNAVAILABLE, Capability.TERMINAL: _NO_SERVER, Capability.RELOAD: _NO_BROWSER}
            self._folders = self._folders or (str(Path.cwd()),)
        else:
            await self._read_files()
            if not await self._server.has_extension():
                self._unavailable = {**_UNAVAILABLE, Capability.TERMINAL: _NO_EXTENSION, Capability.RELOAD: _NO_FRONT}
            elif not self._has_front:
                self._unavailable = {**_UNAVAILABLE, Capability.RELOAD: _NO_FRONT}
            self._polling = asyncio.create_task(self._poll())
        await self._page.start()

    @override
    async def workspace_folders(self) -> tuple[str, ...]:
        """Return the folders that were given, or else the one that the server serves."""
        self._require_present()
        return self._folders

    @override
    async def open_files(self) -> tuple[OpenFile, ...]:
        """Return the documents in browsers, and the files of sessions, that are in the workspace.

        The document that a browser showed last has the focus; without a browser, the file whose kernel was active last.
        """
        self._require_present()
        return await self._read_files()

    @override
    async def open_diff(self, review: DiffReview) -> None:
        """Show the review on our page, and tell the user where."""
        self._require_present()
        self._reviews.open(review)
        await self.show_message(
            f"{review.title or 'An agent'} proposes a change of {review.file_path}; `isthmus ide diffs` shows it and "
            "the page on which you answer"
        )

    @override
    async def close_diff(self, review_id: str) -> str | None:
        """Close a review and return its text, with the edits that the user sent from the page."""
        self._require_present()
        return self._reviews.close(review_id)

    @override
    async def show_message(self, text: str) -> None:
        """Show a message on the companion's standard error, on our page, and in ``isthmus ide status``."""
        self._require_present()
        self._reviews.show_message(text)
        with suppress(OSError, ValueError):  # closed by the program that started us
            print(without_control_characters(text), file=sys.stderr, flush=True)

    @override
    async def confirm(self, title: str, text: str) -> bool:
        """Ask on our page and by ``isthmus ide answer``."""
        return (await self.consent(title, text)).is_yes

    async def consent(self, title: str, text: str) -> Consent:
        """Ask as :meth:`confirm` does, and print a link to our page if we were started in a terminal."""
        await self.show_message(f"{title}? Answer with `isthmus ide answer`, or on the page of `isthmus ide diffs`")
        with suppress(OSError, ValueError):
            # Not into a file, which agents could read: they get no link.
            if sys.stderr.isatty():
                print(f"Answer it in the browser: {self.review_page()}", file=sys.stderr, flush=True)
        return await self._reviews.ask(title, text)

    @override
    async def execute_code(self, code: str, notebook: str | None = None) -> CodeExecution:
        self._require_present()
        if isinstance(self._address, KernelAddress):
            return await self._kernel(self._address.connection_file).execute(code)
        # The lock keeps the order of the calls, whichever of them the server answers first.
        async with self._choosing_kernel:
            sessions = await self._notebooks()
            if notebook is not None:
                sessions = [session for session in sessions if self._path(session) == notebook]
            if not sessions:
                raise EditorError(f"{notebook} is not open in Jupyter any more, or has no kernel; no code was run")
            kernel = self._kernel(max(sessions, key=_focus).kernel_id)
        return await kernel.execute(code)

    async def require_kernel(self) -> None:
        """Raise EditorError if :meth:`execute_code` would find no kernel."""
        self._require_present()
        if self._server is not None:
            await self._notebooks()

    async def _notebooks(self) -> list[JupyterSession]:
        """Return the sessions of notebooks.

        Raises:
            EditorError: there are none.
        """
        sessions = [session for session in await self._sessions() if session.type == "notebook"]
        if not sessions:
            raise EditorError("no notebook with a kernel is open in Jupyter; open one there and choose a kernel")
        return sessions

    @override
    async def reload(self, paths: Sequence[str]) -> tuple[str, ...]:
        """Have browsers read documents again, which ask the user where there is unsaved text. No linter runs there."""
        self._require(Capability.RELOAD)
        if self._server is not None:
            root = Path(self._root())
            inside = [Path(path).relative_to(root).as_posix() for path in paths if Path(path).is_relative_to(root)]
            await self._server.reload_documents(inside)
        return ()

    @override
    async def set_terminal_environment(self, variables: Mapping[str, str | None]) -> None:
        """Set variables by our extension in the server."""
        self._require(Capability.TERMINAL)
        if self._server is not None:  # a kernel without one lacks the capability
            await self._server.set_terminal_environment(variables)

    @override
    async def aclose(self) -> None:
        """Stop polling and close the page. Server and kernels go on."""
        self._end("the companion has left it")
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)
        await asyncio.gather(*(kernel.aclose() for kernel in self._kernels.values()))
        await self._page.stop()
        if self._server is not None:
            await self._server.aclose()

    async def _poll(self) -> None:
        failures, told = 0, self._files
        while failures < FAILURES:
            await asyncio.sleep(self._poll_seconds)
            try:
                if (files := await self._read_files()) != told:
                    self._events.put(ContextChanged())
                failures, told = 0, files
            except EditorGoneError:
                failures += 1
            except EditorError:
                pass  # the server is busy, or refuses us for now
        self._end("its server does not answer any more")

    async def _read_files(self) -> tuple[OpenFile, ...]:
        sessions = await self._sessions()
        focused = {
            path: max(_focus(s) for s in sessions if self._path(s) == path) for path in map(self._path, sessions)
        }
        documents = await self._documents()
        times = self._opened | focused | documents
        seen = {path: focus for path, focus in documents.items() if focus} or times
        active = max(seen, key=lambda path: seen[path], default=None)
        files = tuple(OpenFile(path, times[path], path == active) for path in times)
        # Some frontends have sessions without a file, and files are deleted while their kernels run.
        self._files = await asyncio.to_thread(existing, files)
        return self._files

    async def _sessions(self) -> tuple[JupyterSession, ...]:
        """Return the sessions in the workspace."""
        if self._server is None:
            return ()
        folders = [Path(folder) for folder in self._folders]
        sessions = await self._server.sessions()
        return tuple(s for s in sessions if any(Path(self._path(s)).is_relative_to(folder) for folder in folders))

    async def _documents(self) -> dict[str, float]:
        """Return the documents of browsers in the workspace, with the times of their focus."""
        found = await self._server.documents() if self._server is not None and self._has_front else None
        self._has_front = found is not None
        folders = [Path(folder) for folder in self._folders]
        documents = {absolute(f"{self._root()}/{path}"): focus for path, focus in (found or {}).items()}
        return {path: focus for path, focus in documents.items() if any(Path(path).is_relative_to(f) for f in folders)}

    def _path(self, session: JupyterSession) -> str:
        return absolute(f"{self._root()}/{session.path}")

    def _root(self) -> str:
        return os.path.realpath(self._address.root) if isinstance(self._address, ServerAddress) else ""

    def _kernel(self, name: str) -> Kernel:
        if name not in self._kernels:
            self._kernels[name] = (
                connection_file_kernel(name) if self._server is None else server_kernel(self._server, name)
            )
        return self._kernels[name]

    @override
    def _end(self, reason: str) -> None:
        self._reviews.clear()
        super()._end(f"Jupyter is gone: {reason}; start the companion again")


def _focus(session: JupyterSession) -> float:
    return session.last_activity
