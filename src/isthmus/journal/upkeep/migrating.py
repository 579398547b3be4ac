"""Upgrades of a journal to this program's version, by itself: opening one does the same."""

from isthmus.journal.opening import open_journal, snapshot_of
from isthmus.journal.place import JournalPlace
from isthmus.journal.port.base import JournalError


async def versions_of(place: JournalPlace) -> tuple[int, int]:
    """Return the version of a journal, and the one to which this program would upgrade it.

    Raises:
        JournalError: there is no journal, it cannot be read, or it is newer.
    """
    async with snapshot_of(place) as snapshot:
        return snapshot.version, snapshot.newest


async def migrate(place: JournalPlace) -> tuple[int, int]:
    """Upgrade a journal to this program's version; return the version before and after.

    Raises:
        JournalError: there is no journal, it is newer, or it cannot be upgraded; it is unchanged then.
    """
    before, newest = await versions_of(place)
    if before < newest:
        journal = await open_journal(place.file, place.url)
        await journal.aclose()
        after, _ = await versions_of(place)
        if after != newest:
            raise JournalError(f"{place.name} has version {after} after its upgrade; expected {newest}. Try again.")
    return before, newest
