"""A server's refusal of a call because the user has to visit pages first, for example to log in. Pure.

Not here: opening the pages, see :mod:`isthmus.mcp_host.tool`.
"""

from collections.abc import Mapping
from typing import cast

from isthmus.record import record

URL_ELICITATION_REQUIRED = -32042
MAXIMUM_PAGES = 5


@record
class Page:
    """A page to visit. ``elicitation_id`` identifies it in the server's report that the user is done there."""

    url: str
    message: str = ""
    elicitation_id: str = ""


class PagesNeededError(Exception):
    """A call was not started: the user must visit pages first."""

    def __init__(self, pages: tuple[Page, ...]) -> None:
        super().__init__(f"{len(pages)} pages are to be visited first")
        self.pages = pages


def pages_needed(error: Exception) -> tuple[Page, ...]:
    """Return the pages in an error of a call; empty if it is another error or its pages cannot be read."""
    details: object = getattr(error, "error", None)
    if getattr(details, "code", None) != URL_ELICITATION_REQUIRED:
        return ()
    data: object = getattr(details, "data", None)
    entries: object = cast("Mapping[str, object]", data).get("elicitations") if isinstance(data, Mapping) else None
    found: list[Page] = []
    for entry in cast("list[object]", entries) if isinstance(entries, list) else []:
        if isinstance(entry, Mapping):
            known = cast("Mapping[str, object]", entry)
            texts = {key: value for key, value in known.items() if isinstance(value, str)}
            if texts.get("url"):
                found.append(Page(texts["url"], texts.get("message", ""), texts.get("elicitationId", "")))
    return tuple(found[:MAXIMUM_PAGES])
