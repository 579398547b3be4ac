"""Pairs the tokens of two texts: which are the same, and which took the place of which. Pure."""

from collections.abc import Iterator, Sequence

from isthmus.record import record
from isthmus.text.diff import line_opcodes
from isthmus.tools.matching.tokens import TokenText

_MOST_TOKENS = 1_500
"""Maximum number of tokens on both sides of changed lines that are compared one by one; longer ones are one change."""


@record
class Segment:
    """Half-open ranges of tokens of two texts; `is_equal`: the tokens are the same, one by one."""

    start: int
    end: int
    other_start: int
    other_end: int
    is_equal: bool


def align(old: TokenText, new: TokenText, *, folded: bool = False) -> list[Segment]:
    """Return the segments of two texts, in order and without gaps, compared by lines first and then by tokens.

    `folded`: tokens that models exchange for one another are the same.
    """
    old_tokens, new_tokens = (old.folded, new.folded) if folded else (old.tokens, new.tokens)
    old_lines, new_lines = _lines(old), _lines(new)
    old_keys = [" ".join(old_tokens[start:end]) for start, end in old_lines]
    new_keys = [" ".join(new_tokens[start:end]) for start, end in new_lines]
    result: list[Segment] = []
    for tag, a, b, c, d in line_opcodes(old_keys, new_keys):
        start, end = _range(old_lines, a, b, len(old))
        other_start, other_end = _range(new_lines, c, d, len(new))
        segment = Segment(start, end, other_start, other_end, tag == "equal")
        result.extend([segment] if segment.is_equal else _compared(old_tokens, new_tokens, segment))
    return list(_joined(result))


def _lines(text: TokenText) -> list[tuple[int, int]]:
    """Return the ranges of tokens of the lines that have any."""
    starts = [index for index in range(len(text)) if text.begins_line(index)]
    return list(zip(starts, [*starts[1:], len(text)], strict=True)) if starts else []


def _range(lines: Sequence[tuple[int, int]], start: int, end: int, total: int) -> tuple[int, int]:
    first = lines[start][0] if start < len(lines) else total
    return first, lines[end - 1][1] if end > start else first


def _compared(old: Sequence[str], new: Sequence[str], change: Segment) -> Iterator[Segment]:
    """Yield the segments of changed lines, compared by tokens."""
    a, b, c, d = change.start, change.end, change.other_start, change.other_end
    if a == b or c == d or b - a + d - c > _MOST_TOKENS:
        yield change
        return
    for tag, start, end, other_start, other_end in line_opcodes(old[a:b], new[c:d]):
        yield Segment(a + start, a + end, c + other_start, c + other_end, tag == "equal")


def _joined(segments: Sequence[Segment]) -> Iterator[Segment]:
    """Yield the segments with neighbours of the same kind made one."""
    before: Segment | None = None
    for segment in segments:
        if before is not None and before.is_equal == segment.is_equal:
            before = Segment(before.start, segment.end, before.other_start, segment.other_end, segment.is_equal)
            continue
        if before is not None:
            yield before
        before = segment
    if before is not None:
        yield before
