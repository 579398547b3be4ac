"""A server's refusal of a call because a user has to visit pages first, such as one to log in. Pure.

Deliberately not here: sending the user there (:mod:`isthmus.mcp_host.tool`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

URL_ELICITATION_REQUIRED = -32042
MAXIMUM_PAGES = 5


@dataclass(frozen=True, slots=True)
class Page:
    """A page that is needed. ``elicitation_id`` is how the server names it when it says that all is done there."""

    url: str
    message: str = ""
    elicitation_id: str = ""


class PagesNeededError(Exception):
    """A call was not begun: these pages are to be visited first."""

    def __init__(self, pages: tuple[Page, ...]) -> None:
        super().__init__(f"{len(pages)} pages are to be visited first")
        self.pages = pages


def pages_needed(error: Exception) -> tuple[Page, ...]:
    """Return the pages that an error of a call names; none when it is another error, or names none that can be read."""
    told: object = getattr(error, "error", None)
    if getattr(told, "code", None) != URL_ELICITATION_REQUIRED:
        return ()
    data: object = getattr(told, "data", None)
    entries: object = cast("Mapping[str, object]", data).get("elicitations") if isinstance(data, Mapping) else None
    found: list[Page] = []
    for entry in cast("list[object]", entries) if isinstance(entries, list) else []:
        if isinstance(entry, Mapping):
            known = cast("Mapping[str, object]", entry)
            texts = {key: value for key, value in known.items() if isinstance(value, str)}
            if texts.get("url"):
                found.append(Page(texts["url"], texts.get("message", ""), texts.get("elicitationId", "")))
    return tuple(found[:MAXIMUM_PAGES])
