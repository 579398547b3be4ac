"""Servers under measurement, each a process of its own: ours on PostgreSQL or SQLite, and a2a-sdk's."""

import contextlib
import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from bench.load import TOKEN, Connection, message, rpc
from bench.processes import ServerProgram, program, python_program, server
from bench.sdk_peers import FOLDER, INSTALLED, UNTRACED
from bench.sdk_peers import version as sdk_version
from isthmus.a2a.protocol.extension import URI
from isthmus.journal.port.lease_owner import MACHINE

if TYPE_CHECKING:
    from support.postgres import Postgres

READY = "A2A server ready at "
TRIVIAL = "Say hello to everybody who reads this."
SCRIPT = """
name: bench
scenarios:
  - prompt: '\\Awords (?P<count>\\d+) (?P<pause>[\\d.]+)'
    replies:
      - steps:
WORDS
  - prompt: ''
    replies:
      - text: '{{prompt}}'
"""
WORDS = 120
"""Maximum number of words of a prompt ``words N SECONDS``."""
PAUSE_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Replica:
    """A server that runs, and how to talk to it."""

    name: str
    program: ServerProgram
    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    metadata: Mapping[str, Any] | None = None

    def cpu(self) -> float:
        """Return the processor seconds used so far, in steps of 0.01 s."""
        return self.program.process_cpu()

    def connect(self) -> Connection:
        """Return a connection."""
        return Connection(self.url, {"Accept": "text/event-stream", **self.headers})

    def request(self, text: str) -> bytes:
        """Return a request for a new task, whose events are streamed."""
        metadata = None if self.metadata is None else dict(self.metadata)
        return rpc("message/stream", {"message": message(text, metadata)})

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self.program.process.kill()
        self.program.process.wait(10)


@contextmanager
def isthmus_serve(environment: Mapping[str, str], name: str, journal: str = "", *arguments: str) -> Generator[Replica]:
    """Run ``isthmus serve`` with a scripted model, as on a machine of its own; in a file without a ``journal``."""
    folder = Path(environment["TMPDIR"], name)
    folder.mkdir(exist_ok=True)
    pause = f"          - delay: {PAUSE_SECONDS}\n"
    words = "".join(f"          - text: 'word{number} '\n{pause}" for number in range(WORDS))
    (folder / "script.yaml").write_text(SCRIPT.replace("WORDS\n", words), "utf-8")
    (folder / "token").write_text(f"{TOKEN}\n", "utf-8")
    (folder / "token").chmod(0o600)
    command = [
        *(program("isthmus"), "serve", "--port", "0", "--no-ide", "-m", f"scripted:{folder / 'script.yaml'}"),
        *("--token-file", str(folder / "token"), "--data-dir", str(folder / "data")),
        *("--user-max-tasks", "100000", "--user-max-running", "10000", "--user-max-open", "10000"),
        *(("--journal", journal) if journal else ()),
        *arguments,
    ]
    with server(command, {**environment, MACHINE: name}) as running:
        if not running.first_line.startswith(READY):
            raise RuntimeError(f"expected {READY!r}, isthmus serve printed {running.first_line!r}")
        yield _ours(environment, "isthmus serve", running, running.first_line.removeprefix(READY))


@contextmanager
def isthmus_engine(environment: Mapping[str, str], journal: str = "") -> Generator[Replica]:
    """Run our server and engine with an agent of negligible cost (:mod:`bench.programs.isthmus_a2a`)."""
    command = python_program("bench.programs.isthmus_a2a", *((journal,) if journal else ()))
    with server(command, environment) as running:
        yield _ours(environment, "isthmus", running, running.first_line)


def _ours(environment: Mapping[str, str], name: str, running: ServerProgram, url: str) -> Replica:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-A2A-Extensions": URI}
    return Replica(name, running, url, headers, {URI: {"workspace_path": environment["PWD"]}})


def sdk_name() -> str:
    """Return the name of the peer with its version, or an empty text if it is not installed."""
    python = FOLDER / "bin" / "python"
    if not INSTALLED.is_file():
        return ""
    imported = subprocess.run([str(python), "-c", "import asyncpg"], capture_output=True, timeout=60)
    return f"a2a-sdk {sdk_version(str(python))} cluster" if imported.returncode == 0 else ""


@contextmanager
def sdk_serve(environment: Mapping[str, str], name: str, journal: str) -> Generator[Replica]:
    """Run a server of a2a-sdk on a database that others use, too (:mod:`bench.programs.sdk_a2a_1`)."""
    command = [str(FOLDER / "bin" / "python"), "-m", "bench.programs.sdk_a2a_1", journal]
    root = environment["PYTHONPATH"].split(":")[0]
    with server(command, {**environment, **UNTRACED, "PYTHONPATH": f"{root}:{root}/src"}) as running:
        yield Replica(name, running, running.first_line)


def disk_of(folder: Path) -> str:
    """Return the kind of the file system that holds a folder."""
    mounted = [(len(part.mountpoint), part.fstype) for part in psutil.disk_partitions(all=True)
               if folder.resolve().is_relative_to(part.mountpoint)]  # fmt: skip
    return max(mounted, default=(0, "unknown file system"))[1]


def database_cpu(database: "Postgres") -> float:
    """Return the processor seconds of PostgreSQL so far, with all its sessions, also those that have ended."""
    root = psutil.Process(database.pid)
    total = 0.0
    for process in (root, *root.children(recursive=True)):
        with contextlib.suppress(psutil.NoSuchProcess):  # a session has just ended; its parent has its time
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total
