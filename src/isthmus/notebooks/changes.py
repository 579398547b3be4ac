"""The changes between two notebooks, cell by cell, and the notebook that has only some of them.

Cells belong together by their ids, else by their content and place. Whatever is not accepted stays character for
character as in the old text: metadata, outputs and ids of the other cells, blanks between them. Ids, and the way the
JSON is written, do not count as changes. Pure. Deliberately not here: merging inside of one cell.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from enum import StrEnum

from isthmus.errors import IsthmusError
from isthmus.notebooks.notebook import Cell, Notebook, with_source
from isthmus.text.diff import line_opcodes, split_lines
from isthmus.text.text_file import Newlines, newlines_of

ALIKE = 0.5
"""Minimum similarity (0 to 1) at which two cells without a common id are versions of one."""
MAXIMUM_COMPARED_LINES = 500
MAXIMUM_CANDIDATES = 20
"""Maximum number of following old cells that a new cell without a known id is compared with."""


class ChangeKind(StrEnum):
    """Effect of a change on the notebook."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    NOTEBOOK = "notebook"
    """Everything that is not a cell: metadata, format version."""


class NoSuchChangeError(IsthmusError):
    """Raised for a number that no change has."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change. ``number`` counts from 1 in the order of the notebook; cell indexes are 0-based, None: not there."""

    number: int
    kind: ChangeKind
    old_index: int | None = None
    new_index: int | None = None


@dataclass(frozen=True, slots=True)
class _Step:
    """A place in the merged order of the cells. ``change`` indexes the changes; None: both are the same."""

    old: int | None
    new: int | None
    change: int | None = None


@dataclass(frozen=True, slots=True)
class NotebookChanges:
    """The changes from ``old`` to ``new``. Made by :func:`compare`."""

    old: Notebook
    new: Notebook
    all: tuple[Change, ...]
    _steps: tuple[_Step, ...]

    def cells(self, change: Change) -> tuple[Cell | None, Cell | None]:
        """Return the old and the new cell of a change."""
        old, new = change.old_index, change.new_index
        return None if old is None else self.old.cells[old], None if new is None else self.new.cells[new]

    def accept(self, numbers: Collection[int], sources: Mapping[int, str] | None = None) -> str:
        """Return the text of the notebook with the changes of these numbers; all of them: the new text as it is.

        ``sources`` has the sources of new cells that the user has edited, by the number of the change.

        Raises:
            NoSuchChangeError: no change has this number.
        """
        known = {change.number for change in self.all}
        if unknown := sorted(set(numbers) - known):
            expected = f"1 to {len(known)}" if known else "none: no cell differs"
            raise NoSuchChangeError(f"there is no change {unknown[0]}; expected {expected}")
        edited = {number: source for number, source in (sources or {}).items() if self._is_edited(number, source)}
        if known and not edited and known == set(numbers):
            return self.new.text
        frame = self.old
        is_whole = any(change.kind is ChangeKind.NOTEBOOK and change.number in numbers for change in self.all)
        if is_whole:
            frame = replace(self.old, head=self.new.head, tail=self.new.tail, members=self.new.members)
        return frame.with_cells(tuple(self._accepted(numbers, edited)))

    def _accepted(self, numbers: Collection[int], edited: Mapping[int, str]) -> Iterator[Cell]:
        for step in self._steps:
            if step.change is None:
                if step.old is not None:
                    yield self.old.cells[step.old]
                continue
            change = self.all[step.change]
            if change.number not in numbers:
                if step.old is not None:
                    yield self.old.cells[step.old]
            elif step.new is not None:
                yield self._taken(change, step.new, edited.get(change.number))

    def _taken(self, change: Change, index: int, source: str | None) -> Cell:
        """Return a new cell, in the blanks of the one whose place it takes."""
        cell = self.new.cells[index]
        if change.old_index is not None and _content(self.old.cells[change.old_index]) == _content(cell):
            cell = replace(cell, text=self.old.cells[change.old_index].text)  # only moved
        if source is not None:
            cell = with_source(cell, source)
        neighbours = self.old.cells
        if not neighbours:
            return cell
        place = neighbours[change.old_index if change.old_index is not None else 0]
        is_last = change.kind is not ChangeKind.CHANGED or place is neighbours[-1]
        text = cell.text
        if newlines_of(self.old.text) is Newlines.CRLF:
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")  # inside of strings there are none
        return replace(cell, text=text, lead=place.lead, trail="" if is_last else place.trail)

    def _is_edited(self, number: int, source: str) -> bool:
        change = next((change for change in self.all if change.number == number), None)
        if change is None or change.new_index is None:
            return False
        return self.new.cells[change.new_index].source != source


def compare(old: Notebook, new: Notebook) -> NotebookChanges:
    """Return the changes from one notebook to another. The cost grows about linearly with the number of cells."""
    pairs = _pairs(old.cells, new.cells)
    partner = dict(pairs)
    in_order = _longest_increasing(pairs)
    moved = {index: other for index, other in pairs if index not in in_order}
    order: list[tuple[int | None, int | None]] = []
    position = 0
    for index in range(len(old.cells)):
        if index not in in_order:
            order.append((index, None))
            continue
        order.extend((None, other) for other in range(position, partner[index]))
        order.append((index, partner[index]))
        position = partner[index] + 1
    order.extend((None, other) for other in range(position, len(new.cells)))

    origins = {other: index for index, other in moved.items()}
    changes: list[Change] = []
    of_moved: dict[int, int] = {}
    steps: list[_Step] = []
    for index, other in order:
        origin = index if other is None else origins.get(other)
        if index is not None and other is not None:
            is_same = _content(old.cells[index]) == _content(new.cells[other])
            change = None if is_same else Change(len(changes) + 1, ChangeKind.CHANGED, index, other)
        elif origin is not None and origin in moved:
            if origin in of_moved:
                steps.append(_Step(index, other, of_moved[origin]))
                continue
            of_moved[origin] = len(changes)
            change = Change(len(changes) + 1, ChangeKind.MOVED, origin, moved[origin])
        elif index is not None:
            change = Change(len(changes) + 1, ChangeKind.REMOVED, index)
        else:
            change = Change(len(changes) + 1, ChangeKind.ADDED, None, other)
        steps.append(_Step(index, other, None if change is None else len(changes)))
        if change is not None:
            changes.append(change)
    if _canonical(old.members) != _canonical(new.members):
        changes.append(Change(len(changes) + 1, ChangeKind.NOTEBOOK))
    return NotebookChanges(old, new, tuple(changes), tuple(steps))


def _pairs(old: Sequence[Cell], new: Sequence[Cell]) -> list[tuple[int, int]]:
    """Return the indexes of the cells that are versions of one, ordered by the old one."""
    places = dict(_identified(new))
    pairs = {index: places[identity] for identity, index in _identified(old) if identity in places}
    taken = set(pairs.values())
    # The rest is compared between the cells that are known to belong together and to be in order.
    anchors = sorted((index, pairs[index]) for index in _longest_increasing(sorted(pairs.items())))
    start, new_start = 0, 0
    for end, new_end in [*anchors, (len(old), len(new))]:
        left = [index for index in range(start, end) if index not in pairs]
        right = [index for index in range(new_start, new_end) if index not in taken]
        pairs |= _alike(old, new, left, right)
        start, new_start = end + 1, new_end + 1
    return sorted(pairs.items())


def _identified(cells: Sequence[Cell]) -> Iterator[tuple[str, int]]:
    counts = Counter(cell.id for cell in cells)
    return ((cell.id, index) for index, cell in enumerate(cells) if cell.id is not None and counts[cell.id] == 1)


def _alike(old: Sequence[Cell], new: Sequence[Cell], left: list[int], right: list[int]) -> dict[int, int]:
    """Return pairs of cells without a common id: with the same source, and between these with a similar one."""
    found: dict[int, int] = {}
    for tag, start, end, new_start, new_end in line_opcodes(_keys(old, left), _keys(new, right)):
        if tag == "equal":
            found |= dict(zip(left[start:end], right[new_start:new_end], strict=True))
            continue
        ours, theirs = left[start:end], right[new_start:new_end]
        is_one_for_one = len(ours) == len(theirs)
        free = 0
        for offset, other in enumerate(theirs):
            places = (
                range(offset, offset + 1) if is_one_for_one else range(free, min(free + MAXIMUM_CANDIDATES, len(ours)))
            )
            for place in places:
                index = ours[place]
                if old[index].kind == new[other].kind and (is_one_for_one or _are_alike(old[index], new[other])):
                    found[index] = other
                    free = place + 1
                    break
    return found


def _keys(cells: Sequence[Cell], indexes: Sequence[int]) -> list[str]:
    return [f"{cells[index].kind}\n{cells[index].source}" for index in indexes]


def _are_alike(old: Cell, new: Cell) -> bool:
    lines = split_lines(old.source)[:MAXIMUM_COMPARED_LINES], split_lines(new.source)[:MAXIMUM_COMPARED_LINES]
    matcher = SequenceMatcher(None, *lines, autojunk=False)
    # The quick ratios are upper bounds of the exact one.
    return matcher.real_quick_ratio() >= ALIKE and matcher.quick_ratio() >= ALIKE and matcher.ratio() >= ALIKE


def _longest_increasing(pairs: Sequence[tuple[int, int]]) -> set[int]:
    """Return the old indexes of the longest run of pairs that is in order on both sides."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = []
    for place, (_, other) in enumerate(pairs):
        length = bisect_left(tails, other)
        tails[length : length + 1] = [other]
        ends[length : length + 1] = [place]
        before.append(ends[length - 1] if length else -1)
    result: set[int] = set()
    place = ends[-1] if ends else -1
    while place >= 0:
        result.add(pairs[place][0])
        place = before[place]
    return result


def _content(cell: Cell) -> str:
    return _canonical({**cell.value, "id": None, "source": cell.source})


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True)
