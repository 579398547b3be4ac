"""The Tool port: the declaration of a tool, the proposal of its effect, and its execution.

A tool first *proposes*: it checks its arguments and describes its effect, without having one. The proposal may be shown
to the user. Then it *runs*, with the approved proposal. A tool never asks for permission itself, and knows nothing of
tasks, models or protocols.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Protocol, TypeAlias, TypeGuard, runtime_checkable

from isthmus.development_tool import (
    ChangedLines,
    ConfirmationDetails,
    ConfirmationOption,
    ErrorDetails,
    ToolCall,
    ToolCallConfirmation,
    ToolOutput,
)
from isthmus.encoding.codec import JsonObject
from isthmus.internal_events import SeenText
from isthmus.media import Media
from isthmus.record import record
from isthmus.tools.port.user_question import AskUser, no_user_to_ask
from isthmus.tools.port.workspace import Workspace

Arguments: TypeAlias = Mapping[str, Any]


class ToolKind(Enum):
    """Kind of effect that a tool can have; the approval policy depends on it."""

    READ = "read"
    """Changes nothing: may be repeated after a crash, and runs in plan mode."""
    EDIT = "edit"
    """Changes files of the workspace; proposes a FileDiff."""
    EXECUTE = "execute"
    """Runs a program; proposes ExecuteDetails."""
    OTHER = "other"
    """Anything else with an effect."""


@record
class WebAnswer:
    """Answer of a model's provider to a search of the web; ``sources`` are pairs of title and URL, in their order."""

    text: str
    sources: tuple[tuple[str, str], ...]
    tokens: "ModelTokens"


class Overwriting(Enum):
    """Amount of text of a file that a call may replace or remove without naming it."""

    NOTHING = "nothing"
    PART = "part"
    """A part, which only somebody who has read the file knows, e.g. a cell of a notebook."""
    WHOLE = "whole"


Search: TypeAlias = Callable[[str], Awaitable[WebAnswer]]
"""Searches the web with the session's model; raises ToolFailure."""


@record
class ToolContext:
    """Context in which a call is proposed and runs. Nothing in it is process-wide.

    ``output_folder`` receives the full text of outputs that are too long to show; ``environment`` is for child
    processes. Both belong to the task. ``readable_folders`` are folders outside the workspace whose files may be read.
    ``session`` is the key of the session and its user. ``search`` searches the web with the session's model.
    """

    workspace: Workspace
    tool_call_id: str
    output_folder: Path
    environment: Mapping[str, str]
    readable_folders: tuple[Path, ...] = ()
    session: str = ""
    search: Search | None = None


@record
class Approved:
    """Approved proposal, for a file edit with the content that the reviewer changed, if any.

    ``version`` is the version of the approved tool (:func:`version_of`); None if it is not known. ``option_id`` is the
    option that the user chose; empty if no user was asked.
    """

    details: ConfirmationDetails | None = None
    modified_content: str | None = None
    version: str | None = None
    option_id: str = ""


def _ignore_progress(text: str) -> None:
    """Ignore a progress report."""


@record
class CallContext(ToolContext):
    """Context of a running call: the approval, and functions to show progress and to ask the user.

    ``progress`` takes the whole output so far; if calls come fast, only the last text is shown. ``await ask(question)``
    returns when the user has answered, which may take minutes, or when no user can.
    """

    approved: Approved = Approved()
    progress: Callable[[str], None] = _ignore_progress
    ask: AskUser = no_user_to_ask

    @classmethod
    def of(cls, place: ToolContext, approved: Approved, progress: Callable[[str], None], ask: AskUser) -> "CallContext":
        """Return the context of a call that runs in the context in which it was proposed."""
        return cls(
            place.workspace,
            place.tool_call_id,
            place.output_folder,
            place.environment,
            place.readable_folders,
            place.session,
            place.search,
            approved=approved,
            progress=progress,
            ask=ask,
        )


@record
class Content:
    """Text for a model, and the media that belong to it."""

    text: str
    media: tuple[Media, ...] = ()


@record
class ModelTokens:
    """Tokens of a model in ``requests`` requests for a call. ``input`` has the cached ones, ``output`` the thoughts.

    ``cost`` is in picodollars, of all requests but ``unpriced``, or None if it is known of none. ``subtask`` is the
    task whose events say the same; empty if there is none.
    """

    model: str
    requests: int = 1
    input: int = 0
    output: int = 0
    cached: int = 0
    thoughts: int = 0
    cost: int | None = None
    unpriced: int = 0
    subtask: str = ""


@record
class ToolSucceeded:
    """Result of a successful call: ``output`` for the user, ``for_model`` and ``media`` for the model.

    ``loads`` names tools whose schemas are sent to the model from now on. ``tokens`` is what models needed for it.
    ``seen`` is what the result shows of files, ``wrote`` are files whose whole text the call itself named. ``changed``
    are the files that a subagent has changed for the call.
    """

    output: ToolOutput
    for_model: str
    media: tuple[Media, ...] = ()
    loads: tuple[str, ...] = ()
    tokens: tuple[ModelTokens, ...] = ()
    seen: tuple[SeenText, ...] = ()
    wrote: tuple[SeenText, ...] = ()
    changed: tuple[ChangedLines, ...] = ()


@record
class ToolFailed:
    """Failure of a call: ``error`` for the user, ``for_model`` (default: the error) and ``media`` for the model.

    ``tokens`` is what models needed for it, ``changed`` are the files that a subagent has changed for it.
    """

    error: ErrorDetails
    for_model: str = ""
    media: tuple[Media, ...] = ()
    tokens: tuple[ModelTokens, ...] = ()
    changed: tuple[ChangedLines, ...] = ()


ToolResult: TypeAlias = ToolSucceeded | ToolFailed


@record
class ToolWaits:
    """The task that a call has begun waits for the user, with these calls of its own; they have questions."""

    questions: tuple[ToolCall, ...]


class Tool(Protocol):
    """One tool. ``parameters`` is a JSON schema of type object; names follow Gemini CLI's tools.

    ``describe``, ``propose`` and ``run`` raise :class:`~isthmus.tools.port.failure.ToolFailure`.
    """

    @property
    def name(self) -> str:
        """Name under which the model calls the tool."""
        ...

    @property
    def description(self) -> str:
        """Description for the model."""
        ...

    @property
    def parameters(self) -> Mapping[str, Any]:
        """JSON schema of the arguments."""
        ...

    @property
    def kind(self) -> ToolKind:
        """Kind of effect."""
        ...

    def describe(self, arguments: Arguments) -> str:
        """Describe a call to the user in one line."""
        ...

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the arguments and return the details of a confirmation; None for a tool of kind READ."""
        ...

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Do the work; when cancelled, leave nothing running behind."""
        ...


@runtime_checkable
class SplittingTool(Protocol):
    """A tool whose calls may have several effects, each of which needs a question of its own."""

    def split(self, arguments: Arguments) -> Sequence[JsonObject]:
        """Return the arguments of one call for each effect, at least one."""
        ...


class RenamedTool(Protocol):
    """A tool that models also call by ``other_names``, as other agents call it."""

    other_names: frozenset[str]


def other_names_of(tool: Tool) -> frozenset[str]:
    """Return the other names of a tool; none for most."""
    return tool.other_names if _is_renamed(tool) else frozenset()


def _is_renamed(tool: Tool) -> TypeGuard[RenamedTool]:
    return hasattr(tool, "other_names")  # as in is_search_tool


class SearchTool(Protocol):
    """A tool that is offered only with models whose provider searches the web."""

    needs_search: bool


def is_search_tool(tool: Tool) -> bool:
    """Return whether a tool is a :class:`SearchTool`."""
    # For each tool of each model request; isinstance() with a protocol takes 100 times as long in Python 3.11.
    return hasattr(tool, "needs_search")


@runtime_checkable
class OutsideReader(Protocol):
    """A tool that reads one file, also one outside the workspace if the user allows it."""

    def outside(self, arguments: Arguments, context: ToolContext) -> Path | None:
        """Return the existing file outside the workspace that a call would read; None if it may read what it names."""
        ...


@runtime_checkable
class OverwritingTool(Protocol):
    """A tool that edits files, and may replace text that its arguments do not name."""

    def overwriting(self, arguments: Arguments) -> Overwriting:
        """Return how much a call may replace without naming it."""
        ...


@runtime_checkable
class TranslatedTool(Protocol):
    """A tool with calls that mean another tool: models write them for agents that have no such tool."""

    def meant(self, arguments: Arguments) -> tuple[str, JsonObject] | None:
        """Return the name and the arguments of the call that is meant; None if it is this tool's."""
        ...


@runtime_checkable
class FollowingTool(Protocol):
    """A tool with calls that make sense only once the calls before them in the same message are settled."""

    def waits_for_earlier(self, arguments: Arguments) -> bool:
        """Return whether a call is proposed only when no earlier one waits for a user."""
        ...


@runtime_checkable
class MovingTool(Protocol):
    """A tool with calls that write the text of one file at the path of another."""

    def moved_from(self, arguments: Arguments) -> str | None:
        """Return the path of the file whose text a call moves, as the model wrote it; None if it moves none."""
        ...


@runtime_checkable
class RemovingTool(Protocol):
    """A tool with calls that remove a file."""

    def removes(self, arguments: Arguments) -> bool:
        """Return whether a call removes the file of its proposal."""
        ...


class FreeFormTool(Protocol):
    """A tool with one argument that a model may send as a text of its own, in a provider that has such calls.

    ``text_argument`` is the name of the argument, ``grammar`` the grammar of the text, for Lark.
    """

    text_argument: str
    grammar: str


def is_free_form(tool: Tool) -> TypeGuard[FreeFormTool]:
    """Return whether a tool is a :class:`FreeFormTool`."""
    return hasattr(tool, "grammar")  # as in is_search_tool


@runtime_checkable
class Versioned(Protocol):
    """A tool whose definition comes from a server and may change; an approval counts for one version only."""

    @property
    def version(self) -> str:
        """Version of the definition."""
        ...


def version_of(tool: Tool) -> str:
    """Return the version of a tool's definition; empty for a built-in tool."""
    return tool.version if isinstance(tool, Versioned) else ""


@runtime_checkable
class AskingTool(Protocol):
    """A tool whose call is a question to the user: it runs only with the answer, and is never allowed in advance."""

    def choices(self, arguments: Arguments) -> tuple[ConfirmationOption, ...]:
        """Return the answers that the user can choose."""
        ...

    def words_option(self, arguments: Arguments) -> str | None:
        """Return the id of an answer in the user's own words; None if one of the choices stands for it, or none."""
        ...


@runtime_checkable
class DelegatingTool(Tool, Protocol):
    """A tool whose call begins a task and waits for it. The task outlives the process, and so does the call.

    The questions of the task are asked in the call's own task too. Nothing waits in memory for their answers.
    """

    async def follow(
        self, arguments: Arguments, context: CallContext, answers: Mapping[str, ToolCallConfirmation]
    ) -> ToolResult | ToolWaits:
        """Begin the task, or find the one that this call has begun, and wait until it has ended or asks.

        ``answers`` are the answers to its questions that were given here, by the ids of its calls. Those that it has
        received before have no effect.
        """
        ...

    async def open_questions(self, tool_call_id: str) -> Sequence[str]:
        """Return the ids of the calls with which the task of a call waits for the user now."""
        ...

    async def abandon(self, tool_call_id: str) -> None:
        """Cancel the task of a call whose result is no longer needed."""
        ...


class FullyDescribed(Protocol):
    """A tool whose full input schema is more precise than the form that every provider accepts."""

    @property
    def full_parameters(self) -> Mapping[str, Any]:
        """Full JSON schema of the arguments."""
        ...


def full_parameters_of(tool: Tool) -> Mapping[str, Any]:
    """Return the full JSON schema of a tool's arguments."""
    return tool.full_parameters if _is_fully_described(tool) else tool.parameters


def _is_fully_described(tool: Tool) -> TypeGuard[FullyDescribed]:
    return hasattr(tool, "full_parameters")  # as in is_search_tool
