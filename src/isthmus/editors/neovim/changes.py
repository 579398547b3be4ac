"""Questions and decisions of the user in Neovim about what agents wrote; ``changes.lua`` is the other side.

They come as notifications, because Neovim must not wait for the companion, and are answered by calls.
"""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from isthmus.editors.neovim.text import BufferText
from isthmus.encoding.codec import JsonObject
from isthmus.errors import IsthmusError
from isthmus.ide.written_changes.front import ChangesQuestion
from isthmus.runtime.running_tasks import RunningTasks

SAVED_SECONDS: Final = 1.0
"""Time in seconds for which a save in Neovim is recorded before anything is decided."""
_NOT_RECORDED: Final = "this companion does not record what agents write"
_log = logging.getLogger(__name__)


class NeovimChanges:
    """Answers to the user of one attached Neovim. ``call`` calls a function of its Lua with one argument."""

    def __init__(self, call: Callable[[str, object], None]) -> None:
        self._call = call
        self._ask: ChangesQuestion | None = None
        self._saved: dict[str, float] = {}
        self._tasks = RunningTasks()

    def serve(self, ask: ChangesQuestion) -> None:
        """Take the function that answers the questions; before, nothing is recorded."""
        self._ask = ask

    def written(self, files: int, turns: int) -> None:
        """Tell Neovim how many files and turns wait for the user."""
        self._call("changes_written", {"files": files, "turns": turns})

    def saved(self, path: str) -> None:
        """Note that the user saved a file, which must be recorded as theirs before a later decision is carried out."""
        self._saved[path] = time.monotonic()

    def asked(self, question_id: str, name: str, params: object) -> None:
        """Answer a question in the background. ``params`` is a list if it is an empty table of Lua."""
        known: JsonObject = cast("JsonObject", params) if isinstance(params, dict) else dict[str, Any]()
        self._tasks.start(self._answer(question_id, name, known))

    def end(self) -> None:
        """Answer no further question: Neovim has quit."""
        self._tasks.stop()

    async def _answer(self, question_id: str, name: str, params: JsonObject) -> None:
        answer: dict[str, object] = {"id": question_id}
        try:
            answer["result"] = encode_answer(await self._result(name, params))
        except IsthmusError as error:
            answer["problem"] = str(error)
        except Exception as error:
            _log.exception("a question about what agents wrote failed")
            answer["problem"] = f"the companion failed: {error}; its log says more"
        self._call("changes_answered", answer)

    async def _result(self, name: str, params: JsonObject) -> JsonObject:
        ask = self._ask
        if ask is None:
            raise IsthmusError(_NOT_RECORDED)
        saved, self._saved = self._saved, {}
        for path, at in saved.items():
            if time.monotonic() - at <= SAVED_SECONDS:  # later, the event of the editor has long been handled
                await ask("written_saved", {"path": path})
        return await ask(name, params)


def encode_answer(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return an answer for Lua, where a member that is null is absent: texts as lines, and hunks without theirs."""
    encoded = {name: _without_null(value) for name, value in result.items() if value is not None}
    if "hunks" in result:
        for side in ("old", "new"):
            encoded[side] = BufferText.of(result[side] or "").to_neovim()
        encoded["hunks"] = [_encode_hunk(hunk) for hunk in result["hunks"]]
    return encoded


def _encode_hunk(hunk: Mapping[str, Any]) -> dict[str, Any]:
    lines = ("old_lines", "new_lines")
    encoded = {name: value for name, value in hunk.items() if name not in lines and value is not None}
    return encoded | {"old_count": len(hunk["old_lines"]), "new_count": len(hunk["new_lines"])}


def _without_null(value: object) -> object:
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {name: _without_null(member) for name, member in members.items() if member is not None}
    if isinstance(value, list):
        return [_without_null(item) for item in cast("list[object]", value)]
    return value
