"""The tools that hooks leave to a request (``toolConfig`` of Gemini CLI's BeforeToolSelection). Pure."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from isthmus.agent.hooks.model_forms import names_of
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_text
from isthmus.models.port.base import Message, ModelRequest, ToolChoice, ToolRequest
from isthmus.record import record

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
        """Return a request with these tools alone, and with its choice among them."""
        tools = tuple(tool for tool in request.tools if self.allows(tool.name, names))
        if not tools:  # Earlier calls in the conversation need their tools beside them.
            return replace(request, choice=ToolChoice.NONE)
        return replace(request, tools=tools, choice=self.choice)

    def refused(self, message: Message, names: ToolNames) -> Message:
        """Return an answer in which calls of other tools cannot be made: a model may call what it was not offered."""
        parts = tuple(
            replace(part, invalid=f"a hook of the settings left {part.name} out of this request")
            if isinstance(part, ToolRequest) and not self.allows(part.name, names)
            else part
            for part in message.parts
        )
        return replace(message, parts=parts)


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
