"""The place of a journal, as operators name it: a file, or a PostgreSQL database by its URL."""

from pathlib import Path
from urllib.parse import urlsplit

from isthmus.journal.port.base import JournalError
from isthmus.record import record


@record
class JournalPlace:
    """A journal in the ``file``, or in the database ``url`` unless that is empty."""

    file: Path
    url: str = ""

    @property
    def name(self) -> str:
        """The place for messages; no password is in it."""
        if not self.url:
            return str(self.file)
        from isthmus.journal.postgres.connection import Database

        return Database(self.url).name


def place_of(text: str) -> JournalPlace:
    """Return the place that a text names: what has ``://`` is a URL, all else the path of a file.

    Raises:
        JournalError: it is a folder, empty, or not a URL of PostgreSQL.
    """
    if "://" in text:
        check_url(text)
        return JournalPlace(Path(), text)
    if not text or "\0" in text:
        raise JournalError("expected the path of a journal's file, or a postgresql:// URL; none was given")
    path = Path(text).expanduser().absolute()
    if path.is_dir():
        raise JournalError(f"{path} is a folder; name the journal's file, e.g. {path / 'journal.sqlite'}")
    return JournalPlace(path)


def check_url(url: str) -> None:
    """Check that a text can be the URL of a database.

    Raises:
        JournalError: it cannot; no password is in the text.
    """
    try:
        scheme = urlsplit(url).scheme
        _ = urlsplit(url).port
    except ValueError as error:
        raise JournalError(
            "the journal's URL cannot be read; expected postgresql://USER@HOST:PORT/NAME, with % escapes in names"
        ) from error
    if scheme not in ("postgresql", "postgres"):
        raise JournalError(f"{url.partition(':')[0]!r} is not the scheme of a database; expected postgresql://")
