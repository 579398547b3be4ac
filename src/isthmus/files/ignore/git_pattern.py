"""A line of an ignore file, compiled by git's rules (gitignore(5); otherwise dir.c and wildmatch.c).

git compares bytes. Here each byte is a character of Latin-1, in patterns and in paths (:func:`as_bytes`). A name is
matched piece by piece: each text between two asterisks is searched for once, from left to right, so that the time is
proportional to the length of the name for any pattern.
"""

import re
import string
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeAlias

from isthmus.errors import IsthmusError
from isthmus.files.ignore.path_pattern import Gap, NameMatcher, PathPattern
from isthmus.record import record

MAXIMUM_LENGTH = 1_000
"""Maximum length in bytes of a pattern with wildcards; a name in a path has at most 255."""
MAXIMUM_WILDCARDS = 100
"""Maximum number of asterisks, question marks, brackets and backslashes in a pattern; usual ones have below 40."""

_SPECIAL = re.compile(r"[*?\[\\]")
_BYTES = frozenset(map(chr, range(256)))
_CLASSES = {
    "alnum": string.ascii_letters + string.digits,
    "alpha": string.ascii_letters,
    "blank": " \t",
    "cntrl": "".join(map(chr, range(32))) + "\x7f",
    "digit": string.digits,
    "graph": "".join(map(chr, range(0x21, 0x7F))),
    "lower": string.ascii_lowercase,
    "print": "".join(map(chr, range(0x20, 0x7F))),
    "punct": string.punctuation,
    "space": " \t\n\r",
    "upper": string.ascii_uppercase,
    "xdigit": string.hexdigits,
}
"""Members of ``[:name:]`` in git, regardless of the locale."""

_Token: TypeAlias = str | frozenset[str] | int
"""A literal character, a set of alternative characters, or a number of asterisks."""
PathMatcher: TypeAlias = Callable[[str, Sequence[str]], bool]
"""Returns whether a path matches; called with the path and its names."""
_SLASH, _ESCAPED_SLASH = "/", "\\/"


class TooComplexPattern(IsthmusError):
    """A pattern that is too long or has too many wildcards."""


@record
class GitPattern:
    """A compiled line. A line with a slash matches paths, by ``matches_path``; any other line matches names.

    ``is_literal`` is whether only one text matches. For a line that matches names, ``name`` is this text; otherwise the
    line has ``matches_name``.
    """

    ignores: bool
    is_for_folders: bool
    is_literal: bool = False
    name: str = ""
    matches_name: NameMatcher = bool
    matches_path: PathMatcher | None = None


def compile_line(line: str) -> GitPattern | None:
    """Compile a line without its newline. Return None if it is empty, a comment, or never matches.

    Raises:
        TooComplexPattern: the line is too long or has too many wildcards.
    """
    line = _without_trailing_spaces(line.removesuffix("\r").partition("\0")[0])
    if not line or line.startswith("#"):
        return None
    pattern = line.removeprefix("!")
    ignores = pattern is line
    is_for_folders = pattern.endswith("/")
    pattern = pattern.removesuffix("/")
    is_by_name = "/" not in pattern
    pattern = pattern.removeprefix("/")
    if not pattern:
        return None
    special = _SPECIAL.search(pattern)
    if special is None:
        if is_by_name:
            return GitPattern(ignores, is_for_folders, is_literal=True, name=pattern)
        return GitPattern(ignores, is_for_folders, is_literal=True, matches_path=partial(_is_path, pattern))
    if len(pattern) > MAXIMUM_LENGTH or len(_SPECIAL.findall(pattern)) > MAXIMUM_WILDCARDS:
        raise TooComplexPattern
    # git compares the literal beginning first, and treats the rest as a separate pattern.
    beginning = "" if is_by_name else pattern[: special.start()]
    tokens = _tokens(pattern[len(beginning) :])
    if tokens is None:
        return None
    if is_by_name:
        return GitPattern(ignores, is_for_folders, matches_name=_name_matcher(tokens))
    rest = PathPattern(_parts(tokens))
    depth = beginning.count("/") if beginning.endswith("/") else None if beginning else 0
    return GitPattern(ignores, is_for_folders, matches_path=partial(_path_matches, beginning, depth, rest))


def as_bytes(path: str) -> str:
    """Return a path with one character for each of its bytes on the disk."""
    if path.isascii():
        return path
    try:
        return path.encode("utf-8", "surrogateescape").decode("latin-1")
    except UnicodeEncodeError:
        return path.encode("utf-8", "replace").decode("latin-1")


def _is_path(pattern: str, path: str, names: Sequence[str]) -> bool:
    return pattern == path


def _path_matches(beginning: str, depth: int | None, rest: PathPattern, path: str, names: Sequence[str]) -> bool:
    """Return whether a path starts with ``beginning`` and its remainder matches ``rest``.

    ``depth`` is the number of names in the beginning; None if it ends within a name.
    """
    if not path.startswith(beginning):
        return False
    return rest.matches(path[len(beginning) :].split("/") if depth is None else names[depth:] if depth else names)


def _without_trailing_spaces(line: str) -> str:
    stripped = line.rstrip(" ")
    if stripped == line:
        return line
    backslashes = len(stripped) - len(stripped.rstrip("\\"))
    return stripped + " " if backslashes % 2 else stripped


def _tokens(pattern: str) -> list[_Token] | None:
    """Return the tokens of a pattern; None if it is malformed and matches nothing."""
    tokens: list[_Token] = []
    index = 0
    while index < len(pattern):
        character = pattern[index]
        index += 1
        if character == "*":
            if tokens and isinstance(tokens[-1], int):
                tokens[-1] += 1
            else:
                tokens.append(1)
        elif character == "?":
            tokens.append(_BYTES)
        elif character == "[":
            found = _members(pattern, index)
            if found is None:
                return None
            members, index = found
            tokens.append(members - {"/"})
        elif character == "\\":
            if index == len(pattern):
                return None
            tokens.append(_ESCAPED_SLASH if pattern[index] == "/" else pattern[index])
            index += 1
        else:
            tokens.append(character)
    return tokens


def _members(pattern: str, index: int) -> tuple[frozenset[str], int] | None:
    """Return the characters of the set that begins before `index`, and its end; None if it is malformed."""
    is_negated = pattern[index : index + 1] in ("!", "^")
    index += is_negated
    start = index
    members: set[str] = set()
    previous = ""
    while True:
        character, following = pattern[index : index + 1], pattern[index + 1 : index + 2]
        if character == "]" and index > start:
            return (_BYTES - members if is_negated else frozenset(members)), index + 1
        if character == "-" and previous and following not in ("", "]"):
            index += 1 + (following == "\\")
            last = pattern[index : index + 1]
            members.update(map(chr, range(ord(previous), ord(last) + 1)) if last else ())
            previous = ""
        elif character == "[" and following == ":" and (end := pattern.find("]", index + 2)) != index + 2:
            if end < 0:
                return None
            if pattern[end - 1] == ":":
                if pattern[index + 2 : end - 1] not in _CLASSES:
                    return None
                members.update(_CLASSES[pattern[index + 2 : end - 1]])
                previous, index = "", end
            else:
                members.add("[")
                previous = "["
        else:
            index += character == "\\"
            previous = pattern[index : index + 1]
            members.add(previous)
        index += 1
        if index >= len(pattern):
            return None


def _parts(tokens: Iterable[_Token]) -> list[NameMatcher | Gap]:
    """Return the parts between a pattern's slashes; a part of two or more asterisks matches any folders."""
    parts: list[NameMatcher | Gap] = []
    name: list[_Token] = []
    for token in (*tokens, ""):
        if token not in ("", _SLASH, _ESCAPED_SLASH):
            name.append(token)
            continue
        is_gap = len(name) == 1 and isinstance(name[0], int) and name[0] > 1
        parts.append(Gap(0 if token == _SLASH else 1) if is_gap else _name_matcher(name))
        name = []
    return parts


@record
class _Piece:
    """The part between two asterisks. ``regex`` is None if it is the literal ``text``."""

    length: int
    text: str
    regex: re.Pattern[str] | None

    @classmethod
    def of(cls, tokens: Sequence[str | frozenset[str]]) -> "_Piece":
        if all(isinstance(token, str) for token in tokens):
            return cls(len(tokens), "".join(map(str, tokens)), None)
        regex = "".join(re.escape(token) if isinstance(token, str) else _set_regex(token) for token in tokens)
        return cls(len(tokens), "", re.compile(regex, re.DOTALL))

    def is_at(self, name: str, start: int) -> bool:
        if self.regex is None:
            return name.startswith(self.text, start)
        return self.regex.match(name, start) is not None

    def end_of_first(self, name: str, start: int, end: int) -> int:
        """Return the end of the first match, or -1 without a match."""
        if self.regex is None:
            found = name.find(self.text, start, end)
            return found + self.length if found >= 0 else -1
        place = self.regex.search(name, start, end)
        return place.end() if place is not None else -1


def _set_regex(members: frozenset[str]) -> str:
    if members == _BYTES:
        return "."
    return "[" + "".join(f"\\x{ord(member):02x}" for member in sorted(members)) + "]" if members else "(?!)"


def _name_matcher(tokens: Iterable[_Token]) -> NameMatcher:
    between: list[list[str | frozenset[str]]] = [[]]
    for token in tokens:
        if isinstance(token, int):
            between.append([])
        else:
            between[-1].append(token)
    first, *others = map(_Piece.of, between)
    if not others:
        return partial(_matches_whole, first)
    if len(others) == 1 and not first.length and others[0].regex is None:
        return partial(_ends_with, others[0].text)
    return partial(_matches_pieces, first, others[:-1], others[-1])


def _matches_whole(piece: _Piece, name: str) -> bool:
    return len(name) == piece.length and piece.is_at(name, 0)


def _ends_with(text: str, name: str) -> bool:
    return name.endswith(text)


def _matches_pieces(first: _Piece, middle: Iterable[_Piece], last: _Piece, name: str) -> bool:
    end = len(name) - last.length
    if end < first.length or not first.is_at(name, 0) or not last.is_at(name, end):
        return False
    position = first.length
    for piece in middle:
        position = piece.end_of_first(name, position, end)
        if position < 0:
            return False
    return True
