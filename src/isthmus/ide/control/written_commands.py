"""Commands of the control channel for the review after the fact: what agents wrote, to keep, undo or take back.

One vocabulary for ``isthmus ide``, for editors (:class:`isthmus.ide.written_changes.front.ChangesFront`) and
for pages. The shapes are described in docs/reference/written-changes.md.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, cast

from isthmus.encoding.codec import JsonObject
from isthmus.ide.companion import Companion
from isthmus.ide.control.commands import ControlCommandError
from isthmus.ide.written_changes.front import ChangesFront
from isthmus.ide.written_changes.ledger import ChangeSelection

MAXIMUM_WAIT_SECONDS: Final = 600.0
"""Maximum time in seconds for which a command waits for a change."""
MAXIMUM_TITLE: Final = 1000
"""Maximum number of characters of a prompt that is the title of a turn."""


async def listing(companion: Companion, request: JsonObject) -> JsonObject:
    """Return what agents wrote since the user last looked, by turn and by file."""
    return await companion.written.listing()


async def file_diff(companion: Companion, request: JsonObject) -> JsonObject:
    """Return the texts of a changed file before and after, with its hunks: of one ``turn`` or of all together."""
    return await companion.written.file_diff(_path(request, is_needed=True) or "", _number(request, "turn"))


async def keep(companion: Companion, request: JsonObject) -> JsonObject:
    """Keep hunks, a file, a turn, or everything. ``hunks`` are ids, or the numbers of the last list of the file."""
    return await companion.written.keep(*_selection(request), _state(request))


async def undo(companion: Companion, request: JsonObject) -> JsonObject:
    """Write what was there before: of hunks, a file, a turn, or everything. ``problems`` name files that were not."""
    return await companion.written.undo(*_selection(request), _state(request))


async def take_back(companion: Companion, request: JsonObject) -> JsonObject:
    """Take an ``undo`` back, by default the newest one."""
    return await companion.written.take_back(_number(request, "undo"))


async def wait(companion: Companion, request: JsonObject) -> JsonObject:
    """Wait until something was written or decided since the ``count`` ``after``, at most ``wait`` seconds."""
    after, seconds = request.get("after"), request.get("wait")
    if not isinstance(after, int) or not isinstance(seconds, (int, float)):
        raise ControlCommandError("expected after and wait as numbers")
    count = await companion.written.counter.wait(after, min(max(float(seconds), 0.0), MAXIMUM_WAIT_SECONDS))
    return {"count": count, **companion.written.counts()}


async def saved(companion: Companion, request: JsonObject) -> JsonObject:
    """Record that the user saved a file in an editor that does not report it itself."""
    await companion.written.record_save(_path(request, is_needed=True) or "")
    return {}


async def begin_turn(companion: Companion, request: JsonObject) -> JsonObject:
    """Begin a turn, as an agent was sent a prompt: its ``agent`` and ``title``, both optional."""
    agent, title = request.get("agent", ""), request.get("title", "")
    if not isinstance(agent, str) or not isinstance(title, str):
        raise ControlCommandError("expected agent and title, if given, as text")
    return {"turn": await companion.written.begin_turn(agent[:MAXIMUM_TITLE], title[:MAXIMUM_TITLE])}


async def end_turn(companion: Companion, request: JsonObject) -> JsonObject:
    """End the turn, as an agent has finished: its next write begins another one."""
    await companion.written.end_turn()
    return {}


WRITTEN_COMMANDS: Mapping[str, Callable[[Companion, JsonObject], Awaitable[JsonObject]]] = {
    "written": listing,
    "written_file": file_diff,
    "written_keep": keep,
    "written_undo": undo,
    "written_take_back": take_back,
    "written_wait": wait,
    "written_saved": saved,
    "written_turn": begin_turn,
    "written_turn_end": end_turn,
}
WRITTEN_PERMISSIONS: Final = frozenset({"written_keep", "written_undo", "written_take_back", "written_saved"})
"""Commands that decide on the user's behalf: an agent must not keep, undo or claim its own changes."""
WRITTEN_QUESTIONS: Final = {
    "written_keep": "Keep what agents wrote in",
    "written_undo": "Undo what agents wrote in",
    "written_take_back": "Take back the undo of",
}
WRITTEN_PAGE_COMMANDS: Mapping[str, Callable[[Companion, JsonObject], Awaitable[JsonObject]]] = {
    "page_written": listing,
    "page_written_file": file_diff,
    "page_written_keep": keep,
    "page_written_undo": undo,
    "page_written_take_back": take_back,
}
WRITTEN_PAGE_PERMISSIONS: Final = frozenset({"page_written_keep", "page_written_undo", "page_written_take_back"})


def serve_front(companion: Companion) -> None:
    """Let the editor ask for these commands, if it shows what agents wrote; its user is the one who decides."""

    async def ask(name: str, params: JsonObject) -> JsonObject:
        command = WRITTEN_COMMANDS.get(name)
        if command is None:
            raise ControlCommandError(f"unknown command {name!r}; expected one of {', '.join(WRITTEN_COMMANDS)}")
        return await command(companion, params)

    if isinstance(companion.editor, ChangesFront):
        companion.editor.serve_changes(ask)


def _selection(request: JsonObject) -> tuple[ChangeSelection, list[int] | None]:
    """Return what is selected, and the numbers of hunks, if they are named by numbers."""
    path, turn, hunks = _path(request), _number(request, "turn"), request.get("hunks")
    if hunks is None:
        return ChangeSelection(path, turn), None
    named = cast("list[object]", hunks) if isinstance(hunks, list) else []
    ids = [each for each in named if isinstance(each, str)]
    numbers = [each for each in named if isinstance(each, int) and not isinstance(each, bool)]
    if not named or len(named) not in (len(ids), len(numbers)):
        raise ControlCommandError("expected hunks as a list of their ids, or of their numbers")
    return (ChangeSelection(path, turn), numbers) if numbers else (ChangeSelection(path, turn, tuple(ids)), None)


def _state(request: JsonObject) -> str | None:
    state = request.get("state")
    return state if isinstance(state, str) else None


def _path(request: JsonObject, *, is_needed: bool = False) -> str | None:
    path = request.get("path")
    if path is None and not is_needed:
        return None
    if not isinstance(path, str) or not path.startswith("/") or "\0" in path:
        raise ControlCommandError("expected the absolute path of a file")
    return path


def _number(request: JsonObject, name: str) -> int | None:
    value = request.get(name)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ControlCommandError(f"expected {name} as a whole number from 1 on, received {value!r}")
    return value
