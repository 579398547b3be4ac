"""Base class of the editors, which refuses each capability with the reason in ``unavailable``."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path

from typing_extensions import override

from isthmus.editors.event_queue import EventQueue
from isthmus.ide.editor import (
    Capability,
    CodeExecution,
    Diagnostic,
    Editor,
    EditorEvent,
    EditorGoneError,
    EditorIdentity,
    NotAvailableError,
    OpenFile,
    Range,
)
from isthmus.ide.reviews.review import DiffReview


class EditorBase(Editor):
    """An editor without any capability.

    A subclass implements the abstract methods, and overrides the methods of the capabilities that are not in
    ``unavailable``. Events go into ``_events``.
    """

    def __init__(
        self, identity: EditorIdentity, unavailable: Mapping[Capability, str], *, is_trusted: bool | None = None
    ) -> None:
        self._identity = identity
        self._unavailable = unavailable
        self._is_trusted = is_trusted
        self._events = EventQueue()
        self._gone: str | None = None
        """Reason why the editor can no longer be used, once :meth:`_end` was called."""

    @property
    @override
    def identity(self) -> EditorIdentity:
        return self._identity

    @property
    @override
    def unavailable(self) -> Mapping[Capability, str]:
        return self._unavailable

    @property
    @override
    def is_trusted(self) -> bool | None:
        return self._is_trusted

    @override
    def changes(self) -> AsyncIterator[EditorEvent]:
        return self._events.read()

    @abstractmethod
    @override
    async def workspace_folders(self) -> tuple[str, ...]:
        raise NotImplementedError

    @abstractmethod
    @override
    async def open_files(self) -> tuple[OpenFile, ...]:
        raise NotImplementedError

    @abstractmethod
    @override
    async def aclose(self) -> None:
        raise NotImplementedError

    @override
    async def open_file(self, path: str, at: Range | None = None, *, focus: bool = True) -> None:
        raise self._refusal(Capability.OPEN)

    @override
    async def close_file(self, path: str) -> None:
        raise self._refusal(Capability.CLOSE)

    @override
    async def open_diff(self, review: DiffReview) -> None:
        raise self._refusal(Capability.DIFF)

    @override
    async def close_diff(self, review_id: str) -> str | None:
        raise self._refusal(Capability.DIFF)

    @override
    async def diagnostics(self, path: str | None = None) -> tuple[Diagnostic, ...]:
        raise self._refusal(Capability.DIAGNOSTICS)

    @override
    async def is_dirty(self, path: str) -> bool | None:
        raise self._refusal(Capability.DIRTY)

    @override
    async def save(self, path: str) -> None:
        raise self._refusal(Capability.SAVE)

    @override
    async def text(self, path: str) -> str | None:
        raise self._refusal(Capability.TEXT)

    @override
    async def reload(self, paths: Sequence[str]) -> tuple[str, ...]:
        raise self._refusal(Capability.RELOAD)

    @override
    async def show_message(self, text: str) -> None:
        raise self._refusal(Capability.MESSAGE)

    @override
    async def confirm(self, title: str, text: str) -> bool:
        raise self._refusal(Capability.CONFIRM)

    @override
    async def execute_code(self, code: str, notebook: str | None = None) -> CodeExecution:
        raise self._refusal(Capability.EXECUTE)

    @override
    async def set_terminal_environment(self, variables: Mapping[str, str | None]) -> None:
        raise self._refusal(Capability.TERMINAL)

    def _refusal(self, capability: Capability) -> NotAvailableError:
        return NotAvailableError(self.identity, self.unavailable[capability])

    def _require(self, capability: Capability) -> None:
        """Raise EditorGoneError or NotAvailableError unless the editor is there and has the capability."""
        self._require_present()
        if capability in self.unavailable:
            raise self._refusal(capability)

    def _require_present(self) -> None:
        if self._gone is not None:
            raise EditorGoneError(self._gone)

    def _end(self, reason: str) -> None:
        """End the events; the editor is gone from now on. Of several reasons the first counts."""
        self._gone = self._gone or reason
        self._events.end()


def existing(files: Iterable[OpenFile]) -> tuple[OpenFile, ...]:
    """Return the ``files`` that are regular files on disk."""
    return tuple(file for file in files if Path(file.path).is_file())
