"""The text of a question about what a command changed in a copy of its folder, with each changed line. Pure."""

from collections.abc import Iterable, Mapping

from isthmus.text.diff import split_lines, unified_diff
from isthmus.text.units import show_count
from isthmus.tools.shell.trials.effect import EntryState, Kind, TriedChange

MAXIMUM_SHOWN_CHARACTERS = 60_000
"""Maximum length of a text; a longer one is not cut, since nobody would agree to what is not shown."""
MAXIMUM_COMPARED_BYTES = 8 * 1024 * 1024
"""Maximum size in bytes of all contents that are compared, since that takes time."""


def shown_changes(
    shown: Iterable[TriedChange],
    built: Iterable[TriedChange],
    contents: Mapping[str, tuple[bytes, bytes]],
    exit_code: int,
) -> str | None:
    """Return the text; None if it would be too long. ``contents`` has the old and the new content of changed files."""
    lines: list[str] = []
    diffs: list[str] = []
    listed = tuple(shown)
    if sum(len(each) for change in listed for each in contents.get(change.path, ())) > MAXIMUM_COMPARED_BYTES:
        return None
    for change in listed:
        old, new = contents.get(change.path, (b"", b""))
        note, diff = _one(change, old, new)
        lines.append(note)
        diffs += [diff] if diff else []
    outputs = [
        change for change in built if (change.after or change.before or EntryState(Kind.FILE)).kind is not Kind.FOLDER
    ]
    if outputs:
        tops = sorted({change.path.split("/")[0] for change in outputs})
        lines.append(f"and {show_count(len(outputs), 'build output')} in {', '.join(tops)}")
    text = "\n".join((f"In a copy of the folder it ended with exit code {exit_code}, and changed:", *lines, *diffs))
    return text if len(text) <= MAXIMUM_SHOWN_CHARACTERS else None


def _one(change: TriedChange, old: bytes, new: bytes) -> tuple[str, str]:
    """Return the line about a change, and its diff if it has one."""
    before, after = change.before, change.after
    state = after or before
    if state is None:
        return f"  unchanged {change.path}", ""
    word = "created" if before is None else "removed" if after is None else "changed"
    name = change.path + ("/" if state.kind is Kind.FOLDER else "")
    notes = [word, name]
    if state.kind is Kind.LINK:
        notes.append(f"(a link to {state.content})")
    modes = [None if each is None else each.mode & 0o777 for each in (before, after)]
    if state.kind is Kind.FILE and after is not None and modes[0] != modes[1]:
        if before is not None:
            notes.append(f"(mode {modes[0]:o} to {modes[1]:o})")
        elif after.mode & 0o111:
            notes.append("(executable)")
    if state.kind is not Kind.FILE or old == new:
        return f"  {' '.join(notes)}", ""
    texts = _text(old), _text(new)
    if texts[0] is None or texts[1] is None:
        notes.append(f"(not text, {len(old):,} to {len(new):,} bytes)")
        return f"  {' '.join(notes)}", ""
    notes.append(f"({show_count(len(split_lines(texts[1])), 'line')})")
    return f"  {' '.join(notes)}", unified_diff(None if before is None else texts[0], texts[1], change.path)


def _text(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
