"""Pieces of styled text, and the marks of Markdown within one line: bold, code, links. Pure."""

import re
from typing import NamedTuple
from urllib.parse import urlsplit

SAFE_SCHEMES = frozenset({"http", "https", "file"})
"""Schemes of addresses that may become links: others start programs when they are clicked."""
LONGEST_LINK = 2000
"""Maximum number of characters of a link with its text."""


class Piece(NamedTuple):
    """Text to print unchanged.

    ``style`` is "", "heading", "strong", "code", "fence", "link", or one of the kinds of words in code, such as
    "keyword". ``link`` is the address that the text leads to.
    """

    text: str
    style: str = ""
    link: str = ""


_MARKED = re.compile(
    r"\*\*(?P<strong>[^*\s](?:[^*]*[^*\s])?)\*\*|`(?P<code>[^`]+)`|\[(?P<text>[^\[\]]+)\]\((?P<url>[^()\s]+)\)"
)


def cell_pieces(text: str, *, is_styled: bool) -> list[Piece]:
    """Return a line of Markdown without its marks; as it is if nothing shows styles."""
    if not is_styled:
        return [Piece(text)]
    pieces: list[Piece] = []
    at = 0
    for found in _MARKED.finditer(text):
        if found.start() > at:
            pieces.append(Piece(text[at : found.start()]))
        if found["strong"] is not None:
            pieces.append(Piece(found["strong"], "strong"))
        elif found["code"] is not None:
            pieces.append(Piece(found["code"], "code"))
        else:
            pieces += link_pieces(found["text"], found["url"])
        at = found.end()
    if at < len(text):
        pieces.append(Piece(text[at:]))
    return pieces


def link_pieces(text: str, url: str) -> list[Piece]:
    """Return the text of a link and its address, which is always shown: the text may name another one."""
    text, link = text.strip("`*"), safe_link(url)
    if text == url:
        return [Piece(text, "link", link)]
    return [Piece(text, "link", link), Piece(" ("), Piece(url, "link", link), Piece(")")]


def safe_link(url: str) -> str:
    """Return the address if a terminal may open it, else an empty text."""
    if not url.isprintable() or not url.isascii() or any(character in url for character in ' "<>\\^`{|}'):
        return ""
    try:
        return url if urlsplit(url).scheme.lower() in SAFE_SCHEMES else ""
    except ValueError:
        return ""
