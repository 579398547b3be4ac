"""Compares a workspace with how it was seen last, records who changed it, and carries out the user's decisions.

The ledger decides, the store keeps. Blocks: :mod:`isthmus.ide.written_changes.workspace_follower` has a thread for it.
"""

import logging
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from stat import S_IMODE
from typing import Final

from isthmus.errors import DecodeError
from isthmus.ide.written_changes import disk_files
from isthmus.ide.written_changes.disk_files import FileStatus, UnwritableError, why_unknown
from isthmus.ide.written_changes.file_content import (
    DiskFile,
    bytes_of,
    digest_of,
    mode_of,
    opaque_digest,
    text_of,
    tokens_of,
)
from isthmus.ide.written_changes.followed_files import MAXIMUM_FILES, FollowedFiles
from isthmus.ide.written_changes.ledger import ChangeError, ChangeSelection, Ledger, PlannedUndo
from isthmus.ide.written_changes.store import MAXIMUM_TOTAL_BYTES, Store
from isthmus.ide.written_changes.woven_file import WovenFile
from isthmus.record import record
from isthmus.text.text_file import UnencodableTextError
from isthmus.text.visible import printable

MAXIMUM_CHANGED_CHARACTERS: Final = 64 * 1024 * 1024
"""Maximum length of all changed texts together; further files are kept or undone as a whole."""
_OLDER_NANOSECONDS: Final = 2_000_000_000
"""A file that is new to us, but was made this long before the last look, was there already, and not followed."""

ACCEPTED_SECONDS: Final = 60.0
"""Time in seconds for which an accepted text is expected on disk."""

_log = logging.getLogger(__name__)


@record
class UndoOutcome:
    """Outcome of an undo: the files that were written, the number by which it is taken back, and what failed."""

    paths: tuple[str, ...]
    number: int
    problems: tuple[str, ...] = ()


class Recorder:
    """The files of some workspace folders (real paths), and what became of them."""

    def __init__(
        self,
        store: Store,
        folders: Sequence[str],
        clock: Callable[[], float] = time.time,
        maximum_files: int = MAXIMUM_FILES,
        maximum_bytes: int = MAXIMUM_TOTAL_BYTES,
    ) -> None:
        self._store = store
        self._clock = clock
        self._changed_characters = 0
        self._accepted: dict[str, tuple[float, str]] = {}
        self._looked_at_ns = 0
        self.revision = 0
        """Number of the newest change of the ledger."""
        self.counts = (0, 0)
        """Numbers of files and turns that wait for the user."""
        self.writers: tuple[str, ...] = ()
        """Titles of the agents that wrote what waits."""
        self._files = FollowedFiles(store, folders, maximum_files, maximum_bytes, clock)
        state = store.state()
        self.has_baseline: bool = bool(state.get("complete"))
        """Whether every file has been seen once."""
        self.were_attached: tuple[str, ...] = tuple(state.get("agents", ()))
        """Titles of the agents that were attached when the last companion ended without a word."""
        self.ledger = self._load(state)
        self._finish_intended()
        self._count()

    # Looking.

    @property
    def is_partial(self) -> bool:
        """Whether there are more files than are followed."""
        return self._files.is_partial

    def stop(self) -> None:
        """End a walk under way early; called from another thread."""
        self._files.is_stopped = True

    @property
    def being_written(self) -> tuple[str, ...]:
        """Files that have changed, and were left to a later look because they may be half written."""
        return self._files.being_written

    def look(
        self, agents: Sequence[str] | None, paths: Collection[str] | None = None, *, leaves_recent: bool = False
    ) -> bool:
        """Compare the workspace, or some of its files, and record what changed; return whether something did.

        ``agents`` are the titles of the attached ones; None: what changed is the user's. ``leaves_recent`` leaves
        files that changed just now to a later look: an editor that saves empties a file before it writes it.

        Raises:
            StoppedError: it was told to stop.
            sqlite3.Error: the store cannot be written.
        """
        if not self.has_baseline:
            if paths is None:
                self._see_all()
            return False
        began = time.time_ns()
        self._store.touch()
        found = self._files.differences(paths, leaves_recent=leaves_recent)
        changed = self._record(found, agents) if found else False
        if paths is None:
            self._looked_at_ns = began
        return changed

    def saved(self, path: str) -> bool:
        """Record that the user has just saved a file; return whether something changed."""
        known = self._files.known(path)
        status = disk_files.status_of(path, is_secret=known is not None and known[0].is_private)
        if not self.has_baseline or status is None:
            return False
        is_same_write = known is not None and known[0].is_same(status)
        if not is_same_write:
            return self.look(None, (path,))
        file = self._files.read(path, status)
        if file is None or path not in self.ledger.files:
            return False
        with self._store.transaction():
            self.ledger.written_by_user(path, tokens_of(file), self._clock())
            self.ledger.prune(self._clock())
            self._save((path,))
        return True

    def attached(self, agents: Sequence[str]) -> None:
        """Store which agents are attached, for the case that this companion is killed."""
        self.were_attached = tuple(agents)
        with self._store.transaction():
            self._store.save_state({"agents": list(agents)})

    def _see_all(self) -> None:
        """Record every file for the first time."""
        self._files.see_all()
        self.has_baseline = True
        self.ledger.looked_at = self._clock()
        with self._store.transaction():
            self._store.save_state({"complete": True})
            self._save(())
        self._looked_at_ns = time.time_ns()

    def _record(self, found: "dict[str, FileStatus | None]", agents: Sequence[str] | None) -> bool:
        at = self._clock()
        self._changed_characters = sum(woven.size() for woven in self.ledger.files.values())
        changed: list[str] = []
        replaced: set[str] = set()
        with self._store.transaction():
            for path, status in found.items():
                known = self._files.known(path)
                before = self._files.last(path)
                file = self._files.read(path, status) if status is not None else None
                if status is None or file is None:
                    if known is None:
                        continue
                    self._files.forget(path)
                elif known is None and status.changed_ns < self._looked_at_ns - _OLDER_NANOSECONDS:
                    continue  # it was there, and has just ceased to be ignored
                if known is not None:
                    replaced.add(known[1])
                    if file is not None and (file.digest, file.mode) == (known[1], known[0].mode & 0o7777):
                        if status is not None and not known[0].is_same(status):
                            self.ledger.touched(path)
                        continue
                if agents is None or self._is_accepted(path, file, at):
                    self.ledger.written_by_user(path, self._tokens(path, file), at)
                else:
                    self.ledger.written_by_agents(path, tokens_of(before), self._tokens(path, file), at, agents)
                changed.append(path)
            if changed:
                self.ledger.prune(at)
                self._save(changed)
            self._store.forget_unless_needed(replaced, self.ledger.opaque_digests())
        return bool(changed)

    def accepted(self, path: str, text: str) -> None:
        """Expect that an agent writes a text that the user has accepted in a review."""
        self._accepted[path] = (self._clock() + ACCEPTED_SECONDS, text)

    def _is_accepted(self, path: str, file: DiskFile | None, at: float) -> bool:
        """Return whether the content of a file is the one that the user accepted."""
        until, text = self._accepted.get(path, (0.0, ""))
        if at > until or file is None:
            self._accepted.pop(path, None)
            return False
        found = text_of(tokens_of(file))
        if found is None or _plain(found) != _plain(text):
            return False
        del self._accepted[path]
        return True

    def _tokens(self, path: str, file: DiskFile | None) -> list[str]:
        """Return the tokens of a file, in which the text is a single one once there is too much of it."""
        tokens = tokens_of(file)
        if file is None or path in self.ledger.files or opaque_digest(tokens) is not None:
            return tokens
        if self._changed_characters > MAXIMUM_CHANGED_CHARACTERS:
            return tokens_of(DiskFile(None, file.digest, file.mode))
        self._changed_characters += len(file.data or b"")
        return tokens

    # Decisions.

    def keep(self, selection: ChangeSelection) -> list[str]:
        """Make what is selected part of what the user has seen; return the files.

        Raises:
            ChangeError: it is not there any more.
        """
        before = self.ledger.opaque_digests()
        with self._store.transaction():
            kept = self.ledger.keep(selection, self._clock())
            self._save(kept)
            self._store.forget_unless_needed(before, self.ledger.opaque_digests())
        return kept

    def begin_turn(self, agents: Sequence[str], title: str) -> int:
        """Begin a turn at a prompt; return its number."""
        with self._store.transaction():
            turn = self.ledger.begin_turn(self._clock(), agents, title)
            self._save(())
        return turn.number

    def end_turn(self) -> None:
        """End the turn."""
        with self._store.transaction():
            self.ledger.end_turn()
            self._save(())

    def affected(self, selection: ChangeSelection) -> list[str]:
        """Return the files that an undo of the selection would write.

        Raises:
            ChangeError: it is not there any more.
        """
        return [plan.path for plan in self.ledger.plan_undo(selection)]

    def affected_by_taking_back(self, number: int | None) -> list[str]:
        """Return the files that taking back an undo would write.

        Raises:
            ChangeError: there is no undo.
        """
        return [plan.path for plan in self.ledger.plan_take_back(number)[1]]

    def undo(self, selection: ChangeSelection, refused: "dict[str, str]") -> UndoOutcome:
        """Write what was there before the selected hunks, except to files that are ``refused`` for a reason.

        Raises:
            ChangeError: it is not there any more, or no file could be written.
        """
        return self._carry_out(self.ledger.plan_undo(selection), refused, None)

    def take_back(self, number: int | None, refused: "dict[str, str]") -> UndoOutcome:
        """Write what was there before an undo, the newest one by default.

        Raises:
            ChangeError: there is no undo, or the files have changed there since.
        """
        found, plans = self.ledger.plan_take_back(number)
        if not plans:
            raise ChangeError("the files have changed there since; the undo cannot be taken back")
        return self._carry_out(plans, refused, found)

    def _carry_out(
        self, plans: Sequence[PlannedUndo], refused: "dict[str, str]", taken_back: int | None
    ) -> UndoOutcome:
        problems: list[str] = []
        ready: list[tuple[PlannedUndo, DiskFile | None, bytes | None]] = []
        for plan in plans:
            try:
                if plan.path in refused:
                    raise UnwritableError(refused[plan.path])
                ready.append((plan, self._files.last(plan.path), self._content(plan)))
            except UnwritableError as error:
                problems.append(str(error))
        with self._store.transaction():
            for plan, _, content in ready:
                digest = None if content is None else digest_of(content)
                if content is not None and digest is not None:
                    self._store.add(digest, content)  # also for files that are undone as a whole
                self._store.intend(plan.path, digest, plan.woven.to_json())
        done: list[PlannedUndo] = []
        for plan, now, content in ready:
            try:
                disk_files.write(plan.path, now, content, mode_of(plan.tokens))
                done.append(plan)
            except UnwritableError as error:
                problems.append(str(error))
        number, before = 0, self.ledger.opaque_digests()
        with self._store.transaction():
            if done:
                number = self.ledger.carried_out(done, self._clock(), taken_back=taken_back)
            for plan in done:
                self._files.see_now(plan.path)
            self._store.forget_intended()
            self._save([plan.path for plan in done])
            self._store.forget_unless_needed(before, self.ledger.opaque_digests())
        if not done:
            raise ChangeError("\n".join(problems))
        return UndoOutcome(tuple(plan.path for plan in done), number, tuple(problems))

    def _content(self, plan: PlannedUndo) -> bytes | None:
        """Return the bytes that a plan writes; None if it removes the file.

        Raises:
            UnwritableError: they are not stored, or the encoding cannot hold them.
        """
        if mode_of(plan.tokens) is None:
            return None
        name = printable(plan.path)
        try:
            content = bytes_of(plan.tokens, self._store.content)
        except UnencodableTextError as error:
            raise UnwritableError(f"{name}: {error}") from error
        if content is None:
            why = why_unknown(opaque_digest(plan.tokens) or "") or "its earlier content is not stored any more"
            raise UnwritableError(f"{name} cannot be undone: {why}")
        return content

    # Storing.

    def close(self, *, is_needed: bool) -> None:
        """Close the store; it is removed if it is not needed any longer and nothing waits for the user."""
        self._store.close(remove=self.ledger.is_empty and not is_needed)

    def _save(self, paths: Iterable[str]) -> None:
        """Store the ledger and some of its files."""
        self.revision += 1
        for path in paths:
            woven = self.ledger.files.get(path)
            self._store.save_changed(path, None if woven is None else woven.to_json())
        self._store.save_state({"ledger": self.ledger.to_json()})
        self._count()

    def _count(self) -> None:
        written = [woven for woven in self.ledger.files.values() if woven.is_written]
        turns = {turn for woven in written for turn in woven.turns}
        self.counts = len(written), len(turns)
        known = [self.ledger.turns[turn].agents for turn in sorted(turns) if turn in self.ledger.turns]
        self.writers = tuple(dict.fromkeys(agent for agents in known for agent in agents))

    def _load(self, state: "dict[str, object]") -> Ledger:
        try:
            files = {path: WovenFile.from_json(woven) for path, woven in self._store.changed().items()}
            value = state.get("ledger")
            return Ledger.from_json(value, files) if isinstance(value, dict) else Ledger()  # type: ignore[reportUnknownArgumentType]
        except (DecodeError, KeyError, TypeError, ValueError) as error:
            _log.warning("what agents wrote before the last start cannot be read, and is forgotten: %s", error)
            return Ledger()

    def _finish_intended(self) -> None:
        """Complete an undo during which the companion was killed, for each file that was written."""
        intended = self._store.intended()
        if not intended:
            return
        done: list[PlannedUndo] = []
        for path, digest, value in intended:
            with suppress(OSError, TypeError):
                woven = WovenFile.from_json(value)
                data = Path(path).read_bytes() if not Path(path).is_symlink() and Path(path).is_file() else None
                if (None if data is None else digest_of(data)) != digest or (not digest and Path(path).exists()):
                    continue
                if digest is None or S_IMODE(Path(path).stat().st_mode) == mode_of(woven.tokens):
                    done.append(PlannedUndo(path, woven.tokens, woven, ()))
        with self._store.transaction():
            if done:
                is_new = any(self.ledger.last_undo + 1 in plan.woven.undos for plan in done)
                self.ledger.carried_out(done, self._clock(), taken_back=None if is_new else 0)
            for plan in done:
                self._files.see_now(plan.path)
            self._store.forget_intended()
            self._save([plan.path for plan in done])


def _plain(text: str) -> str:
    return text.removeprefix("\ufeff").replace("\r\n", "\n")
