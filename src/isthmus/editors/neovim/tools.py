"""Tools that the user declares inside Neovim, and the calls of agents that wait for their results. No I/O.

``tools.lua`` is the other side. The deadline of a call is the caller's.
"""

import asyncio
from typing import Any, cast
from uuid import uuid4

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_text import JsonError, decode_any_text
from isthmus.ide.editor import EditorError
from isthmus.ide.mcp.mcp_peer import ToolDefinition


class NeovimTools:
    """Tools of one attached Neovim, and their open calls."""

    def __init__(self) -> None:
        self.offered: tuple[ToolDefinition, ...] = ()
        self._calls: dict[str, asyncio.Future[str]] = {}

    def offer(self, value: object) -> None:
        """Replace the tools by those that the script lists; leave out what is not a tool."""
        entries = cast("list[Any]", value) if isinstance(value, list) else []
        self.offered = tuple(tool for entry in entries if (tool := _tool(entry)) is not None)

    def begin(self) -> tuple[str, "asyncio.Future[str]"]:
        """Return the id and the future result of a new call; :meth:`end` forgets it."""
        call_id, result = uuid4().hex, asyncio.get_running_loop().create_future()
        self._calls[call_id] = result
        return call_id, result

    def end(self, call_id: str) -> None:
        """Forget a call, whose result is dropped if it still comes."""
        self._calls.pop(call_id, None)

    def answer(self, call_id: str, text: str, *, is_error: bool) -> None:
        """Give an open call its result, or the text of its error."""
        result = self._calls.get(call_id)
        if result is None or result.done():
            return
        if is_error:
            result.set_exception(EditorError(text))
        else:
            result.set_result(text)

    def fail_all(self, reason: EditorError) -> None:
        """Fail the open calls: Neovim has quit."""
        for result in self._calls.values():
            if not result.done():
                result.set_exception(reason)


def _tool(entry: object) -> ToolDefinition | None:
    fields = cast("dict[str, Any]", entry if isinstance(entry, dict) else {})
    name, description = fields.get("name"), fields.get("description")
    if not isinstance(name, str) or not isinstance(description, str):
        return None
    return ToolDefinition(name, description, _schema(fields.get("schema")))


def _schema(text: object) -> JsonObject:
    """Return a schema of type object; Lua has the same empty table for a list and for an object."""
    try:
        value = decode_any_text(text if isinstance(text, str) else "")
    except JsonError:
        value = None
    schema = dict(cast("JsonObject", value)) if isinstance(value, dict) else {}
    if not schema.get("properties"):
        schema["properties"] = {}
    return {"type": "object", **schema}
