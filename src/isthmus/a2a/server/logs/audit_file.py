"""The file of the audit log: opened to append, with mode 0600, and one write for each line.

Lines are written on the event loop: a line that waited for a thread would be lost when the process is killed. When the
file was renamed, as logrotate does, the next line begins a new one. A disk that is full stops no request: the log of
the server says so once, and a line later says how many are missing.
"""

import logging
import os
import stat
import time
from collections.abc import Callable
from pathlib import Path

from isthmus.a2a.server.logs.access_log import RequestNote
from isthmus.a2a.server.logs.audit import (
    ANONYMOUS_LINES,
    REFUSED_LINES,
    LineBudget,
    is_audited,
    missing_line,
    outcome_of,
    request_line,
)
from isthmus.errors import IsthmusError

CHECK_SECONDS = 1.0
"""Minimum time in seconds between two looks at whether the file was renamed."""

log = logging.getLogger(__name__)


class AuditError(IsthmusError):
    """The file of the audit log cannot be used."""


class AuditFile:
    """The audit log in the file ``path``, which is made if it is missing.

    Raises:
        AuditError: it cannot be opened, or is not a regular file.
    """

    def __init__(
        self, path: Path, *, now: Callable[[], float] = time.time, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._path = path
        self._now = now
        self._clock = clock
        self._descriptor = self._open()
        self._checked = clock()
        self._lost = 0
        self._is_torn = False
        self._anonymous = LineBudget(ANONYMOUS_LINES)
        self._refused = LineBudget(REFUSED_LINES)

    def record(self, note: RequestNote) -> None:
        """Write the line of a request; never raises because of the file."""
        if not is_audited(note):
            return
        clock = self._clock()
        self._say_suppressed()
        if not note.auth:
            is_written = self._anonymous.take(clock)
        else:
            is_written = outcome_of(note) != "refused" or self._refused.take(clock)
        if is_written:
            self._write(request_line(note, self._now()))

    def close(self) -> None:
        """Close the file; lines afterwards are lost."""
        self._say_suppressed(always=True)
        os.close(self._descriptor)
        self._descriptor = -1

    def _say_suppressed(self, *, always: bool = False) -> None:
        clock = self._clock()
        count = sum(budget.left_out(clock, always=always) for budget in (self._anonymous, self._refused))
        if count:
            self._write(missing_line("suppressed", count, self._now()))

    def _write(self, line: bytes) -> None:
        self._follow_path()
        data = b"\n" + line if self._is_torn else line
        try:
            written = os.write(self._descriptor, data)
        except OSError as error:
            self._lose(error.strerror or str(error))
            return
        if written < len(data):
            self._is_torn = True
            self._lose("only a part of a line was written")
            return
        self._is_torn = False
        if self._lost:
            count, self._lost = self._lost, 0
            log.warning("the audit log %s is written again; %d lines are missing", self._path, count)
            self._write(missing_line("lost", count, self._now()))

    def _lose(self, reason: str) -> None:
        if not self._lost:
            log.error(
                "the audit log %s cannot be written (%s): requests are answered, and not in it until it can",
                self._path,
                reason,
            )
        self._lost += 1

    def _follow_path(self) -> None:
        clock = self._clock()
        if clock - self._checked < CHECK_SECONDS:
            return
        self._checked = clock
        try:
            here, there = os.fstat(self._descriptor), self._path.stat()
            if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
                return
        except FileNotFoundError:
            pass  # renamed, and not made again yet
        except OSError:
            return  # the line goes where the ones before went
        try:
            new = self._open()
        except AuditError as error:
            log.error("%s; lines are written to the file that was there before", error)
            return
        os.close(self._descriptor)
        self._descriptor, self._is_torn = new, False

    def _open(self) -> int:
        # Without O_NONBLOCK a pipe of this name would be waited for.
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        try:
            descriptor = os.open(self._path, flags, 0o600)
        except OSError as error:
            raise AuditError(f"{self._path} cannot be opened: {error.strerror or error}") from error
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            raise AuditError(f"{self._path} is not a regular file; name one that can be made or appended to")
        mode = stat.S_IMODE(status.st_mode)
        if mode & 0o077:
            try:
                os.fchmod(descriptor, 0o600)
            except OSError as error:
                os.close(descriptor)
                raise AuditError(
                    f"{self._path} can be used by others (mode {mode:04o}), and that cannot be changed:"
                    f" {error.strerror or error}"
                ) from error
            log.warning("%s could be used by others (mode %04o); only you can use it now", self._path, mode)
        return descriptor
