"""The parent of a command that keeps all that the command starts below itself, as a program of its own. Linux.

It is a "child subreaper": what loses its parent becomes its child, also after ``setsid`` or a double fork, and with an
empty environment. A byte of input has it end all that is left. When its input ends, which happens when the agent's
program does, too, it kills it at once. Each shell command starts it, so it imports as little as possible.

Its arguments are a descriptor for its reports, the time in seconds between SIGTERM and SIGKILL, a variable for the
command's environment as NAME=VALUE, and the command. It reports lines: ``started PID`` or ``failed ERRNO``; ``ended
STATUS`` as of waitpid; at the end ``left PID...`` and ``survived PID...``.
"""

import _thread
import ctypes
import os
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
SIGKILL, SIGPIPE, SIGTERM, SIGXFSZ = 9, 13, 15, 25
"""Signals on Linux; the module of their names takes half as long to import as Python to start."""
KILL_SECONDS = 1.0
"""Time in seconds for killed processes to end; then they are reported as survivors."""
POLL_SECONDS = 0.02


class Family:
    """A command and all that it started."""

    def __init__(self, report: int, grace: float) -> None:
        self._report = report
        self._grace = grace
        self._watching = _thread.allocate_lock()

    def tell(self, *words: object) -> None:
        """Report a line; nobody may be there to read it."""
        try:  # noqa: SIM105 - contextlib takes long to import
            os.write(self._report, (" ".join(map(str, words)) + "\n").encode())
        except OSError:
            pass

    def start(self, command: list[str], variable: str) -> int | None:
        """Start the command as the leader of a session, and return its id; None if it cannot be started."""
        name, _, value = variable.partition("=")
        environment = {**os.environ, name: value}
        without_input = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        # Python ignores some signals, and the command must not.
        usual = (SIGPIPE, SIGXFSZ)
        try:
            try:
                pid = os.posix_spawnp(
                    command[0], command, environment, file_actions=without_input, setsid=True, setsigdef=usual
                )
            except NotImplementedError:  # an old C library: a group, in the session of this program
                pid = os.posix_spawnp(
                    command[0], command, environment, file_actions=without_input, setpgroup=0, setsigdef=usual
                )
        except OSError as error:
            self.tell("failed", error.errno)
            return None
        self.tell("started", pid)
        return pid

    def watch(self, leader: int) -> None:
        """Report the status of the command when it ends, and reap all that end, until nothing is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, 0)
                if pid == leader:
                    self.tell("ended", status)
        except ChildProcessError:
            self._watching.release()

    def run(self, leader: int) -> None:
        """Wait until the family is to be ended, and end it."""
        self._watching.acquire()
        _thread.start_new_thread(self.watch, (leader,))
        self._listen()
        os.set_blocking(0, False)
        self.end_rest()

    def _listen(self) -> None:
        try:
            if not os.read(0, 64):
                self._grace = 0.0
        except BlockingIOError:
            pass

    def end_rest(self) -> None:
        """End what is left of the family, and report it."""
        asked: set[int] = set()
        begun = time.monotonic()
        rest = descendants(os.getpid())
        while rest:
            waited = time.monotonic() - begun
            is_over = waited >= self._grace
            for pid in rest if is_over else rest - asked:
                try:  # noqa: SIM105 - as above
                    os.kill(pid, SIGKILL if is_over else SIGTERM)
                except (ProcessLookupError, PermissionError):
                    pass
            asked |= rest
            if waited > self._grace + KILL_SECONDS:
                break
            time.sleep(POLL_SECONDS)
            self._listen()
            rest = descendants(os.getpid())
        self._watching.acquire(timeout=KILL_SECONDS)  # until the status of the command was reported
        self.tell("left", *sorted(asked - rest))
        self.tell("survived", *sorted(rest))


def descendants(root: int) -> set[int]:
    """Return the running processes below one."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc") if has_children() else ():  # noqa: PTH208 - pathlib takes long to import
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123 - as above
                    state, parent = file.read().rpartition(b")")[2].split()[:2]
            except (OSError, ValueError):
                continue
            if state not in (b"Z", b"X"):
                children.setdefault(int(parent), []).append(int(name))
    found: set[int] = set()
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found.update(below)
        waiting.extend(below)
    return found


def has_children() -> bool:
    """Return whether this program has any; usually nothing is left of a command that has ended."""
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def main(arguments: list[str]) -> None:
    """Run a command and end all that it started."""
    report, grace, variable, *command = arguments
    family = Family(int(report), float(grace))
    os.set_inheritable(int(report), False)
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    leader = family.start(command, variable)
    # The pipe of the output ends with those that write to it, and this program is none of them.
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    if leader is not None:
        family.run(leader)


if __name__ == "__main__":
    main(sys.argv[1:])
