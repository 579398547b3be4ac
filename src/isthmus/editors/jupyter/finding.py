"""Search for a Jupyter server or kernel: by its address, or by the files in Jupyter's runtime folder, not by network.

A server writes ``jpserver-PID.json`` there, and each kernel has its ``kernel-ID.json``.
"""

import ipaddress
import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias, cast
from urllib.parse import parse_qs, urlsplit, urlunsplit

from isthmus.editors.jupyter.server import ServerAddress
from isthmus.encoding.codec import JsonObject
from isthmus.files.atomic import read_regular
from isthmus.ide.editor import EditorError
from isthmus.ide.processes import process_is_alive
from isthmus.network.loopback import is_loopback
from isthmus.record import record

MAXIMUM_FILE_BYTES: Final = 1024 * 1024


@record
class KernelAddress:
    """Absolute path of a kernel's connection file."""

    connection_file: str


Address: TypeAlias = ServerAddress | KernelAddress


def runtime_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Return Jupyter's runtime folder, as jupyter_core's ``jupyter_runtime_dir()`` does, but without making it."""
    if folder := environment.get("JUPYTER_RUNTIME_DIR"):
        return Path(folder)
    if folder := environment.get("JUPYTER_DATA_DIR"):
        return Path(folder) / "runtime"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Jupyter" / "runtime"
    base = environment.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(base) / "jupyter" / "runtime"


def find(address: str | None, folders: Sequence[str], environment: Mapping[str, str] = os.environ) -> Address:
    """Find the server or kernel to attach to.

    ``address`` is the URL of a server with its token, the path of a ``jpserver-*.json`` or ``kernel-*.json`` file, or
    the name of one in Jupyter's runtime folder; None: the server that serves the workspace. ``folders`` are the
    workspace's; without any the current folder stands for it.

    Raises:
        EditorError: no server or kernel was found; the text says which were, and what to do.
    """
    if address is None:
        return _serving(folders or (str(Path.cwd()),), environment)
    if address.startswith(("http://", "https://")):
        return _at_url(address, folders, environment)
    path = Path(address)
    if path.name == address and not path.exists():
        path = runtime_folder(environment) / address
    fields = _read(path)
    if fields is None:
        raise EditorError(
            f"--address {address}: expected the URL of a Jupyter server (http://127.0.0.1:8888/?token=...), or an "
            "existing jpserver-*.json or kernel-*.json file of Jupyter's runtime folder "
            f"({runtime_folder(environment)})"
        )
    if "shell_port" in fields:
        return KernelAddress(str(path.absolute()))
    server = _server(fields)
    if server is None:
        raise EditorError(
            f"{path}: expected the file of a Jupyter server or kernel, with url or shell_port; it has neither"
        )
    return server


def running_servers(environment: Mapping[str, str] = os.environ) -> tuple[ServerAddress, ...]:
    """Return the servers whose processes run, by their files, the newest first."""
    try:
        files = [(path.stat().st_mtime, path) for path in runtime_folder(environment).glob("jpserver-*.json")]
    except OSError:
        return ()
    servers = (_server(fields) for _, path in sorted(files, reverse=True) if (fields := _read(path)) is not None)
    return tuple(server for server in servers if server is not None and process_is_alive(server.pid or 0))


def _serving(folders: Sequence[str], environment: Mapping[str, str]) -> ServerAddress:
    servers = running_servers(environment)
    wanted = Path(os.path.realpath(folders[0]))
    around = [server for server in servers if wanted.is_relative_to(os.path.realpath(server.root))]
    if around:
        return max(around, key=lambda server: len(os.path.realpath(server.root)))
    inside = [server for server in servers if Path(os.path.realpath(server.root)).is_relative_to(wanted)]
    if len(inside) == 1:
        return inside[0]
    found = ", ".join(f"{server.url} ({server.root})" for server in servers) or "none"
    raise EditorError(
        f"no running Jupyter server has the files of {wanted}; running servers: {found}. Start one there with "
        "`jupyter lab`, or name one with --address http://127.0.0.1:8888/?token=..."
    )


def _at_url(address: str, folders: Sequence[str], environment: Mapping[str, str]) -> ServerAddress:
    parts = urlsplit(address)
    path = parts.path
    for page in ("/lab", "/tree", "/notebooks", "/edit"):  # as copied from the browser
        if path == page or f"{page}/" in path or path.endswith(page):
            path = path[: path.index(page)]
    url = urlunsplit((parts.scheme, parts.netloc, path.rstrip("/") + "/", "", ""))
    token = next(iter(parse_qs(parts.query).get("token", [])), environment.get("JUPYTER_TOKEN", ""))
    known = next((server for server in running_servers(environment) if _place(server.url) == _place(url)), None)
    if known is not None:
        return ServerAddress(url, token or known.token, known.root, known.pid)
    if not folders:
        raise EditorError(
            f"which folder does {url} serve? No server that runs on this machine has announced itself there; name the "
            "folder with --workspace"
        )
    return ServerAddress(url, token, os.path.realpath(folders[0]))


def _place(url: str) -> tuple[str, int | None, str]:
    """Return host, port and path of a URL; the host is empty for each name and address of this machine."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    return "" if _is_this_machine(host) else host, parts.port, parts.path


def _is_this_machine(host: str) -> bool:
    if is_loopback(host) or host == socket.gethostname().lower():
        return True
    with suppress(ValueError, OSError):
        address = ipaddress.ip_address(host)
        with socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6) as probe:
            probe.bind((host, 0))  # only addresses of this machine can be listened on
            return True
    return False


def _server(fields: JsonObject) -> ServerAddress | None:
    url, root, token, pid = fields.get("url"), fields.get("root_dir"), fields.get("token"), fields.get("pid")
    if not isinstance(url, str) or not url.startswith(("http://", "https://")) or not isinstance(root, str):
        return None  # http+unix:// too: such a server listens on a socket in the file system
    # A server that listens on all interfaces names its machine, and that name may lead nowhere.
    if fields.get("hostname") in ("0.0.0.0", "", "::") and isinstance(fields.get("port"), int):  # noqa: S104
        scheme = "https" if fields.get("secure") else "http"
        url = f"{scheme}://127.0.0.1:{fields['port']}{fields.get('base_url', '/')}"
    return ServerAddress(
        url.rstrip("/") + "/", token if isinstance(token, str) else "", root, pid if isinstance(pid, int) else None
    )


def _read(path: Path) -> dict[str, Any] | None:
    try:
        value: object = json.loads(read_regular(path, MAXIMUM_FILE_BYTES))
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None
