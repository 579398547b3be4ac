"""Splits calls of a model that have several effects into one call for each, since a question is about one. Pure.

The conversation then has the calls as if the model had made them so. How a call is split is up to its tool.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from isthmus.models.port.base import Message, Part, ToolRequest
from isthmus.tools.port.base import SplittingTool, Tool


def with_split_calls(message: Message, tools: Mapping[str, Tool]) -> Message:
    """Return the message with the parts of its calls as calls of their own; the first one keeps the id."""
    parts = tuple(part for whole in message.parts for part in _split(whole, tools))
    return message if len(parts) == len(message.parts) else replace(message, parts=parts)


def _split(part: Part, tools: Mapping[str, Tool]) -> Iterator[Part]:
    tool = tools.get(part.name) if isinstance(part, ToolRequest) else None
    if not isinstance(part, ToolRequest) or not isinstance(tool, SplittingTool):
        yield part
        return
    for number, arguments in enumerate(tool.split(part.arguments)):
        identity, state = (part.id, part.state) if number == 0 else (f"{part.id}_{number + 1}", None)
        yield replace(part, id=identity, arguments=arguments, state=state)
