"""The hunks between two texts: runs of changed lines that a user takes or leaves one by one. Pure.

Hunks count from 1, in the order of the text. Lines count from 0.
"""

from collections.abc import Collection

from isthmus.errors import IsthmusError
from isthmus.record import record
from isthmus.text.diff import line_opcodes, split_lines
from isthmus.text.text_file import with_newlines_of

_MARK = "\ufeff"


class NoSuchHunkError(IsthmusError):
    """Raised for an unknown number of a hunk."""


@record
class TextHunk:
    """A run of changed lines: ``old[old_start:old_end]`` becomes ``new[new_start:new_end]``."""

    number: int
    old_start: int
    old_end: int
    new_start: int
    new_end: int


def comparable(old: str, new: str) -> str:
    r"""Return `old` as it is compared with `new`: with its newlines and without a byte order mark that `new` lacks.

    Agents propose texts with ``\n`` for files with ``\r\n``, and change only some of the lines.
    """
    if not new.startswith(_MARK):
        old = old.removeprefix(_MARK)
    if "\r" not in new:
        return old.replace("\r\n", "\n")
    return with_newlines_of(new, old) if "\r" not in old else old


def hunks_between(old: str | None, new: str) -> tuple[TextHunk, ...]:
    """Return the hunks that make `new` of `old`, which is None for a file that does not exist."""
    lines = split_lines(comparable(old or "", new)), split_lines(new)
    changed = [opcode for opcode in line_opcodes(*lines) if opcode[0] != "equal"]
    return tuple(TextHunk(number, *opcode[1:]) for number, opcode in enumerate(changed, 1))


def numbers_in(text: str) -> list[int]:
    """Return the numbers in a list such as ``1,3`` or ``2-4``.

    Raises:
        ValueError: the text is not a list of numbers, or has more than 10,000 numbers in a row.
    """
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or not (last or first).isdecimal() or int(last or first) - int(first) > 10_000:
            raise ValueError(text)
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def with_hunks(old: str | None, new: str, numbers: Collection[int]) -> str:
    """Return the text with only these hunks of `new`, and the lines of `old` in place of the others.

    Raises:
        NoSuchHunkError: no hunk has this number.
    """
    hunks = hunks_between(old, new)
    unknown = sorted(set(numbers) - {hunk.number for hunk in hunks})
    if unknown:
        known = f"the hunks are 1-{len(hunks)}" if hunks else "the texts have no hunks"
        raise NoSuchHunkError(f"no hunk has the number {unknown[0]}; {known}, as `isthmus ide diffs` lists them")
    old_lines, lines = split_lines(comparable(old or "", new)), split_lines(new)
    for hunk in reversed(hunks):
        if hunk.number not in numbers:
            lines[hunk.new_start : hunk.new_end] = old_lines[hunk.old_start : hunk.old_end]
    return "".join(lines)
