"""The hunks of a file into which the changes of several turns are woven. Pure."""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from isthmus.ide.written_changes.file_content import ENCODING, LINE, MARK, MODE, OPAQUE
from isthmus.record import record

BY_USER: Final = 0
"""Number in place of a turn for what was there before, or was written by the user."""
_BODY: Final = (LINE, OPAQUE)


class HunkState(StrEnum):
    """State of a hunk that is still listed."""

    WRITTEN = "written"
    UNDONE = "undone"


@dataclass(slots=True)
class WovenEntry:
    """A token, the turn that wrote it, and the turn that removed it (None: it is there).

    ``undone`` is the operation that took it away, ``back`` the one that brought it back after its removal.
    """

    token: str
    by: int = BY_USER
    gone: int | None = None
    undone: int | None = None
    back: int | None = None

    @property
    def is_present(self) -> bool:
        """Whether it is in the file now."""
        return self.undone is None and (self.gone is None or self.back is not None)

    def is_in(self, turn: int) -> bool:
        """Return whether it was there after a turn."""
        if self.by > turn or self.undone is not None:
            return False
        return self.gone is None or self.gone > turn or self.back is not None

    def state(self, turns: "Collection[int]") -> HunkState | None:
        """Return the state of the change that one of the turns made to it; None if they made none."""
        if self.by in turns:
            # What a turn wrote and another one of them removed is not a change of both together.
            if self.gone in turns and self.back is None and self.undone is None:
                return None
            return HunkState.WRITTEN if self.undone is None else HunkState.UNDONE
        if self.gone in turns:
            return HunkState.WRITTEN if self.back is None else HunkState.UNDONE
        return None

    @property
    def is_changed(self) -> bool:
        """Whether a turn wrote or removed it."""
        return self.by != BY_USER or self.gone is not None


@record
class WovenHunk:
    """A run of changed tokens. ``turns`` made the change; ``undo`` is the operation that took it back, if any.

    ``old`` and ``new`` are its lines before and after, with their starts in both texts, from 0. ``line`` is its place
    in the file as it is now, from 0. ``about`` are the kinds of its tokens. ``is_whole``: the file is created, deleted
    or in another encoding. ``entries`` are positions in the weave, ``span`` the first and the last one.
    """

    id: str
    turns: tuple[int, ...]
    state: HunkState
    old_start: int
    old: tuple[str, ...]
    new_start: int
    new: tuple[str, ...]
    line: int
    about: frozenset[str]
    is_whole: bool
    entries: tuple[int, ...]
    span: tuple[int, int]
    undo: int | None = None

    def overlaps(self, other: "WovenHunk") -> bool:
        """Return whether one was built upon the other."""
        return max(self.span[0], other.span[0]) <= min(self.span[1], other.span[1])


@dataclass(slots=True)
class _Group:
    """A hunk that is being collected. The three places count lines: before, after, and now."""

    state: HunkState
    places: tuple[int, int, int]
    entries: list[int] = field(default_factory=list[int])


def find_hunks(entries: Sequence[WovenEntry], all_turns: tuple[int, ...], turn: int | None) -> tuple[WovenHunk, ...]:
    """Return the hunks of a turn, or those between the text that the user saw last and the present one."""
    turns = all_turns if turn is None else (turn,)
    if not turns:
        return ()
    before, after = (BY_USER, turns[-1]) if turn is None else (turn - 1, turn)
    groups = list(_groups(entries, frozenset(turns), before, after))
    if any(entries[index].token[0] == ENCODING for group in groups for index in group.entries):
        groups = _joined(groups)
    found: list[WovenHunk] = []
    seen: dict[str, int] = {}
    for group in groups:
        for part, is_whole in _parts(entries, group):
            hunk = _hunk(entries, group, part, frozenset(turns), turn, is_whole=is_whole)
            ordinal = seen[hunk.id] = seen.get(hunk.id, 0) + 1
            identity = hashlib.sha256(f"{hunk.id} {ordinal}".encode()).hexdigest()[:16]
            found.append(replace(hunk, id=identity))
    return tuple(found)


def _groups(entries: Sequence[WovenEntry], turns: frozenset[int], before: int, after: int) -> Iterator[_Group]:
    open_group: _Group | None = None
    old = new = now = 0
    for index, entry in enumerate(entries):
        was, is_then = entry.is_in(before), entry.is_in(after)
        state = entry.state(turns)
        if open_group is not None and (open_group.state is not state if state else was or is_then):
            yield open_group
            open_group = None
        if state is not None:
            if open_group is None:
                open_group = _Group(state, (old, new, now))
            open_group.entries.append(index)
        if entry.token[0] == LINE:
            old, new, now = old + was, new + is_then, now + entry.is_present
    if open_group is not None:
        yield open_group


def _joined(groups: list[_Group]) -> list[_Group]:
    """Return one group for each state: lines in another encoding are not taken apart."""
    joined: dict[HunkState, _Group] = {}
    for group in groups:
        first = joined.setdefault(group.state, _Group(group.state, group.places))
        first.entries.extend(group.entries)
    return list(joined.values())


def _parts(entries: Sequence[WovenEntry], group: _Group) -> Iterator[tuple[list[int], bool]]:
    """Yield the entries of each hunk in a group: the mode and the mark change apart from the lines."""
    kinds = {entries[index].token[0] for index in group.entries}
    modes = [entries[index] for index in group.entries if entries[index].token[0] == MODE]
    if len(modes) == 1 or ENCODING in kinds or len(kinds) == 1:
        yield group.entries, len(modes) == 1 or ENCODING in kinds
        return
    for wanted in ((MODE,), (MARK,), _BODY):
        part = [index for index in group.entries if entries[index].token[0] in wanted]
        if part:
            yield part, False


def _hunk(
    entries: Sequence[WovenEntry],
    group: _Group,
    part: list[int],
    turns: frozenset[int],
    turn: int | None,
    *,
    is_whole: bool,
) -> WovenHunk:
    own = [entries[index] for index in part]
    old = [entry.token for entry in own if entry.gone in turns and entry.by not in turns]
    new = [entry.token for entry in own if entry.by in turns]
    # In all turns together also of those that wrote what another one removed.
    made = own if turn is not None else entries[part[0] : part[-1] + 1]
    makers = {entry.by for entry in made} | {entry.gone for entry in made if entry.gone is not None}
    # The lines around it are part of the name: otherwise one of two equal hunks had the name of the other.
    around = _unchanged(entries, range(part[0] - 1, -1, -1)), _unchanged(entries, range(part[-1] + 1, len(entries)))
    named = [str(turn), group.state, *around, *("-" + each for each in old), *("+" + each for each in new)]
    content = "\0".join(named)
    undos = [number for entry in own for number in (entry.undone, entry.back) if number is not None]
    old_start, new_start, line = group.places
    return WovenHunk(
        id=hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest(),
        turns=tuple(sorted((makers & turns) - {BY_USER})),
        state=group.state,
        old_start=old_start,
        old=tuple(token[1:] for token in old if token[0] == LINE),
        new_start=new_start,
        new=tuple(token[1:] for token in new if token[0] == LINE),
        line=line,
        about=frozenset(entry.token[0] for entry in own),
        is_whole=is_whole,
        entries=tuple(part),
        span=(0, len(entries)) if is_whole else (part[0], part[-1]),
        undo=undos[0] if undos and group.state is HunkState.UNDONE else None,
    )


def _unchanged(entries: Sequence[WovenEntry], indexes: range) -> str:
    """Return the first line among these that no turn has changed; empty without one."""
    return next((entries[index].token for index in indexes if not entries[index].is_changed), "")
