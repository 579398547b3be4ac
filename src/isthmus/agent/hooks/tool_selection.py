"""The tools that hooks leave to a request (``toolConfig`` of Gemini CLI's BeforeToolSelection). Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from isthmus.agent.hooks.model_forms import names_of
from isthmus.agent.session.meant_call import meant_call
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_text
from isthmus.internal_events import HOOK_CONTEXT
from isthmus.models.port.base import Message, ModelRequest, Part, Text, ToolChoice, ToolRequest
from isthmus.record import record
from isthmus.tools.port.tool_set import CALL_TOOL

SOME_TOOLS: Final = f"{HOOK_CONTEXT}\nFrom now on these tools alone may be called; calls of others are refused:"
"""Beginning of the text that tells a model which tools hooks leave."""
ALL_TOOLS: Final = f"{HOOK_CONTEXT}\nFrom now on all tools may be called again.\n</hook_context>"
"""Text that tells a model that hooks leave all tools."""

ToolNames = Callable[[str], Sequence[frozenset[str]]]
"""Returns the names of a tool as hooks know it: each set that is allowed as a whole allows the tool."""


@record
class ToolSelection:
    """Tools that the model may call; ``names`` None is all of them."""

    choice: ToolChoice = ToolChoice.AUTO
    names: frozenset[str] | None = None

    def allows(self, tool: str, names: ToolNames) -> bool:
        """Return whether the model may call a tool."""
        if self.choice is ToolChoice.NONE:
            return False
        return self.names is None or any(each <= self.names for each in names(tool))

    def applied(self, request: ModelRequest, names: ToolNames) -> ModelRequest:
        """Return a request that allows these tools alone; its list of tools, which providers cache, stays."""
        if self.names is None:
            return replace(request, choice=self.choice)
        allowed = self._callable_names(request, names)
        if not allowed:
            return replace(request, choice=ToolChoice.NONE)
        return replace(request, choice=self.choice, allowed=frozenset(allowed))

    def told(self, request: ModelRequest, names: ToolNames) -> str | None:
        """Return what the model is to be told behind the conversation; None if it knows, or calls nothing anyway."""
        if self.choice is ToolChoice.NONE or not request.tools:
            return None
        said = _last_told(request.messages)
        allowed = None if self.names is None else self._callable_names(request, names)
        if allowed is None:
            return None if said is None or said == ALL_TOOLS else ALL_TOOLS
        text = f"{SOME_TOOLS} {', '.join(allowed) or 'none'}.\n</hook_context>"
        return None if text == said else text

    def refused(self, message: Message, names: ToolNames) -> Message:
        """Return an answer in which calls of other tools cannot be made, which a model may make all the same."""
        return replace(message, parts=tuple(self._checked(part, names) for part in message.parts))

    def _checked(self, part: Part, names: ToolNames) -> Part:
        if not isinstance(part, ToolRequest):
            return part
        tool = meant_call(part).name
        describes = tool == CALL_TOOL and self.choice is not ToolChoice.NONE  # it calls nothing
        if describes or self.allows(tool, names):
            return part
        return replace(part, invalid=f"a hook of the settings left {tool} out of this request")

    def _callable_names(self, request: ModelRequest, names: ToolNames) -> list[str]:
        """Return the allowed tools of a request's list, and the one that calls tools which are not in the list."""
        known = frozenset(each for tool in request.tools for name in names(tool.name) for each in name)
        has_others = bool((self.names or frozenset()) - known)
        return [
            tool.name
            for tool in request.tools
            if self.allows(tool.name, names) or (tool.name == CALL_TOOL and has_others)
        ]


def _last_told(messages: Sequence[Message]) -> str | None:
    """Return what a conversation told last about the tools that hooks leave."""
    told = (
        part.text
        for message in reversed(messages)
        if message.role == "user"
        for part in reversed(message.parts)
        if isinstance(part, Text) and part.text.startswith((SOME_TOOLS, ALL_TOOLS))
    )
    return next(told, None)


def selection_of(users: Iterable[JsonObject], projects: Iterable[JsonObject]) -> ToolSelection:
    """Return the common selection of hooks.

    As in Gemini CLI, NONE wins over all, ANY over AUTO, and lists of names are joined. Those of a project's hooks are
    joined among themselves and then only take away, and their ANY has no effect.

    Raises:
        UnusableFormError: one of the lists has another form.
    """
    of_user, of_project = tuple(users), tuple(projects)
    modes = {as_text(form.get("mode")) for form in of_user}
    names: frozenset[str] | None = None
    for forms in (of_user, of_project):
        if joined := frozenset[str]().union(*map(names_of, forms)):
            names = joined if names is None else names & joined
    if "NONE" in modes or any(form.get("mode") == "NONE" for form in of_project):
        return ToolSelection(ToolChoice.NONE)
    return ToolSelection(ToolChoice.ANY if "ANY" in modes else ToolChoice.AUTO, names)
