"""A file with the changes of all turns woven into it: each line knows which turn wrote it, and which one removed it.

So the text after each turn can be told, and the change of a turn kept or undone while later ones stay. A change of the
user belongs to no turn: it counts as having been there all the time. No I/O.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from isthmus.ide.written_changes.file_content import ENCODING, MODE, OPAQUE
from isthmus.ide.written_changes.woven_hunks import BY_USER, HunkState, WovenEntry, WovenHunk, find_hunks
from isthmus.text.diff import line_opcodes


class WovenFile:
    """One file, from its content as the user saw it last."""

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        self._entries = [WovenEntry(token) for token in tokens]
        self._found: dict[int | None, tuple[WovenHunk, ...]] = {}
        """Hunks that were asked for since the last change, by turn."""
        self._turns: tuple[int, ...] | None = None
        self._is_written: bool | None = None

    # What is there.

    @property
    def tokens(self) -> list[str]:
        """Content as it is now."""
        return [entry.token for entry in self._entries if entry.is_present]

    def tokens_after(self, turn: int) -> list[str]:
        """Return the content after a turn, without what was undone; after turn 0 as the user saw it last."""
        return [entry.token for entry in self._entries if entry.is_in(turn)]

    @property
    def turns(self) -> tuple[int, ...]:
        """Turns with changes, in order."""
        if self._turns is None:
            found = {entry.by for entry in self._entries} | {entry.gone for entry in self._entries if entry.gone}
            self._turns = tuple(sorted(found - {BY_USER}))
        return self._turns

    @property
    def undos(self) -> frozenset[int]:
        """Operations that can still be taken back, wholly or in part."""
        found = {number for entry in self._entries for number in (entry.undone, entry.back)}
        return frozenset(number for number in found if number is not None)

    @property
    def is_changed(self) -> bool:
        """Whether there is anything to keep, to undo or to take back."""
        return any(entry.is_changed for entry in self._entries)

    @property
    def is_written(self) -> bool:
        """Whether there is anything to keep or to undo."""
        if self._is_written is None:
            every = self.turns
            states = (entry.state((turn,)) for entry in self._entries if entry.is_changed for turn in every)
            self._is_written = any(state is HunkState.WRITTEN for state in states)
        return self._is_written

    def opaque_digests(self) -> set[str]:
        """Return the digests of contents that are not text, of now and before."""
        return {entry.token[1:].partition(" ")[0] for entry in self._entries if entry.token[0] == OPAQUE}

    def size(self) -> int:
        """Return the number of characters."""
        return sum(len(entry.token) for entry in self._entries)

    def hunks(self, turn: int | None = None) -> tuple[WovenHunk, ...]:
        """Return the hunks of a turn, or those between the text that the user saw last and the present one."""
        if turn not in self._found:
            self._found[turn] = find_hunks(self._entries, self.turns, turn)
        return self._found[turn]

    # What is built upon what.

    def parts_of(self, hunk: WovenHunk) -> list[WovenHunk]:
        """Return the hunks of single turns in a hunk of several."""
        own = set(hunk.entries)
        found: list[WovenHunk] = []
        for turn in hunk.turns:
            found += [
                part
                for part in self.hunks(turn)
                if part.state is hunk.state and (own & set(part.entries) or (hunk.overlaps(part) and not part.is_whole))
            ]
        return found

    def with_later(self, hunks: Iterable[WovenHunk]) -> list[WovenHunk]:
        """Return hunks of single turns with the hunks of later turns that were built upon them."""
        return self._closure(hunks, lambda other, turn: other > turn)

    def with_earlier(self, hunks: Iterable[WovenHunk]) -> list[WovenHunk]:
        """Return hunks of single turns with the hunks of earlier turns that they were built upon."""
        return self._closure(hunks, lambda other, turn: other < turn)

    def _closure(self, hunks: Iterable[WovenHunk], is_wanted: Callable[[int, int], bool]) -> list[WovenHunk]:
        known = {turn: [h for h in self.hunks(turn) if h.state is HunkState.WRITTEN] for turn in self.turns}
        found = {hunk.id: hunk for hunk in hunks}
        waiting = list(found.values())
        while waiting:
            hunk = waiting.pop()
            turn = hunk.turns[0]
            for other, candidates in known.items():
                if not is_wanted(other, turn):
                    continue
                for candidate in candidates:
                    if candidate.id not in found and hunk.overlaps(candidate):
                        found[candidate.id] = candidate
                        waiting.append(candidate)
        return list(found.values())

    def _forget_found(self) -> None:
        self._found.clear()
        self._turns = self._is_written = None

    # Decisions.

    def keep(self, hunks: Iterable[WovenHunk]) -> None:
        """Make hunks of single turns part of what the user has seen."""
        removed: set[int] = set()
        for hunk in hunks:
            for index in hunk.entries:
                entry = self._entries[index]
                if entry.by in hunk.turns:
                    entry.by = BY_USER
                if entry.gone in hunk.turns:
                    removed.add(index)
        self._remove(removed)
        self._forget_found()

    def undo(self, hunks: Iterable[WovenHunk], operation: int) -> None:
        """Take hunks of single turns back; ``operation`` is the number by which they can be brought back."""
        for hunk in hunks:
            for index in hunk.entries:
                entry = self._entries[index]
                if entry.by in hunk.turns:
                    entry.undone = operation
                if entry.gone in hunk.turns:
                    entry.back = operation
        self._forget_found()

    def take_back(self, operation: int) -> None:
        """Bring back what an operation took back."""
        for entry in self._entries:
            if entry.undone == operation:
                entry.undone = None
            if entry.back == operation:
                entry.back = None
        self._forget_found()

    def settle_undone(self, hunks: Iterable[WovenHunk] | None = None) -> None:
        """Forget undone hunks, or all that was undone: it cannot be taken back any longer."""
        chosen = {index for hunk in hunks for index in hunk.entries} if hunks is not None else None
        removed: set[int] = set()
        for index, entry in enumerate(self._entries):
            if chosen is not None and index not in chosen:
                continue
            if entry.undone is not None:
                removed.add(index)
            elif entry.back is not None:
                entry.gone = entry.back = None
        self._remove(removed)
        self._forget_found()

    # Writes.

    def write_by_agent(self, tokens: Sequence[str], turn: int) -> None:
        """Record a new content as the work of a turn, the latest one of this file."""
        # A turn is compared with what was there before it: what it wrote and removed again is not listed.
        self._remove({i for i, entry in enumerate(self._entries) if entry.by == turn and entry.undone is None})
        for entry in self._entries:
            if entry.gone == turn and entry.back is None:
                entry.gone = None
        self._forget_found()
        self._settle_touched(tokens)
        self._apply(tokens, turn)

    def write_by_user(self, tokens: Sequence[str]) -> list[WovenHunk]:
        """Record a new content as the user's work; return the hunks that they changed, which count as kept now."""
        self._settle_touched(tokens)
        deleted, inserted = self._difference(tokens)
        touched: dict[str, WovenHunk] = {}
        for turn in self.turns:
            for hunk in self.hunks(turn):
                if hunk.state is HunkState.WRITTEN and self._touches(hunk, deleted, inserted):
                    touched[hunk.id] = hunk
        taken = self.with_earlier(touched.values())
        self.keep(taken)
        self._apply(tokens, BY_USER)
        return taken

    def _settle_touched(self, tokens: Sequence[str]) -> None:
        """Forget the undone hunks that a new content changes."""
        if not self.undos:
            return
        deleted, inserted = self._difference(tokens)
        undone = [hunk for turn in self.turns for hunk in self.hunks(turn) if hunk.state is HunkState.UNDONE]
        changes_whole = any(self._entries[index].token[0] in (MODE, ENCODING) for index in deleted) or any(
            token[0] in (MODE, ENCODING) for _, new in inserted for token in new
        )
        touched = [
            hunk
            for hunk in undone
            if (hunk.is_whole and changes_whole) or (not hunk.is_whole and self._touches(hunk, deleted, inserted))
        ]
        if touched:
            self.settle_undone(touched)

    def _touches(self, hunk: WovenHunk, deleted: set[int], inserted: list[tuple[int, Sequence[str]]]) -> bool:
        if hunk.is_whole:
            return bool(deleted or inserted)
        if not deleted.isdisjoint(hunk.entries):
            return True
        return any(hunk.span[0] < index <= hunk.span[1] for index, _ in inserted)

    def _difference(self, tokens: Sequence[str]) -> tuple[set[int], list[tuple[int, Sequence[str]]]]:
        """Return which entries a new content lacks, and what it has more, each before an entry."""
        present = [index for index, entry in enumerate(self._entries) if entry.is_present]
        deleted: set[int] = set()
        inserted: list[tuple[int, Sequence[str]]] = []
        for tag, start, end, new_start, new_end in line_opcodes([self._entries[i].token for i in present], tokens):
            if tag == "equal":
                continue
            deleted.update(present[start:end])
            if new_end > new_start:
                after = present[end - 1] if end > 0 else -1
                inserted.append((after + 1, tokens[new_start:new_end]))
        return deleted, inserted

    def _apply(self, tokens: Sequence[str], by: int) -> None:
        deleted, inserted = self._difference(tokens)
        if by != BY_USER:
            for index in deleted:
                entry = self._entries[index]
                entry.gone, entry.back = by, None
        for place, new in reversed(inserted):
            self._entries[place:place] = [WovenEntry(token, by) for token in new]
        if by == BY_USER:
            places = [place for place, new in inserted for _ in new]
            self._remove({index + bisect_left(places, index + 1) for index in deleted})
        self._forget_found()

    def _remove(self, indexes: set[int]) -> None:
        if indexes:
            self._entries = [entry for index, entry in enumerate(self._entries) if index not in indexes]

    # Storing.

    def to_json(self) -> list[list[Any]]:
        """Return a JSON value for :meth:`from_json`."""
        return [
            [entry.token] if not entry.is_changed else [entry.token, entry.by, entry.gone, entry.undone, entry.back]
            for entry in self._entries
        ]

    @classmethod
    def from_json(cls, value: Sequence[Sequence[Any]]) -> "WovenFile":
        """Return the file of a value of :meth:`to_json`.

        Raises:
            TypeError: it is not one.
        """
        made = cls()
        made._entries = [WovenEntry(*fields) for fields in value]
        return made

    def copy(self) -> "WovenFile":
        """Return a copy that changes independently."""
        return WovenFile.from_json(self.to_json())
