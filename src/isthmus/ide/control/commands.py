"""Commands that the user sends from another terminal on the control channel.

Each command receives the companion and a JSON object, and returns a JSON object. Positions in this JSON are 1-based.
Positions to open and select count characters; mentions and diagnostics count UTF-16 units, as on the wire.
The socket is in :mod:`control`.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar, cast, runtime_checkable

from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.ide import context
from isthmus.ide.agent_client import Client
from isthmus.ide.companion import Companion
from isthmus.ide.control.questions import ClientQuestion
from isthmus.ide.editor import Capability, Diagnostic, NotAvailableError, Position, Range, Severity
from isthmus.ide.editor_messages import HasMessages
from isthmus.ide.positions import from_encoding, from_one_based, line_at, one_based, ordered
from isthmus.ide.processes import place_of
from isthmus.ide.reviews.outcomes import Outcome
from isthmus.ide.reviews.review import DiffReview, Rejected
from isthmus.ide.reviews.reviewed_file import seen_state, text_on_disk, with_accepted_cells, with_accepted_hunks
from isthmus.text.offsets import OffsetEncoding

LONGEST_WAIT_SECONDS = 3600.0
TERMINAL = "isthmus ide"
"""Name of who answers by these commands."""
MAXIMUM_KEPT_SHOWN = 20
"""Maximum number of kept texts to report, newest first."""

T = TypeVar("T")


class ControlCommandError(IsthmusError):
    """A command that cannot be carried out; the text explains what to do instead."""


@runtime_checkable
class SettableDiagnostics(Protocol):
    """An editor without a screen, whose diagnostics the user can set."""

    def set_diagnostics(self, path: str, found: tuple[Diagnostic, ...]) -> None:
        """Replace the diagnostics of a file."""
        ...


@runtime_checkable
class PageServer(Protocol):
    """An editor that serves a page on which the user can answer."""

    def review_page(self) -> str:
        """Return a single-use link to the page."""
        ...


async def status(companion: Companion, request: JsonObject) -> JsonObject:
    """Return the editor, the attached agents, the open reviews and questions, and the context for agents."""
    editor = companion.editor
    identity = editor.identity
    return {
        "editor": {"name": identity.name, "display_name": identity.display_name, "pid": identity.pid},
        "workspace_folders": list(await companion.workspace_folders()),
        "agents": [await _agent(client) for client in companion.clients],
        "diffs": [_review(companion, review) for review in companion.reviews.all()],
        "questions": [question_to_json(question) for question in companion.asking.open_questions],
        "allowed": list(companion.asking.allowed),
        "context": context.to_json(context.ide_context(await companion.context())),
        "written": companion.written.counts(),
        "kept": companion.kept_texts.paths()[:MAXIMUM_KEPT_SHOWN],
        "messages": list(editor.messages) if isinstance(editor, HasMessages) else [],
    }


async def open_file(companion: Companion, request: JsonObject) -> JsonObject:
    """Open and focus a file, with the cursor at a position if one is given."""
    path = _path(request)
    line = _number(request, "line")
    at = None
    if line is not None:
        position = await _position(companion, path, line, _number(request, "character") or 1)
        at = Range(position, position)
    await companion.editor.open_file(path, at, focus=request.get("background") is not True)
    return await _context(companion)


async def close_file(companion: Companion, request: JsonObject) -> JsonObject:
    """Close a file."""
    await companion.editor.close_file(_path(request))
    return await _context(companion)


async def select(companion: Companion, request: JsonObject) -> JsonObject:
    """Open a file and select the text between two positions."""
    path, line = _path(request), _required(_number(request, "line"), "line")
    end_line = _required(_number(request, "end_line"), "end_line")
    start = await _position(companion, path, line, _number(request, "character") or 1)
    end = await _position(companion, path, end_line, _required(_number(request, "end_character"), "end_character"))
    await companion.editor.open_file(path, Range(start, end))
    return await _context(companion)


async def _position(companion: Companion, path: str, line: int, character: int) -> Position:
    """Return the position of a 1-based line and character in the text that the user sees."""
    position = from_one_based(line, character)
    if position.character == 0:
        return position
    text = None
    if Capability.TEXT not in companion.editor.unavailable:
        text = await companion.editor.text(path)
    if text is None:
        text = await asyncio.to_thread(text_on_disk, path)
    shown = line_at(text or "", position.line)[1] if (text or "").count("\n") >= position.line else ""
    if not shown:
        return position
    beyond = max(position.character - len(shown), 0)  # the editor limits it, as in every line
    return Position(position.line, from_encoding(shown, position.character, OffsetEncoding.UTF_32) + beyond)


async def mention(companion: Companion, request: JsonObject) -> JsonObject:
    """Point the most recently used agent to a file or to lines in it, and select them in the editor.

    Return the number of attached agents in ``agents``.
    """
    path, first, last = _path(request), _number(request, "line"), _number(request, "end_line")
    if first is not None and last is not None and last < first:
        raise ControlCommandError(f"expected the last line not before the first, received {first}-{last}")
    await companion.mention(path, None if first is None else first - 1, None if last is None else last - 1)
    return {**await _context(companion), "agents": len(companion.clients)}


async def diagnostics(companion: Companion, request: JsonObject) -> JsonObject:
    """Return the diagnostics of one file or of all files; with ``set``, replace them first (headless only).

    With ``own``, omit the diagnostics of the linters that the user chose with --diagnostics.
    """
    path = _path(request) if request.get("path") is not None else None
    entries = request.get("set")
    if entries is not None:
        if path is None or not isinstance(entries, list):
            raise ControlCommandError("expected a file and a list of diagnostics")
        editor = companion.editor
        if not isinstance(editor, SettableDiagnostics):
            raise NotAvailableError(editor.identity, "its diagnostics come from its own linters and language servers")
        editor.set_diagnostics(path, tuple(_diagnostic(path, entry) for entry in cast("list[object]", entries)))
    is_own = request.get("own") is True
    found = await (companion.editor.diagnostics(path) if is_own else companion.diagnostics(path, for_agents=False))
    return {"diagnostics": [_diagnostic_to_json(diagnostic) for diagnostic in found]}


async def diffs(companion: Companion, request: JsonObject) -> JsonObject:
    """Return the open reviews; with ``wait``, wait at most that many seconds for one."""
    wait = requested_wait(request)
    reviews = companion.reviews.all() if wait is None else await companion.queue.wait(wait)
    for review in reviews:
        old = await asyncio.to_thread(text_on_disk, review.file_path)
        companion.queue.listed_states[review.id] = seen_state(old, companion.queue.texts.shown(review))
    return {"diffs": [_review(companion, review, whole=True) for review in reviews]}


async def accept(companion: Companion, request: JsonObject) -> JsonObject:
    """Accept a review, with the text in its view or ``content``. The agent then writes the file.

    ``cells`` are the numbers of the accepted changes of a notebook, counted in the agent's proposal. ``hunks`` are the
    numbers of the accepted hunks, counted in the text that :func:`diffs` returned.
    """
    content, cells, hunks = request.get("content"), request.get("cells"), request.get("hunks")
    if content is not None and not isinstance(content, str):
        raise ControlCommandError("expected content as a string")
    review = _find(companion, request)
    seen_text, has_seen_file = None, False
    if hunks is not None:
        if content is not None or cells is not None or not isinstance(hunks, list):
            raise ControlCommandError("expected hunks as a list of numbers, without content and cells")
        seen_text = companion.queue.texts.shown(review)
        content = await _with_hunks(companion, review, seen_text, cast("list[object]", hunks))
        has_seen_file = review.id in companion.queue.listed_states
    if cells is not None:
        if content is not None or not isinstance(cells, list):
            raise ControlCommandError("expected cells as a list of numbers, without content")
        numbers = {number for number in cast("list[object]", cells) if isinstance(number, int)}
        content = await asyncio.to_thread(with_accepted_cells, review.file_path, review.proposed, numbers)
    decided = await companion.answers.accept(
        review.id, content, by=TERMINAL, has_seen_file=has_seen_file, seen_text=seen_text
    )
    return {
        **_decided(companion, review, decided, "accepted"),
        "agent_connected": companion.queue.owners.is_connected(review),
    }


async def reject(companion: Companion, request: JsonObject) -> JsonObject:
    """Reject a review."""
    review = _find(companion, request)
    return _decided(companion, review, await companion.answers.reject(review.id, by=TERMINAL), "rejected")


async def log(companion: Companion, request: JsonObject) -> JsonObject:
    """Return the newest messages between agents and companion after the number ``after``; wait for one if asked.

    ``last`` is the number of the newest one. Secrets are hidden.
    """
    after, wait = _number(request, "after") or 0, requested_wait(request)
    if wait is not None:
        await companion.wire.wait(after, wait)
    found = companion.wire.after(after)
    messages = [{"at": each.at, "agent": each.link, "arrow": each.arrow, "body": each.body} for each in found]
    return {"messages": messages, "last": companion.wire.last}


async def page(companion: Companion, request: JsonObject) -> JsonObject:
    """Return a link to the page on which the user can answer; null if the editor has no page."""
    editor = companion.editor
    return {"page": editor.review_page() if isinstance(editor, PageServer) else None}


COMMANDS: Mapping[str, Callable[[Companion, JsonObject], Awaitable[JsonObject]]] = {
    "status": status,
    "open": open_file,
    "close": close_file,
    "select": select,
    "mention": mention,
    "diagnostics": diagnostics,
    "diffs": diffs,
    "accept": accept,
    "reject": reject,
    "log": log,
    "page": page,
}

PERMISSIONS = frozenset({"accept", "answer", "page"})
"""Commands that give a permission on the user's behalf. A rejection is harmless from any sender."""


async def _context(companion: Companion) -> JsonObject:
    return {"context": context.to_json(context.ide_context(await companion.context()))}


def _find(companion: Companion, request: JsonObject) -> DiffReview:
    path = _path(request)
    named = os.path.realpath(path)
    reviews = companion.reviews.all()
    found = [review for review in reviews if named == os.path.realpath(review.file_path)]
    if not found:
        waiting = ", ".join(review.file_path for review in reviews) or "none"
        ended = [outcome for outcome in companion.queue.outcomes.all if named == os.path.realpath(outcome.about)]
        last = f"; the last one was {end_of(ended[-1])}" if ended else ""
        raise ControlCommandError(f"no diff is open for {path}{last}; open diffs: {waiting}")
    # The review that the user sees: two agents that propose the same file are answered in the order of their requests.
    # Reviews of disconnected agents, which may never return, come last.
    return min(
        found,
        key=lambda review: (not companion.queue.owners.is_connected(review), not companion.queue.is_visible(review)),
    )


async def _with_hunks(companion: Companion, review: DiffReview, shown: str, hunks: list[object]) -> str:
    """Return the text with the chosen hunks of ``shown``; refuse the numbers of an outdated list."""
    old = await asyncio.to_thread(text_on_disk, review.file_path)
    listed = companion.queue.listed_states.get(review.id)
    if listed is not None and listed != seen_state(old, shown):
        raise ControlCommandError(
            f"{review.file_path}: the file or its proposal has changed since its hunks were listed; "
            "list them again with `isthmus ide diffs`"
        )
    numbers = {number for number in hunks if isinstance(number, int)}
    return await asyncio.to_thread(with_accepted_hunks, review.file_path, old, shown, numbers)


def end_of(outcome: Outcome) -> str:
    """Return how a review or question ended, to be read after "was"."""
    if outcome.decision == "closed":
        return f"taken back by {outcome.by}, or answered in its own terminal"
    return f"{outcome.decision} by {outcome.by or 'the user'}"


def _decided(companion: Companion, review: DiffReview, decided: DiffReview | None, decision: str) -> JsonObject:
    if decided is None:
        outcome = companion.queue.outcomes.get(review.id)
        how = "answered elsewhere" if outcome is None else end_of(outcome)
        raise ControlCommandError(f"the diff of {review.file_path} was {how} a moment ago; nothing was changed")
    if isinstance(decided.state, Rejected) and decided.state.instead:
        raise ControlCommandError(f"not accepted: {decided.state.instead}")
    return {"file": review.file_path, "agent": review.title, "decision": decision}


async def _agent(client: Client) -> JsonObject:
    """Return an attached CLI with the details that distinguish it from others of the same kind."""
    encoded: dict[str, Any] = {"id": client.id, "title": client.title, "connected": client.connected}
    if client.pid is not None:
        folder, terminal = await asyncio.to_thread(place_of, client.pid)
        encoded |= {"pid": client.pid, "folder": folder, "terminal": terminal}
    return encoded


def _review(companion: Companion, review: DiffReview, *, whole: bool = False) -> JsonObject:
    encoded: dict[str, Any] = {
        "id": review.id,
        "file": review.file_path,
        "agent": review.title,
        "shown": companion.queue.is_visible(review),
    }
    alike = [client for client in companion.clients if client.title == review.title]
    owner = next((client for client in alike if client.id == review.owner), None)
    if len(alike) > 1 and owner is not None and owner.pid is not None:
        encoded["agent_pid"] = owner.pid
    if whole:
        encoded["new_content"] = review.proposed
        typed = companion.queue.texts.shown(review)
        if typed != review.proposed:
            encoded["typed_content"] = typed
    return encoded


def requested_wait(request: JsonObject) -> float | None:
    """Return the requested wait in seconds, at most an hour; None if none is requested."""
    wait = request.get("wait")
    if isinstance(wait, (int, float)) and not isinstance(wait, bool) and wait > 0:
        return min(float(wait), LONGEST_WAIT_SECONDS)
    return None


def question_to_json(question: ClientQuestion) -> JsonObject:
    """Return an open question with its whole text."""
    return {
        "id": question.id,
        "agent": question.client,
        "title": question.title,
        "text": question.text,
        "permission": question.is_permission,
    }


def _path(request: JsonObject) -> str:
    path = request.get("path")
    if not isinstance(path, str) or not path:
        raise ControlCommandError("expected the path of a file")
    return path


def _number(request: JsonObject, name: str) -> int | None:
    value = request.get(name)
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ControlCommandError(f"expected {name} as a whole number from 1 on, received {value!r}")
    return value


def _required(value: T | None, name: str) -> T:
    if value is None:
        raise ControlCommandError(f"expected {name}")
    return value


def _point(line: int, character: int) -> Range:
    position = from_one_based(line, character)
    return Range(position, position)


def _diagnostic(path: str, entry: object) -> Diagnostic:
    if not isinstance(entry, dict):
        raise ControlCommandError("expected each diagnostic as an object with line, message and optionally severity")
    fields = cast(JsonObject, entry)
    message, severity = fields.get("message"), fields.get("severity", "error")
    if not isinstance(message, str) or severity not in set(Severity):
        raise ControlCommandError(f"expected message as text and severity as one of {', '.join(Severity)}")
    start = _point(_required(_number(fields, "line"), "line"), _number(fields, "character") or 1).start
    end_line, end_character = _number(fields, "end_line"), _number(fields, "end_character")
    end = from_one_based(end_line or start.line + 1, end_character or start.character + 1)
    source, code = fields.get("source"), fields.get("code")
    return Diagnostic(
        path,
        Range(start, ordered(start, end).end),
        Severity(severity),
        message,
        str(source) if source is not None else None,
        str(code) if code is not None else None,
    )


def _diagnostic_to_json(found: Diagnostic) -> JsonObject:
    (line, character), (end_line, end_character) = one_based(found.range.start), one_based(found.range.end)
    encoded: dict[str, Any] = {
        "file": found.path,
        "line": line,
        "character": character,
        "end_line": end_line,
        "end_character": end_character,
        "severity": found.severity.value,
        "message": found.message,
    }
    optional = {"source": found.source, "code": found.code}
    return encoded | {name: value for name, value in optional.items() if value is not None}
