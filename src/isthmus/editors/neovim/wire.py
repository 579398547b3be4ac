"""Coding between the tables of the scripts in Neovim and the types of the Editor port. No I/O.

Positions are sent as ``[line, character]``, 0-based, in UTF-16 code units like the port's: the Lua converts.
"""

from collections.abc import Mapping
from typing import Any, Final, cast

from isthmus.editors.neovim.shown_file import NEW_FILE
from isthmus.editors.neovim.text import BufferText
from isthmus.files.locations import data_directory
from isthmus.ide.editor import Diagnostic, EditorError, OpenFile, Position, Range, Selection, Severity
from isthmus.ide.reviews.kept_text import KEPT_FOLDER
from isthmus.ide.reviews.review import DiffReview

_SEVERITIES: Final = {1: Severity.ERROR, 2: Severity.WARNING, 3: Severity.INFORMATION, 4: Severity.HINT}


def encode_range(at: Range | None) -> list[list[int]] | None:
    """Return ``[start, end]``."""
    if at is None:
        return None
    return [[at.start.line, at.start.character], [at.end.line, at.end.character]]


def encode_review(review: DiffReview, label: str, note: str, current: BufferText) -> dict[str, object]:
    """Return what the script shows of a review: ``current`` is the file on disk, ``note`` the name of that side.

    ``label`` is the path for the user.
    """
    return {
        "path": review.file_path,
        "label": label,
        "note": note,
        "is_new": note == NEW_FILE,
        "agent": review.title,
        "owner": review.owner,
        "asked": review.opened,
        "proposed_by": f"proposed by {review.title}" if review.title else "proposed",
        "current": current.to_neovim(),
        "proposed": BufferText.of(review.proposed).to_neovim(),
        "kept_folder": str(data_directory() / KEPT_FOLDER),
    }


def decode_error(text: str) -> str:
    """Return the message of an error of Lua, without Neovim's prefix and stack trace: agents and users read it."""
    return text.removeprefix("Error executing lua: ").removeprefix("Lua: ").partition("\nstack traceback:")[0]


def require_version(api: Mapping[str, Any], oldest: tuple[int, int, int]) -> None:
    """Check the version in the answer to ``nvim_get_api_info``.

    Raises:
        EditorError: it is older than ``oldest``.
    """
    version = api["version"]
    found = (int(version["major"]), int(version["minor"]), int(version["patch"]))
    if found < oldest:
        shown = ".".join(str(number) for number in found)
        raise EditorError(f"Neovim {shown} is too old: Isthmus needs Neovim {oldest[0]}.{oldest[1]} or newer")


def decode_files(value: object) -> tuple[OpenFile, ...]:
    """Return the open files in the script's ``state``."""
    return tuple(_file(item) for item in _tables(value))


def decode_diagnostics(value: object) -> tuple[Diagnostic, ...]:
    """Return the diagnostics in the script's ``diagnostics``."""
    return tuple(_diagnostic(item) for item in _tables(value))


def _tables(value: object) -> list[dict[str, Any]]:
    # An empty Lua table arrives as a list; None stands for nothing.
    return cast("list[dict[str, Any]]", value) if isinstance(value, list) else []


def _file(item: dict[str, Any]) -> OpenFile:
    selection = item.get("selection")
    return OpenFile(
        path=item["path"],
        focused_at=float(item["focused_at"]),
        is_active=item.get("is_active", False),
        cursor=_position(item["cursor"]) if "cursor" in item else None,
        selection=Selection(_range(selection), selection["text"]) if selection else None,
        is_dirty=item["is_dirty"],
        language_id=item["language_id"] or None,
        line_count=item.get("line_count"),
    )


def _diagnostic(item: dict[str, Any]) -> Diagnostic:
    return Diagnostic(
        path=item["path"],
        range=_range(item),
        severity=_SEVERITIES.get(item["severity"], Severity.INFORMATION),
        message=item["message"],
        source=item.get("source"),
        code=item.get("code"),
    )


def _range(item: dict[str, Any]) -> Range:
    return Range(_position(item["start"]), _position(item["end"]))


def _position(pair: list[int]) -> Position:
    return Position(int(pair[0]), int(pair[1]))
