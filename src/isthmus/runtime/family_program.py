"""Parents of commands that keep all that a command starts below themselves, as a program of its own. Linux.

A parent is a "child subreaper": what loses its own parent becomes its child, also after ``setsid`` or a double fork,
and with an empty environment. A byte of input has it end all that is left. When its input ends, which happens when the
agent's program does, too, it kills it at once. It reports lines: ``started PID OWN_PID`` or ``failed ERRNO``; ``ended
STATUS`` as of waitpid; at the end ``left PID...`` and ``survived PID...``.

The program makes a parent for each request on a socket, by a fork, since Python takes ten times as long to start. Its
argument is the descriptor of the socket, with which it ends.
"""

import _thread
import array
import ctypes
import os
import signal
import socket
import sys
import time
from contextlib import suppress

PR_SET_CHILD_SUBREAPER = 36
KILL_SECONDS = 1.0
"""Time in seconds for killed processes to end; then they are reported as survivors."""
POLL_SECONDS = 0.02
HEAD_BYTES = 8
"""Size in bytes of the length before a request."""


class CommandFamily:
    """A command and all that it started."""

    def __init__(self, report: int, grace: float) -> None:
        self._report = report
        self._grace = grace
        self._watching = _thread.allocate_lock()

    def tell(self, *words: object) -> None:
        """Report a line; nobody may be there to read it."""
        with suppress(OSError):
            os.write(self._report, (" ".join(map(str, words)) + "\n").encode())

    def start(self, folder: str, command: list[str]) -> int | None:
        """Start the command as the leader of a session, and return its id; None if it cannot be started."""
        environment = dict(os.environ)
        without_input = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
        # Python ignores some signals, and the command must not.
        usual = (signal.SIGPIPE, signal.SIGXFSZ)
        try:
            os.chdir(folder)
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
        self.tell("started", pid, os.getpid())
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
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if is_over else signal.SIGTERM)
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


def become_parent(request: bytes, control: int, output: int, report: int) -> None:
    """Be the parent of a command: until it, and all that it started, has ended.

    Args:
        request: texts that end in NUL: the folder, the grace period, the number of words of the command, these, and the
            variables of its environment.
        control: the descriptor of the input.
        output: the descriptor for the output and errors of the command.
        report: the descriptor for reports.
    """
    folder, grace, count, *texts = os.fsdecode(request).split("\0")[:-1]
    command, variables = texts[: int(count)], texts[int(count) :]
    os.environ.clear()
    for variable in variables:
        name, _, value = variable.partition("=")
        os.environ[name] = value
    for target, descriptor in ((0, control), (1, output), (2, output)):
        os.dup2(descriptor, target)
    os.set_inheritable(report, False)
    for descriptor in {control, output}:
        os.close(descriptor)
    family = CommandFamily(report, float(grace))
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    leader = family.start(folder, command)
    # The pipe of the output ends with those that write to it, and this program is none of them.
    for number in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    if leader is not None:
        family.run(leader)


def serve(channel: socket.socket) -> None:
    """Make parents, as requests come."""
    while True:
        head, descriptors = received_descriptors(channel)
        if not head:
            return
        request = received(channel, int.from_bytes(head, "big"))
        while has_children() and os.waitpid(-1, os.WNOHANG)[0]:
            pass
        if os.fork() == 0:
            try:
                channel.close()
                become_parent(request, *descriptors)
            finally:
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


def received_descriptors(channel: socket.socket) -> tuple[bytes, list[int]]:
    """Return the length of a request and its descriptors; empty at the end of the socket."""
    descriptors = array.array("i")
    room = socket.CMSG_SPACE(3 * descriptors.itemsize)
    head, ancillary, _, _ = channel.recvmsg(HEAD_BYTES, room, socket.MSG_CMSG_CLOEXEC)
    for _, _, data in ancillary:
        descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return head, list(descriptors)


def received(channel: socket.socket, size: int) -> bytes:
    """Return so many bytes; fewer if the socket ends before them."""
    data = bytearray()
    while len(data) < size and (more := channel.recv(size - len(data))):
        data += more
    return bytes(data)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
