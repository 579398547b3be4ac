"""The base of the editors: what a subclass does not override is refused, with the reason that ``unavailable`` has."""

from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path

from isthmus.editors.event_queue import EventQueue
from isthmus.ide.editor import (
    Capability,
    CodeExecution,
    Diagnostic,
    EditorEvent,
    EditorGoneError,
    EditorIdentity,
    NotAvailableError,
    OpenFile,
    Range,
)
from isthmus.ide.reviews.review import DiffReview


class EditorBase:
    """An :class:`~isthmus.ide.editor.Editor` without a capability.

    A subclass overrides the methods of the capabilities that are not in ``unavailable``, and adds
    ``workspace_folders``, ``open_files`` and ``aclose``, which every editor has. Events go into ``_events``.
    """

    def __init__(
        self, identity: EditorIdentity, unavailable: Mapping[Capability, str], *, is_trusted: bool | None = None
    ) -> None:
        self._identity = identity
        self._unavailable = unavailable
        self._is_trusted = is_trusted
        self._events = EventQueue()
        self._gone: str | None = None
        """Why nothing more can be asked of it; set by :meth:`_end`."""

    @property
    def identity(self) -> EditorIdentity:
        return self._identity

    @property
    def unavailable(self) -> Mapping[Capability, str]:
        return self._unavailable

    @property
    def is_trusted(self) -> bool | None:
        return self._is_trusted

    def changes(self) -> AsyncIterator[EditorEvent]:
        return self._events.read()

    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        raise self._refusal(Capability.OPEN)

    async def close_file(self, path: str) -> None:
        raise self._refusal(Capability.CLOSE)

    async def open_diff(self, review: DiffReview) -> None:
        raise self._refusal(Capability.DIFF)

    async def close_diff(self, review_id: str) -> str | None:
        raise self._refusal(Capability.DIFF)

    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        raise self._refusal(Capability.DIAGNOSTICS)

    async def is_dirty(self, path: str) -> bool | None:
        raise self._refusal(Capability.DIRTY)

    async def save(self, path: str) -> None:
        raise self._refusal(Capability.SAVE)

    async def text(self, path: str) -> str | None:
        raise self._refusal(Capability.TEXT)

    async def show_message(self, text: str) -> None:
        raise self._refusal(Capability.MESSAGE)

    async def confirm(self, title: str, text: str) -> bool:
        raise self._refusal(Capability.CONFIRM)

    async def execute_code(self, code: str, notebook: str | None = None) -> CodeExecution:
        raise self._refusal(Capability.EXECUTE)

    async def set_terminal_environment(self, variables: Mapping[str, str | None]) -> None:
        raise self._refusal(Capability.TERMINAL)

    def _refusal(self, capability: Capability) -> NotAvailableError:
        return NotAvailableError(self.identity, self.unavailable[capability])

    def _require(self, capability: Capability) -> None:
        """Raise unless the editor is present and has the capability."""
        self._require_present()
        if capability in self.unavailable:
            raise self._refusal(capability)

    def _require_present(self) -> None:
        if self._gone is not None:
            raise EditorGoneError(self._gone)

    def _end(self, reason: str) -> None:
        """End the events; from now on the editor is gone, for the first reason that was given."""
        self._gone = self._gone or reason
        self._events.end()


def existing(files: Iterable[OpenFile]) -> tuple[OpenFile, ...]:
    """Return those of ``files`` that are regular files on disk."""
    return tuple(file for file in files if Path(file.path).is_file())
