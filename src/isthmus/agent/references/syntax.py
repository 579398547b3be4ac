r"""Finds a user's references to resources of MCP servers: ``@server:uri`` and ``@server://path``. Pure.

``@docs:file:///guide.md`` names the resource ``file:///guide.md`` of the server ``docs``, as in Gemini CLI.
``@docs://guide`` can mean ``docs://guide``, ``guide`` or ``//guide``, depending on the URIs that the server lists. A
reference begins a word, so that an e-mail address is not a reference; it ends at a blank, or at punctuation that ends a
sentence. A URI with blanks is enclosed in double quotes, or each blank is escaped by a backslash. ``\@`` is not a
reference. If no server has the name, only the form with ``://`` counts: ``@param:string`` is plain text.
"""

import re
from collections.abc import Collection, Mapping, Sequence

from isthmus.record import record

REFERENCE_BEGIN = re.compile(r"(?<![\w\\@/.+-])@")
"""The sign with which a reference begins; inside a word it is part of an address or a path."""
_UNKNOWN = re.compile(r"([A-Za-z][\w.-]*)://")
_QUOTED = re.compile(r'"([^"\n]+)"')
_BARE = re.compile(r"(?:\\[^\n]|[^\s\\\"'`<>|])+")
_CLOSING = {")": "(", "]": "[", "}": "{"}
MAXIMUM_URI = 4_096


@record
class Reference:
    """A reference: its text ``typed``, at ``start``. ``is_known`` is whether a server has this name.

    ``uris`` are its possible meanings, likeliest first; at least one.
    """

    typed: str
    start: int
    server: str
    uris: tuple[str, ...]
    is_known: bool = True


def find_references(text: str, listed: Mapping[str, Collection[str]]) -> list[Reference]:
    """Return the references in a text, in order and without overlap. ``listed`` contains the URIs by server."""
    found: list[Reference] = []
    end = 0
    for match in REFERENCE_BEGIN.finditer(text):
        if match.start() < end:
            continue
        reference = _at(text, match.start(), listed)
        if reference is not None:
            found.append(reference)
            end = match.start() + len(reference.typed)
    return found


def _at(text: str, start: int, listed: Mapping[str, Collection[str]]) -> Reference | None:
    begin = start + 1
    # The longest name first: one name may be a prefix of another.
    for server in sorted(listed, key=len, reverse=True):
        if server and text.startswith(f"{server}:", begin):
            return _of_server(text, start, server, listed[server])
    if listed and (match := _UNKNOWN.match(text, begin)) is not None:
        rest = bare_text(text, match.end())
        if rest:
            typed = text[start : match.end() + len(rest)]
            return Reference(typed, start, match.group(1), (typed[1:],), is_known=False)
    return None


def _of_server(text: str, start: int, server: str, listed: Collection[str]) -> Reference | None:
    begin = start + len(server) + 2
    if (quoted := _QUOTED.match(text, begin)) is not None:
        typed, candidates = quoted.group(), [quoted.group(1)]
    else:
        match = _BARE.match(text, begin, begin + MAXIMUM_URI)
        if match is None:
            return None
        whole, short = match.group(), bare_text(text, begin)
        # A listed URI may end with punctuation that otherwise ends a sentence.
        is_whole = any(uri in listed for uri in _meanings(server, unescaped(whole)))
        typed = whole if is_whole else short
        candidates = [unescaped(typed)]
    uris = [uri for candidate in candidates for uri in _meanings(server, candidate)]
    if not uris:
        return None
    known = [uri for uri in uris if uri in listed]
    return Reference(text[start : begin + len(typed)], start, server, tuple(dict.fromkeys([*known, *uris])))


def _meanings(server: str, rest: str) -> list[str]:
    """Return the URIs that ``@server:rest`` can mean, likeliest first."""
    if not rest.strip("/"):
        return []
    if not rest.startswith("//"):
        return [rest]
    path = rest[2:]
    return [path, f"{server}:{rest}", rest] if "://" in path else [f"{server}:{rest}", path, rest]


def bare_text(text: str, begin: int) -> str:
    """Return the longest URI from ``begin`` on, without the punctuation that ends a sentence."""
    match = _BARE.match(text, begin, begin + MAXIMUM_URI)
    rest = match.group() if match is not None else ""
    while rest:
        last = rest[-1]
        is_bracket = last in _CLOSING and rest.count(last) > rest.count(_CLOSING[last])
        if (last in ".,;:!?" or is_bracket) and not rest.endswith(f"\\{last}"):
            rest = rest[:-1]
            continue
        break
    return rest


def unescaped(typed: str) -> str:
    """Return what was typed without the backslashes that escape signs."""
    return re.sub(r"\\(.)", r"\1", typed)


def completed(text: str, listed: Sequence[tuple[str, str]], maximum: int = 50) -> tuple[int, list[str]] | None:
    """Return the start of a reference at the end of a text, and whole references that complete it; None without any.

    ``listed`` are servers and URIs in order; unprintable ones are not offered.
    """
    listed = [(server, uri) for server, uri in listed if server.isprintable() and uri.isprintable()]
    starts = [match.start() for match in REFERENCE_BEGIN.finditer(text)]
    if not starts or any(letter.isspace() for letter in text[starts[-1] :]):
        return None
    start = starts[-1]
    typed = text[start:]
    whole = (f"@{server}:{_escaped(uri)}" for server, uri in listed)
    fitting = list(dict.fromkeys(item for item in whole if item.startswith(typed)))
    if typed == "@" or ":" not in typed:
        # First only the servers: a server may have hundreds of resources.
        servers = dict.fromkeys(f"@{server}:" for server, _ in listed)
        fitting = [item for item in servers if item.startswith(typed)]
        if len(fitting) == 1:
            fitting = [
                item
                for item in dict.fromkeys(f"@{server}:{_escaped(uri)}" for server, uri in listed)
                if item.startswith(fitting[0])
            ]
    return (start, fitting[:maximum]) if fitting else None


def _escaped(uri: str) -> str:
    """Return a URI as it is typed after ``@server:``."""
    return re.sub(r"([\s\\\"'`<>|])", r"\\\1", uri)
