"""Finds the running companions on this machine, and sends them commands of the user; client of :mod:`control`.

For short-lived commands: blocking sockets, no event loop.
"""

import json
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from isthmus.encoding.codec import JsonObject, from_json
from isthmus.errors import DecodeError, IsthmusError
from isthmus.files.locations import runtime_directory
from isthmus.ide.control.control import MAXIMUM_LINE_BYTES, remove_leftover
from isthmus.ide.processes import process_is_alive
from isthmus.record import record

ANSWER_SECONDS = 30.0


class NoCompanionError(IsthmusError):
    """No companion matches; the text lists the running ones and explains how to select or start one."""


class RefusedError(IsthmusError):
    """A command that the companion refused; the text is the reason."""


@record
class RunningCompanion:
    """Contents of a companion's control file. ``port`` is the port of the server for Gemini CLI, if it runs.

    ``token`` is the user's. ``variables`` are environment variables for agents, including the agents' token.
    """

    pid: int
    port: int
    variables: Mapping[str, str]
    editor: str
    editor_pid: int
    workspace_folders: tuple[str, ...]
    discovery_file: str
    socket: str
    token: str

    def describe(self) -> str:
        """Return a short description for a message to the user."""
        return f"port {self.port} ({self.editor}, {os.pathsep.join(self.workspace_folders)})"


def running(folder: Path | None = None) -> list[RunningCompanion]:
    """Return the running companions, newest first. Files of dead ones are removed."""
    found: list[tuple[float, RunningCompanion]] = []
    for path in (folder or runtime_directory()).glob("companion-*.json"):
        try:
            if path.lstat().st_uid != os.getuid():
                continue  # in a shared /tmp: a file of another user, not to be trusted
            changed = path.stat().st_mtime
            companion = from_json(RunningCompanion, json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, DecodeError):
            continue
        if process_is_alive(companion.pid):
            found.append((changed, companion))
        else:
            remove_leftover(path)
    return [companion for _, companion in sorted(found, key=lambda entry: -entry[0])]


def choose(
    companions: Sequence[RunningCompanion], directory: str, environment: Mapping[str, str], port: int | None = None
) -> RunningCompanion:
    """Return the companion selected by ``port``, by the variable in an editor's terminal, or otherwise by workspace.

    If several companions have the workspace open, prefer the nearest folder, then the newest companion.

    Raises:
        NoCompanionError: no companion matches.
    """
    named = str(port) if port is not None else environment.get("GEMINI_CLI_IDE_SERVER_PORT")
    for companion in companions:
        if str(companion.port) == named:
            return companion
    if port is None:
        here = os.path.realpath(directory)
        scored = [(_nearness(here, companion), companion) for companion in companions]
        best = max(scored, key=lambda entry: entry[0], default=(0, None))
        if best[0] > 0 and best[1] is not None:
            return best[1]
    wanted = f"on port {port}" if port is not None else f"for {os.path.realpath(directory)}"
    others = "; ".join(companion.describe() for companion in companions)
    hint = f"Running: {others}. Name one with --port or --workspace." if others else "None is running."
    raise NoCompanionError(f"no companion {wanted}. {hint} Start one with: isthmus companion")


def _nearness(here: str, companion: RunningCompanion) -> int:
    roots = [os.path.realpath(folder) for folder in companion.workspace_folders]
    return max((len(root) for root in roots if here == root or here.startswith(root.rstrip("/") + "/")), default=0)


def ask(companion: RunningCompanion, command: str, *, wait_seconds: float = 0.0, **arguments: object) -> JsonObject:
    """Send a command and return its result; ``wait_seconds`` is the time in seconds that the command itself may wait.

    Raises:
        RefusedError: the companion refused, or does not answer.
    """
    return ask_within(ANSWER_SECONDS + wait_seconds, companion, command, arguments)


def ask_within(
    seconds: float, companion: RunningCompanion, command: str, arguments: Mapping[str, object]
) -> JsonObject:
    """Send a command and return its result within ``seconds``; arguments that are None are left out.

    Raises:
        RefusedError: the companion refused, or does not answer in time.
    """
    request = {name: value for name, value in arguments.items() if value is not None}
    line = json.dumps(request | {"command": command, "token": companion.token}).encode() + b"\n"
    if len(line) > MAXIMUM_LINE_BYTES:
        raise RefusedError(
            f"{command}: expected at most {MAXIMUM_LINE_BYTES // 2**20} MiB, received {len(line) // 2**20}; edit the "
            "file itself and reject the diff"
        )
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(seconds)
            connection.connect(companion.socket)
            connection.sendall(line)
            with connection.makefile("rb") as answers:
                received = answers.readline(MAXIMUM_LINE_BYTES)
        answer = cast("dict[str, Any]", json.loads(received))
    except (OSError, ValueError) as error:
        reason = suspension(companion.pid) or str(error)
        raise RefusedError(f"the companion on {companion.describe()} does not answer: {reason}") from error
    if answer.get("ok") is not True:
        raise RefusedError(str(answer.get("error", "refused without a reason")))
    return cast(JsonObject, answer["result"])


def suspension(pid: int) -> str | None:
    """Return the advice for a suspended process, which accepts connections but never answers; otherwise None."""
    import psutil  # loaded on an error, not at start

    with suppress(psutil.Error):
        if psutil.Process(pid).status() == psutil.STATUS_STOPPED:
            return f"its process {pid} is stopped (Ctrl-Z?); `fg` in its terminal or `kill -CONT {pid}` continues it"
    return None
