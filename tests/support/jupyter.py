"""A real Jupyter server and real kernels for tests, with Jupyter folders of their own, and the user at the notebook.

The browser's requests use the same REST interface and websocket as a real browser's, with a client of the test.
"""

import asyncio
import atexit
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from websockets.asyncio.client import connect

from isthmus.editors.jupyter.finding import running_servers
from isthmus.editors.jupyter.server import ServerAddress
from support.isolation import FOREIGN_NAMES, FOREIGN_PREFIXES
from support.leaks import SHARED_PROCESSES
from support.plain_http import plain_client
from support.programs import python_peer
from support.waiting import eventually_async

TOKEN = "the-token-of-the-test"


def jupyter_environment(folder: Path) -> dict[str, str]:
    """Return the environment of a Jupyter program whose folders are all in `folder`."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(FOREIGN_PREFIXES) and k.upper() not in FOREIGN_NAMES
    }
    own = {
        "HOME": folder / "home",
        "TMPDIR": folder / "tmp",
        "JUPYTER_CONFIG_DIR": folder / "config",
        "JUPYTER_DATA_DIR": folder / "data",
        "JUPYTER_RUNTIME_DIR": folder / "runtime",
        "IPYTHONDIR": folder / "ipython",
    }
    for path in own.values():
        path.mkdir(parents=True, exist_ok=True)
    return (
        kept
        | {name: str(path) for name, path in own.items()}
        | {"SHELL": "/bin/sh", "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
    )


@dataclass(slots=True)
class RunningJupyter:
    """A server; `environment` is what a program needs to find it, as on the user's machine."""

    process: "subprocess.Popen[bytes]"
    folder: Path
    address: ServerAddress
    environment: dict[str, str]
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    @property
    def file(self) -> str:
        """The file by which clients find it."""
        return f"{self.environment['JUPYTER_RUNTIME_DIR']}/jpserver-{self.process.pid}.json"

    async def request(self, method: str, path: str, body: object = None) -> Any:
        """Send a request as the browser does."""
        headers = {"authorization": f"token {TOKEN}"}
        async with plain_client(base_url=self.address.url, headers=headers) as http:
            response = await http.request(method, path, json=body)
            assert response.is_success, (method, path, response.status_code, response.text)
            return response.json() if response.content else None

    async def open(self, path: Path, kernel_id: str | None = None) -> str:
        """Open a notebook (or a console for another file) as in the browser; return the id of its running kernel."""
        name = str(path.relative_to(self.address.root))
        if name in self.sessions:
            await self.run(self.sessions[name]["kernel"]["id"], "pass")
            return self.sessions[name]["kernel"]["id"]
        kernel = {"name": "python3"} if kernel_id is None else {"id": kernel_id}
        kind = "notebook" if path.suffix == ".ipynb" else "file"
        body = {"path": name, "name": path.name, "type": kind, "kernel": kernel}
        self.sessions[name] = await self.request("POST", "api/sessions", body)
        # A kernel counts as active while it starts, too: it is no longer active by itself after this.
        await self.run(self.sessions[name]["kernel"]["id"], "pass")
        return self.sessions[name]["kernel"]["id"]

    async def run(self, kernel_id: str, code: str) -> None:
        """Run a cell, and wait until it has run."""
        async with self.channels(kernel_id) as channels:
            await channels.run(code)

    @asynccontextmanager
    async def channels(self, kernel_id: str) -> AsyncGenerator["Browser"]:
        """Open the websocket of a notebook in the browser."""
        url = f"{self.address.url.replace('http', 'ws', 1)}api/kernels/{kernel_id}/channels?session_id=browser"
        headers = {"authorization": f"token {TOKEN}"}
        async with connect(url, additional_headers=headers, open_timeout=60, proxy=None, max_size=None) as socket:
            yield Browser(socket)

    async def close_others(self, kept: Collection[str]) -> None:
        """Close every notebook but these, and end its kernel."""
        for name in self.sessions.keys() - set(kept):
            session = self.sessions.pop(name)
            with suppress(AssertionError):
                await self.request("DELETE", f"api/sessions/{session['id']}")

    def end(self) -> None:
        """Stop the server and its kernels."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait(20)
        shutil.rmtree(self.folder, ignore_errors=True)


class Browser:
    """A client that speaks to a kernel as the notebook in a browser does."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket

    async def send(self, code: str, message_id: str = "cell") -> None:
        """Start a cell."""
        header = {
            "msg_id": message_id,
            "session": "browser",
            "username": "",
            "msg_type": "execute_request",
            "version": "5.3",
        }
        content: dict[str, Any] = {
            "code": code,
            "silent": False,
            "store_history": True,
            "user_expressions": {},
            "allow_stdin": False,
        }
        message: dict[str, Any] = {
            "header": header,
            "parent_header": {},
            "metadata": {},
            "content": content,
            "channel": "shell",
        }
        await self._socket.send(json.dumps(message | {"buffers": []}))

    async def until(self, kind: str, message_id: str = "cell", **content: object) -> dict[str, Any]:
        """Wait for a message about a cell, and return it."""
        async with asyncio.timeout(60):
            while True:
                frame = await self._socket.recv()
                message: dict[str, Any] = json.loads(frame) if isinstance(frame, str) else {}
                is_it = message.get("msg_type") == kind and message["parent_header"].get("msg_id") == message_id
                if is_it and content.items() <= message["content"].items():
                    return message

    async def run(self, code: str) -> None:
        """Run a cell to its end."""
        await self.send(code)
        await self.until("status", execution_state="idle")


@asynccontextmanager
async def running_jupyter(root: Path, *arguments: str, **variables: str) -> AsyncGenerator[RunningJupyter]:
    """Start a server for the files in `root`."""
    async with _ended(await _start(root, *arguments, **variables)) as server:
        yield server


@asynccontextmanager
async def running_lab(root: Path) -> AsyncGenerator[RunningJupyter]:
    """Start JupyterLab with our extension, from an environment of its own, for the files in `root`."""
    program = [str(python_peer("frameworks/jupyterlab")), "-m", "jupyterlab"]
    extensions = "{'isthmus.editors.jupyter_extension': True}"
    arguments = [f"--ServerApp.jpserver_extensions={extensions}", "--Isthmus.companion=False"]
    arguments += ["--LabApp.expose_app_in_browser=True"]
    arguments += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    source = str(Path(__file__).parents[2] / "src")
    async with _ended(await _start(root, *arguments, program=program, PYTHONPATH=source)) as server:
        yield server


@asynccontextmanager
async def _ended(server: RunningJupyter) -> AsyncGenerator[RunningJupyter]:
    try:
        yield server
    finally:
        server.end()


_shared: list[RunningJupyter] = []


@asynccontextmanager
async def shared_jupyter(folder: Path) -> AsyncGenerator[RunningJupyter]:
    """Start a server for many tests, as a start takes seconds: it serves the folder in which pytest keeps those of all
    tests. Notebooks that a test opened are closed afterwards; a server that a test ended is started again."""
    if _shared and _shared[0].process.poll() is not None:
        _shared.pop().end()
    if not _shared:
        _shared.append(await _start(folder.parent.parent))
        SHARED_PROCESSES.add(_shared[0].process.pid)
        atexit.register(_shared[0].end)
    before = tuple(_shared[0].sessions)
    yield _shared[0]
    if _shared[0].process.poll() is None:
        await _shared[0].close_others(before)


async def _start(root: Path, *arguments: str, program: Sequence[str] = (), **variables: str) -> RunningJupyter:
    folder = Path(tempfile.mkdtemp(prefix="jupyter-", dir="/tmp"))
    environment = jupyter_environment(folder) | variables
    command = [*(program or (sys.executable, "-m", "jupyter_server"))]
    command += ["--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0"]
    command += [f"--IdentityProvider.token={TOKEN}", f"--ServerApp.root_dir={root}"]
    # For a run that is killed before it could end its server.
    command += ["--ServerApp.shutdown_no_activity_timeout=1800", *arguments]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, cwd=root, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=log,
            start_new_session=True,
        )  # fmt: skip
    server = RunningJupyter(process, folder, ServerAddress("", TOKEN, str(root)), environment)
    try:
        found = await eventually_async(lambda: running_servers(environment), 90, what="the server's file")
        server.address = found[0]
        await eventually_async(lambda: _answers(server), 90, what="the server answers")
    except BaseException:
        print((folder / "log").read_text(encoding="utf-8", errors="replace"), file=sys.stderr)
        server.end()
        raise
    return server


async def _answers(server: RunningJupyter) -> bool:
    with suppress(httpx2.TransportError):
        await server.request("GET", "api/status")
        return True
    return False
