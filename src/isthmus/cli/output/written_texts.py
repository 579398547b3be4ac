"""Texts of ``isthmus ide changes``: what agents wrote, as a user reads it."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from isthmus.text.diff import CONTEXT_LINES, split_lines

_DAY_SECONDS: Final = 24 * 3600
Answer = Mapping[str, Any]


def describe_changes(result: Answer) -> str:
    """Return the turns with their files, what was undone, and what is not followed."""
    turns: Sequence[Answer] = [turn for turn in result["turns"] if turn["files"]]
    lines: list[str] = []
    if not turns:
        since = f" since {_clock(result['since'])}" if result["since"] else ""
        lines.append(f"Nothing was written{since}.")
    for turn in turns:
        lines += [*([""] if lines else []), _turn_heading(turn)]
        width = max((len(_short(file["path"])) for file in turn["files"]), default=0)
        lines += [f"  {_short(file['path']):<{width}}  {_file_facts(file)}" for file in turn["files"]]
    for undo in result["undos"]:
        files = ", ".join(_short(path) for path in undo["files"])
        lines.append(f"Undone at {_clock(undo['at'])}: {files}; take it back with: isthmus ide redo {undo['number']}")
    if result["problem"]:
        lines.append(f"Not followed: {result['problem']}")
    if result["partial"]:
        lines.append("There are more files than the companion follows; changes of the others are not listed.")
    return "\n".join(lines)


def describe_diff(diff: Answer) -> str:
    """Return the hunks of a file, numbered, each with the lines around it and the turns that it is of."""
    path = diff["path"].lstrip("/")
    old_name = "/dev/null" if diff["kind"] == "created" else f"a/{path}"
    new_name = "/dev/null" if diff["kind"] == "deleted" else f"b/{path}"
    lines = [f"--- {old_name}", f"+++ {new_name}"]
    hunks: Sequence[Answer] = diff["hunks"]
    written = [hunk for hunk in hunks if hunk["state"] == "written"]
    new = split_lines(diff["new"] or "")
    for hunk in hunks:
        lines.append(_hunk_heading(hunk, len(hunks)))
        if hunk["state"] != "written":
            continue
        lines += _facts(diff, hunk)
        if "text" in hunk["about"]:
            lines += _body(hunk, written, new)
    if diff["why"]:
        lines.append(f"It cannot be undone: {diff['why']}.")
    return "\n".join(lines)


def _turn_heading(turn: Answer) -> str:
    began, last = _clock(turn["began_at"]), _clock(turn["last_at"])
    when = began if began == last else f"{began} to {last}"
    title = f' "{turn["title"]}"' if turn["title"] else ""
    who = ", ".join(turn["agents"]) or "an agent"
    state = ", may go on" if turn["working"] else ""
    return f"Turn {turn['number']}, {when}, {who}{title}: +{turn['added']} -{turn['removed']}{state}"


def _file_facts(file: Answer) -> str:
    facts = [f"+{file['added']} -{file['removed']}"] if file["text"] else ["not a text"]
    if file["kind"] != "changed":
        facts.append(file["kind"])
    if "renamed_from" in file:
        facts.append(f"renamed from {_short(file['renamed_from'])}")
    if file["kind"] == "changed" and file["old_mode"] != file["new_mode"]:
        facts.append(f"mode {file['old_mode']:o} to {file['new_mode']:o}")
    if file["written"] != 1 or file["undone"]:
        facts.append(f"{file['written']} hunks" + (f", {file['undone']} undone" if file["undone"] else ""))
    if file["why"]:
        facts.append(f"cannot be undone: {file['why']}")
    return ", ".join(facts)


def _hunk_heading(hunk: Answer, count: int) -> str:
    old, new = len(hunk["old_lines"]), len(hunk["new_lines"])
    place = f"-{hunk['old_start'] + (old > 0)},{old} +{hunk['new_start'] + (new > 0)},{new}"
    turns = f"turn {', '.join(map(str, hunk['turns']))}"
    later = f"; undone with turn {', '.join(map(str, hunk['later']))}" if hunk["later"] else ""
    undone = f"; undone, take it back with: isthmus ide redo {hunk['undo']}" if hunk["state"] != "written" else ""
    return f"@@ {place} @@ hunk {hunk['number']} of {count} ({turns}{later}{undone})"


def _facts(diff: Answer, hunk: Answer) -> Iterator[str]:
    if "mode" in hunk["about"] and diff["kind"] == "changed":
        yield f"mode {diff['old_mode']:o} to {diff['new_mode']:o}"
    if "mark" in hunk["about"]:
        yield "a byte order mark was added or removed"
    if "encoding" in hunk["about"] and diff["kind"] == "changed":
        yield "the file has another encoding"
    if "content" in hunk["about"]:
        yield "the content is not shown: it is not a text, or too large"


def _body(hunk: Answer, written: Sequence[Answer], new: Sequence[str]) -> Iterator[str]:
    """Yield the lines of a hunk, and those around it that no other hunk has."""
    start, end = hunk["new_start"], hunk["new_start"] + len(hunk["new_lines"])
    others = [(other["new_start"], other["new_start"] + len(other["new_lines"])) for other in written]
    before = max((last for first, last in others if first < start), default=0)
    after = min((first for first, _ in others if first > start), default=len(new))
    for line in new[max(before, start - CONTEXT_LINES) : start]:
        yield from _line(" ", line)
    for line in hunk["old_lines"]:
        yield from _line("-", line)
    for line in hunk["new_lines"]:
        yield from _line("+", line)
    for line in new[end : min(after, end + CONTEXT_LINES)]:
        yield from _line(" ", line)


def _line(sign: str, line: str) -> Iterator[str]:
    yield sign + line.removesuffix("\n")
    if not line.endswith("\n"):
        yield "\\ No newline at end of file"


def _clock(at: float) -> str:
    moment = datetime.fromtimestamp(at, UTC).astimezone()
    return f"{moment:%H:%M}" if abs(time.time() - at) < _DAY_SECONDS else f"{moment:%Y-%m-%d %H:%M}"


def _short(path: str) -> str:
    """Return the path from the current folder, if the file is below it."""
    here = os.path.realpath(".")
    return os.path.relpath(path, here) if os.path.realpath(path).startswith(here.rstrip("/") + "/") else path
