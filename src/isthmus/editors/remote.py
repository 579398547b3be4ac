"""Somebody's IDE extension as an :class:`~isthmus.ide.editor.Editor`: the companion over it is the bridge.

What agents of one protocol ask of the companion is asked of the IDE in the protocol that it speaks; which one that is
does not matter here. What the IDE does not offer is not available, and says why. A review that ends there without an
answer stays open: the agent's own terminal, or ``isthmus ide``, decides it.
"""

import asyncio
import os
import re
from collections.abc import Callable, Coroutine, Mapping
from typing import Final, TypeVar, assert_never

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
"""An IDE that cannot show a review says so within this; one protocol tells nothing when it can."""
LOST_SECONDS: Final = 60.0
"""An IDE that is away for so long has quit; one whose process is dead, at once."""
LOOK_SECONDS: Final = 1.0
_TERMINALS: Final = "the terminals of an IDE are its own; start agents with `isthmus companion exec`"

T = TypeVar("T")


class RemoteEditor(EditorBase):
    """For one event loop. ``client`` is connected and becomes ours; ``tell`` shows a text to the user.

    The identity is the IDE's: its name, and its process where it tells it. The events end when that process is dead, or
    the IDE was away for a minute.
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
        self._offers = client.offers  # what was known last, while the IDE is away
        self._reviews: dict[str, tuple[DiffReview, asyncio.Task[None]]] = {}
        self._is_trusted = self._trust()
        self._next_look: asyncio.TimerHandle | None = None
        self._unsubscribe = (client.on_change(self._changed), client.on_mention(self._mentioned))

    @property
    def unavailable(self) -> Mapping[Capability, str]:
        """What the IDE does not offer, and what no protocol of IDE extensions has."""
        lacking = f"its extension ({self._client.protocol}) does not offer it"
        missing = {each: lacking for each in Capability if each not in self._offers}
        missing[Capability.TEXT] = "its extension tells no unsaved text; the file on disk holds"
        missing[Capability.CONFIRM] = "its extension asks no questions; answer with `isthmus ide answer`"
        missing[Capability.TERMINAL] = _TERMINALS
        missing.pop(Capability.MESSAGE, None)  # `tell`
        return missing

    async def workspace_folders(self) -> tuple[str, ...]:
        return await self._ask(self._client.workspace_folders())

    async def open_files(self) -> tuple[OpenFile, ...]:
        return await self._ask(self._client.open_files())

    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        self._require(Capability.OPEN)
        await self._ask(self._client.open_file(path, at, focus=focus))

    async def close_file(self, path: str) -> None:
        self._require(Capability.CLOSE)
        await self._ask(self._client.close_file(path))

    async def open_diff(self, review: DiffReview) -> None:
        """See the port. Returns when the IDE shows it, or did not say within a second that it cannot."""
        self._require(Capability.DIFF)
        shown = asyncio.Event()
        asking = asyncio.create_task(self._review(review, shown.set))
        asking.add_done_callback(_look_at)  # what fails later was told to the user
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
        if asking.cancelled():  # closed again meanwhile, or with the editor; whoever asks is not cancelled by that
            self._require_present()
        elif asking.done() and (error := asking.exception()) is not None:
            self._forget(review.id)
            raise error

    async def close_diff(self, review_id: str) -> str | None:
        """See the port. Where the IDE does not tell the text in its view, the proposal stands for it."""
        held = self._reviews.get(review_id)
        if held is None:
            return None
        review, asking = held
        self._forget(review_id)
        try:
            content = await self._ask(self._client.close_diff(review.file_path))
        except EditorError:
            content = None  # away, or it has no such view any more
        asking.cancel()
        return review.proposed if content is None else content

    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        self._require(Capability.DIAGNOSTICS)
        return await self._ask(self._client.diagnostics(path))

    async def is_dirty(self, path: str) -> bool | None:
        self._require(Capability.DIRTY)
        return await self._ask(self._client.is_dirty(path))

    async def save(self, path: str) -> None:
        self._require(Capability.SAVE)
        await self._ask(self._client.save(path))

    async def show_message(self, text: str) -> None:
        """Where the bridge shows it: no protocol of IDE extensions has messages."""
        self._require_present()
        self._tell(text)

    async def execute_code(self, code: str, notebook: str | None = None) -> CodeExecution:
        """See the port. The IDE chooses the notebook, and asks the user besides."""
        self._require(Capability.EXECUTE)
        return await self._ask(self._client.execute_code(code))

    async def aclose(self) -> None:
        """Close our views there and disconnect."""
        for unsubscribe in self._unsubscribe:
            unsubscribe()
        if self._next_look is not None:
            self._next_look.cancel()
        self._quit()
        asking = [task for _, task in self._reviews.values()]
        self._reviews.clear()
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        await self._client.aclose()

    async def _review(self, review: DiffReview, on_shown: Callable[[], None]) -> None:
        """Wait for the user. Raises what kept the IDE from showing it, while nobody takes it for shown."""
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
            if self._next_look is not None:
                self._next_look.cancel()
                self._next_look = None
            self._offers = self._client.offers
            if (trust := self._trust()) != self._is_trusted:
                self._is_trusted = trust
                self._events.put(WorkspaceChanged())
            self._events.put(ContextChanged())
        elif self._next_look is None:
            self._look_whether_it_quit(asyncio.get_running_loop().time() + self._lost_seconds)

    def _look_whether_it_quit(self, deadline: float) -> None:
        """It has when its process is dead, or after a while without it."""
        loop = asyncio.get_running_loop()
        is_dead = self._pid is not None and not process_is_alive(self._pid)
        if is_dead or loop.time() >= deadline:
            self._quit()
        else:
            at = min(deadline, loop.time() + LOOK_SECONDS)
            self._next_look = loop.call_at(at, self._look_whether_it_quit, deadline)

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
                raise EditorGoneError(f"{self._identity.display_name} is away: {error}") from error
            raise EditorError(str(error)) from error


def _look_at(task: "asyncio.Task[None]") -> None:
    if not task.cancelled():
        task.exception()
