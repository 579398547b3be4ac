"""The files of a workspace as they were seen last, and which of them differ now. Blocks."""

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from isthmus.ide.written_changes import disk_files
from isthmus.ide.written_changes.disk_files import FileStatus, why_unknown
from isthmus.ide.written_changes.file_content import DiskFile
from isthmus.ide.written_changes.store import Store
from isthmus.record import record

MAXIMUM_FILES: Final = 20_000
"""Maximum number of files that are followed; further ones are not."""
BATCH_FILES: Final = 500
"""Number of files that are stored in one transaction when the workspace is seen for the first time."""
_UNSETTLED_NANOSECONDS: Final = 50_000_000
"""A file written so shortly before it was read may be written again without a difference in its status."""
SETTLING_SECONDS: Final = 0.1
"""Time in seconds for which a file that has changed may still be written: editors empty or rename it first."""
MAXIMUM_SETTLING_SECONDS: Final = 0.5
"""Maximum time in seconds after which a file that changes all the time counts as it is."""


@record
class _Noted:
    """Change that may not be whole: the status, None of a file that has gone; when it and the first one were noted."""

    status: FileStatus | None
    at: float
    first_at: float


class FollowedFiles:
    """Files of some folders (real paths). Within a transaction of the store unless stated otherwise."""

    def __init__(
        self,
        store: Store,
        folders: Sequence[str],
        maximum_files: int,
        maximum_bytes: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._store = store
        self._clock = clock
        self._folders = tuple(folders)
        self._maximum_files = maximum_files
        self._maximum_bytes = maximum_bytes
        self._seen = store.seen()
        self._unsettled: set[str] = set()
        self._noted: dict[str, _Noted] = {}
        self.is_stopped = False
        """Whether a walk under way ends early; set from another thread."""
        self.is_partial = False
        """Whether there are more files than are followed."""

    def known(self, path: str) -> tuple[FileStatus, str] | None:
        """Return the status and the digest of a file as it was seen last; None if it was not there."""
        return self._seen.get(path)

    def forget(self, path: str) -> None:
        """Record that a file has gone."""
        self._seen.pop(path, None)
        self._store.unsee(path)

    def see_all(self) -> None:
        """Record every file for the first time, in several transactions.

        Raises:
            StoppedError: :attr:`is_stopped` was set.
        """
        batch: list[tuple[str, FileStatus]] = []
        count = 0
        for entry in disk_files.walk(self._folders, self._maximum_files, lambda: self.is_stopped):
            count += 1
            known = self._seen.get(entry[0])
            if known is None or not known[0].is_same(entry[1]):
                batch.append(entry)
            if len(batch) >= BATCH_FILES:
                self._see(batch)
                batch = []
        self._see(batch)
        self.is_partial = count >= self._maximum_files

    def _see(self, batch: Iterable[tuple[str, FileStatus]]) -> None:
        with self._store.transaction():
            for path, status in batch:
                self.read(path, status)

    @property
    def being_written(self) -> tuple[str, ...]:
        """Files that differ, and were left to a later comparison because they may be half written."""
        return tuple(self._noted)

    def differences(
        self, paths: Collection[str] | None, *, leaves_recent: bool = False
    ) -> "dict[str, FileStatus | None]":
        """Return the files whose status differs from how they were seen, with the present one.

        ``leaves_recent`` leaves those that may be half written to a later call, and names them in `being_written`.
        """
        found = self._different(paths)
        for path in tuple(self._noted) if paths is None else paths:
            if path not in found or not leaves_recent:
                self._noted.pop(path, None)
        return {path: status for path, status in found.items() if not (leaves_recent and self._notes(path, status))}

    def _notes(self, path: str, status: FileStatus | None) -> bool:
        """Return whether a file has changed so shortly ago that it may be half written, and note it if so."""
        now, noted = self._clock(), self._noted.pop(path, None)
        if status is not None:
            known = self._seen[path][0] if path in self._seen else None
            if known is not None and known.is_same(status):
                return False
            is_stamped = known is None or known.modified_ns != status.modified_ns  # some systems cut files without it
            since = now - max(status.modified_ns, status.changed_ns) / 1e9
            if status.size and is_stamped and since >= SETTLING_SECONDS:
                return False
        if noted is None:
            self._noted[path] = _Noted(status, now, now)
            return True
        is_same = noted.status == status
        if not 0 <= now - noted.first_at < MAXIMUM_SETTLING_SECONDS or (is_same and now - noted.at >= SETTLING_SECONDS):
            return False
        self._noted[path] = noted if is_same else _Noted(status, now, noted.first_at)
        return True

    def _different(self, paths: Collection[str] | None) -> "dict[str, FileStatus | None]":
        found: dict[str, FileStatus | None] = {}
        visited: set[str] = set()
        if paths is None:
            count = 0
            for path, status in disk_files.walk(
                self._folders, self._maximum_files, lambda: self.is_stopped, self._is_known_as_private
            ):
                count += 1
                visited.add(path)
                known = self._seen.get(path)
                if known is None or not known[0].is_same(status) or path in self._unsettled:
                    found[path] = status
            self.is_partial = count >= self._maximum_files
        for path in (self._seen.keys() - visited) if paths is None else paths:
            known, noted = self._seen.get(path), self._noted.get(path)
            before = known[0] if known is not None else noted.status if noted is not None else None
            if before is None:
                continue  # a new file is found by the next walk, which knows what is ignored
            status = disk_files.status_of(path, is_secret=before.is_private)
            if status is None or known is None or not before.is_same(status) or path in self._unsettled:
                found[path] = status
        return found

    def _is_known_as_private(self, path: str) -> bool | None:
        known = self._seen.get(path)
        return None if known is None else known[0].is_private

    def read(self, path: str, status: FileStatus) -> DiskFile | None:
        """Read a file, and store how it is now."""
        may_store = self._store.stored_bytes + status.size <= self._maximum_bytes
        file = disk_files.read(path, status, may_store=may_store)
        if file is None:
            return None
        if time.time_ns() - max(status.modified_ns, status.changed_ns) < _UNSETTLED_NANOSECONDS:
            self._unsettled.add(path)
        else:
            self._unsettled.discard(path)
        if file.data is not None:
            self._store.add(file.digest, file.data)
        self._store.see(path, status, file.digest)
        self._seen[path] = (status, file.digest)
        return file

    def last(self, path: str) -> DiskFile | None:
        """Return a file as it was seen last."""
        known = self._seen.get(path)
        if known is None:
            return None
        return DiskFile(self._store.content(known[1]), known[1], known[0].mode & 0o7777, why_unknown(known[1]))

    def see_now(self, path: str) -> None:
        """Record a file as it is now, after it was written."""
        known = self._seen.get(path)
        status = disk_files.status_of(path, is_secret=known is not None and known[0].is_private)
        if status is None or self.read(path, status) is None:
            self.forget(path)
