"""A real PgBouncer in transaction mode before a test's PostgreSQL, with fewer sessions than it has clients."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from local_postgres import NOBODY, SHARED
from support.ports import free_port
from support.postgres import Postgres
from support.programs import pgbouncer
from support.waiting import eventually

SESSIONS = 2
"""Number of sessions that all clients of a database share."""


@contextmanager
def pool_before(server: Postgres) -> Generator[int]:
    """Run a pool before a server; yield its port."""
    folder = Path(tempfile.mkdtemp(prefix="isthmus-pgbouncer-", dir=SHARED))
    port = free_port()
    settings = folder / "pgbouncer.ini"
    settings.write_text(
        f"[databases]\n* = host=127.0.0.1 port={server.port} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
        f"listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n"
        f"default_pool_size = {SESSIONS}\nmax_client_conn = 200\nserver_login_retry = 1\nlogfile = {folder}/log\n",
        encoding="utf-8",
    )
    user = ()
    if os.geteuid() == 0:
        user = ("-u", NOBODY)
        shutil.chown(folder, NOBODY)
        folder.chmod(0o755)
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen([pgbouncer(), *user, settings], stdout=output, stderr=output)
    try:
        log = folder / "log"
        eventually(lambda: log.is_file() and "process up" in log.read_text("utf-8", "replace"), what=str(folder))
        yield port
    finally:
        process.terminate()
        process.wait(30)
        shutil.rmtree(folder, ignore_errors=True)
