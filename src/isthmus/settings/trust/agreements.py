"""Record of the items of a project's files that the user agreed to, for each folder. Blocks.

A folder's record is a JSON file in the data folder, readable by the user alone: the digests of what the user saw and
agreed to, and of what they refused. It does not say whether the folder is trusted; that is in Gemini CLI's file of
trusted folders. A record that cannot be read covers nothing, so everything is asked again.
"""

import hashlib
import json
import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from isthmus.encoding.json_shapes import as_list, as_object
from isthmus.files.atomic import read_regular, write_atomic
from isthmus.files.locations import data_directory, make_private_directory
from isthmus.record import record
from isthmus.settings.trust.forms import form_of
from isthmus.settings.trust.items import ProjectItem

MAXIMUM_BYTES = 1024 * 1024
"""Maximum size of a record in bytes."""
FOLDER = "agreements"
"""Name of the folder of the records in the data folder."""

_log = logging.getLogger(__name__)
_unwritten: dict[Path, "Agreement"] = {}
"""Records that could not be written: they hold until the process ends."""


@record
class Agreement:
    """The digests of the items of a folder that the user agreed to, and of those that they refused."""

    agreed: frozenset[str] = frozenset()
    refused: frozenset[str] = frozenset()

    def covers(self, item: ProjectItem) -> bool:
        """Return whether the user agreed to an item as it is."""
        return item.digest in self.agreed

    def is_decided(self, item: ProjectItem) -> bool:
        """Return whether the user agreed to an item as it is, or refused it."""
        return item.digest in self.agreed or item.digest in self.refused


def agreement_path(project: Path) -> Path:
    """Return the path of the record of a folder."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(project))).hexdigest()
    return data_directory() / FOLDER / f"{name}.json"


def read_agreement(project: Path) -> Agreement | None:
    """Return the record of a folder; None if nothing was recorded yet. One that cannot be read covers nothing."""
    path = agreement_path(project)
    try:
        content = as_object(json.loads(read_regular(path, MAXIMUM_BYTES)))
    except (FileNotFoundError, NotADirectoryError):
        return _unwritten.get(path)
    except (OSError, ValueError, RecursionError) as error:
        _log.warning("%s cannot be used, so the programs of %s are asked about again: %s", path, project, error)
        return Agreement()
    if content.get("folder") != os.path.realpath(project):
        return Agreement()
    return Agreement(_digests(content.get("agreed")), _digests(content.get("refused")))


def _digests(value: object) -> frozenset[str]:
    return frozenset(item for item in as_list(value) if isinstance(item, str))


def new_items(items: Iterable[ProjectItem], project: Path) -> tuple[ProjectItem, ...]:
    """Return the items that are new or changed since the user agreed; none while there is no record."""
    found = tuple(items)
    if not found or (agreement := read_agreement(project)) is None:
        return ()
    return tuple(item for item in found if not agreement.covers(item))


def agreed_values(
    values: Mapping[str, Any], file: str, project: Path, home: Path
) -> tuple[Mapping[str, Any], tuple[ProjectItem, ...]]:
    """Return the values of a project's settings file without the items that the user did not agree to, and these items.

    Nothing is left out while there is no record: whoever trusts a folder has one made
    (:func:`isthmus.settings.trust.first_sight.with_records`).
    """
    form = form_of(file, project, home)
    left_out = new_items(form.items(values), project)
    if not left_out:
        return values, ()
    digests = {item.digest for item in left_out}
    return form.filtered(values, lambda item: item.digest not in digests), left_out


def write_agreement(project: Path, agreement: Agreement) -> None:
    """Replace the record of a folder. One that cannot be written holds in this process alone.

    Raises:
        OSError: it cannot be written; the file is unchanged.
    """
    path = agreement_path(project)
    content = {
        "folder": os.path.realpath(project),
        "agreed": sorted(agreement.agreed),
        "refused": sorted(agreement.refused),
    }
    try:
        make_private_directory(path.parent)
        write_atomic(path, (json.dumps(content, indent=1) + "\n").encode(), mode=0o600)
    except OSError:
        _unwritten[path] = agreement
        raise
    _unwritten.pop(path, None)


def decided(before: Agreement | None, present: Iterable[ProjectItem], decisions: Mapping[str, bool]) -> Agreement:
    """Return the record after a user's decisions about some items: their digests, and whether the user agreed.

    What is no longer in the folder's files is forgotten, so that it is asked about if it comes back.
    """
    known = before or Agreement()
    digests = {item.digest for item in present}
    agreed = {digest for digest, is_agreed in decisions.items() if is_agreed}
    refused = decisions.keys() - agreed
    return Agreement(
        frozenset(((known.agreed & digests) - refused) | agreed),
        frozenset(((known.refused & digests) - agreed) | refused),
    )
