"""The parent of a command that keeps all that the command starts below itself, as a program of its own. Linux.

It is a "child subreaper": what loses its parent becomes its child, also after ``setsid`` or a double fork, and with an
empty environment. When its input ends, which happens when the agent's program does, too, it ends all of it. It imports
only the standard library, so that it starts quickly.

Its arguments are a descriptor for its reports, the time in seconds between SIGTERM and SIGKILL, a variable for the
command's environment as NAME=VALUE, and the command. It reports lines: ``started PID`` or ``failed ERRNO``; ``ended
STATUS`` as of waitpid; at the end ``left PID...`` and ``survived PID...``. SIGTERM has it kill what is left at once.
"""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import suppress

PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 1.0
"""Time in seconds for killed processes to end; then they are reported as survivors."""
POLL_SECONDS = 0.02


class Family:
    """A command and all that it started."""

    def __init__(self, report: int, grace: float) -> None:
        self._report = report
        self._grace = grace

    def hurry(self, *_: object) -> None:
        """Kill at once what is left. A handler of signals."""
        self._grace = 0.0

    def tell(self, *words: object) -> None:
        """Report a line; nobody may be there to read it."""
        with suppress(OSError):
            os.write(self._report, (" ".join(map(str, words)) + "\n").encode())

    def start(self, command: Sequence[str], variable: str) -> int | None:
        """Start the command as the leader of a session, and return its id; None if it cannot be started."""
        failure, failed = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)
                name, _, value = variable.partition("=")
                os.execvpe(command[0], [*command], {**os.environ, name: value})  # noqa: S606 - it is the command
            except OSError as error:
                os.write(failed, str(error.errno).encode())
            finally:
                os._exit(127)
        os.close(failed)
        reason = os.read(failure, 16)
        os.close(failure)
        if reason:
            self.tell("failed", reason.decode())
            return None
        self.tell("started", pid)
        return pid

    def wait(self, leader: int) -> None:
        """Wait until the input has ended, and report the status of the command when it ends."""
        woken, wake = os.pipe()
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, _wake)
        poll = select.poll()
        poll.register(0, select.POLLIN)
        poll.register(woken, select.POLLIN)
        self._reap(leader)  # one that ended before it was waited for
        while True:
            for descriptor, _ in poll.poll():
                if not os.read(descriptor, 4_096) and descriptor == 0:
                    return
            self._reap(leader)

    def _reap(self, leader: int) -> None:
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == leader:
                    self.tell("ended", status)
                if not pid:
                    return

    def end_rest(self, leader: int) -> None:
        """End what is left of the family, and report it."""
        asked: set[int] = set()
        begun = time.monotonic()
        rest = self._rest(leader)
        while rest:
            waited = time.monotonic() - begun
            for pid in rest if waited >= self._grace else rest - asked:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if waited >= self._grace else signal.SIGTERM)
            asked |= rest
            if waited > self._grace + KILL_SECONDS:
                break
            time.sleep(POLL_SECONDS)
            rest = self._rest(leader)
        self.tell("left", *sorted(asked - rest))
        self.tell("survived", *sorted(rest))

    def _rest(self, leader: int) -> set[int]:
        self._reap(leader)
        return descendants(os.getpid())


def descendants(root: int) -> set[int]:
    """Return the running processes below one."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return set()  # the usual case: nothing is left
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - pathlib takes longer to import than all else here
        if name.isdigit():
            with suppress(OSError, ValueError, IndexError):
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
                if state not in (b"Z", b"X"):
                    children.setdefault(int(parent), []).append(int(name))
    found: set[int] = set()
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.update(below)
        waiting.extend(below)
    return found


def _wake(*_: object) -> None:
    """Do nothing: the pipe for signals has got a byte."""


def main(arguments: Sequence[str]) -> None:
    """Run a command and end all that it started."""
    report, grace, variable, *command = arguments
    family = Family(int(report), float(grace))
    os.set_inheritable(int(report), False)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, family.hurry)
    leader = family.start(command, variable)
    # The pipe of the output ends with those that write to it, and this program is none of them.
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    if leader is not None:
        family.wait(leader)
        family.end_rest(leader)


if __name__ == "__main__":
    main(sys.argv[1:])
