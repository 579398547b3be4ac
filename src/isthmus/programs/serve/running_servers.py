"""The A2A servers of this user that run on this machine, each announced by a private file in the runtime folder.

A file holds no token, only the path of the token's file.
"""

import contextlib
import os
import re
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from isthmus.encoding.codec import from_json, to_json
from isthmus.errors import DecodeError
from isthmus.files.locations import make_private_directory, require_own_directory, runtime_directory, write_private
from isthmus.ide.discovery_file import UnusableFileError, named_files, read_object
from isthmus.network.loopback import another_user_at
from isthmus.record import record

FOLDER = "servers"
_NAME = re.compile(r"server-[0-9]+\.json")


@record
class RunningServer:
    """A server. ``folders``: its sessions work in and below them; empty for everywhere. ``url`` is http on loopback."""

    pid: int
    url: str
    token_file: Path
    data_dir: Path
    folders: tuple[str, ...] = ()

    def may_work_in(self, folder: Path) -> bool:
        """Return whether its sessions may work in a folder."""
        return not self.folders or any(folder.is_relative_to(root) for root in self.folders)


@contextlib.contextmanager
def announced(server: RunningServer, environment: Mapping[str, str] = os.environ) -> Generator[None]:
    """Announce a server as long as the context lasts.

    Raises:
        OSError: the file cannot be written.
    """
    folder = runtime_directory(environment) / FOLDER
    make_private_directory(folder)
    require_own_directory(folder)
    _remove_those_of_dead_processes(folder)
    path = folder / f"server-{server.pid}.json"
    write_private(path, to_json(server))
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def running_servers(environment: Mapping[str, str] = os.environ) -> Sequence[RunningServer]:
    """Return the servers whose processes are alive, the newest file first. Reads files and blocks.

    A server that was killed leaves its file. If another user has its port now, it is not returned: a client would send
    that user its token.
    """
    folder = runtime_directory(environment) / FOLDER
    found: list[tuple[float, RunningServer]] = []
    for path in named_files(folder, _NAME):
        try:
            server = from_json(RunningServer, read_object(path), path.name)
            if _is_alive(server.pid) and _is_ours(server.url):
                found.append((path.stat().st_mtime, server))
        except (UnusableFileError, DecodeError, OSError):
            continue  # of another version, or removed meanwhile
    return [server for _, server in sorted(found, key=lambda item: item[0], reverse=True)]


def _remove_those_of_dead_processes(folder: Path) -> None:
    for path in named_files(folder, _NAME):
        if not _is_alive(int(path.stem.removeprefix("server-"))):
            with contextlib.suppress(OSError):
                path.unlink()


def _is_ours(url: str) -> bool:
    try:
        port = urlsplit(url).port
    except ValueError:
        return False
    return port is not None and another_user_at(port) is None


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError, ValueError):
        return False
    except PermissionError:
        pass
    return pid > 0
