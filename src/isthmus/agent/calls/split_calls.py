"""Splits calls of a model that have several effects into one call for each, since a question is about one. Pure.

A call that means another tool becomes that tool's before. The conversation then has the calls as if the model had made
them so. How a call is split, and what it means, is up to its tool.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from isthmus.agent.session.meant_call import meant_call, with_meant
from isthmus.models.port.base import Message, Part, ToolRequest
from isthmus.tools.port.base import SplittingTool, Tool, TranslatedTool, other_names_of


def with_split_calls(message: Message, tools: Mapping[str, Tool]) -> Message:
    """Return the message with the parts of its calls as calls of their own; the first one keeps the id."""
    parts = tuple(part for whole in message.parts for part in _split(whole, tools))
    return message if parts == message.parts else replace(message, parts=parts)


def _split(part: Part, tools: Mapping[str, Tool]) -> Iterator[Part]:
    if isinstance(part, ToolRequest) and (meant := meant_call(part)) is not part:
        for inner in _split(meant, tools):
            yield with_meant(part, inner) if isinstance(inner, ToolRequest) else inner
        return
    if isinstance(part, ToolRequest):
        part = _translated(part, tools)
    tool = tools.get(part.name) if isinstance(part, ToolRequest) else None
    if not isinstance(part, ToolRequest) or not isinstance(tool, SplittingTool):
        yield part
        return
    for number, arguments in enumerate(tool.split(part.arguments)):
        identity, state = (part.id, part.state) if number == 0 else (f"{part.id}_{number + 1}", None)
        yield replace(part, id=identity, arguments=arguments, state=state)


def _translated(request: ToolRequest, tools: Mapping[str, Tool]) -> ToolRequest:
    """Return the call that a call means, if there is a tool for it."""
    if request.name not in tools:
        name = next((tool.name for tool in tools.values() if request.name in other_names_of(tool)), request.name)
        request = replace(request, name=name) if name in tools else request
    tool = tools.get(request.name)
    meant = tool.meant(request.arguments) if isinstance(tool, TranslatedTool) else None
    if meant is None or meant[0] not in tools or meant == (request.name, request.arguments):
        return request
    return replace(request, name=meant[0], arguments=meant[1])
