"""The changes between two notebooks, cell by cell, and a notebook with only some of them. Pure.

Cells are matched by their ids, otherwise by content and place. Everything that is not accepted stays exactly as in the
old text: metadata, outputs and ids of the other cells, and blanks between them. Different ids or formatting of the JSON
are not changes. Changes within one cell are not merged.
"""

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from enum import StrEnum

from isthmus.errors import IsthmusError
from isthmus.notebooks.notebook import Cell, Notebook, with_source
from isthmus.record import record
from isthmus.text.diff import line_opcodes, split_lines
from isthmus.text.text_file import Newlines, newlines_of

ALIKE = 0.5
"""Minimum similarity (0 to 1) at which two cells without a common id are versions of the same cell."""
MAXIMUM_COMPARED_LINES = 500
"""Maximum number of lines of a cell that are compared."""
MAXIMUM_CANDIDATES = 20
"""Maximum number of following old cells with which a new cell without a known id is compared."""


class ChangeKind(StrEnum):
    """Effect of a change on the notebook."""

    CHANGED = "changed"
    ADDED = "added"
    REMOVED = "removed"
    MOVED = "moved"
    NOTEBOOK = "notebook"
    """Change outside the cells: metadata, format version."""


class NoSuchChangeError(IsthmusError):
    """Raised for an unknown number of a change."""


@record
class Change:
    """One change. ``number`` counts from 1 in notebook order; cell indexes are 0-based, None if there is no cell."""

    number: int
    kind: ChangeKind
    old_index: int | None = None
    new_index: int | None = None


@record
class _Step:
    """A place in the merged order of the cells. ``change`` is the index of its change; None if both are equal."""

    old: int | None
    new: int | None
    change: int | None = None


@record
class NotebookChanges:
    """The changes from ``old`` to ``new``, created by :func:`compare`."""

    old: Notebook
    new: Notebook
    all: tuple[Change, ...]
    _steps: tuple[_Step, ...]

    def cells(self, change: Change) -> tuple[Cell | None, Cell | None]:
        """Return the old and the new cell of a change."""
        old, new = change.old_index, change.new_index
        return None if old is None else self.old.cells[old], None if new is None else self.new.cells[new]

    def accept(self, numbers: Collection[int], sources: Mapping[int, str] | None = None) -> str:
        """Return the text of the notebook with the changes of these numbers; the new text unchanged if these are all.

        ``sources`` contains the sources of new cells that the user has edited, by the number of the change.

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
        return frame.with_cells(tuple(self._merge_cells(numbers, edited)))

    def _merge_cells(self, numbers: Collection[int], edited: Mapping[int, str]) -> Iterator[Cell]:
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
                yield self._place_cell(change, step.new, edited.get(change.number))

    def _place_cell(self, change: Change, index: int, source: str | None) -> Cell:
        """Return a new cell with the surrounding blanks of the cell that it replaces."""
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
            text = text.replace("\r\n", "\n").replace("\n", "\r\n")  # strings contain no raw newlines
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
    """Return pairs of indexes of cells that are versions of the same cell, ordered by the old index."""
    places = dict(_identified(new))
    pairs = {index: places[identity] for identity, index in _identified(old) if identity in places}
    taken = set(pairs.values())
    # The remaining cells are compared between matched cells that are in order.
    anchors = sorted((index, pairs[index]) for index in _longest_increasing(sorted(pairs.items())))
    start, new_start = 0, 0
    for end, new_end in [*anchors, (len(old), len(new))]:
        left = [index for index in range(start, end) if index not in pairs]
        right = [index for index in range(new_start, new_end) if index not in taken]
        pairs |= _pair_similar(old, new, left, right)
        start, new_start = end + 1, new_end + 1
    return sorted(pairs.items())


def _identified(cells: Sequence[Cell]) -> Iterator[tuple[str, int]]:
    counts = Counter(cell.id for cell in cells)
    return ((cell.id, index) for index, cell in enumerate(cells) if cell.id is not None and counts[cell.id] == 1)


def _pair_similar(old: Sequence[Cell], new: Sequence[Cell], left: list[int], right: list[int]) -> dict[int, int]:
    """Return pairs of cells without a common id: those with equal sources, and between them those with similar ones."""
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
    """Return the old indexes of the longest subsequence of pairs that is in order on both sides."""
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
