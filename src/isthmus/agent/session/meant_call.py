"""Calls through `call_tool`: the call that is meant, and the tool by whose name the model hears of it. Pure.

The conversation keeps the call as the model wrote it; all else (questions, rules, hooks, the user's view) is about the
call that is meant. Not here: the tool itself, see :mod:`isthmus.agent.tool_search.call_tool`.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from isthmus.models.port.base import ToolRequest
from isthmus.tools.port.tool_set import CALL_TOOL


def meant_call(request: ToolRequest) -> ToolRequest:
    """Return the call that a call of `call_tool` means; the call itself if it is another tool's, or names no call."""
    if request.name != CALL_TOOL or request.invalid is not None:
        return request
    name: object = request.arguments.get("name")
    arguments = _arguments(request.arguments.get("arguments"))
    if not isinstance(name, str) or not name or name == CALL_TOOL or arguments is None:
        return request
    return replace(request, name=name, arguments=arguments)


def with_meant(request: ToolRequest, meant: ToolRequest) -> ToolRequest:
    """Return a call of `call_tool` that means another call."""
    return replace(
        request, id=meant.id, state=meant.state, arguments={"name": meant.name, "arguments": dict(meant.arguments)}
    )


def _arguments(given: object) -> Mapping[str, Any] | None:
    """Return the arguments of the other tool; some models send them as a text with JSON. None if there are none."""
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return None
    return cast("Mapping[str, Any]", given) if isinstance(given, Mapping) else None
