"""Decodes the messages of real IDE extensions in the Claude IDE protocol into types of the Editor port. No I/O.

Real servers differ from the document and from each other: arguments have other names, one package has 1-based lines,
errors are plain text, and diagnostics have two forms. All variants are accepted. :mod:`peer` checks whether files
exist; the server side of the wire is in :mod:`wire`.
"""

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import PurePath
from typing import Any, Final, TypeAlias, cast

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_object
from isthmus.ide.clients.asked_review import Outcome
from isthmus.ide.editor import Diagnostic, FileMentioned, Position, Range, Severity
from isthmus.ide.file_uri import file_uri, path_of_uri
from isthmus.ide.mcp.mcp_client import ToolOutcome
from isthmus.ide.reviews.review import Accepted, Rejected
from isthmus.record import record
from isthmus.rpc.messages import Notification

SELECTION_CHANGED = "selection_changed"
AT_MENTIONED = "at_mentioned"

_PATH_NAMES: Final = ("filePath", "file_path", "path")
_MAXIMUM_DIAGNOSTICS: Final = 5000


@record
class PositionBase:
    """Dialect of a server. ``first`` is the number of the first line and column in its notifications.

    ``runs_python`` is true if executeCode runs Python, as documented.
    """

    first: int = 0
    runs_python: bool = True


def dialect_of(server_name: str) -> PositionBase:
    """Return the dialect of a server by its name in ``serverInfo``."""
    # claude-code-ide.el counts from 1, and its executeCode runs Emacs Lisp.
    return PositionBase(1, runs_python=False) if server_name == "claude-code-ide-mcp" else PositionBase()


# The meaning of a notification. A closed union: match with assert_never.


@record
class ReportedSelection:
    """The user's position in a file. ``text`` is the selected text, empty for none; ``range`` is None if not sent."""

    path: str
    text: str
    range: Range | None


@record
class UnknownNotification:
    """A notification to ignore; ``reason`` is set if it is malformed."""

    reason: str | None = None


Meaning: TypeAlias = ReportedSelection | FileMentioned | UnknownNotification


def meaning(
    notification: Notification,
    dialect: PositionBase,
    folders: Collection[str],
    exists: Callable[[str], bool] = os.path.exists,
) -> Meaning:
    """Return the meaning of a notification, without raising on any input.

    A relative path is resolved in the first of ``folders`` in which it ``exists``.
    """
    params = as_object(notification.params)
    if notification.method == SELECTION_CHANGED:
        return selection_of(params, dialect) or UnknownNotification(
            f"{notification.method}: expected filePath as an absolute path"
        )
    if notification.method == AT_MENTIONED:
        return _mention(params, folders, exists)
    return UnknownNotification()


def selection_of(value: JsonObject, dialect: PositionBase) -> ReportedSelection | None:
    """Return the selection in a notification or in the result of getCurrentSelection; None without a file."""
    path = _path_in(value)
    if path is None:
        return None
    text, place = value.get("text"), _range(as_object(value.get("selection")), dialect.first)
    return ReportedSelection(path, text if isinstance(text, str) else "", place)


def _mention(params: JsonObject, folders: Collection[str], exists: Callable[[str], bool]) -> Meaning:
    named = next((params[name] for name in _PATH_NAMES if isinstance(params.get(name), str)), None)
    path = _path_in(params)
    if path is None and isinstance(named, str) and named:
        # claudecode.nvim sends paths relative to its working directory.
        candidates = [os.path.normpath(PurePath(folder) / named) for folder in folders]
        path = next((candidate for candidate in candidates if exists(candidate)), None)
    if path is None:
        return UnknownNotification(f"{AT_MENTIONED}: expected filePath as the path of a file")
    start, end = _line(params.get("lineStart")), _line(params.get("lineEnd"))
    if start is None:
        return FileMentioned(path)
    return FileMentioned(path, start, max(start, end if end is not None else start))


def adapted(arguments: JsonObject, known: Collection[str]) -> dict[str, Any]:
    """Return arguments under the names in a tool's schema: ``filePath`` may be ``uri``, ``path`` or ``file_path``.

    ``known`` are the names in the schema; arguments that are not among them are left out, unless it is empty.
    """
    if not known:
        return dict(arguments)
    renamed: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in known:
            renamed[name] = value
        elif name == "filePath" and isinstance(value, str):
            if (other := next((each for each in _PATH_NAMES if each in known), None)) is not None:
                renamed[other] = value
            elif "uri" in known:
                renamed["uri"] = file_uri(value)
        elif (snake := _snake(name)) in known:
            renamed[snake] = value
    return renamed


def tool_name(wanted: str, known: Collection[str]) -> str:
    """Return a server's name of a tool: as documented, or in snake case (``open_diff``)."""
    if wanted in known:
        return wanted
    plain = wanted.replace("_", "").lower()
    return next((name for name in sorted(known) if name.replace("_", "").lower() == plain), wanted)


def review_answer(outcome: ToolOutcome, proposed: str) -> Outcome | None:
    """Return the decision in the result of openDiff; None if it contains no reliable one.

    ``FILE_SAVED`` is accepted only with the contents, because the saved text is unknown otherwise. ``TAB_CLOSED`` is a
    rejection: the real CLI then writes the file, but a user who closes a tab has not agreed to anything. A third
    item of our own companion has the user's words.
    """
    texts = outcome.texts
    if outcome.is_error or not texts:
        return None
    match texts[0].strip():
        case "FILE_SAVED" if len(texts) > 1:
            return Accepted(_as_proposed(texts[1], proposed))
        case "DIFF_REJECTED" | "TAB_CLOSED":
            return Rejected(reason=texts[2] if len(texts) > 2 else "")
        case _:
            return None


def _as_proposed(content: str, proposed: str) -> str:
    """Return the accepted text with the line ends of the proposal: editors that rejoin the lines lose them."""
    if content == proposed:
        return content
    if "\r\n" in proposed and "\n" not in proposed.replace("\r\n", "") and "\r" not in content:
        content = content.replace("\n", "\r\n")
    if proposed.startswith("\ufeff") and not content.startswith("\ufeff"):
        content = "\ufeff" + content
    end = "\r\n" if content.endswith("\r\n") else "\n"
    # Only if nothing else differs: the user may have added the newline.
    return proposed if content.removesuffix(end) == proposed else content


def json_of(outcome: ToolOutcome) -> Any:
    """Return the decoded JSON text of a result; None if it is not JSON or the tool failed."""
    if outcome.is_error or outcome.text is None:
        return None
    try:
        return json.loads(outcome.text)
    except (ValueError, RecursionError):
        return None


def failure_of(outcome: ToolOutcome) -> str | None:
    """Return the reason why a tool failed, from any known form; None if it reports no failure.

    Known forms are ``isError``, ``{"success": false, "message": ...}``, and a text that begins with "Error" or
    "Failed".
    """
    text = outcome.text or ""
    if outcome.is_error:
        return text or "no reason given"
    value = json_of(outcome)
    if isinstance(value, dict):
        answer = cast("dict[str, Any]", value)
        return str(answer.get("message") or "no reason given") if answer.get("success") is False else None
    return text if text.lower().startswith(("error", "failed")) else None


@record
class Tab:
    """An open tab. Fields that the server does not report are None; ``selection`` is the range, if any."""

    path: str
    label: str
    is_active: bool = False
    is_dirty: bool | None = None
    language_id: str | None = None
    line_count: int | None = None
    selection: Range | None = None


def tabs_of(outcome: ToolOutcome) -> tuple[Tab, ...] | None:
    """Return the tabs in the result of getOpenEditors, from ``tabs`` or ``editors``; None if it has no list.

    Tabs without a file are left out. At most one is active.
    """
    value = json_of(outcome)
    entries = next((as_object(value)[name] for name in ("tabs", "editors") if name in as_object(value)), value)
    if not isinstance(entries, list):
        return None
    found: list[Tab] = []
    for entry in map(as_object, cast("list[object]", entries)):
        path = _path_in(entry)
        if path is None or entry.get("isUntitled") is True:
            continue
        label, dirty = entry.get("label"), entry.get("isDirty")
        language, lines = entry.get("languageId"), entry.get("lineCount")
        is_active = entry.get("isActive") is True and entry.get("isGroupActive") is not False
        found.append(
            Tab(
                path,
                label if isinstance(label, str) and label else PurePath(path).name,
                is_active and not any(tab.is_active for tab in found),
                dirty if isinstance(dirty, bool) else None,
                language if isinstance(language, str) and language else None,
                lines if isinstance(lines, int) and not isinstance(lines, bool) and lines >= 0 else None,
                _range(as_object(entry.get("selection")), 0),
            )
        )
    return tuple(found)


def folders_of(outcome: ToolOutcome) -> tuple[str, ...]:
    """Return the paths in the result of getWorkspaceFolders, which contains paths or only URIs."""
    folders = as_object(json_of(outcome)).get("folders")
    entries = cast("list[object]", folders) if isinstance(folders, list) else []
    paths = (entry if isinstance(entry, str) else _path_in(as_object(entry)) for entry in entries)
    return tuple(dict.fromkeys(_plain(path) for path in paths if path is not None and PurePath(path).is_absolute()))


def trust_of(outcome: ToolOutcome) -> bool | None:
    """Return whether the user trusts the workspace; only our own companion reports it in getWorkspaceFolders."""
    is_trusted = as_object(json_of(outcome)).get("isTrusted")
    return is_trusted if isinstance(is_trusted, bool) else None


def diagnostics_of(outcome: ToolOutcome, *, limit: int = _MAXIMUM_DIAGNOSTICS) -> tuple[Diagnostic, ...]:
    """Return the diagnostics in the result of getDiagnostics, at most ``limit``; unreadable entries are left out.

    The form is the documented one (by file, 0-based) or claudecode.nvim's (one content item each).
    """
    found: list[Diagnostic] = []
    for diagnostic in _diagnostics(outcome.texts):
        if len(found) == limit:
            break
        found.append(diagnostic)
    return tuple(found)


def _diagnostics(texts: Collection[str]) -> Iterator[Diagnostic]:
    for text in texts:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        for entry in map(as_object, cast("list[object]", value) if isinstance(value, list) else [cast(object, value)]):
            path = _path_in(entry)
            listed = entry.get("diagnostics")
            if path is None:
                continue
            if isinstance(listed, list):
                for each in cast("list[object]", listed):
                    if (diagnostic := _diagnostic(path, as_object(each))) is not None:
                        yield diagnostic
            elif (flat := _flat_diagnostic(path, entry)) is not None:
                yield flat


def _diagnostic(path: str, value: JsonObject) -> Diagnostic | None:
    place = _range(as_object(value.get("range")), 0)
    message = value.get("message")
    if place is None or not isinstance(message, str):
        return None
    source, code = value.get("source"), value.get("code")
    return Diagnostic(
        path,
        place,
        _severity(value.get("severity")),
        message,
        source if isinstance(source, str) else None,
        str(code) if isinstance(code, (str, int)) and not isinstance(code, bool) else None,
    )


def _flat_diagnostic(path: str, value: JsonObject) -> Diagnostic | None:
    """Return claudecode.nvim's diagnostic: ``{filePath, line, character, severity, message, source}``, 1-based."""
    line, character = _line(value.get("line")), _line(value.get("character"))
    message, source = value.get("message"), value.get("source")
    if line is None or not isinstance(message, str):
        return None
    at = Position(max(0, line - 1), max(0, (character or 1) - 1))
    severity = _severity(value.get("severity"))
    return Diagnostic(path, Range(at, at), severity, message, source if isinstance(source, str) else None)


def _severity(value: object) -> Severity:
    """Return the severity for VS Code's word or LSP's number; an unknown value counts as information."""
    if isinstance(value, int) and not isinstance(value, bool):
        return dict(enumerate(Severity, start=1)).get(value, Severity.INFORMATION)
    word = value.lower() if isinstance(value, str) else ""
    return next((each for each in Severity if word and each.value.startswith(word[:4])), Severity.INFORMATION)


def _path_in(value: JsonObject) -> str | None:
    """Return the absolute path in an object, from a path or a URI; None if it has none."""
    for name in (*_PATH_NAMES, "uri", "fileUrl"):
        text = value.get(name)
        if isinstance(text, str) and "\0" not in text:
            path = text if PurePath(text).is_absolute() else path_of_uri(text)
            if path is not None:
                return path
    return None


def _plain(path: str) -> str:
    return path.rstrip("/") or "/"


def _range(value: JsonObject, first: int) -> Range | None:
    start = _position(as_object(value.get("start")), first)
    if start is None:
        return None
    end = _position(as_object(value.get("end")), first) or start
    return Range(start, end) if (start.line, start.character) <= (end.line, end.character) else Range(end, start)


def _position(value: Mapping[str, Any], first: int) -> Position | None:
    line, character = _line(value.get("line")), _line(value.get("character"))
    if line is None:
        return None
    return Position(max(0, line - first), max(0, (character if character is not None else first) - first))


def _line(value: object) -> int | None:
    """Return a line or column number, which JSON libraries of some languages write as 3.0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**31:
        return None
    return int(value)


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
