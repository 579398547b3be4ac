"""Hook of an agent CLI: hands a permission question of its terminal to the companion, and prints the answer.

``python -I -S permission_hook.py FOLDER PORT PROTOCOL [turn]``. With ``turn`` it tells the companion that a turn of the
agent begins or ends, waits for nothing and prints nothing. A program of its own that imports nothing of ours, because
the CLI waits for it. ``FOLDER`` has the control files of the companions, ``PORT`` is one of the companion's ports,
which it keeps over a restart. Nothing of the environment or the current folder is used: a project can set both.

Without an answer of the user it prints nothing and succeeds, whatever happens; then the CLI's own question decides. It
ends when the CLI does not read its output any more, so that the companion takes the question back.
"""

import json
import os
import select
import socket
import struct
import sys

FAMILY = "companion-"
QUESTION, TURN = "permission", "turn"
MAXIMUM_BYTES = 64 * 1024 * 1024
LOOK_MS = 1000
"""Time in milliseconds between two looks whether the CLI still lives."""


def sockets(folder: str, port: int) -> list[tuple[str, str]]:
    """Return the sockets and tokens of the companions on a port, newest first: a killed one leaves its file."""
    found: list[tuple[float, str, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if not (entry.name.startswith(FAMILY) and entry.name.endswith(".json")):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
                if status.st_uid != os.getuid():
                    continue  # in a shared folder: a file of another user
                with open(entry.path, encoding="utf-8") as file:  # noqa: PTH123 - pathlib takes long to import
                    content = json.load(file)
                if port in content["ports"]:
                    found.append((status.st_mtime, content["socket"], content["token"]))
            except (OSError, ValueError, KeyError, TypeError):
                continue
    return [(path, token) for _, path, token in sorted(found, reverse=True)]


def connect(folder: str, port: int) -> tuple[socket.socket, str] | None:
    """Return a connection to the companion and its token; None if none runs."""
    for path, token in sockets(folder, port):
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(path)
            if is_ours(connection, path):
                return connection, token
        except OSError:
            pass
        connection.close()
    return None


def is_ours(connection: socket.socket, path: str) -> bool:
    """Return whether a program of this user listens on a connection's socket, whose place in /tmp another may take."""
    if sys.platform == "linux":
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", credentials)[1] == os.getuid()
    return os.lstat(path).st_uid == os.getuid()


def receive(connection: socket.socket) -> bytes:
    """Return the line with the answer; empty if the companion or the CLI ended before."""
    parent = os.getppid()
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    poll.register(1, 0)  # tells only that nobody reads any more
    line = bytearray()
    while not line.endswith(b"\n"):
        ready = dict(poll.poll(LOOK_MS))
        if 1 in ready or os.getppid() != parent:
            return b""
        if connection.fileno() in ready:
            data = connection.recv(65536)
            line += data
            if not data or len(line) > MAXIMUM_BYTES:
                return b""
    return bytes(line)


def answer_to(message: object, folder: str, port: int, protocol: str, command: str) -> str:
    """Return what the CLI is to read; empty without an answer of the user, and for the command ``turn``."""
    found = connect(folder, port)
    if found is None:
        return ""
    connection, token = found
    with connection:
        request = {"command": command, "protocol": protocol, "message": message, "token": token}
        connection.sendall(json.dumps(request).encode() + b"\n")
        line = receive(connection) if command == QUESTION else b""
    if not line:
        return ""
    answer = json.loads(line)  # of another form it raises an error below, and nothing is printed
    output = answer["result"]["output"] if answer["ok"] is True else None
    return json.dumps(output) if isinstance(output, dict) else ""


def main() -> None:
    """Read the CLI's message, and print the answer."""
    try:
        folder, port, protocol, *rest = sys.argv[1:]
        if rest not in ([], [TURN]):
            return
        message = json.loads(sys.stdin.buffer.read())
        output = answer_to(message, folder, int(port), protocol, TURN if rest else QUESTION)
        if output:
            os.write(1, output.encode() + b"\n")
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass  # the question is left to the CLI's own terminal


if __name__ == "__main__":
    main()
