"""The syntax tree of a shell command, and its words: their values if certain, otherwise their literal prefixes."""

import re
from collections.abc import Sequence
from enum import Enum, auto
from functools import cache
from typing import TYPE_CHECKING

from isthmus.record import record

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAXIMUM_LENGTH = 65_536
"""Maximum length in characters of a command that is analysed."""
MAXIMUM_DEPTH = 100
"""Maximum nesting of nodes in a command that is analysed, so that looking up the ancestors of a node stays cheap."""

_ACTIVE_IN_STRING = re.compile(r"(?<!\\)(?:\\\\)*(?:`|\$[\w({@*#?!$-])")
_OPEN_CHARACTERS = re.compile(r"(?<!\\)(?:\\\\)*[*?\[\]{}$]")
_TILDE = re.compile(r"(?<!\\)(?:\\\\)*~")
_NUMBERS = frozenset({"$?", "$#", "$$", "$!"})
"""Expansions to a number or the empty text."""


class Extent(Enum):
    """Certainty about the words to which bash expands a word."""

    EXACT = auto()
    """One word with a known value."""
    ONE = auto()
    """One word whose value is not known in full."""
    ANY = auto()
    """Any number of words."""


@record
class ShellWord:
    """A word of a command. `text` is its value if known, otherwise its source text.

    `start` is its certain prefix; empty if nothing is certain.
    """

    text: str
    extent: Extent
    start: str

    @property
    def may_be_option(self) -> bool:
        """Whether its value is not known and may begin with a hyphen."""
        return self.extent is not Extent.EXACT and not (self.start and self.start[0] != "-")


@record
class Syntax:
    """A parsed command. `nodes` are in the order of the source; `leaves` are the nodes without children."""

    source: bytes
    root: "Node"
    nodes: Sequence["Node"]
    leaves: Sequence["Node"]


def parse_shell(command: str) -> "Node | None":
    """Return the syntax tree of `command`; None if it is too long or cannot be passed to a shell."""
    if len(command) > MAXIMUM_LENGTH or "\0" in command:
        return None
    try:
        return _parser().parse(command.encode()).root_node
    except UnicodeEncodeError:
        return None


def syntax_of(root: "Node") -> Syntax | None:
    """Return the tree with its nodes and leaves in order; None if it is nested too deeply."""
    nodes: list[Node] = []
    leaves: list[Node] = []
    waiting = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAXIMUM_DEPTH:
            return None
        nodes.append(node)
        children = node.children
        if children and node.type != "heredoc_body":
            waiting.extend((child, depth + 1) for child in reversed(children))
        else:
            leaves.append(node)
    return Syntax(root.text or b"", root, nodes, leaves)


@cache
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def text_of(node: "Node") -> str:
    """Return the source text of a node."""
    return (node.text or b"").decode()


def literal(node: "Node") -> str | None:
    """Return the value of a word in which only paths are expanded; None otherwise."""
    text = text_of(node)
    match node.type:
        case "word" | "number":
            return re.sub(r"\\(.)", lambda found: "" if found[1] == "\n" else found[1], text, flags=re.DOTALL)
        case "raw_string":
            return text[1:-1]
        case "string":
            inner = text[1:-1]
            if any(child.type not in ('"', "string_content") for child in node.children):
                return None
            if _ACTIVE_IN_STRING.search(inner):
                return None
            return re.sub(r'\\([\\"$`\n])', lambda found: "" if found[1] == "\n" else found[1], inner)
        case "concatenation":
            parts = [literal(child) for child in node.children]
            ends = [node.start_byte, *(child.end_byte for child in node.children)]
            gapless = all(child.start_byte == end for child, end in zip(node.children, ends, strict=False))
            return "".join(part for part in parts if part) if gapless and None not in parts else None
        case _:
            return None


def word_of(node: "Node") -> ShellWord:
    """Return a word with its value or prefix as far as certain."""
    parts = node.children if node.type == "concatenation" else [node]
    extents = [_extent(part) for part in parts]
    value = literal(node)
    if value is not None and all(extent is Extent.EXACT for extent in extents):
        return ShellWord(value, Extent.EXACT, value)
    start = _start(parts, extents)
    if any(extent is Extent.ANY and part.type != "word" for part, extent in zip(parts, extents, strict=True)):
        # An expansion may be split into words, each with a beginning of its own.
        start = ""
    return ShellWord(
        text_of(node) if value is None else value, Extent.ANY if Extent.ANY in extents else Extent.ONE, start
    )


def _extent(part: "Node") -> Extent:
    text = text_of(part)
    match part.type:
        case "word" | "number":
            if _OPEN_CHARACTERS.search(text):
                return Extent.ANY
            return Extent.ONE if _TILDE.search(text) else Extent.EXACT
        case "raw_string":
            return Extent.EXACT
        case "string":
            if literal(part) is not None:
                return Extent.EXACT
            return Extent.ANY if _has_list(part) else Extent.ONE
        case "ansi_c_string" | "process_substitution":
            return Extent.ONE
        case "simple_expansion":
            return Extent.ONE if text in _NUMBERS else Extent.ANY
        case _:
            return Extent.ANY


def _has_list(string: "Node") -> bool:
    """Return whether a string contains "$@" or "${x[@]}", which expand to any number of words."""
    return "@" in text_of(string)


def _start(parts: Sequence["Node"], extents: Sequence[Extent]) -> str:
    """Return the literal prefix of a word, up to the first part or character that is not certain."""
    start = ""
    for part, extent in zip(parts, extents, strict=True):
        value = literal(part)
        if part.type in ("word", "number") and value is not None:
            written = text_of(part)
            if extent is Extent.EXACT:
                start += value
                continue
            plain = re.match(r"[\w./,:=@%+-]*", written)
            return start + (plain[0] if plain else "")
        if part.type == "process_substitution":
            return f"{start}/"
        if extent is not Extent.EXACT or value is None:
            return start
        start += value
    return start
