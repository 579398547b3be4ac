"""Connections to PostgreSQL: how they are made and ended, and errors in words."""

import asyncio
import contextlib
import re
import time
from typing import Any
from urllib.parse import urlsplit

from isthmus.journal.port.base import JournalError
from isthmus.journal.postgres.driver import Connection, postgres_driver
from isthmus.journal.postgres.pooling import PooledConnection
from isthmus.record import record

CONNECT_SECONDS = 5.0
"""Maximum time in seconds for connecting."""
COMMAND_SECONDS = 30.0
"""Maximum time in seconds for one statement."""
LOCK_SECONDS = 0.1
"""Maximum time in seconds for which a statement that writes waits for the locks of others."""
FAST_SECONDS = 0.1
"""Maximum time in seconds of an answer whose time is taken as it is."""
MEASUREMENTS = 5
"""Maximum number of times that a clock is read."""
_SESSION = (
    # A stopped process holds its locks no longer than this, so that others can take its tasks over.
    "SET idle_in_transaction_session_timeout = '2s'",
    "SET lock_timeout = '15s'",
    "SET timezone = 'UTC'",
)
LOCKED = "another server holds this task in a write that does not end; nothing was stored. Try again in some seconds"
"""Text of a :class:`~isthmus.journal.port.base.JournalUnavailable` for a task whose row is locked."""
AWAY = "the journal's database cannot be reached at the moment; nothing was stored. Try again in some seconds"
"""Text of a :class:`~isthmus.journal.port.base.JournalUnavailable` for what was not begun."""
UNKNOWN = (
    "the journal's database was lost while this was stored, so that it may be stored or not. Try again in some seconds"
    " with the same message: it is not done twice"
)
"""The same for what was under way."""
_POOLED = "pool=transaction"
_OF_POOLS = ("26000", "42P05")
"""Errors of prepared statements that another session has, or that this one has already."""
_SCHEMES = ("postgresql", "postgres")


@record
class Database:
    """A PostgreSQL database by its URL, ``postgresql://user:password@host:port/name``.

    With ``?pool=transaction`` it is behind a connection pool in that mode.
    """

    url: str

    @property
    def is_pooled(self) -> bool:
        """Whether it is behind a pool that lends sessions for one transaction at a time."""
        return _POOLED in urlsplit(self.url).query.split("&")

    @property
    def name(self) -> str:
        """The URL without its password, for messages."""
        parts = urlsplit(self.url)
        host = parts.netloc.rpartition("@")[2] or "localhost"
        return f"{parts.scheme}://{host}{parts.path}"

    async def connect(self) -> Connection:
        """Return a new connection. An attempt that is cancelled is let end by itself: the driver cannot break it off.

        Raises:
            JournalError: the extra is not installed, the URL is wrong, or the database refuses.
            OSError, asyncpg.PostgresError, TimeoutError: the database cannot be reached now; see :func:`is_lost`.
        """
        making = asyncio.ensure_future(self._connect())
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            making.add_done_callback(_end_unused)
            raise

    async def _connect(self) -> Connection:
        try:
            driver = postgres_driver()
        except ImportError as error:
            raise JournalError(
                "a journal in PostgreSQL needs the package asyncpg. Install it: pip install 'isthmus[postgres]'"
            ) from error
        if urlsplit(self.url).scheme not in _SCHEMES:
            raise JournalError(
                f"{self.url.partition(':')[0]!r} is not the scheme of a database; expected postgresql://"
            )
        for part in urlsplit(self.url).query.split("&"):
            if part.partition("=")[0] == "pool" and part != _POOLED:
                raise JournalError(
                    f"the journal's URL has ?{part[:80]}; expected ?{_POOLED} for a database behind a pool that lends"
                    " connections for one transaction, such as PgBouncer in that mode, and otherwise nothing"
                )
        if self.is_pooled:
            parts = urlsplit(self.url)
            rest = "&".join(part for part in parts.query.split("&") if part != _POOLED)
            return PooledConnection(await _connect(driver, parts._replace(query=rest).geturl(), statement_cache_size=0))
        found = await _connect(driver, self.url)
        try:
            for statement in _SESSION:
                await found.execute(statement)
        except BaseException:
            found.terminate()
            raise
        return found


async def limit_locks(connection: Connection) -> None:
    """Let the statements of a connection that writes wait no longer than :data:`LOCK_SECONDS` for the locks of others.

    Meanwhile the writes that need no such lock are made.
    """
    limit = f"lock_timeout = {LOCK_SECONDS * 1000:.0f}"
    if isinstance(connection, PooledConnection):
        connection.in_transactions = f"SET LOCAL {limit}"
    else:
        await connection.execute(f"SET {limit}")


def _end_unused(making: "asyncio.Future[Connection]") -> None:
    """End a connection for which nobody waits any more."""
    if not making.cancelled() and making.exception() is None:
        making.result().terminate()


async def _connect(driver: Any, url: str, **options: Any) -> Any:
    """Return a connection; try again where the server ended it at once, as a busy one may do."""
    for pause in (0.05, 0.2, None):
        try:
            return await driver.connect(
                url, timeout=CONNECT_SECONDS, command_timeout=COMMAND_SECONDS,
                server_settings={"application_name": "isthmus"}, **options,
            )  # fmt: skip
        except ConnectionError as error:
            if pause is None or isinstance(error, ConnectionRefusedError):
                raise
            await asyncio.sleep(pause)
    raise AssertionError("the last attempt returns or raises")


async def clock_offset(connection: Connection) -> float:
    """Return by how many seconds the database's clock is ahead of this machine's monotonic one, which nobody sets.

    A slow answer, as of a process that was stopped meanwhile, is not taken for the time of the database if a fast one
    can be had.
    """
    measured: list[tuple[float, float]] = []
    while not measured or (measured[-1][0] > FAST_SECONDS and len(measured) < MEASUREMENTS):
        before = time.monotonic()
        there: float = await connection.fetchval("SELECT extract(epoch FROM clock_timestamp())::float8")
        after = time.monotonic()
        measured.append((after - before, there - (before + after) / 2))
    return min(measured)[1]


def explain_opening(where: str, error: BaseException) -> str:
    """Return why a journal cannot be opened, and what to do. No password is in it."""
    text = without_secrets(str(error) or type(error).__name__)
    state = str(getattr(error, "sqlstate", "") or "")
    match state:
        case "28P01" | "28000":
            return f"{where} refuses the user or password of the journal's URL ({text}). Check both."
        case "3D000":
            return f"{where} does not exist ({text}). Create the database: createdb NAME"
        case "53300":
            return f"{where} has no connection left ({text}). Raise max_connections, or start fewer replicas."
        case "26000" | "42P05":
            return f"{where} is behind a connection pool ({text}). Add ?{_POOLED} to the journal's URL."
        case "42704":
            return f"{where} does not know an option behind ? in the journal's URL ({text}). Correct or remove it."
        case "42501" | "25006":
            return f"{where} may not be written ({text}). Name the primary, and a user that owns the tables."
        case _:
            return f"{where} cannot be opened ({text}). Check that the database runs, and the journal's URL."


def explain_writing(error: BaseException) -> str:
    """Return why a write failed."""
    text = without_secrets(str(error) or type(error).__name__)
    if getattr(error, "sqlstate", None) in ("26000", "42P05"):
        return (
            f"the database is behind a connection pool ({text}). Add ?{_POOLED} to the journal's URL, and start again"
        )
    if getattr(error, "sqlstate", None) == "53100":
        return (
            f"the disk that holds the journal is full ({text}); this step was not stored, everything before it was."
            " Free some space: tasks then continue by themselves"
        )
    return f"the journal could not be written ({text}); this step was not stored"


def explain_reading(error: BaseException) -> str:
    """Return why a query failed."""
    if getattr(error, "sqlstate", None) in _OF_POOLS:
        return explain_writing(error)
    return f"the journal could not be read ({without_secrets(str(error) or type(error).__name__)})"


def without_secrets(text: str) -> str:
    """Return a text without the passwords of its URLs."""
    return re.sub(r"(://[^:/@\s]*):[^@\s]*@", r"\1:...@", text)


async def end(connection: Connection | None) -> None:
    """Close a connection, whatever its state."""
    if connection is None or connection.is_closed():
        return
    try:
        with contextlib.suppress(Exception):
            await connection.close(timeout=1.0)
    finally:
        connection.terminate()


async def check_writable(connection: Connection, where: str) -> None:
    """Check that the database takes writes.

    Raises:
        JournalError: it is a standby, or set to read only.
    """
    if await connection.fetchval("SELECT pg_is_in_recovery() OR current_setting('transaction_read_only')::bool"):
        raise JournalError(
            f"{where} only reads: it is a standby, or its user may not write. A journal needs the primary; name it in"
            " the URL, or add target_session_attrs=read-write with all hosts."
        )
