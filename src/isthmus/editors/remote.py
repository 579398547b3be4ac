"""Editor that is an IDE with an extension for another agent: the companion of this editor is the bridge.

Each operation is asked of the IDE through an :class:`~isthmus.ide.clients.ide_client.IdeClient`, whatever protocol that
speaks. A review that the IDE ends without an answer stays open: the user answers in the agent's terminal or with
``isthmus ide``.
"""

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Final, TypeVar, assert_never

from typing_extensions import override

from isthmus.editors.editor_base import EditorBase
from isthmus.ide.clients.ide_client import IdeClient, IdeError, NotOfferedError, UndecidedError
from isthmus.ide.editor import (
    Capability,
    CodeExecution,
    ContextChanged,
    Diagnostic,
    DiffAccepted,
    DiffRejected,
    EditorError,
    EditorGoneError,
    EditorIdentity,
    FileMentioned,
    NotAvailableError,
    OpenFile,
    Range,
    WorkspaceChanged,
)
from isthmus.ide.processes import process_is_alive
from isthmus.ide.reviews.review import Accepted, Closed, DiffReview, Rejected

SHOWN_SECONDS: Final = 1.0
"""Maximum wait in seconds for the IDE to refuse a review; one of the protocols has no message for success."""
LOST_SECONDS: Final = 60.0
"""Time in seconds without a connection after which an IDE whose process may still run counts as quit."""
CHECK_SECONDS: Final = 1.0
"""Interval in seconds at which a lost IDE's process is checked."""
_TERMINALS: Final = "no extension sets variables of its terminals; start agents with `isthmus companion exec`"

_RELOADS: Final = "its extension cannot be asked for it; most IDEs read changed files again by themselves"

T = TypeVar("T")


class RemoteEditor(EditorBase):
    """An IDE, reached by ``client``, which is connected, and is closed with the editor. For one event loop.

    ``tell`` shows a text to the user. The identity has the IDE's name, and its process id if the IDE reports it. The
    events end when that process is dead, or after ``lost_seconds`` without a connection.
    """

    def __init__(
        self,
        client: IdeClient,
        tell: Callable[[str], None],
        *,
        lost_seconds: float = LOST_SECONDS,
        shown_seconds: float = SHOWN_SECONDS,
    ) -> None:
        name = client.ide_name
        pid = client.pid
        self._pid = pid if pid is not None and process_is_alive(pid) else None
        slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
        super().__init__(EditorIdentity(slug or "ide", name, self._pid or os.getpid()), {})
        self._client = client
        self._tell = tell
        self._lost_seconds = lost_seconds
        self._shown_seconds = shown_seconds
        self._offers = client.offers  # the last known ones, while the connection is lost
        self._reviews: dict[str, tuple[DiffReview, asyncio.Task[None]]] = {}
        self._is_trusted = self._trust()
        self._next_check: asyncio.TimerHandle | None = None
        self._unsubscribe = (client.on_change(self._changed), client.on_mention(self._mentioned))

    @property
    @override
    def unavailable(self) -> Mapping[Capability, str]:
        """Capabilities that the IDE does not offer, or that no protocol of IDE extensions has, with the reasons."""
        lacking = f"its extension ({self._client.protocol}) does not offer it"
        missing = {each: lacking for each in Capability if each not in self._offers}
        missing[Capability.TEXT] = "its extension does not report unsaved text; read the file on disk"
        missing[Capability.CONFIRM] = "its extension asks no questions; answer with `isthmus ide answer`"
        missing[Capability.TERMINAL] = _TERMINALS
        missing[Capability.RELOAD] = _RELOADS
        missing.pop(Capability.MESSAGE, None)  # `tell`
        return missing

    @override
    async def workspace_folders(self) -> tuple[str, ...]:
        return await self._ask(self._client.workspace_folders())

    @override
    async def open_files(self) -> tuple[OpenFile, ...]:
        return await self._ask(self._client.open_files())

    @override
    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        self._require(Capability.OPEN)
        await self._ask(self._client.open_file(path, at, focus=focus))

    @override
    async def close_file(self, path: str) -> None:
        self._require(Capability.CLOSE)
        await self._ask(self._client.close_file(path))

    @override
    async def open_diff(self, review: DiffReview) -> None:
        """Show a review; return when the IDE shows it, or has not refused it within ``shown_seconds``."""
        self._require(Capability.DIFF)
        shown = asyncio.Event()
        asking = asyncio.create_task(self._review(review, shown.set))
        asking.add_done_callback(_retrieve_exception)  # _review has told the user
        self._reviews[review.id] = (review, asking)
        showing = asyncio.create_task(shown.wait())
        try:
            await asyncio.wait({asking, showing}, timeout=self._shown_seconds, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._forget(review.id)
            asking.cancel()
            raise
        finally:
            showing.cancel()
        if asking.cancelled():  # by close_diff or aclose; this caller is not cancelled
            self._require_present()
        elif asking.done() and (error := asking.exception()) is not None:
            self._forget(review.id)
            raise error

    @override
    async def close_diff(self, review_id: str) -> str | None:
        """Close a view and return its text, or the proposal if the IDE does not report the text."""
        held = self._reviews.get(review_id)
        if held is None:
            return None
        review, asking = held
        self._forget(review_id)
        try:
            content = await self._ask(self._client.close_diff(review.file_path))
        except EditorError:
            content = None  # the connection is lost, or the view is gone
        asking.cancel()
        return review.proposed if content is None else content

    @override
    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        self._require(Capability.DIAGNOSTICS)
        return await self._ask(self._client.diagnostics(path))

    @override
    async def is_dirty(self, path: str) -> bool | None:
        self._require(Capability.DIRTY)
        return await self._ask(self._client.is_dirty(path))

    @override
    async def save(self, path: str) -> None:
        self._require(Capability.SAVE)
        await self._ask(self._client.save(path))

    @override
    async def show_message(self, text: str) -> None:
        """Show a message on the bridge's own output: no protocol of IDE extensions has messages."""
        self._require_present()
        self._tell(text)

    @override
    async def execute_code(self, code: str, notebook: str | None = None) -> CodeExecution:
        """Run code in the notebook that the IDE chooses; the IDE asks the user, too."""
        self._require(Capability.EXECUTE)
        return await self._ask(self._client.execute_code(code))

    @override
    async def aclose(self) -> None:
        """Close our views and disconnect."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        if self._next_check is not None:
            self._next_check.cancel()
        self._quit()
        asking = [task for _, task in self._reviews.values()]
        self._reviews.clear()
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await self._client.aclose()

    async def _review(self, review: DiffReview, on_shown: Callable[[], None]) -> None:
        """Wait for the user's decision, and report it as an event.

        Raises:
            EditorError: the IDE cannot show the review.
        """
        try:
            outcome = await self._client.open_diff(review.file_path, review.proposed, on_shown=on_shown)
        except UndecidedError as error:
            self._tell(f"{review.file_path}: {error}; answer in the agent's terminal, or with `isthmus ide`")
            return
        except IdeError as error:
            self._tell(f"{review.file_path}: {error}")
            raise EditorError(str(error)) from error
        if review.id not in self._reviews:
            return
        self._forget(review.id)
        match outcome:
            case Accepted(content):
                self._events.put(DiffAccepted(review.id, content))
            case Rejected():
                self._events.put(DiffRejected(review.id))
            case Closed():
                pass
            case _:
                assert_never(outcome)

    def _forget(self, review_id: str) -> None:
        self._reviews.pop(review_id, None)

    def _changed(self) -> None:
        if self._client.connected:
            if self._next_check is not None:
                self._next_check.cancel()
                self._next_check = None
            self._offers = self._client.offers
            if (trust := self._trust()) != self._is_trusted:
                self._is_trusted = trust
                self._events.put(WorkspaceChanged())
            self._events.put(ContextChanged())
        elif self._next_check is None:
            self._check_whether_it_quit(asyncio.get_running_loop().time() + self._lost_seconds)

    def _check_whether_it_quit(self, deadline: float) -> None:
        """End the editor if the IDE's process is dead or the deadline has passed; else check again later."""
        loop = asyncio.get_running_loop()
        is_dead = self._pid is not None and not process_is_alive(self._pid)
        if is_dead or loop.time() >= deadline:
            self._quit()
        else:
            at = min(deadline, loop.time() + CHECK_SECONDS)
            self._next_check = loop.call_at(at, self._check_whether_it_quit, deadline)

    def _quit(self) -> None:
        self._end(f"{self._identity.display_name} has quit, or the connection to it is lost")

    def _mentioned(self, mention: FileMentioned) -> None:
        self._events.put(mention)

    def _trust(self) -> bool | None:
        context = self._client.context()
        state = context.workspace_state if context is not None else None
        return state.is_trusted if state is not None else self._is_trusted

    async def _ask(self, question: Coroutine[object, object, T]) -> T:
        if self._gone is not None:
            question.close()
            self._require_present()
        try:
            return await question
        except NotOfferedError as error:
            raise NotAvailableError(self._identity, str(error).partition(": ")[2] or str(error)) from error
        except IdeError as error:
            if not self._client.connected:
                raise EditorGoneError(f"the connection to {self._identity.display_name} is lost: {error}") from error
            raise EditorError(str(error)) from error


def _retrieve_exception(task: "asyncio.Task[None]") -> None:
    """Keep asyncio from logging an exception that nobody awaits."""
    if not task.cancelled():
        task.exception()
