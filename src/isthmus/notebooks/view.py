"""The changes between two notebooks as text for a terminal: numbered, each with the diff of its source.

The text may contain control characters, which the caller must remove before printing. Not here: the changes, see
:mod:`isthmus.notebooks.changes`.
"""

import json
from collections.abc import Iterator
from typing import assert_never

from isthmus.encoding.codec import JsonObject
from isthmus.notebooks.changes import Change, ChangeKind, NotebookChanges, compare
from isthmus.notebooks.notebook import Cell, NotebookError, parse
from isthmus.text.diff import unified_diff
from isthmus.text.units import show_count
from isthmus.text.visible import with_ellipsis

LONGEST_VALUE = 500
"""Maximum length in characters of a displayed value of metadata."""


def is_notebook(path: str) -> bool:
    """Return whether a file is a notebook, by its name."""
    return path.lower().endswith(".ipynb")


def changes_between(path: str, old: str | None, new: str) -> NotebookChanges | None:
    """Return the changes of a notebook; None for a new file, another file, or a text that is not a notebook."""
    if old is None or not is_notebook(path):
        return None
    try:
        return compare(parse(old), parse(new))
    except NotebookError:
        return None


def heading(changes: NotebookChanges, change: Change) -> str:
    """Return a line about a change, such as ``code cell 3 is changed``. Cells count from 1."""
    old, new = changes.cells(change)
    old_number, new_number = (change.old_index or 0) + 1, (change.new_index or 0) + 1
    shown = new or old
    kind = shown.kind if shown is not None else ""
    match change.kind:
        case ChangeKind.CHANGED:
            return f"{kind} cell {old_number} is changed"
        case ChangeKind.ADDED:
            return f"new {kind} cell, as cell {new_number}"
        case ChangeKind.REMOVED:
            return f"{kind} cell {old_number} is removed"
        case ChangeKind.MOVED:
            return f"{kind} cell {old_number} is moved to place {new_number}"
        case ChangeKind.NOTEBOOK:
            return "metadata of the notebook"
        case _:
            assert_never(change.kind)


def remarks(old: Cell | None, new: Cell | None) -> tuple[str, ...]:
    """Return the changes of a cell besides its source: kind, outputs, metadata."""
    if old is None or new is None:
        only = new or old
        return (f"with {show_count(len(only.outputs), 'output')}",) if only is not None and only.outputs else ()
    found: list[str] = []
    if old.kind != new.kind:
        found.append(f"kind: {old.kind} -> {new.kind}")
    if old.outputs != new.outputs:
        found.append(f"outputs: {len(old.outputs)} -> {len(new.outputs)}")
    rest = [_other_members(cell) for cell in (old, new)]
    if rest[0] != rest[1]:
        found.append(_values(rest[0], rest[1]))
    return tuple(found)


def describe(changes: NotebookChanges) -> str:
    """Return all changes, numbered as ``isthmus ide accept --cells`` expects."""
    return "\n".join(line for change in changes.all for line in _describe(changes, change))


def _describe(changes: NotebookChanges, change: Change) -> Iterator[str]:
    yield f"[{change.number}] {heading(changes, change)}"
    if change.kind is ChangeKind.NOTEBOOK:
        yield f"    {_values(changes.old.members, changes.new.members)}"
        return
    old, new = changes.cells(change)
    for remark in remarks(old, new):
        yield f"    {remark}"
    before, after = old.source if old is not None else "", new.source if new is not None else ""
    # The file names and the position in the diff have no meaning for a cell.
    for line in unified_diff(before, after, "cell").splitlines()[2:]:
        if not line.startswith("\\"):
            yield f"    {line}"


def _other_members(cell: Cell) -> JsonObject:
    return {key: value for key, value in cell.value.items() if key not in ("id", "source", "outputs", "cell_type")}


def _values(old: JsonObject, new: JsonObject) -> str:
    keys = [key for key in {**old, **new} if old.get(key) != new.get(key)]
    return "; ".join(f"{key}: {_format_value(old.get(key))} -> {_format_value(new.get(key))}" for key in keys)


def _format_value(value: object) -> str:
    return with_ellipsis(json.dumps(value, ensure_ascii=False), LONGEST_VALUE)
