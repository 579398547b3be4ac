"""Regular expressions from files, searched in linear time: the part of JavaScript's that needs no backtracking.

Look-around, back references and named Unicode classes are refused. A pattern becomes an automaton whose states are made
when a text needs them. Deliberately not a replacement for :mod:`re`: it only says whether a text contains a match.
"""

from dataclasses import dataclass, field
from typing import Final, TypeAlias

from isthmus.record import record

MAXIMUM_PATTERN_CHARACTERS = 2048
"""Maximum length of a pattern in characters, as in Gemini CLI."""
MAXIMUM_DEPTH = 50
"""Maximum number of groups inside each other."""
MAXIMUM_INSTRUCTIONS = 4000
"""Maximum size of a pattern after its counted repetitions are written out."""
MAXIMUM_WORK = 2_000_000
"""Maximum number of instructions that are visited for new states in one search, which bounds its time."""
MAXIMUM_CACHED = 50_000
"""Maximum number of remembered transitions; beyond it all are forgotten."""

Ranges: TypeAlias = tuple[tuple[int, int], ...]
_DIGITS: Ranges = ((48, 57),)
_WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACES = "\t\n\v\f\r \u00a0\u1680\u2028\u2029\u202f\u205f\u3000\ufeff"
_SPACE: Ranges = (*((ord(space), ord(space)) for space in _SPACES), (0x2000, 0x200A))
_LINE_ENDS: Ranges = ((10, 10), (13, 13), (0x2028, 0x2029))
_CLASSES = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "0": "\0"}
_UNLIMITED: Final = -1


class UnsupportedPatternError(ValueError):
    """A pattern that cannot be searched in linear time, or that is not a pattern; the text says why."""


class TooMuchWorkError(Exception):
    """A search was given up, because the text needs too many states of the pattern."""


@record
class _Characters:
    ranges: Ranges
    is_negated: bool = False

    def contains(self, character: str) -> bool:
        code = ord(character)
        return any(low <= code <= high for low, high in self.ranges) is not self.is_negated


@record
class _Assertion:
    kind: str
    """One of ``^``, ``$``, ``b`` and ``B``."""

    def holds(self, before: str, after: str) -> bool:
        """Return whether it holds between two characters; an empty one is the end of the text."""
        match self.kind:
            case "^":
                return not before
            case "$":
                return not after
            case _:
                is_boundary = _is_word(before) is not _is_word(after)
                return is_boundary is (self.kind == "b")


@record
class _Sequence:
    parts: tuple["_Node", ...]


@record
class _Choice:
    branches: tuple["_Node", ...]


@record
class _Repeat:
    part: "_Node"
    minimum: int
    maximum: int


_Node: TypeAlias = _Characters | _Assertion | _Sequence | _Choice | _Repeat


@record
class _Split:
    """Continue at each of the places."""

    places: tuple[int, ...]


_Instruction: TypeAlias = _Characters | _Assertion | _Split | None
"""An instruction; None is a match."""
_State: TypeAlias = tuple[frozenset[int], str]
"""Places in the program, and the character before: empty, ``w`` for one of a word, or a space."""


@dataclass(slots=True)
class LinearPattern:
    """A compiled pattern.

    Raises:
        UnsupportedPatternError: the pattern is refused.
    """

    source: str
    _program: list[_Instruction] = field(init=False, repr=False)
    _next: dict[tuple[_State, str], _State | None] = field(
        init=False, repr=False, default_factory=dict[tuple[_State, str], "_State | None"]
    )
    _work: int = field(init=False, repr=False, default=0)

    def __post_init__(self) -> None:
        if len(self.source) > MAXIMUM_PATTERN_CHARACTERS:
            raise UnsupportedPatternError(f"it is longer than {MAXIMUM_PATTERN_CHARACTERS} characters")
        self._program = []
        self._compile(_Parser(self.source).parse())
        self._emit(None)

    def is_in(self, text: str) -> bool:
        """Return whether a text contains a match.

        Raises:
            TooMuchWorkError: that cannot be decided with bounded work.
        """
        self._work = 0
        state: _State | None = (frozenset((0,)), "")
        for character in text:
            key = (state, character)
            if key in self._next:
                state = self._next[key]
            else:
                if len(self._next) >= MAXIMUM_CACHED:
                    self._next.clear()
                state = self._next[key] = self._step(state, character)
            if state is None:
                return True
        return self._places(state, "") is None

    def _step(self, state: _State, character: str) -> _State | None:
        """Return the state after a character; None if there is a match before it."""
        places = self._places(state, character)
        if places is None:
            return None
        after = {0}
        for place in places:
            instruction = self._program[place]
            if isinstance(instruction, _Characters) and instruction.contains(character):
                after.add(place + 1)
        return frozenset(after), "w" if _is_word(character) else " "

    def _places(self, state: _State, after: str) -> set[int] | None:
        """Return all places that are reached before a character is read; None for a match."""
        waiting, before = list(state[0]), state[1]
        seen: set[int] = set()
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            self._work += 1
            match self._program[place]:
                case None:
                    return None
                case _Split(places):
                    waiting.extend(places)
                case _Assertion() as assertion if assertion.holds(before, after):
                    waiting.append(place + 1)
                case _:
                    pass
        if self._work > MAXIMUM_WORK:
            raise TooMuchWorkError
        return seen

    def _emit(self, instruction: _Instruction) -> int:
        if len(self._program) >= MAXIMUM_INSTRUCTIONS:
            raise UnsupportedPatternError("it is too large when its repetitions are written out")
        self._program.append(instruction)
        return len(self._program) - 1

    def _compile(self, node: _Node) -> None:
        match node:
            case _Characters() | _Assertion():
                self._emit(node)
            case _Sequence(parts):
                for part in parts:
                    self._compile(part)
            case _Choice(branches):
                split = self._emit(_Split(()))
                starts: list[int] = []
                ends: list[int] = []
                for branch in branches:
                    starts.append(len(self._program))
                    self._compile(branch)
                    ends.append(self._emit(_Split(())))
                self._program[split] = _Split(tuple(starts))
                for end in ends:
                    self._program[end] = _Split((len(self._program),))
            case _Repeat(part, minimum, maximum):
                self._compile_repeat(part, minimum, maximum)

    def _compile_repeat(self, part: _Node, minimum: int, maximum: int) -> None:
        for _ in range(minimum):
            before = len(self._program)
            self._compile(part)
            if len(self._program) == before:
                break  # nothing, any number of times, is nothing
        if maximum == _UNLIMITED:
            split = self._emit(_Split(()))
            self._compile(part)
            self._emit(_Split((split,)))
            self._program[split] = _Split((split + 1, len(self._program)))
            return
        splits: list[int] = []
        for _ in range(maximum - minimum):
            splits.append(self._emit(_Split(())))
            self._compile(part)
        for split in splits:
            self._program[split] = _Split((split + 1, len(self._program)))


class _Parser:
    """Reads a pattern as JavaScript does without its flag ``u``."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def parse(self) -> _Node:
        node = self._choice(0)
        if self._at < len(self._source):
            raise UnsupportedPatternError(f"there is a ')' without its '(' at character {self._at + 1}")
        return node

    def _choice(self, depth: int) -> _Node:
        if depth > MAXIMUM_DEPTH:
            raise UnsupportedPatternError(f"it has more than {MAXIMUM_DEPTH} groups inside each other")
        branches = [self._sequence(depth)]
        while self._take("|"):
            branches.append(self._sequence(depth))
        return branches[0] if len(branches) == 1 else _Choice(tuple(branches))

    def _sequence(self, depth: int) -> _Node:
        parts: list[_Node] = []
        while self._at < len(self._source) and self._source[self._at] not in "|)":
            parts.append(self._repeated(self._atom(depth)))
        return _Sequence(tuple(parts))

    def _repeated(self, atom: _Node) -> _Node:
        times = self._quantifier()
        if times is None:
            return atom
        if isinstance(atom, _Assertion):
            raise UnsupportedPatternError("nothing to repeat stands before a quantifier")
        self._take("?")
        if self._quantifier() is not None:
            raise UnsupportedPatternError("a quantifier stands behind another one")
        return _Repeat(atom, *times)

    def _quantifier(self) -> tuple[int, int] | None:
        for sign, times in (("*", (0, _UNLIMITED)), ("+", (1, _UNLIMITED)), ("?", (0, 1))):
            if self._take(sign):
                return times
        end = self._source.find("}", self._at)
        if not self._source.startswith("{", self._at) or end < 0:
            return None
        low, comma, high = self._source[self._at + 1 : end].partition(",")
        if not _is_number(low) or (high and not _is_number(high)):
            return None
        self._at = end + 1
        minimum = int(low)
        maximum = minimum if not comma else int(high) if high else _UNLIMITED
        if max(minimum, maximum) > MAXIMUM_INSTRUCTIONS:
            raise UnsupportedPatternError(f"it repeats something more than {MAXIMUM_INSTRUCTIONS} times")
        if maximum != _UNLIMITED and maximum < minimum:
            raise UnsupportedPatternError("a repetition has its numbers in the wrong order")
        return minimum, maximum

    def _atom(self, depth: int) -> _Node:
        character = self._next()
        match character:
            case "(":
                return self._group(depth)
            case "[":
                return self._class()
            case ".":
                return _Characters(_LINE_ENDS, is_negated=True)
            case "^" | "$":
                return _Assertion(character)
            case "*" | "+" | "?":
                raise UnsupportedPatternError("nothing to repeat stands before a quantifier")
            case "\\":
                if self._source[self._at : self._at + 1] in ("b", "B"):
                    return _Assertion(self._next())
                return self._escape()
            case _:
                return _one(character)

    def _group(self, depth: int) -> _Node:
        if self._take("?") and not self._take(":"):
            name_end = self._source.find(">", self._at)
            is_named = self._take("<") and self._source[self._at : self._at + 1] not in ("=", "!") and name_end > 0
            if not is_named:
                raise UnsupportedPatternError("look-around and flags inside a pattern are not supported")
            self._at = name_end + 1
        node = self._choice(depth + 1)
        if not self._take(")"):
            raise UnsupportedPatternError("there is a '(' without its ')'")
        return node

    def _class(self) -> _Node:
        is_negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        while not self._take("]"):
            low = self._member()
            if self._source.startswith("-", self._at) and not self._source.startswith("-]", self._at):
                self._at += 1
                high = self._member()
                start, end = _single(low), _single(high)
                if start is None or end is None or end < start:
                    raise UnsupportedPatternError("a range in [...] has no beginning or end, or they are exchanged")
                ranges.append((start, end))
            elif low.is_negated:
                raise UnsupportedPatternError("a negated class in [...] is not supported")
            else:
                ranges += low.ranges
        return _Characters(tuple(ranges), is_negated)

    def _member(self) -> _Characters:
        character = self._next()
        if character != "\\":
            return _one(character)
        return _one("\b") if self._take("b") else self._escape()

    def _escape(self) -> _Characters:
        character = self._next()
        if character.lower() in _CLASSES:
            return _Characters(_CLASSES[character.lower()], character.isupper())
        if character == "0" and self._source[self._at : self._at + 1].isdigit():
            raise UnsupportedPatternError("octal numbers are not supported")
        if character in _CONTROLS:
            return _one(_CONTROLS[character])
        if character in "xu":
            digits = self._source[self._at : self._at + (2 if character == "x" else 4)]
            if len(digits) == (2 if character == "x" else 4) and all(
                digit in "0123456789abcdefABCDEF" for digit in digits
            ):
                self._at += len(digits)
                return _one(chr(int(digits, 16)))
        if character.isalnum() or character == "_":
            raise UnsupportedPatternError(f"\\{character} is not supported")
        return _one(character)

    def _next(self) -> str:
        if self._at >= len(self._source):
            raise UnsupportedPatternError("it ends inside [...], or with a backslash")
        self._at += 1
        return self._source[self._at - 1]

    def _take(self, text: str) -> bool:
        is_there = self._source.startswith(text, self._at)
        self._at += len(text) if is_there else 0
        return is_there


def _one(character: str) -> _Characters:
    return _Characters(((ord(character), ord(character)),))


def _single(characters: _Characters) -> int | None:
    """Return the code of the one character; None for a class."""
    is_one = len(characters.ranges) == 1 and characters.ranges[0][0] == characters.ranges[0][1]
    return characters.ranges[0][0] if is_one and not characters.is_negated else None


def _is_word(character: str) -> bool:
    return bool(character) and character.isascii() and (character.isalnum() or character == "_")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
