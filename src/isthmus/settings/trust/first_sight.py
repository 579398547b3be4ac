"""Records the items of a trusted folder when it is first used, if the user stated elsewhere that they trust it.

The user's file of trusted folders (which Gemini CLI changes, too) and an editor only say that a folder is trusted. Its
items as they are then count as agreed to; what is new or changed later is asked about. Blocks.
"""

import logging
from collections.abc import Callable
from pathlib import Path

from isthmus.settings.trust.agreements import Agreement, read_agreement, write_agreement
from isthmus.settings.trust.reading import project_items

_log = logging.getLogger(__name__)


def with_records(trusts: Callable[[Path], bool], home: Path) -> Callable[[Path], bool]:
    """Return a check like `trusts` that makes a record for each folder that it finds trusted and that has none."""

    def trusts_and_records(folder: Path) -> bool:
        if not trusts(folder):
            return False
        record_first_sight(folder, home)
        return True

    return trusts_and_records


def inherit_record(source: Path, target: Path, home: Path) -> None:
    """Give a folder the record of another one, of which it is a worktree, unless it has one. A failure is logged.

    What the worktree's commit brings and the user did not agree to in ``source`` is then new in it. ``source`` is a
    folder that the user trusts.
    """
    record_first_sight(source, home)
    agreement = read_agreement(source)
    if agreement is None or read_agreement(target) is not None:
        return
    _write(target, agreement)


def record_first_sight(folder: Path, home: Path) -> None:
    """Record the items of a folder as agreed to, unless it has a record. A failure is logged."""
    if read_agreement(folder) is not None:
        return
    _write(folder, Agreement(frozenset(item.digest for item in project_items(folder, home))))


def _write(folder: Path, agreement: Agreement) -> None:
    try:
        write_agreement(folder, agreement)
    except OSError as error:
        _log.warning("what the files of %s start cannot be recorded: %s", folder, error.strerror or error)
