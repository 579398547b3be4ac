"""Which lines changed between two texts, in time that does not explode with their length. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

Opcode: TypeAlias = tuple[str, int, int, int, int]
"""As in difflib: ``equal``, ``replace``, ``delete`` or ``insert``, and the half-open line ranges in old and new."""

_SMALL = 4_000
"""Lines on both sides that difflib compares within a fraction of a second; longer stretches are split first."""


def line_opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """How to come from `old` to `new`, whole lines, in order and without gaps."""
    result: list[Opcode] = []
    for opcode in _opcodes(old, new, 0, len(old), 0, len(new), may_split=True):
        tag, old_start, old_end, new_start, new_end = opcode
        if result and (result[-1][0] == "equal") == (tag == "equal"):
            before = result.pop()
            old_start, new_start = before[1], before[3]
            tag = "equal" if tag == "equal" else _change_tag(old_start, old_end, new_start, new_end)
        result.append((tag, old_start, old_end, new_start, new_end))
    return result


def _opcodes(
    old: Sequence[str], new: Sequence[str], start: int, end: int, new_start: int, new_end: int, *, may_split: bool
) -> Iterator[Opcode]:
    """Opcodes of ``old[start:end]`` and ``new[new_start:new_end]``; neighbours may have the same tag."""
    first, new_first = start, new_start
    while start < end and new_start < new_end and old[start] == new[new_start]:
        start, new_start = start + 1, new_start + 1
    if start > first:
        yield "equal", first, start, new_first, new_start
    last, new_last = end, new_end
    while start < end and new_start < new_end and old[end - 1] == new[new_end - 1]:
        end, new_end = end - 1, new_end - 1
    if start == end or new_start == new_end:
        if start < end or new_start < new_end:
            yield _change_tag(start, end, new_start, new_end), start, end, new_start, new_end
    elif end - start + new_end - new_start <= _SMALL:
        matcher = SequenceMatcher(None, old[start:end], new[new_start:new_end])
        for tag, a, b, c, d in matcher.get_opcodes():
            yield tag, start + a, start + b, new_start + c, new_start + d
    else:
        anchors = _anchors(old, new, start, end, new_start, new_end) if may_split else []
        if not anchors:
            yield "replace", start, end, new_start, new_end
        else:
            a, c = start, new_start
            for b, d in anchors:
                yield from _opcodes(old, new, a, b, c, d, may_split=False)
                yield "equal", b, b + 1, d, d + 1
                a, c = b + 1, d + 1
            yield from _opcodes(old, new, a, end, c, new_end, may_split=False)
    if end < last:
        yield "equal", end, last, new_end, new_last


def _anchors(
    old: Sequence[str], new: Sequence[str], start: int, end: int, new_start: int, new_end: int
) -> list[tuple[int, int]]:
    """The longest rising run of lines that both sides have exactly once (as in a patience diff)."""
    old_counts, new_counts = Counter(old[start:end]), Counter(new[new_start:new_end])
    places = {old[index]: index for index in range(start, end) if old_counts[old[index]] == 1}
    tails: list[int] = []
    heads: list[tuple[int, int]] = []
    previous: dict[tuple[int, int], tuple[int, int] | None] = {}
    for new_index in range(new_start, new_end):
        line = new[new_index]
        old_index = places.get(line)
        if old_index is None or new_counts[line] != 1:
            continue
        pair = (old_index, new_index)
        length = bisect_left(tails, old_index)
        previous[pair] = heads[length - 1] if length else None
        if length == len(tails):
            tails.append(old_index)
            heads.append(pair)
        else:
            tails[length] = old_index
            heads[length] = pair
    run: list[tuple[int, int]] = []
    last = heads[-1] if heads else None
    while last is not None:
        run.append(last)
        last = previous[last]
    return run[::-1]


def _change_tag(start: int, end: int, new_start: int, new_end: int) -> str:
    if start == end:
        return "insert"
    return "delete" if new_start == new_end else "replace"
