"""The user's approvals for all future sessions: a JSON list in the data folder, readable by the user alone.

They are not in ``tools.allowed`` of settings.json, because an entry there is only a name and would also approve a
project's server of the same name. A broken file approves nothing and is not overwritten.
"""

import asyncio
import json
import logging
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from typing_extensions import override

from isthmus.agent.approval.kept_approvals import ApprovalsError, KeptApproval, KeptApprovals
from isthmus.encoding.jsonc import JsoncError, parse
from isthmus.errors import IsthmusError
from isthmus.settings.edit_file import change_file

MAXIMUM_APPROVALS = 1_000
_KEYS = ("server", "origin", "tool", "version")

_log = logging.getLogger(__name__)


class ApprovalsFile(KeptApprovals):
    """:class:`KeptApprovals` in a JSON file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @override
    async def approvals(self) -> frozenset[KeptApproval]:
        try:
            text = await asyncio.to_thread(self._path.read_text, "utf-8")
            return frozenset(_decoded(text))
        except FileNotFoundError:
            return frozenset()
        except (OSError, UnicodeDecodeError, JsoncError) as error:
            _log.warning("%s cannot be used, so none of its approvals count: %s", self._path, error)
            return frozenset()

    @override
    async def keep(self, approval: KeptApproval) -> None:
        def add(text: str) -> str:
            kept = _decoded(text)
            if approval in kept:
                return text
            if len(kept) >= MAXIMUM_APPROVALS:
                raise ApprovalsError(f"{self._path} has {MAXIMUM_APPROVALS} entries; remove some of them first")
            return json.dumps([asdict(item) for item in (*kept, approval)], indent=2, ensure_ascii=False) + "\n"

        try:
            await asyncio.to_thread(change_file, self._path, add)
        except ApprovalsError:
            raise
        except IsthmusError as error:
            raise ApprovalsError(str(error)) from error


def _decoded(text: str) -> list[KeptApproval]:
    """Return the complete entries; raises JsoncError if the text is not a JSON list."""
    value: object = parse(text) if text.strip() else []
    if not isinstance(value, list):
        raise JsoncError("expected a list [...]", 1, 1)
    found: list[KeptApproval] = []
    for item in cast("list[Any]", value):
        if isinstance(item, dict):
            texts = [cast("dict[str, object]", item).get(key) for key in _KEYS]
            if all(isinstance(text, str) for text in texts):
                found.append(KeptApproval(*cast("list[str]", texts)))
    return found
