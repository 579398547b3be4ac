"""Changed lines between two texts, in time that does not explode with their length, and unified diffs. Pure."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

CONTEXT_LINES = 3
MAXIMUM_DIFF_CHARACTERS = 1_000_000

Opcode: TypeAlias = tuple[str, int, int, int, int]
"""``equal``, ``replace``, ``delete`` or ``insert`` and the half-open line ranges in old and new, as in difflib."""

_SMALL = 4_000
"""Lines on both sides that difflib compares within a fraction of a second; longer stretches are split first."""


def line_opcodes(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """Return the operations on whole lines that make `new` of `old`, in order and without gaps."""
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
    """Return the longest rising run of lines that both sides have exactly once (as in a patience diff)."""
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


def split_lines(text: str) -> list[str]:
    r"""Return the lines of `text`, each with its ``\n``; unlike ``str.splitlines``, nothing else ends a line."""
    lines = text.split("\n")
    last = lines.pop()
    result = [line + "\n" for line in lines]
    if last:
        result.append(last)
    return result


def unified_diff(old: str | None, new: str, path: str, *, is_numbered: bool = False) -> str:
    """Return the unified diff from `old` to `new`, empty when equal; `old` is None for a file that does not exist.

    `path` is shown with the prefixes ``a/`` and ``b/``, with forward slashes. A missing final newline is marked as in
    diff(1). The cost grows about linearly with the text. A diff of more than a million characters is cut at a line,
    and its last line says so.

    With `is_numbered` each run of changed lines is a hunk of its own and, if there are several, has its number after
    the header, as :mod:`isthmus.text.hunks` counts them. Programs that apply diffs may want more lines around each.
    """
    if old == new:
        return ""
    old_lines, new_lines = split_lines(old or ""), split_lines(new)
    old_name = "/dev/null" if old is None else f"a/{path}"
    pieces = [f"--- {old_name}\n+++ b/{path}\n"]
    size = 0
    for line in _hunk_lines(old_lines, new_lines, is_numbered=is_numbered):
        size += len(line)
        if size > MAXIMUM_DIFF_CHARACTERS:
            pieces.append(f"\\ The diff is cut here: it has more than {MAXIMUM_DIFF_CHARACTERS} characters.\n")
            break
        pieces.append(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n")
    return "".join(pieces)


class _Comparison(SequenceMatcher[str]):
    """Known opcodes, for difflib's grouping of them into hunks."""

    def __init__(self, opcodes: list[Opcode]) -> None:
        super().__init__()
        self._opcodes = opcodes

    def get_opcodes(self) -> "list[Opcode]":  # type: ignore[override]
        return self._opcodes


def _hunk_lines(old: Sequence[str], new: Sequence[str], *, is_numbered: bool) -> Iterator[str]:
    opcodes = line_opcodes(old, new)
    if is_numbered:
        groups = list(_groups_apart(opcodes))
    else:
        groups = list(_Comparison(opcodes).get_grouped_opcodes(CONTEXT_LINES))
    for number, group in enumerate(groups, 1):
        first, last = group[0], group[-1]
        name = f" hunk {number} of {len(groups)}" if is_numbered and len(groups) > 1 else ""
        yield f"@@ -{_range(first[1], last[2])} +{_range(first[3], last[4])} @@{name}\n"
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                yield from (" " + line for line in old[start:end])
            else:
                yield from ("-" + line for line in old[start:end])
                yield from ("+" + line for line in new[new_start:new_end])


def _groups_apart(opcodes: Sequence[Opcode]) -> Iterator[list[Opcode]]:
    """Group each change with the lines around it, which two changes share when there are few between them."""
    taken = 0
    for index, opcode in enumerate(opcodes):
        if opcode[0] == "equal":
            continue
        group = [opcode]
        if index > 0:
            _, start, end, new_start, new_end = opcodes[index - 1]
            lines = min(CONTEXT_LINES, end - start - taken)
            if lines:
                group.insert(0, ("equal", end - lines, end, new_end - lines, new_end))
        taken = 0
        if index + 1 < len(opcodes):
            _, start, end, new_start, new_end = opcodes[index + 1]
            is_shared = index + 2 < len(opcodes)
            taken = min(CONTEXT_LINES, (end - start + 1) // 2 if is_shared else end - start)
            group.append(("equal", start, start + taken, new_start, new_start + taken))
        yield group


def _range(start: int, end: int) -> str:
    """Return a line range as in a hunk's header: 1-based start and length; an empty one names the line before it."""
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
