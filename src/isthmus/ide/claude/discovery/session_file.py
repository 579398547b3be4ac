"""The file in which Claude Code (2.1.197 and later) says whether its terminal waits for an answer.

``CONFIGURATION/sessions/PID.json`` has ``status`` ("busy", "idle", "waiting") and ``statusUpdatedAt``, and is written
within 0.1 seconds of each change. It is not documented. Without it no question is asked elsewhere, because it could not
be taken back when it is answered in the terminal.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

from isthmus.encoding.codec import JsonObject
from isthmus.files.atomic import read_regular
from isthmus.ide.processes import process_is_alive

MAXIMUM_BYTES: Final = 1024 * 1024


def session_file(message: JsonObject, ancestors: Sequence[int]) -> "SessionFile | None":
    """Return the file of the CLI that sent a message of its hook; None if none of these processes has one. Blocks."""
    transcript = message.get("transcript_path")
    if not isinstance(transcript, str):
        return None
    folder = Path(transcript).parent.parent
    if folder.name != "projects":
        return None
    for pid in ancestors:
        file = SessionFile(folder.parent / "sessions" / f"{pid}.json", pid)
        if file.look() is not None:
            return file
    return None


class SessionFile:
    """A :class:`~isthmus.ide.permissions.TerminalWatch` on one process of the CLI."""

    def __init__(self, path: Path, pid: int) -> None:
        self._path = path
        self._pid = pid
        self._last: str | None = None

    def look(self) -> str | None:
        """Return the time since which the terminal asks; empty if it asks nothing, None if the CLI does not say."""
        try:
            value: object = json.loads(read_regular(self._path, MAXIMUM_BYTES))
        except OSError:
            self._last = None
        except ValueError:  # it is being written
            pass
        else:
            self._last = _question(value, str(self._path))
        return self._last if process_is_alive(self._pid) else None


def _question(value: object, path: str) -> str | None:
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    status = fields.get("status")
    if not isinstance(status, str):
        return None
    return f"{path} {fields.get('statusUpdatedAt')}" if status == "waiting" else ""
