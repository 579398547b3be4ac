"""Patches in the form that OpenAI's Codex models write: `*** Begin Patch`, file sections, hunks. Pure.

A hunk has no line numbers: its context and removed lines are searched in the file, after the line that `@@` names. Not
here: unified diffs, whose hunks have line numbers.
"""

import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from isthmus.record import record
from isthmus.tools.edits.diff_sections import sections_of_diff
from isthmus.tools.edits.replacement import Replaced, replace_text

APPLY_PATCH = "apply_patch"
"""Name of the tool for patches, and of the command that models write for it."""
PATCH_ARGUMENTS: tuple[str, ...] = ("input", "patch", "patchText", "patch_text")
"""Names of the argument with the patch, the usual one first."""
BEGIN, END = "*** Begin Patch", "*** End Patch"
GRAMMAR = """\
start: "*** Begin Patch" LF section+ "*** End Patch" LF?
section: add | delete | update
add: "*** Add File: " TEXT LF ("+" TEXT? LF)+
delete: "*** Delete File: " TEXT LF
update: "*** Update File: " TEXT LF move? hunks?
move: "*** Move to: " TEXT LF
hunks: (place | line)+ end?
place: "@@" (" " TEXT)? LF
line: ("+" | "-" | " ") TEXT? LF
end: "*** End of File" LF
TEXT: /.+/
%import common.LF
"""
"""Grammar of patches for models whose calls have a text in place of JSON, for Lark."""
_NUMBERS = re.compile(r"\s*-\d+(?:,\d+)? \+\d+(?:,\d+)? @@.*")
"""Rest of the line before a hunk of a unified diff; its numbers do not count here, and its text may be anywhere."""
_END_OF_FILE = "*** End of File"
_MOVE = "*** Move to:"
_SECTIONS: dict[str, Literal["add", "update", "delete"]] = {
    "*** Add File: ": "add",
    "*** Update File: ": "update",
    "*** Delete File: ": "delete",
}


class PatchError(Exception):
    """A patch has another form, or a hunk does not fit the file; the text is for the model."""


@record
class Hunk:
    """Lines to replace and their replacement, without newlines. `after` is the line of `@@`, empty if it names none."""

    old: tuple[str, ...]
    new: tuple[str, ...]
    after: tuple[str, ...] = ()
    ends_file: bool = False


@record
class FilePatch:
    """The section of one file: the lines of a new file, the hunks of an update, or neither for a deletion.

    ``moved_to`` is the new path of a file that is updated; empty if it keeps its own. An update that moves its file may
    have no hunks.
    """

    kind: Literal["add", "update", "delete"]
    path: str
    lines: tuple[str, ...] = ()
    hunks: tuple[Hunk, ...] = ()
    moved_to: str = ""


def file_sections(patch: str) -> list[str]:
    """Return a patch of its own for each file section, in order; the patch itself if it has at most one, or none."""
    lines = _without_quoting(patch).split("\n")
    starts = [index for index, line in enumerate(lines) if line.startswith(tuple(_SECTIONS))]
    if len(starts) < 2:
        return [patch]
    last = next((index for index in range(len(lines) - 1, 0, -1) if lines[index].strip() == END), len(lines))
    ends = [*starts[1:], last]
    return ["\n".join([BEGIN, *lines[start:end], END]) for start, end in zip(starts, ends, strict=True)]


def in_folder(patch: str, folder: str) -> str:
    """Return a patch with its relative paths below a folder, which is itself relative or absolute."""
    if not folder:
        return patch
    headers = (*_SECTIONS, _MOVE)
    lines: list[str] = []
    for line in patch.split("\n"):
        header = next((header for header in headers if line.startswith(header)), None)
        path = line[len(header) :].strip() if header is not None else ""
        if header is not None and path and not path.startswith(("/", "~")):
            line = f"{header.rstrip()} {posixpath.normpath(posixpath.join(folder, path))}"
        lines.append(line)
    return "\n".join(lines)


def parse_file_patch(patch: str) -> FilePatch:
    """Return the only file section of a patch.

    Raises:
        PatchError: the patch has another form, or not exactly one section.
    """
    lines = _without_quoting(patch).strip("\n").split("\n")
    if lines[0].strip() != BEGIN or lines[-1].strip() != END:
        raise PatchError(f"expected a patch from {BEGIN!r} to {END!r}; it begins {lines[0][:80]!r}")
    body = lines[1:-1]
    header = body[0] if body else ""
    prefix = next((prefix for prefix in _SECTIONS if header.startswith(prefix)), None)
    if prefix is None:
        raise PatchError(f"expected {', '.join(map(repr, _SECTIONS))} after {BEGIN!r}, received {header[:80]!r}")
    kind, path, rest = _SECTIONS[prefix], header[len(prefix) :].strip(), body[1:]
    if any(line.startswith(tuple(_SECTIONS)) for line in rest):
        raise PatchError("expected one file in each call; send the other files in calls of their own")
    if kind == "update":
        return _update(path, rest)
    if kind == "delete":
        if any(line.strip() for line in rest):
            raise PatchError(f"expected nothing after {header!r}, received {rest[0][:80]!r}")
        return FilePatch(kind, path)
    if wrong := next((line for line in rest if not line.startswith("+")), None):
        raise PatchError(f"expected lines that begin with '+' for a new file, received {wrong[:80]!r}")
    return FilePatch(kind, path, lines=tuple(line.removeprefix("+") for line in rest))


def _update(path: str, lines: Sequence[str]) -> FilePatch:
    """Return the section that changes a file; a file that is moved may keep its text, and is else not moved at all."""
    if not lines or not lines[0].startswith(_MOVE):
        return FilePatch("update", path, hunks=tuple(_hunks(lines)))
    moved_to, rest = lines[0].removeprefix(_MOVE).strip(), lines[1:]
    if not moved_to:
        raise PatchError(f"expected a path after {_MOVE!r}, received none")
    if posixpath.normpath(moved_to) == posixpath.normpath(path):
        return FilePatch("update", path, hunks=tuple(_hunks(rest)))
    has_hunks = any(line.strip() for line in rest)
    return FilePatch("update", path, hunks=tuple(_hunks(rest)) if has_hunks else (), moved_to=moved_to)


def _without_quoting(patch: str) -> str:
    """Return the patch without the here-document or code fence around it that some models add.

    A unified diff becomes a patch.
    """
    lines = patch.replace("\r\n", "\n").strip("\n").split("\n")
    if BEGIN not in patch and (sections := sections_of_diff(lines)):
        return "\n".join([BEGIN, *sections, END])
    first = next((index for index, line in enumerate(lines) if line.strip() == BEGIN), None)
    last = next((index for index in range(len(lines) - 1, -1, -1) if lines[index].strip() == END), None)
    if first is None or last is None or last < first:
        return patch.replace("\r\n", "\n")
    return "\n".join(lines[first : last + 1])


def _hunks(lines: Sequence[str]) -> Iterator[Hunk]:
    old: list[str] = []
    new: list[str] = []
    after: list[str] = []
    ends_file = False
    for line in lines:
        if line.startswith("@@"):
            if old or new:
                yield Hunk(tuple(old), tuple(new), tuple(after), ends_file)
                old, new, after, ends_file = [], [], [], False
            if name := _NUMBERS.sub("", line.removeprefix("@@")).strip().removesuffix("@@").strip():
                after.append(name)
        elif line.strip() == _END_OF_FILE:
            ends_file = True
        elif line.startswith("+"):
            new.append(line[1:])
        elif line.startswith("-"):
            old.append(line[1:])
        elif line.startswith(" ") or not line:
            old.append(line[1:])
            new.append(line[1:])
        else:
            raise PatchError(f"expected a line that begins with ' ', '+', '-' or '@@', received {line[:80]!r}")
    if not old and not new:
        raise PatchError("expected at least one changed line in each hunk, received none")
    yield Hunk(tuple(old), tuple(new), tuple(after), ends_file)


def patched_text(text: str, patch: FilePatch) -> tuple[str, tuple[str, ...]]:
    """Return `text` with the hunks of an update, and the differences that were tolerated.

    Raises:
        PatchError: a hunk does not fit, or fits more than one place.
    """
    tolerated: list[str] = []
    position = 0
    for number, hunk in enumerate(patch.hunks, 1):
        head, rest = text[:position], text[position:]
        for name in hunk.after:
            offset = _line_after(rest, name)
            if offset is None:
                raise PatchError(f"hunk {number}: no line {name[:200]!r} comes after the hunk before it")
            head, rest = head + rest[:offset], rest[offset:]
        changed, note = _changed(rest, hunk, number, has_anchor=bool(hunk.after))
        if note:
            tolerated.append(f"hunk {number} was found with {note}")
        position = len(head) + _end_of_change(rest, changed)
        text = head + changed
    return text, tuple(tolerated)


def _changed(rest: str, hunk: Hunk, number: int, *, has_anchor: bool) -> tuple[str, str]:
    new = "".join(line + "\n" for line in hunk.new)
    if not hunk.old:
        if hunk.ends_file or not has_anchor:
            return rest + "\n" * (bool(rest) and not rest.endswith("\n")) + new, ""
        return new + rest, ""
    old = "".join(line + "\n" for line in hunk.old)
    if not rest.endswith("\n") and not _has_line_run(rest, old) and rest.endswith(old[:-1]):
        old, new = old[:-1], new.removesuffix("\n")
    found = replace_text(rest, old, new)
    if isinstance(found, Replaced):
        return found.text, found.tolerated
    if found.made_at:
        raise PatchError(f"hunk {number}: the file has its new lines already, so that it seems to be applied")
    if found.count == 0:
        nearest = f"The nearest lines are (numbered from the hunk before it):\n{found.nearest}" if found.nearest else ""
        raise PatchError(f"hunk {number}: its context and removed lines are not in the file. {nearest}".rstrip())
    if has_anchor and (start := _first_line_run(rest, old)) is not None:
        return rest[:start] + new + rest[start + len(old) :], ""
    raise PatchError(
        f"hunk {number}: its lines occur {found.count} times; add more context lines, or name the function with '@@'"
    )


def _first_line_run(text: str, lines: str) -> int | None:
    if text.startswith(lines):
        return 0
    place = text.find("\n" + lines)
    return None if place < 0 else place + 1


def _has_line_run(text: str, lines: str) -> bool:
    return _first_line_run(text, lines) is not None


def _line_after(text: str, name: str) -> int | None:
    """Return the offset after the first line that is `name` but for white space around it."""
    offset = 0
    for line in text.split("\n"):
        offset += len(line) + 1
        if line.strip() == name:
            return min(offset, len(text))
    return None


def _end_of_change(before: str, after: str) -> int:
    """Return the offset in `after` behind which both texts are the same."""
    same = 0
    limit = min(len(before), len(after))
    while same < limit and before[-1 - same] == after[-1 - same]:
        same += 1
    return len(after) - same
