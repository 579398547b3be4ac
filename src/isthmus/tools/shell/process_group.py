"""Runs a command as the leader of its own process group, and ends the whole group.

A guard kills the group if this process ends in any way. On Linux the command has a parent that also what left the group
stays below (:mod:`isthmus.runtime.process_family`). Output comes through a pipe that we create, so that a background
process which keeps it open does not block the caller. Linux and macOS.
"""

import asyncio
import contextlib
import os
import secrets
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from isthmus.runtime.group_guard import MARK, group_guard, group_members, signal_followers
from isthmus.runtime.process_family import NoParent, ProcessFamily, can_start_families, start_family
from isthmus.runtime.processes import end_process_fully, start_process

GRACE_SECONDS = 2.0
"""Delay between SIGTERM and SIGKILL."""
_POLL_SECONDS = 0.02
_CHUNK = 65_536


class ProcessGroup:
    """A running command and its descendants: all of a family, otherwise those that stayed in its group."""

    def __init__(
        self,
        process: Process | ProcessFamily,
        mark: str,
        output: int,
        on_output: Callable[[bytes], None],
        *,
        spares_leader: bool,
        grace_seconds: float,
    ) -> None:
        self._process = process
        self._grace_seconds = grace_seconds
        self.spares_leader = spares_leader
        """Whether the leader is a program around the real one, and ends with it."""
        self._mark = mark
        self._output = output
        self._on_output = on_output
        self.changed = asyncio.Event()
        """Event that is set when output has come or has ended."""
        self.has_output_ended = False
        self._left: tuple[int, ...] = ()
        asyncio.get_running_loop().add_reader(output, self._read)

    @property
    def id(self) -> int:
        """Id of the leader and of the group."""
        return self._process.leader if isinstance(self._process, ProcessFamily) else self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while the command runs, negative for the number of the signal that ended it."""
        return self._process.exit_code if isinstance(self._process, ProcessFamily) else self._process.returncode

    @property
    def left(self) -> tuple[int, ...]:
        """Ids of the processes that were running when the command had ended, and were ended; known afterwards."""
        return self._left

    @property
    def survived(self) -> tuple[int, ...]:
        """Ids of the processes that could not be ended, such as another user's; known afterwards."""
        return self._process.survived if isinstance(self._process, ProcessFamily) else ()

    def wait(self) -> Coroutine[Any, Any, int]:
        """Wait for the end of the command, and return its exit code."""
        return self._process.wait()

    def is_alive(self) -> bool:
        """Return whether any process of the group is running; a zombie is not."""
        return self._signal(0) and bool(self.members())

    def members(self) -> tuple[int, ...]:
        """Return the ids of the running processes in the group."""
        return group_members(self.id)

    def kill(self) -> None:
        """Kill the whole group."""
        self._signal(signal.SIGKILL)

    async def terminate(self, *, also_strays: bool = False) -> None:
        """Send SIGTERM to the group, and SIGKILL to remaining processes after the grace period or on cancellation.

        `also_strays` also ends descendants that left the group, such as daemons, as far as they can be found; in a
        family all are ended.
        """
        has_ended = self.exit_code is not None
        if isinstance(self._process, ProcessFamily):
            await self._process.end_rest()
            self._left = self._left or (self._process.ended if has_ended else ())
            return
        if has_ended and not self.spares_leader:
            # A sandbox ends the processes left in it by itself, so their ids are not known.
            self._left = self._left or (self.members() if self.is_alive() else ())
        strays = self._strays() if also_strays else ()
        asked = signal_followers(self.id, signal.SIGTERM) if self.spares_leader else self._signal(signal.SIGTERM)
        if not asked and not strays:
            self.kill()
            return
        try:
            for stray in strays:
                with contextlib.suppress(OSError):
                    os.kill(stray, signal.SIGTERM)
            for _ in range(round(self._grace_seconds / _POLL_SECONDS)):
                if not self.is_alive() and not any(map(_is_running, strays)):
                    return
                await asyncio.sleep(_POLL_SECONDS)
        finally:
            self.kill()
            for stray in filter(_is_running, strays):
                with contextlib.suppress(OSError):
                    os.kill(stray, signal.SIGKILL)

    def _strays(self) -> tuple[int, ...]:
        import psutil

        strays: list[int] = []
        for process in psutil.process_iter():
            with contextlib.suppress(OSError, psutil.Error):
                if process.environ().get(MARK) == self._mark and os.getpgid(process.pid) != self.id:
                    strays.append(process.pid)
        return tuple(strays)

    def drain(self) -> None:
        """Read the output that is available now, without waiting."""
        while not self.has_output_ended and self._read():
            pass

    def close(self) -> None:
        """Stop reading output."""
        if self._output >= 0:
            asyncio.get_running_loop().remove_reader(self._output)
            os.close(self._output)
            self._output = -1
            self.has_output_ended = True

    def _read(self) -> bool:
        """Read once and return whether there was output."""
        try:
            data = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if data:
            self._on_output(data)
        else:
            self.close()
        self.changed.set()
        return bool(data)

    def _signal(self, number: int) -> bool:
        """Signal the group and return whether it has processes."""
        try:
            os.killpg(self.id, number)
        except ProcessLookupError:
            return False
        except PermissionError:
            # macOS reports this for a group whose only process has not been reaped yet.
            return self.exit_code is None
        return True


def _is_running(pid: int) -> bool:
    import psutil

    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


@contextlib.asynccontextmanager
async def process_group(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    on_output: Callable[[bytes], None],
    *,
    spares_leader: bool = False,
    grace_seconds: float = GRACE_SECONDS,
) -> AsyncGenerator[ProcessGroup, None]:
    """Start `command` in `folder`, with its output and errors going to `on_output`; end all of it at the end.

    `spares_leader`: the command is a program around the real one, such as a sandbox, that is not signalled but ends
    with it.

    Raises:
        OSError: the command cannot be started.
    """
    mark = secrets.token_hex(16)
    has_ended = False
    async with group_guard(mark) as announce:
        read_end, write_end = os.pipe()
        try:
            os.set_blocking(read_end, False)
            process = await _start(command, folder, environment, mark, write_end, spares_leader, grace_seconds)
            group = ProcessGroup(
                process, mark, read_end, on_output, spares_leader=spares_leader, grace_seconds=grace_seconds
            )
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        try:
            announce(group.id)
            yield group
            has_ended = group.exit_code is not None
        finally:
            try:
                await group.terminate(also_strays=not has_ended)
            finally:
                group.close()
                # Its end is reported by the event loop, which may stop before that.
                if isinstance(process, Process) and process.returncode is None:
                    await end_process_fully(process)


async def _start(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    mark: str,
    output: int,
    is_confined: bool,
    grace_seconds: float,
) -> Process | ProcessFamily:
    """Start a command; a sandbox ends by itself all that runs in it."""
    marked = {**environment, MARK: mark}
    if can_start_families() and not is_confined:
        with contextlib.suppress(NoParent):
            return await start_family(
                command, folder=folder, environment=marked, output=output, grace_seconds=grace_seconds
            )
    return await start_process(*command, stdin=DEVNULL, stdout=output, stderr=output, cwd=folder, env=marked)
