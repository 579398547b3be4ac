"""The Tool port: what a tool declares, how it proposes its effect, and how it runs.

A tool first *proposes*: it checks its arguments and says what it would do, without an effect. The proposal may be shown
to the user. Then it *runs*, with the proposal that was approved. A tool never asks for permission itself, and knows
nothing of tasks, models or wires.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, TypeAlias, runtime_checkable

from typing_extensions import override

from isthmus.development_tool import ConfirmationDetails, ErrorDetails, McpServerSettings, ToolOutput
from isthmus.media import Media
from isthmus.tools.user_question import AskUser, nobody_to_ask
from isthmus.tools.workspace import Workspace

Arguments: TypeAlias = Mapping[str, Any]


class ToolKind(Enum):
    """What a tool can do to the world; the approval policy decides by it."""

    READ = "read"
    """Changes nothing: may run again after a crash, and runs in plan mode."""
    EDIT = "edit"
    """Changes files of the workspace; proposes a FileDiff."""
    EXECUTE = "execute"
    """Runs a program; proposes ExecuteDetails."""
    OTHER = "other"
    """Anything else with an effect."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Where a call is proposed and runs. Nothing in it is process-wide.

    ``output_folder`` is where outputs that are too long to show are kept whole; ``environment`` is what child
    processes get. Both belong to the task.
    """

    workspace: Workspace
    tool_call_id: str
    output_folder: Path
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Approved:
    """What was approved: the proposal, and for a file edit the reviewer's own content when it differs.

    ``version`` is that of the tool that was approved (:func:`version_of`); None where that is not known.
    """

    details: ConfirmationDetails | None = None
    modified_content: str | None = None
    version: str | None = None


def _not_shown(text: str) -> None:
    """Drop progress where nobody watches."""


@dataclass(frozen=True, slots=True)
class CallContext(ToolContext):
    """What a running call has besides: the approval, and the ways to show progress and to ask.

    ``progress`` takes the whole output so far; of several texts at once the last is shown. ``await ask(question)``
    returns when the user has answered, which may take minutes, or nobody can.
    """

    approved: Approved = Approved()
    progress: Callable[[str], None] = _not_shown
    ask: AskUser = nobody_to_ask

    @classmethod
    def of(cls, place: ToolContext, approved: Approved, progress: Callable[[str], None], ask: AskUser) -> "CallContext":
        """Return the context of a call that runs where it was proposed."""
        return cls(place.workspace, place.tool_call_id, place.output_folder, place.environment, approved, progress, ask)


@dataclass(frozen=True, slots=True)
class Content:
    """Text for a model, and the media that go with it."""

    text: str
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolSucceeded:
    """``output`` is for the user, ``for_model`` for the model, as is the ``media``.

    ``loads`` are names of tools whose schemas the model is sent from now on.
    """

    output: ToolOutput
    for_model: str
    media: tuple[Media, ...] = ()
    loads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """``error`` is for the user, ``for_model`` for the model (the error's text when empty), as is ``media``."""

    error: ErrorDetails
    for_model: str = ""
    media: tuple[Media, ...] = ()


ToolResult: TypeAlias = ToolSucceeded | ToolFailed


class Tool(Protocol):
    """One tool. ``parameters`` is a JSON schema of type object; names follow Gemini CLI's tools.

    ``propose`` returns the details of a confirmation, or None for a tool of kind READ. ``run`` does the work; when it
    is cancelled it leaves nothing running behind. Both raise :class:`~isthmus.tools.failure.ToolFailure`.
    """

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> Mapping[str, Any]: ...

    @property
    def kind(self) -> ToolKind: ...

    def describe(self, arguments: Arguments) -> str: ...

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None: ...

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult: ...


@runtime_checkable
class Versioned(Protocol):
    """A tool whose definition comes from elsewhere and may change; what is allowed for one version is that alone."""

    @property
    def version(self) -> str: ...


def version_of(tool: Tool) -> str:
    """Return the version of a tool's definition; empty for one that is our own."""
    return tool.version if isinstance(tool, Versioned) else ""


@runtime_checkable
class FullyDescribed(Protocol):
    """A tool whose input schema says more in full than in the form that every provider takes."""

    @property
    def full_parameters(self) -> Mapping[str, Any]: ...


def full_parameters_of(tool: Tool) -> Mapping[str, Any]:
    """Return the input schema of a tool as JSON Schema in full."""
    return tool.full_parameters if isinstance(tool, FullyDescribed) else tool.parameters


@dataclass(frozen=True, slots=True)
class ToolScope:
    """Whom tools are for: the workspace, the session and its task, and what its AgentSettings say of MCP servers.

    Without ``mcp_servers`` all that are configured for the workspace count; with, only these.
    """

    workspace: Path
    context_id: str = ""
    task_id: str = ""
    mcp_servers: tuple[McpServerSettings, ...] = ()


SEARCH_TOOL = "search_mcp_tools"
"""The tool that loads others; no server's tool gets this name."""


@dataclass(frozen=True, slots=True)
class ServerTools:
    """The tools of an MCP server, by the names that the model has for them.

    ``origin`` says whose configuration the server is of, and where: servers of one name and one origin are the same.
    ``is_always_loaded``: the model is sent their schemas, however many tools there are.
    """

    name: str
    tools: tuple[str, ...]
    origin: str = ""
    is_always_loaded: bool = False


@dataclass(frozen=True, slots=True)
class ToolSet:
    """Tools by name, in the order in which they are offered to the model.

    ``trusted_servers`` are MCP servers whose tools the user's own settings let run without asking.
    ``foreign_servers`` were brought by a client: what the settings allow by a name does not mean them.
    ``servers`` says which tools are of MCP servers. ``missing_servers`` are names of those that are configured and
    offer nothing now.
    ``refusals`` are tools that the settings forbid, by name, with the reason; ``always_asked`` those that the settings
    have asked about each time. ``yolo_refusal`` is why the settings of the folder refuse the approval mode ``yolo``;
    None: they do not. ``keeps_answers``: questions offer answers that hold for more than the one call.
    """

    tools: Mapping[str, Tool] = field(default_factory=dict[str, Tool])
    trusted_servers: frozenset[str] = frozenset()
    foreign_servers: frozenset[str] = frozenset()
    servers: tuple[ServerTools, ...] = ()
    missing_servers: tuple[str, ...] = ()
    refusals: Mapping[str, str] = field(default_factory=dict[str, str])
    always_asked: Mapping[str, str] = field(default_factory=dict[str, str])
    yolo_refusal: str | None = None
    keeps_answers: bool = True

    @classmethod
    def of(cls, *tools: Tool) -> "ToolSet":
        """Return a set of these tools; a later one of the same name is refused.

        Raises:
            ValueError: two tools have one name.
        """
        named: dict[str, Tool] = {}
        for tool in tools:
            if named.setdefault(tool.name, tool) is not tool:
                raise ValueError(f"two tools are named {tool.name!r}; rename one")
        return cls(named)


class ToolSource(Protocol):
    """Where a session's tools come from. They may change from turn to turn: MCP servers come and go."""

    async def tools(self, scope: ToolScope) -> ToolSet:
        """Return the tools of a session now. Does not wait long for servers that are slow; never fails because of one.

        Raises:
            ToolFailure: the scope names a server that does not exist or may not be used.
        """
        ...

    async def renewed(self, scope: ToolScope, tools: ToolSet) -> ToolSet:
        """Return the tools of a scope further on in its work, which has `tools`: these very ones while nothing changed.

        Waits for no server that connects, and no longer than moments for one that said that its tools changed.
        """
        ...

    async def release(self, scope: ToolScope) -> None:
        """The tools of a scope are not used any more: what was opened for it alone is closed."""
        ...


@dataclass(frozen=True, slots=True)
class FixedTools(ToolSource):
    """The same tools for every session."""

    tool_set: ToolSet

    @override
    async def tools(self, scope: ToolScope) -> ToolSet:
        return self.tool_set

    @override
    async def renewed(self, scope: ToolScope, tools: ToolSet) -> ToolSet:
        return tools

    @override
    async def release(self, scope: ToolScope) -> None: ...
