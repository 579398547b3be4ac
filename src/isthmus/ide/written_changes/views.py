"""JSON forms of the ledger for the user's commands and fronts. Pure.

The shapes are described in docs/reference/written-changes.md.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, cast

from isthmus.ide.written_changes.disk_files import why_unknown
from isthmus.ide.written_changes.file_content import (
    ENCODING,
    LINE,
    MARK,
    MODE,
    OPAQUE,
    Tokens,
    mode_of,
    opaque_digest,
    text_of,
)
from isthmus.ide.written_changes.ledger import Ledger, WrittenTurn
from isthmus.ide.written_changes.woven_hunks import BY_USER, HunkState, WovenHunk

_ABOUT: Final = {LINE: "text", OPAQUE: "content", MODE: "mode", ENCODING: "encoding", MARK: "mark"}
Shown = Callable[[str], str]


def listing(ledger: Ledger, at: float, shown: Shown) -> dict[str, Any]:
    """Return the turns, files and undos; ``shown`` returns the path of a file as the user knows it."""
    current = ledger.current_turn(at)
    return {
        "since": ledger.looked_at,
        "turns": [_turn(ledger, turn, turn is current, shown) for turn in ledger.turns.values()],
        "files": [_file(ledger, path, None, shown) for path in sorted(ledger.files)],
        "undos": [
            {"number": undo.number, "at": undo.at, "files": [shown(path) for path in undo.paths]}
            for undo in ledger.undos.values()
        ],
    }


def file_diff(ledger: Ledger, path: str, turn: int | None, shown: Shown) -> dict[str, Any]:
    """Return the texts of a file before and after, and its hunks: of one turn, or of all together."""
    before, after = _sides(ledger, path, turn)
    hunks = ledger.hunks(path, turn)
    return {
        **_file(ledger, path, turn, shown),
        "turn": turn,
        "old": text_of(before),
        "new": text_of(after),
        "hunks": [_hunk(ledger, path, hunk, number) for number, hunk in enumerate(hunks, 1)],
    }


def _sides(ledger: Ledger, path: str, turn: int | None) -> tuple[list[str], list[str]]:
    woven = ledger.files[path]
    if turn is None:
        return woven.tokens_after(BY_USER), woven.tokens
    return woven.tokens_after(turn - 1), woven.tokens_after(turn)


def _turn(ledger: Ledger, turn: WrittenTurn, is_current: bool, shown: Shown) -> dict[str, Any]:
    renamed = ledger.renamed(turn.number)
    files: list[dict[str, Any]] = []
    for path in ledger.paths_of(turn.number):
        encoded = _file(ledger, path, turn.number, shown)
        if path in renamed:
            encoded["renamed_from"] = shown(renamed[path])
        files.append(encoded)
    return {
        "number": turn.number,
        "began_at": turn.began_at,
        "last_at": turn.last_at,
        "agents": list(turn.agents),
        "title": turn.title,
        "working": is_current,
        "added": sum(file["added"] for file in files),
        "removed": sum(file["removed"] for file in files),
        "files": files,
    }


def _file(ledger: Ledger, path: str, turn: int | None, shown: Shown) -> dict[str, Any]:
    before, after = _sides(ledger, path, turn)
    hunks = ledger.hunks(path, turn)
    written = [hunk for hunk in hunks if hunk.state is HunkState.WRITTEN]
    encoded: dict[str, Any] = {
        "path": shown(path),
        "kind": "created" if not before and after else "deleted" if before and not after else "changed",
        "turns": list(ledger.files[path].turns) if turn is None else [turn],
        "added": sum(len(hunk.new) for hunk in written),
        "removed": sum(len(hunk.old) for hunk in written),
        "written": len(written),
        "undone": len(hunks) - len(written),
        "text": text_of(before) is not None or text_of(after) is not None,
        "why": _why(before, after),
        "old_mode": mode_of(before),
        "new_mode": mode_of(after),
    }
    return encoded


def _why(before: Tokens, after: Tokens) -> str:
    """Return why a change cannot be undone; empty if it can."""
    for tokens in (before, after):
        if (reason := why_unknown(opaque_digest(tokens) or "")) != "":
            return reason
    return ""


def _hunk(ledger: Ledger, path: str, hunk: WovenHunk, number: int) -> dict[str, Any]:
    is_written = hunk.state is HunkState.WRITTEN
    return {
        "id": hunk.id,
        "number": number,
        "state": hunk.state.value,
        "turns": list(hunk.turns),
        "later": ledger.later_turns(path, hunk) if is_written else [],
        "undo": hunk.undo,
        "about": [_ABOUT[kind] for kind in sorted(hunk.about)],
        "whole": hunk.is_whole,
        "old_start": hunk.old_start,
        "old_lines": list(hunk.old),
        "new_start": hunk.new_start,
        "new_lines": list(hunk.new),
        "line": hunk.line,
    }


def listed_hunks(diff: dict[str, Any]) -> list[str]:
    """Return the ids of the hunks of a diff in the order of their numbers."""
    return [hunk["id"] for hunk in cast("Sequence[dict[str, Any]]", diff["hunks"])]
