"""Finds the places of a text that are nearest to another text, although some words differ. Pure, and bounded.

Places are proposed by runs of three tokens that both texts have, at about the same distance from one another.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from isthmus.record import record
from isthmus.tools.matching.alignment import Segment, align
from isthmus.tools.matching.tokens import TokenText

MAXIMUM_FILE_TOKENS = 300_000
"""Maximum size of a file that is searched: about a megabyte of code."""
MAXIMUM_OLD_TOKENS = 4_000
_MOST_REPEATS = 20
"""Runs of tokens that the searched text has more often say nothing about the place."""
_MOST_SHIFTS = 1_000
_MOST_PROPOSALS = 8


@record
class SimilarPlace:
    """Tokens `first` to `last` of the file (half-open), their segments with the searched text, and a share from 0 to 1.

    `similarity` is the share of characters that both have, without white space.
    """

    first: int
    last: int
    segments: tuple[Segment, ...]
    similarity: float


def similar_places(file: TokenText, old: TokenText) -> list[SimilarPlace]:
    """Return the places that are most like `old`, the best first, without overlaps; at most eight."""
    if len(old) < 3 or len(old) > MAXIMUM_OLD_TOKENS or len(file) > MAXIMUM_FILE_TOKENS:
        return []
    found: list[SimilarPlace] = []
    for shift in _shifts(file.folded, old.folded):
        place = _place(file, old, shift)
        if place is not None and not any(_overlap(place, other) for other in found):
            found.append(place)
    return sorted(found, key=lambda place: -place.similarity)


def _overlap(place: SimilarPlace, other: SimilarPlace) -> bool:
    return place.first < other.last and other.first < place.last


def _shifts(file: Sequence[str], old: Sequence[str]) -> Iterator[int]:
    """Yield the distances between a token of `old` and its place in the file, those with most support first."""
    indexes: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for index, run in enumerate(zip(old, old[1:], old[2:], strict=False)):
        indexes[run].append(index)
    votes: Counter[int] = Counter()
    for place, run in enumerate(zip(file, file[1:], file[2:], strict=False)):
        found = indexes.get(run)
        if found is not None and len(found) <= _MOST_REPEATS:
            for index in found:
                votes[place - index] += 1
    yielded: list[int] = []
    for shift, _ in votes.most_common(_MOST_SHIFTS):
        if all(abs(shift - other) >= max(1, len(old) // 2) for other in yielded):
            yielded.append(shift)
            yield shift
        if len(yielded) == _MOST_PROPOSALS:
            return


def _place(file: TokenText, old: TokenText, shift: int) -> SimilarPlace | None:
    """Return the place of `old` near `shift`: whole lines, and as many tokens as the alignment shows.

    The lines that `old` would have exactly there are tried, and some more on both sides; the better ones are taken.
    """
    found = (_aligned(file, old, shift, slack) for slack in (0, max(8, len(old) // 8)))
    return max(filter(None, found), key=lambda place: place.similarity, default=None)


def _aligned(file: TokenText, old: TokenText, shift: int, slack: int) -> SimilarPlace | None:
    low, high = max(0, shift - slack), min(len(file), shift + len(old) + slack)
    while 0 < low < len(file) and not file.begins_line(low):
        low -= 1
    while 0 < high < len(file) and not file.ends_line(high - 1):
        high += 1
    if low >= high:
        return None
    window = TokenText(file.text[file.starts[low] : file.ends[high - 1]])
    segments = align(old, window, folded=True)
    equal = [segment for segment in segments if segment.is_equal]
    if not equal:
        return None
    start, end = _start(equal[0], window), _end(equal[-1], old, window)
    shared = sum(len(token) for segment in equal for token in old.tokens[segment.start : segment.end])
    total = sum(map(len, old.tokens)) + sum(map(len, window.tokens[start:end]))
    shifted = tuple(
        Segment(item.start, item.end, item.other_start - start, item.other_end - start, item.is_equal)
        for item in _cut(segments, start, end)
    )
    return SimilarPlace(low + start, low + end, shifted, 2 * shared / total)


def _start(first: Segment, window: TokenText) -> int:
    """Return where the place begins: before the first equal token as many as the searched text has, in its line."""
    start = first.other_start
    for _ in range(first.start):
        if start == 0 or window.begins_line(start):
            break
        start -= 1
    return start


def _end(last: Segment, old: TokenText, window: TokenText) -> int:
    end = last.other_end
    for _ in range(len(old) - last.end):
        if end == len(window) or window.ends_line(end - 1):
            break
        end += 1
    return end


def _cut(segments: Sequence[Segment], start: int, end: int) -> list[Segment]:
    """Return the segments with the file's side limited to the place; they cover all of the searched text."""
    result: list[Segment] = []
    for segment in segments:
        other_start, other_end = max(segment.other_start, start), min(segment.other_end, end)
        if segment.is_equal or segment.start < segment.end or other_start < other_end:
            other_start = min(other_start, end)
            result.append(
                Segment(segment.start, segment.end, other_start, max(other_start, other_end), segment.is_equal)
            )
    return result
