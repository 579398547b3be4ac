"""The record of what agents wrote since the user last looked: turns, changed files, and what was undone. No I/O.

A turn has the writes between two prompts where something tells of them (:meth:`Ledger.begin_turn`), otherwise writes
that are not further apart than a quiet time. Undoing is decided here in two steps: :meth:`Ledger.plan_undo` says which
content each file gets, and :meth:`Ledger.carried_out` records it once it is written.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from isthmus.encoding.codec import JsonObject, from_json, to_json
from isthmus.errors import IsthmusError
from isthmus.ide.written_changes.file_content import MODE, Tokens
from isthmus.ide.written_changes.woven_file import WovenFile
from isthmus.ide.written_changes.woven_hunks import HunkState, WovenHunk
from isthmus.record import record
from isthmus.text.visible import printable

QUIET_SECONDS: Final = 60.0
"""Time in seconds without a write after which the next one begins a turn, unless the turn was begun by a prompt."""
SAVE_SECONDS: Final = 10.0
"""Time in seconds within which a report that the user saved a file still applies to what was seen on disk before."""
MAXIMUM_UNDOS: Final = 100
"""Maximum number of operations that can be taken back; the oldest are forgotten."""
MAXIMUM_OVERTAKEN: Final = 1000
"""Maximum number of remembered hunks that the user changed themselves."""


class ChangeError(IsthmusError):
    """A decision that cannot be carried out; nothing was written, and the text says what to do."""


@record
class WrittenTurn:
    """A turn of agents. Times are Unix times in seconds.

    ``agents`` are the titles of those that were attached. ``title`` is the prompt, if it is known. ``is_told``: it was
    begun by a prompt, so that a quiet time does not end it.
    """

    number: int
    began_at: float
    last_at: float
    agents: tuple[str, ...] = ()
    title: str = ""
    is_told: bool = False


@record
class UndoOperation:
    """An undo that can be taken back. ``paths`` are the files that it changed."""

    number: int
    at: float
    paths: tuple[str, ...]


@record
class ChangeSelection:
    """Hunks that a decision is about: of one file or all, of one turn or all, or by their ids."""

    path: str | None = None
    turn: int | None = None
    hunks: tuple[str, ...] | None = None


@record
class PlannedUndo:
    """New content of one file, the state of its changes then, and the numbers of the turns that go with it."""

    path: str
    tokens: Tokens
    woven: WovenFile
    hunks: tuple[WovenHunk, ...]


@dataclass(slots=True)
class _BeforeWrite:
    at: float
    woven: WovenFile


@dataclass(slots=True)
class Ledger:
    """Everything that is listed. Files without changes are not in it."""

    files: dict[str, WovenFile] = field(default_factory=dict[str, WovenFile])
    turns: dict[int, WrittenTurn] = field(default_factory=dict[int, WrittenTurn])
    undos: dict[int, UndoOperation] = field(default_factory=dict[int, UndoOperation])
    last_turn: int = 0
    last_undo: int = 0
    looked_at: float = 0.0
    """Time at which the user decided about everything, or the first agent attached."""
    quiet_seconds: float = QUIET_SECONDS
    _is_ended: bool = True
    _before: dict[str, _BeforeWrite] = field(default_factory=dict[str, _BeforeWrite])
    _overtaken: OrderedDict[str, str] = field(default_factory=OrderedDict[str, str])

    # Writes.

    def begin_turn(self, at: float, agents: Sequence[str] = (), title: str = "") -> WrittenTurn:
        """Begin a turn, whose first write may come at any time."""
        self._end_turn()
        self.last_turn += 1
        turn = WrittenTurn(self.last_turn, at, at, tuple(agents), title, is_told=True)
        self.turns[turn.number] = turn
        self._is_ended = False
        return turn

    def end_turn(self) -> None:
        """End the turn: the next write begins another one."""
        self._end_turn()

    def current_turn(self, at: float) -> WrittenTurn | None:
        """Return the turn to which a write would belong; None if it would begin one."""
        turn = self.turns.get(self.last_turn)
        if self._is_ended or turn is None or not (turn.is_told or at - turn.last_at <= self.quiet_seconds):
            return None
        return turn

    def written_by_agents(
        self, path: str, before: Tokens, after: Tokens, at: float, agents: Sequence[str]
    ) -> WrittenTurn:
        """Record that a file has become another one while agents were attached; :meth:`prune` follows."""
        turn = self.current_turn(at)
        if turn is None:
            self._end_turn()
            self.last_turn += 1
            self._is_ended = False
            turn = WrittenTurn(self.last_turn, at, at, tuple(agents))
        names = turn.agents if turn.is_told and turn.agents else tuple(dict.fromkeys((*turn.agents, *agents)))
        turn = self.turns[turn.number] = replace(turn, last_at=max(at, turn.last_at), agents=names)
        woven = self.files.setdefault(path, WovenFile(before))
        self._before[path] = _BeforeWrite(at, woven.copy())
        woven.write_by_agent(after, turn.number)
        if not woven.is_changed:
            del self.files[path]
        return turn

    def written_by_user(self, path: str, after: Tokens, at: float) -> None:
        """Record that the user changed a file, or that it changed unattended; :meth:`prune` follows."""
        before = self._before.pop(path, None)
        if path not in self.files and before is None:
            return
        woven = self.files.get(path)
        if before is not None and at - before.at <= SAVE_SECONDS and (woven is None or list(after) == woven.tokens):
            woven = self.files[path] = before.woven  # it was seen before it was reported
        if woven is None:
            return
        together = [(hunk.id, {part.id for part in woven.parts_of(hunk)}) for hunk in woven.hunks()]
        taken = {hunk.id for hunk in woven.write_by_user(after)}
        for hunk_id in (*taken, *(whole for whole, parts in together if parts & taken)):
            self._overtaken[hunk_id] = path
        while len(self._overtaken) > MAXIMUM_OVERTAKEN:
            self._overtaken.popitem(last=False)
        if not woven.is_changed:
            del self.files[path]

    def touched(self, path: str) -> None:
        """Note that a file was written again with the content that it had: a save reported now was this one."""
        self._before.pop(path, None)

    def _end_turn(self) -> None:
        turn = self.turns.get(self.last_turn)
        self._is_ended = True
        if turn is not None and turn.number not in self._turns_in_use():
            del self.turns[turn.number]

    # What there is.

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to keep, to undo or to take back."""
        return not self.files

    def hunks(self, path: str, turn: int | None = None) -> tuple[WovenHunk, ...]:
        """Return the hunks of a file in one turn, or in all together; none of a file without changes."""
        woven = self.files.get(path)
        return () if woven is None else woven.hunks(turn)

    def paths_of(self, turn: int) -> list[str]:
        """Return the files with changes of a turn."""
        return sorted(path for path, woven in self.files.items() if turn in woven.turns)

    def later_turns(self, path: str, hunk: WovenHunk) -> list[int]:
        """Return the later turns whose changes go with a hunk when it is undone."""
        woven = self.files[path]
        parts = woven.parts_of(hunk) if len(hunk.turns) != 1 else [hunk]
        found = {turn for part in woven.with_later(parts) for turn in part.turns}
        return sorted(found - set(hunk.turns))

    def renamed(self, turn: int) -> dict[str, str]:
        """Return the files that a turn created with the content of a file that it deleted, by their new paths."""
        gone: dict[tuple[str, ...], str] = {}
        came: list[tuple[str, tuple[str, ...]]] = []
        for path in self.paths_of(turn):
            before, after = self.files[path].tokens_after(turn - 1), self.files[path].tokens_after(turn)
            if before and not after:
                gone[tuple(token for token in before if token[0] != MODE)] = path
            elif after and not before:
                came.append((path, tuple(token for token in after if token[0] != MODE)))
        return {path: gone[content] for path, content in came if len(content) > 1 and content in gone}

    # Decisions.

    def keep(self, selection: ChangeSelection, at: float) -> list[str]:
        """Make the selected hunks part of what the user has seen; return the files.

        Raises:
            ChangeError: there is nothing to keep, or a hunk is another one by now.
        """
        chosen = self._chosen(selection, HunkState.WRITTEN)
        for path, hunks in chosen.items():
            woven = self.files[path]
            woven.keep(woven.with_earlier(hunks))
            if selection.hunks is None and selection.turn is None:
                woven.settle_undone()
            self._before.pop(path, None)
        if selection == ChangeSelection():
            self.looked_at = at
            for woven in self.files.values():
                woven.settle_undone()
            self._end_turn()
            chosen |= {path: [] for path in self.files}
        self._drop_unchanged(list(self.files))
        if not chosen:
            raise ChangeError("nothing was written since you last looked")
        return sorted(chosen)

    def plan_undo(self, selection: ChangeSelection) -> list[PlannedUndo]:
        """Return the new content of each file without the selected hunks, and those that were built upon them.

        Raises:
            ChangeError: there is nothing to undo, or a hunk is another one by now.
        """
        plans: list[PlannedUndo] = []
        for path, hunks in self._chosen(selection, HunkState.WRITTEN).items():
            woven = self.files[path].copy()
            every = woven.with_later(hunks)
            woven.undo(every, self.last_undo + 1)
            plans.append(PlannedUndo(path, woven.tokens, woven, tuple(every)))
        if not plans:
            raise ChangeError("nothing that can be undone was written since you last looked")
        return plans

    def plan_take_back(self, number: int | None = None) -> tuple[int, list[PlannedUndo]]:
        """Return the number of an undo, by default the newest one, and the content of each file with it taken back.

        Raises:
            ChangeError: there is no undo, or nothing of it is left.
        """
        operation = self.undos.get(self.newest_undo if number is None else number)
        if operation is None:
            raise ChangeError("there is no undo to take back" if number is None else f"there is no undo {number}")
        plans: list[PlannedUndo] = []
        for path in operation.paths:
            if path not in self.files or operation.number not in self.files[path].undos:
                continue
            woven = self.files[path].copy()
            woven.take_back(operation.number)
            plans.append(PlannedUndo(path, woven.tokens, woven, ()))
        return operation.number, plans

    @property
    def newest_undo(self) -> int:
        """Number of the newest undo that can be taken back; 0 without one."""
        return max(self.undos, default=0)

    def carried_out(self, plans: Iterable[PlannedUndo], at: float, *, taken_back: int | None = None) -> int:
        """Record that the contents of plans were written; return the number of the undo."""
        plans = list(plans)
        for plan in plans:
            self.files[plan.path] = plan.woven
            self._before.pop(plan.path, None)
        if taken_back is not None:
            self._drop_unchanged([plan.path for plan in plans])
            return taken_back
        self.last_undo += 1
        self.undos[self.last_undo] = UndoOperation(self.last_undo, at, tuple(plan.path for plan in plans))
        while len(self.undos) > MAXIMUM_UNDOS:
            del self.undos[min(self.undos)]
        self._drop_unchanged([plan.path for plan in plans])
        return self.last_undo

    def _chosen(self, selection: ChangeSelection, state: HunkState) -> dict[str, list[WovenHunk]]:
        """Return the selected hunks of single turns by file."""
        if selection.turn is not None and selection.turn not in self.turns:
            raise ChangeError(f"there is no turn {selection.turn}; list the turns with `isthmus ide changes`")
        paths = list(self.files) if selection.path is None else [selection.path]
        if selection.path is not None and selection.hunks is None:
            paths += self._partners(selection.path)
        wanted = None if selection.hunks is None else dict.fromkeys(selection.hunks)
        chosen: dict[str, list[WovenHunk]] = {}
        for path in paths:
            woven = self.files.get(path)
            if woven is None:
                continue
            turns = woven.turns if selection.turn is None else (selection.turn,)
            single = [hunk for turn in turns for hunk in woven.hunks(turn)]
            if wanted is not None:
                picked = [hunk for hunk in single if hunk.id in wanted]
                for hunk in woven.hunks() if selection.turn is None else ():
                    if hunk.id in wanted:
                        picked += [part for part in woven.parts_of(hunk) if part not in picked]
                        wanted.pop(hunk.id)
                for hunk in picked:
                    wanted.pop(hunk.id, None)
                single = picked
            found = [hunk for hunk in single if hunk.state is state]
            if found:
                chosen[path] = found
        if wanted:
            raise ChangeError(self._why_gone(next(iter(wanted)), selection.path))
        if selection.path is not None and not chosen:
            raise ChangeError(f"nothing in {printable(selection.path)} waits for you; see `isthmus ide changes`")
        return chosen

    def _partners(self, path: str) -> list[str]:
        """Return the other path of a renamed file."""
        found: list[str] = []
        for turn in self.files[path].turns if path in self.files else ():
            for new, old in self.renamed(turn).items():
                found += [old] if new == path else [new] if old == path else []
        return found

    def _why_gone(self, hunk: str, path: str | None) -> str:
        where = "" if path is None else f"{printable(path)}: "
        if hunk in self._overtaken:
            return f"{where}You changed this hunk since; undo is off. Nothing was written."
        return f"{where}This hunk has changed since it was listed; nothing was written. List the changes again."

    def prune(self, at: float) -> None:
        """Forget turns and undos of which nothing is left, and what was there before writes that are long ago."""
        self._before = {name: kept for name, kept in self._before.items() if at - kept.at <= SAVE_SECONDS}
        self._drop_unchanged(())

    def _drop_unchanged(self, paths: Collection[str]) -> None:
        for path in paths:
            if path in self.files and not self.files[path].is_changed:
                del self.files[path]
        used = self._turns_in_use()
        current = None if self._is_ended else self.last_turn
        for number in [number for number in self.turns if number not in used and number != current]:
            del self.turns[number]
        undos = {number for woven in self.files.values() for number in woven.undos}
        for number in [number for number in self.undos if number not in undos]:
            del self.undos[number]

    def _turns_in_use(self) -> set[int]:
        return {turn for woven in self.files.values() for turn in woven.turns}

    def opaque_digests(self) -> set[str]:
        """Return the digests of all contents that are not text and that an undo may need."""
        return {digest for woven in self.files.values() for digest in woven.opaque_digests()}

    # Storing.

    def to_json(self) -> dict[str, Any]:
        """Return everything but the files as a JSON object."""
        return {
            "turns": [to_json(turn) for turn in self.turns.values()],
            "undos": [to_json(undo) for undo in self.undos.values()],
            "last_turn": self.last_turn,
            "last_undo": self.last_undo,
            "looked_at": self.looked_at,
            "is_ended": self._is_ended,
        }

    @classmethod
    def from_json(cls, value: JsonObject, files: dict[str, WovenFile]) -> "Ledger":
        """Return the ledger of a value of :meth:`to_json` and the files.

        Raises:
            DecodeError, KeyError, TypeError: it is not one.
        """
        turns = [from_json(WrittenTurn, each) for each in value["turns"]]
        undos = [from_json(UndoOperation, each) for each in value["undos"]]
        return cls(
            files,
            {turn.number: turn for turn in turns},
            {undo.number: undo for undo in undos},
            int(value["last_turn"]),
            int(value["last_undo"]),
            float(value["looked_at"]),
            _is_ended=bool(value["is_ended"]),
        )
