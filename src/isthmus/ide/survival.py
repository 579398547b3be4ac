"""What a companion leaves behind so that a restart heals its clients: port, token and session ids, for 60 seconds.

Real CLIs come back by themselves when all three are the same again. One 0600 file per life in our data folder, named
by workspace, editor and process id; its time of change is the last sign of life. A living companion's file is never
touched by another one, so two on the same workspace do not share anything.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isthmus.codec import from_json
from isthmus.errors import DecodeError
from isthmus.ide.mcp_peer import ClientInfo
from isthmus.ide.processes import process_is_alive
from isthmus.places import make_private_directory, write_private

HEAL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Life:
    """What one run of a companion is known by."""

    pid: int
    port: int
    token: str
    discovery_file: str
    sessions: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def clients(self) -> dict[str, ClientInfo]:
        """The sessions by id; unreadable ones are left out."""
        found: dict[str, ClientInfo] = {}
        for session_id, value in self.sessions.items():
            with suppress(DecodeError):
                found[session_id] = from_json(ClientInfo, value)
        return found


class LifeFile:
    """The file of this run, and those of former runs in the same folder."""

    def __init__(self, folder: Path, editor: str, workspace_folders: Sequence[str]) -> None:
        self._folder = folder
        identity = "\0".join([editor, *sorted(workspace_folders)])
        self._key = hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()[:16]
        self._path = folder / f"{self._key}-{os.getpid()}.json"

    def take_over(self, *, fresh: bool = False) -> Life | None:
        """The former life of the same workspace and editor, if it ended within the last 60 s, and not with ``fresh``.

        Every file of a dead companion that is found is removed, with the discovery file it left.
        """
        candidates: list[tuple[float, Life]] = []
        now = time.time()
        paths = list(self._folder.glob("*-*.json")) if self._folder.is_dir() else []
        for path in paths:
            life, seen = _read(path)
            if life is not None and process_is_alive(life.pid):
                continue
            if life is not None and path.name.startswith(self._key) and now - seen <= HEAL_SECONDS:
                candidates.append((seen, life))
            with suppress(OSError):
                path.unlink()
            if life is not None and Path(life.discovery_file).name.startswith("gemini-ide-server-"):
                with suppress(OSError):
                    Path(life.discovery_file).unlink()
        return None if fresh or not candidates else max(candidates, key=lambda candidate: candidate[0])[1]

    def write(self, port: int, token: str, discovery_file: str, sessions: Mapping[str, ClientInfo]) -> None:
        """Note what a next life needs.

        Raises:
            OSError: the folder cannot be written to.
        """
        make_private_directory(self._folder)
        clients = {
            key: {"name": client.name, "version": client.version, "protocol_version": client.protocol_version}
            for key, client in sessions.items()
        }
        content = {
            "pid": os.getpid(),
            "port": port,
            "token": token,
            "discovery_file": discovery_file,
            "sessions": clients,
        }
        write_private(self._path, content)

    def touch(self) -> None:
        """A sign of life."""
        with suppress(OSError):
            os.utime(self._path)


def _read(path: Path) -> tuple[Life | None, float]:
    try:
        seen = path.stat().st_mtime
        return from_json(Life, json.loads(path.read_text(encoding="utf-8"))), seen
    except (OSError, ValueError):
        return None, 0.0
