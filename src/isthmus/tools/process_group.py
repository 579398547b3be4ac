"""Runs a command as the leader of its own process group, and ends the whole group.

A guard, a small shell outside of the group, waits on a pipe that closes when this process ends in any way, and then
kills the group: nothing survives a ``kill -9`` of the agent. Output comes through a pipe that we create, so that a
background process which keeps it open does not block the caller. Linux and macOS.
"""

import asyncio
import contextlib
import os
import secrets
import signal
from asyncio.subprocess import DEVNULL, Process
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from pathlib import Path

from isthmus.runtime.processes import start_process

GRACE_SECONDS = 2.0
"""Delay between SIGTERM and SIGKILL."""
_POLL_SECONDS = 0.02
_CHUNK = 65_536
MARK = "ISTHMUS_PROCESS_GROUP"
"""Environment variable that marks descendants, to find those that left the group; needs /proc."""
_GUARD = """
read -r mark || exit
read -r group && read -r _
kill_marked() {
    grep -lsa "$mark" /proc/[0-9]*/environ | while IFS=/ read -r _ _ pid _; do kill -KILL "$pid"; done
}
[ -z "$group" ] || kill -KILL "-$group"
kill_marked
[ -n "$group" ] || { sleep 0.5; kill_marked; }
"""
# The guard gets the mark before the command starts, and finds it even if this process is killed right after that.


class ProcessGroup:
    """A running command and its descendants that stayed in its group."""

    def __init__(
        self,
        process: Process,
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
        asyncio.get_running_loop().add_reader(output, self._read)

    @property
    def id(self) -> int:
        """Id of the leader and of the group."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code; None while the command runs, negative for the number of the signal that ended it."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for the command itself to end and return its exit code."""
        return await self._process.wait()

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

        `also_strays` also ends descendants that left the group, such as daemons, as far as they can be found.
        """
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


def group_members(group: int) -> tuple[int, ...]:
    """Return the ids of the running processes in a group."""
    import psutil

    found: list[int] = []
    for pid in psutil.pids():
        with contextlib.suppress(OSError, psutil.Error):
            if os.getpgid(pid) == group and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
    return tuple(found)


def signal_followers(group: int, number: int) -> bool:
    """Signal the members of a group except its leader, and return whether there are any.

    For a leader that is a sandbox: if it were signalled, it would kill the others before they could clean up.
    """
    followers = [pid for pid in group_members(group) if pid != group]
    for pid in followers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
    return bool(followers)


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
            process = await start_process(
                *command,
                stdin=DEVNULL,
                stdout=write_end,
                stderr=write_end,
                cwd=folder,
                env={**environment, MARK: mark},
            )
            group = ProcessGroup(
                process, mark, read_end, on_output, spares_leader=spares_leader, grace_seconds=grace_seconds
            )
        except BaseException:
            os.close(read_end)
            raise
        finally:
            os.close(write_end)
        try:
            announce(process.pid)
            yield group
            has_ended = group.exit_code is not None
        finally:
            try:
                await group.terminate(also_strays=not has_ended)
            finally:
                group.close()


@contextlib.asynccontextmanager
async def group_guard(mark: str, *, is_final: bool = False) -> AsyncGenerator[Callable[[int], None], None]:
    """Start a process that kills the announced group when the pipe to it closes; kill it at the end.

    `mark` is the value of MARK in the group's environment. `is_final`: let the guard kill the group at the end, with
    descendants that left it if there is /proc.
    """
    read_end, write_end = os.pipe()
    try:
        guard = await start_process("/bin/sh", "-c", _GUARD, stdin=read_end, stdout=DEVNULL, stderr=DEVNULL, env={})
    except BaseException:
        os.close(write_end)
        raise
    finally:
        os.close(read_end)

    has_group = False

    def announce(group: int) -> None:
        nonlocal has_group
        has_group = True
        os.write(write_end, f"{group}\n".encode())

    try:
        os.write(write_end, f"{mark}\n".encode())
        yield announce
    finally:
        if not (is_final and has_group):
            # Not guard.kill(): it would reap a child that has just ended, without the event loop's knowledge.
            with contextlib.suppress(ProcessLookupError):
                os.kill(guard.pid, signal.SIGKILL)
        os.close(write_end)
        await guard.wait()
