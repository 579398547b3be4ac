"""State by which clients can reconnect within 60 s of a restart of the companion: ports, tokens and session ids.

Real CLIs reconnect by themselves if all of these are unchanged. Each run has a 0600 file in our data folder, named by
workspace, editor and process id; its modification time is the last sign of life. A companion never touches the file of
another running one, so two companions on the same workspace share nothing.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from isthmus.encoding.codec import JsonObject, from_json
from isthmus.files.locations import make_private_directory, write_private
from isthmus.ide.discovery_file import announces
from isthmus.ide.processes import process_is_alive
from isthmus.record import record

HEAL_SECONDS = 60.0


@record
class RestartState:
    """State of one run of a companion; ``servers`` maps the name of each protocol to the state of its server."""

    pid: int
    servers: Mapping[str, Any]
    discovery_files: tuple[str, ...] = ()

    def server(self, name: str) -> JsonObject | None:
        """Return the state of the server with this name."""
        kept = self.servers.get(name)
        return cast(JsonObject, kept) if isinstance(kept, dict) else None


class RestartStateFile:
    """State file of this run, in a folder with the files of earlier runs."""

    def __init__(self, folder: Path, editor: str, workspace_folders: Sequence[str]) -> None:
        self._folder = folder
        identity = "\0".join([editor, *sorted(workspace_folders)])
        self._key = hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()[:16]
        self._path = folder / f"{self._key}-{os.getpid()}.json"

    def take_over(self, *, fresh: bool = False) -> RestartState | None:
        """Return the state of a run on this workspace and editor that ended within the last 60 s; None if ``fresh``.

        Its file is renamed to ours at once: only one companion takes it over, and a later one still can if we die
        before :meth:`write`. All other files of dead companions are removed, with their discovery files.
        """
        candidates: list[tuple[float, Path, RestartState]] = []
        now = time.time()
        paths = list(self._folder.glob("*-*.json")) if self._folder.is_dir() else []
        for path in paths:
            state, seen = _read(path)
            if state is not None and (process_is_alive(state.pid) or (path != self._path and _is_taken(path))):
                continue
            if state is not None:
                _sweep(state)
            if state is not None and not fresh and path.name.startswith(self._key) and now - seen <= HEAL_SECONDS:
                candidates.append((seen, path, state))
            else:
                with suppress(OSError):
                    path.unlink()
        candidates.sort(key=lambda candidate: candidate[0])
        for _, path, _ in candidates[:-1]:
            with suppress(OSError):
                path.unlink()
        for _, path, state in candidates[-1:]:
            with suppress(OSError):  # another companion has just taken it over
                path.rename(self._path)
                return state
        return None

    def write(self, servers: Mapping[str, JsonObject], discovery_files: Sequence[str]) -> None:
        """Store the state for the next run.

        Raises:
            OSError: the folder cannot be written to.
        """
        make_private_directory(self._folder)
        content = {"pid": os.getpid(), "servers": dict(servers), "discovery_files": list(discovery_files)}
        write_private(self._path, content)

    def touch(self) -> None:
        """Update the file's modification time, as a sign of life."""
        with suppress(OSError):
            os.utime(self._path)


def _is_taken(path: Path) -> bool:
    """Return whether the process in the file's name runs, and so is about to write its own state."""
    number = path.stem.rpartition("-")[2]
    return number.isdecimal() and process_is_alive(int(number))


def _sweep(state: RestartState) -> None:
    """Remove the discovery files of a dead companion, except files that another program has rewritten."""
    kept = [state.server(name) or {} for name in state.servers]
    tokens = [server["token"] for server in kept if isinstance(server.get("token"), str)]
    for path in map(Path, state.discovery_files):
        if any(announces(path, token) for token in tokens):
            with suppress(OSError):
                path.unlink()


def _read(path: Path) -> tuple[RestartState | None, float]:
    try:
        seen = path.stat().st_mtime
        return from_json(RestartState, json.loads(path.read_text(encoding="utf-8"))), seen
    except (OSError, ValueError, RecursionError):
        return None, 0.0
