"""What a companion leaves behind so that a restart heals its clients: ports, tokens, session ids, for 60 seconds.

Real CLIs come back by themselves when all of it is the same again. One 0600 file per life in our data folder, named
by workspace, editor and process id; its time of change is the last sign of life. A living companion's file is never
touched by another one, so two on the same workspace do not share anything.
"""

import hashlib
import json
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from isthmus.codec import JsonObject, from_json
from isthmus.ide.processes import process_is_alive
from isthmus.places import make_private_directory, write_private

HEAL_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Life:
    """What one run of a companion is known by; ``servers`` is what each protocol's server keeps, by its name."""

    pid: int
    servers: Mapping[str, Any]
    discovery_files: tuple[str, ...] = ()

    def server(self, name: str) -> JsonObject | None:
        """What the server of this name has kept."""
        kept = self.servers.get(name)
        return cast(JsonObject, kept) if isinstance(kept, dict) else None


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
            if life is not None:
                _sweep(life)
        return None if fresh or not candidates else max(candidates, key=lambda candidate: candidate[0])[1]

    def write(self, servers: Mapping[str, JsonObject], discovery_files: Sequence[str]) -> None:
        """Note what a next life needs.

        Raises:
            OSError: the folder cannot be written to.
        """
        make_private_directory(self._folder)
        content = {"pid": os.getpid(), "servers": dict(servers), "discovery_files": list(discovery_files)}
        write_private(self._path, content)

    def touch(self) -> None:
        """A sign of life."""
        with suppress(OSError):
            os.utime(self._path)


def _sweep(life: Life) -> None:
    """Remove the discovery files that a dead companion left; one that somebody has written anew meanwhile stays."""
    kept = [life.server(name) or {} for name in life.servers]
    tokens = [server["token"] for server in kept if isinstance(server.get("token"), str)]
    for path in map(Path, life.discovery_files):
        with suppress(OSError, ValueError, RecursionError):
            value: object = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(value, dict) and cast(JsonObject, value).get("authToken") in tokens:
                path.unlink()


def _read(path: Path) -> tuple[Life | None, float]:
    try:
        seen = path.stat().st_mtime
        return from_json(Life, json.loads(path.read_text(encoding="utf-8"))), seen
    except (OSError, ValueError):
        return None, 0.0
