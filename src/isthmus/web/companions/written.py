"""Requests about what agents wrote without a review (docs/reference/workbench.md).

The shape of what a browser sends is checked here, and what it may do by the companion
(:mod:`isthmus.ide.control.written_commands`).
"""

from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import parse_qs

from isthmus.a2a.server.http.http_request import HttpRequest

MAXIMUM_WRITTEN_BODY: Final = 1024 * 1024
"""Maximum size of a decision in bytes; it has a path and the ids of hunks."""
_DECISIONS: Final = ("keep", "undo", "take_back")
_TEXTS: Final = ("path", "state")
_NUMBERS: Final = ("turn", "undo")


def wanted_of(request: HttpRequest) -> tuple[str, dict[str, object]] | str:
    """Return the command of a GET and its arguments, or what was expected instead.

    Without ``path`` in the query of the URL it is the list, otherwise a file, of one ``turn`` if that is there.
    """
    query = parse_qs(request.scope.get("query_string", b"").decode("ascii", "replace"))
    path, turn = query.get("path", [""])[0], query.get("turn", [""])[0]
    if not path:
        return "page_written", {}
    if turn and not (turn.isascii() and turn.isdecimal() and len(turn) < 10):
        return "expected turn as a number"
    return "page_written_file", {"path": path, **({"turn": int(turn)} if turn else {})}


def written_command(given: Mapping[str, object]) -> tuple[str, dict[str, object]] | str:
    """Return the command of a decision and its arguments, or what was expected instead."""
    action, hunks = given.get("do"), given.get("hunks", [])
    if action not in _DECISIONS:
        return f"expected do as one of {', '.join(_DECISIONS)}"
    if any(not isinstance(given.get(name, ""), str) for name in _TEXTS):
        return "expected path and state, if given, as text"
    if any(not _is_number(given.get(name, 1)) for name in _NUMBERS):
        return "expected turn and undo, if given, as whole numbers from 1 on"
    if not isinstance(hunks, list) or not all(isinstance(one, str) for one in cast("list[object]", hunks)):
        return "expected hunks, if given, as a list of ids"
    names = (*_TEXTS, *_NUMBERS, "hunks")
    return f"page_written_{action}", {name: given[name] for name in names if name in given}


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
