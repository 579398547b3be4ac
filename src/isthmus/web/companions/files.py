"""Requests for the files of a companion whose editor is the page (docs/reference/workbench.md).

The shape of what a browser sends is checked here, and what it may see and do by the companion
(:mod:`isthmus.ide.control.page_files`).
"""

from collections.abc import Callable, Mapping
from typing import Final, cast
from urllib.parse import parse_qs

from isthmus.a2a.server.http.http_request import HttpRequest

MAXIMUM_FILES_BODY: Final = 40_000
"""Maximum size of a request about a file in bytes; it has a path."""
_MAXIMUM_WORDS: Final = 200


def searched_words(request: HttpRequest) -> dict[str, object]:
    """Return the arguments of a search, from the query of its URL."""
    query = parse_qs(request.scope.get("query_string", b"").decode("ascii", "replace"))
    return {"words": query.get("words", [""])[0][:_MAXIMUM_WORDS]}


def file_command(given: Mapping[str, object]) -> tuple[str, dict[str, object]] | str:
    """Return the command of a request's body and its arguments, or what was expected instead."""
    action, path = given.get("do"), given.get("path")
    parse = _ACTIONS.get(action) if isinstance(action, str) else None
    if parse is None or not isinstance(path, str):
        return f"expected do as one of {', '.join(_ACTIONS)}, and path as text"
    arguments = parse(given)
    return arguments if isinstance(arguments, str) else (f"page_{action}", {"path": path, **arguments})


def _nothing(given: Mapping[str, object]) -> dict[str, object] | str:
    return {}


def _focus(given: Mapping[str, object]) -> dict[str, object] | str:
    focus = given.get("focus", True)
    return {"focus": focus} if isinstance(focus, bool) else "expected focus as true, false or nothing"


def _selection(given: Mapping[str, object]) -> dict[str, object] | str:
    state, selection = given.get("state"), given.get("selection")
    if not isinstance(state, str) or not _are_numbers(selection, 4):
        return "expected state as it was received, and selection as four whole numbers from 0 on"
    return {"state": state, "selection": selection}


def _lines(given: Mapping[str, object]) -> dict[str, object] | str:
    lines = given.get("lines")
    if lines is not None and not _are_numbers(lines, 2):
        return "expected lines as two whole numbers from 0 on, or nothing"
    return {"lines": lines}


_ACTIONS: Final[Mapping[str, Callable[[Mapping[str, object]], dict[str, object] | str]]] = {
    "view": _focus,
    "select": _selection,
    "leave": _nothing,
    "mention": _lines,
}


def _are_numbers(value: object, count: int) -> bool:
    if not isinstance(value, list):
        return False
    numbers = cast("list[object]", value)
    return len(numbers) == count and all(
        isinstance(number, int) and not isinstance(number, bool) and 0 <= number < 2**31 for number in numbers
    )
