"""The readable text of an HTML page, as simple Markdown: headings, lists, links, code. Pure.

Deliberately not a parser of HTML: no styles, no scripts, no tables beyond their cells. Takes time in proportion to the
page, whatever is in it: a comment, tag or script without an end hides the rest, as in browsers.
"""

import html
import re
from collections.abc import Iterator
from urllib.parse import urljoin

from isthmus.record import record

MAXIMUM_LINK_CHARACTERS = 500
"""Maximum length of a link's address; of a link with a longer one only the text stays."""
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]{0,30})")
_HREF = re.compile(r"""\shref=(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))""", re.IGNORECASE)
_HIDDEN = frozenset({"script", "style", "noscript", "template", "svg", "iframe", "object", "math", "head"})
"""Elements whose content is not shown."""
_RAW = frozenset({"script", "style", "noscript", "iframe", "textarea", "title"})
"""Elements that contain no tags."""
_BLOCKS = frozenset(
    "address article aside blockquote body dd details div dl dt figure figcaption footer form h1 h2 h3 h4 h5 h6"  # noqa: SIM905
    " header hr li main nav ol p pre section summary table tr ul".split()
)
_SPACE = re.compile(r"[ \t\r\n\f]+")


@record
class _Element:
    """The start or the end of an element."""

    name: str
    is_end: bool
    attributes: str = ""


def html_text(page: str, address: str = "") -> str:
    """Return the text of a page; links are relative to its ``address``."""
    writer = _Writer(address)
    for token in _tokens(page):
        if isinstance(token, str):
            writer.text(token)
        else:
            writer.element(token)
    return writer.result()


def page_title(page: str) -> str:
    """Return the title of a page in one line; empty without one."""
    found = re.search(r"<title[^>]{0,200}>([^<]{0,500})", page[:100_000], re.IGNORECASE)
    return _SPACE.sub(" ", html.unescape(found[1])).strip() if found else ""


def _tokens(page: str) -> Iterator[str | _Element]:
    position = 0
    while (start := page.find("<", position)) >= 0:
        yield page[position:start]
        if page.startswith("<!--", start):
            end = page.find("-->", start + 4)
            position = end + 3
        elif (tag := _TAG.match(page, start)) is None:
            if page.startswith(("<!", "<?"), start):
                end = page.find(">", start)
                position = end + 1
            else:
                yield "<"
                end, position = start, start + 1
        else:
            end = page.find(">", tag.end())
            position = end + 1
            element = _Element(tag[2].lower(), bool(tag[1]), page[tag.end() : end][:4000])
            if end >= 0:
                yield element
            if end >= 0 and element.name in _RAW and not element.is_end:
                closing = re.compile(rf"</{element.name}", re.IGNORECASE).search(page, position)
                end = -1 if closing is None else closing.start()
                if end >= 0 and element.name not in _HIDDEN:
                    yield page[position:end]
                position = end
        if end < 0:
            return
    yield page[position:]


class _Writer:
    """The text so far; ``_hidden`` counts open elements that are not shown."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._parts: list[str] = []
        self._line: list[str] = []
        self._hidden = 0
        self._preformatted = 0
        self._links: list[tuple[int, str]] = []

    def text(self, text: str) -> None:
        if self._hidden or not text:
            return
        shown = html.unescape(text)
        if self._preformatted:
            *lines, last = shown.replace("\r\n", "\n").split("\n")
            for line in lines:
                self._line.append(line)
                self._break()
            self._line.append(last)
        else:
            self._line.append(_SPACE.sub(" ", shown))

    def element(self, element: _Element) -> None:
        name, is_end = element.name, element.is_end
        if name in _HIDDEN:
            self._hidden = max(0, self._hidden + (-1 if is_end else 1))
            return
        if name == "body":
            self._hidden = 0
        if self._hidden:
            return
        if name == "br":
            self._break()
        elif name == "a":
            self._link(element)
        elif name in ("td", "th") and is_end:
            self._line.append(" | ")
        elif name in _BLOCKS:
            self._block(name, is_end=is_end)

    def result(self) -> str:
        self._break()
        return re.sub(r"\n{3,}", "\n\n", "\n".join(self._parts)).strip("\n")

    def _block(self, name: str, *, is_end: bool) -> None:
        self._break()
        if name == "pre":
            self._preformatted = max(0, self._preformatted + (-1 if is_end else 1))
            self._parts.append("```")
        elif name not in ("li", "tr", "dt", "dd"):
            self._parts.append("")
        if name == "li" and not is_end:
            self._line.append("- ")
        elif name[0] == "h" and name[1:].isdigit() and not is_end:
            self._line.append(f"{'#' * int(name[1:])} ")

    def _link(self, element: _Element) -> None:
        if not element.is_end:
            found = _HREF.search(f" {element.attributes}")
            written = html.unescape(next((group for group in found.groups() if group), "")) if found else ""
            self._links = [(len(self._line), written)]  # links do not contain links
            return
        at, written = self._links.pop() if self._links else (0, "")
        if not written or written.startswith(("#", "javascript:")) or at >= len(self._line):
            return
        label = "".join(self._line[at:]).strip()
        try:
            target = urljoin(self._address, written)
        except ValueError:
            return
        if label and len(target) <= MAXIMUM_LINK_CHARACTERS and target != label:
            self._line[at:] = [f"[{label}]({target})"]

    def _break(self) -> None:
        line = "".join(self._line)
        self._line.clear()
        self._links.clear()
        if self._preformatted:
            self._parts.append(line.rstrip())
        elif stripped := line.strip().removesuffix("|").rstrip():
            self._parts.append(stripped)
