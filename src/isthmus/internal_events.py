"""Events for the agent alone: what the journal keeps of a task beside what its clients see.

Each belongs to the union :data:`isthmus.events.AgentEvent`. No wire and no front shows one by itself.
"""

from isthmus.development_tool import ToolCall
from isthmus.encoding.codec import JsonObject
from isthmus.media import Media
from isthmus.record import record


class InternalEvent:
    """An event for the agent alone: no wire and no front shows it by itself."""

    __slots__ = ()


@record
class CommandPrompt(InternalEvent):
    """A message to the model that a command writes for the user, e.g. the text of a custom command. Not shown.

    ``media`` is the content other than text. ``requested_file`` is the path of the file that the user asked for by the
    command, or empty.
    """

    text: str
    media: tuple[Media, ...] = ()
    requested_file: str = ""


@record
class AnsweredCall:
    """A call about which a user was asked, and the option that the user chose."""

    tool_call: ToolCall
    option_id: str


@record
class SubagentBegun(InternalEvent):
    """The task is the work of a subagent: a call of another task has begun it. Follows the prompt. Not shown.

    ``instructions`` is its system prompt. ``tools`` are the tools that it may use, by the names in its definition; None
    means all. ``refused_tools`` are left out. ``max_turns`` is the maximum number of model messages, None for the usual
    one. ``answered`` are the answers in the session of the other task, which count here too. ``checkpoints_of`` is the
    key of that session: its checkpoints and the subagent's are one list. ``budget`` is what it may cost in
    picodollars, None for no limit.
    """

    name: str
    instructions: str
    parent_task_id: str
    parent_call_id: str
    tools: tuple[str, ...] | None = None
    refused_tools: tuple[str, ...] = ()
    max_turns: int | None = None
    answered: tuple[AnsweredCall, ...] = ()
    checkpoints_of: str | None = None
    budget: int | None = None


@record
class FolderIncluded(InternalEvent):
    """The agent works in this further folder for the rest of the session; ``path`` is absolute. Not shown by itself."""

    path: str


@record
class ContextNote(InternalEvent):
    """A note for the model beside the conversation. Not shown.

    ``source`` is one of the constants below, or the name of another part of the agent.
    """

    source: str
    text: str


EDITOR_NOTE = "editor"
"""Source of the editor's view at the prompt."""
HOOK_MESSAGE = "hook_message"
"""Source of what a hook adds to a request to the model, and of the tools that hooks leave."""
HOOK_NOTE = "hook"
"""Source of what a hook of the user's adds; it belongs to the user's request."""
REWIND_NOTE = "rewind"
"""Source of the note that files were put back while the conversation goes on."""
LIMIT_NOTE = "limit"
"""Source of the hint that the model has one message left."""
HOOK_CONTEXT = "<hook_context>"
"""Beginning of the text of a hook's note."""


def former_note(value: JsonObject) -> JsonObject:
    """Return the JSON form of a :class:`ContextNote` for the form of an ``EditorContext``, its name in older journals.

    That had no source.
    """
    is_of_hook = str(value.get("text")).startswith(HOOK_CONTEXT)
    return {**value, "type": ContextNote.__name__, "source": HOOK_NOTE if is_of_hook else EDITOR_NOTE}


@record
class EnvironmentContext(InternalEvent):
    """The environment of the conversation as text for the model: date, system, git, files at the top. Not shown."""

    text: str


@record
class ReferredContent(InternalEvent):
    """The content to which a prompt refers, files or resources, as read when its turn began. Not shown.

    ``media`` is the content other than text.
    """

    text: str
    media: tuple[Media, ...] = ()


@record
class ThoughtProgress(InternalEvent):
    """Subject of a thought that is not over: sent inside the process that runs the task, and not stored."""

    subject: str


@record
class ModelReply(InternalEvent):
    """A complete message of the model, as the provider must receive it again. Not shown to clients.

    ``message`` is the JSON form of :class:`isthmus.models.port.base.Message`; the counts are tokens. ``cost`` is in
    picodollars, by the prices at that moment; None if they were not known, and in journals of older versions.
    """

    message_id: str
    model: str
    message: JsonObject
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    thought_tokens: int = 0
    cost: int | None = None


@record
class ModelUsed(InternalEvent):
    """A model was asked outside the conversation, e.g. for an MCP server. The counts but ``requests`` are tokens.

    ``cost`` is as in :class:`ModelReply`, of all requests but ``unpriced``, or None if it is known of none.
    ``subtask`` is the id of the task whose events say the same, as a subagent's do: it counts here for the session.
    """

    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    thought_tokens: int = 0
    requests: int = 1
    cost: int | None = None
    unpriced: int = 0
    subtask: str = ""


@record
class ToolResultRecorded(InternalEvent):
    """The result of a call as the model receives it; the user sees the ToolCall's. Not shown to clients.

    ``media`` is the content other than text.
    """

    tool_call_id: str
    content: str
    is_error: bool = False
    media: tuple[Media, ...] = ()


@record
class SeenText:
    """Lines ``first`` to ``last`` (1-based, inclusive) of ``total`` of the file at ``path``, which a model was shown.

    ``path`` is absolute. ``digest`` is the whole text's, ``cells`` the digest of a notebook without its outputs, see
    :mod:`isthmus.tools.port.seen_text`. If ``last`` is less than ``first``, no line was shown in full.
    """

    path: str
    digest: str
    first: int
    last: int
    total: int
    cells: str = ""


@record
class FilesSeen(InternalEvent):
    """The model is shown this of files, or a call of its own (``is_own``) has changed them. Not shown to users.

    What was changed is known as far as it was before, unless the call named all of the text.
    """

    files: tuple[SeenText, ...]
    is_own: bool = False


@record
class Compacted(InternalEvent):
    """All messages but the last ``kept`` were replaced by ``summary``. Not shown by itself.

    ``tokens_before`` and ``tokens_after`` estimate the conversation's size; the other counts are the tokens of the
    summary. ``model`` wrote it, and ``cost`` is as in :class:`ModelReply`; older journals have neither.
    """

    summary: str
    kept: int
    tokens_before: int
    tokens_after: int
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    thought_tokens: int = 0
    model: str = ""
    cost: int | None = None


@record
class ResultsPruned(InternalEvent):
    """The long tool results in the first ``messages`` messages were replaced by notes. Not shown by itself.

    ``freed_tokens`` is an estimate.
    """

    messages: int
    freed_tokens: int


@record
class Checkpoint(InternalEvent):
    """The files that the call ``tool_call_id`` is about to edit were saved as ``checkpoint_id``. Not shown."""

    checkpoint_id: str
    tool_call_id: str


@record
class Restored(InternalEvent):
    """The conversation was reset to this checkpoint, before the call. Not shown by itself."""

    checkpoint_id: str


@record
class Rewound(InternalEvent):
    """The conversation was reset to its state before the user's message ``number``. Not shown by itself.

    ``text`` is that message's, which the user may change and send again.
    """

    number: int
    text: str = ""


@record
class ChatResumed(InternalEvent):
    """The conversation was replaced by the one saved as ``name``. Not shown by itself.

    ``messages`` are the model's, in the form of :mod:`isthmus.models.port.message`.
    """

    name: str
    messages: tuple[JsonObject, ...]


@record
class ModelChosen(InternalEvent):
    """The session continues with this model (as in ``--model``); None: the agent's default. Not shown by itself."""

    model: str | None = None


@record
class WorktreeUsed(InternalEvent):
    """The session works in this folder of its machine, a worktree of its repository. Not shown by itself."""

    folder: str


@record
class EffortChosen(InternalEvent):
    """The session continues with this effort, such as low or max; None: the agent's. Not shown by itself."""

    effort: str | None = None


@record
class ToolsLoaded(InternalEvent):
    """The model receives the schemas of these tools of MCP servers, and of no others, from now on. Not shown.

    The first one of a session has no names: from there on tools are loaded on demand.
    """

    names: tuple[str, ...] = ()


@record
class PromptSection:
    """Section of a system prompt. Its name says what it is about, see :mod:`isthmus.agent.system_prompt`."""

    name: str
    text: str


@record
class PromptBegun(InternalEvent):
    """Requests to a model begin with this system prompt and these tools until the next compaction. Not shown.

    ``model`` is its provider's id and its name, ``provider:name``. The prompt is the joined text of its ``sections``.
    ``tools`` have the JSON form of :class:`isthmus.models.port.base.ToolSpec`.
    """

    model: str
    sections: tuple[PromptSection, ...]
    tools: tuple[JsonObject, ...] = ()


@record
class PromptChanged(InternalEvent):
    """The system prompt or the tools would read otherwise now: ``text`` tells the model so, behind the rest.

    ``sections`` are those that are new or changed; the text of one that does not hold any more is empty. ``tools`` are
    new or changed; ``gone`` are the names of tools that cannot be called now. With ``is_reset`` the changes that the
    conversation told before do not hold any more.
    """

    text: str
    sections: tuple[PromptSection, ...] = ()
    tools: tuple[JsonObject, ...] = ()
    gone: tuple[str, ...] = ()
    is_reset: bool = False


@record
class CacheEmptied(InternalEvent):
    """A hook changed messages that the provider had been sent, so that it computes them anew. Not shown by itself.

    The user was told; it is said once in a session.
    """


@record
class WindowLearned(InternalEvent):
    """The provider of a model stated its context window when it refused a request as too long. Not shown by itself.

    ``model`` is its provider's id and its name, ``provider:name``. The window counts as long as ``assumed`` is what is
    known of the model otherwise. Both are in tokens.
    """

    model: str
    tokens: int
    assumed: int


@record
class MediaRefused(InternalEvent):
    """The provider of a model refused a request with these media, and answered without them. Not shown by itself.

    ``model`` is as in :class:`WindowLearned`. The session sends them to this model no more.
    """

    model: str
    media: tuple[Media, ...]


@record
class LoopNotice(InternalEvent):
    """The model repeats itself, and ``text`` tells it so, in a message of the user's side. Not shown by itself."""

    text: str


@record
class AgentRecord(InternalEvent):
    """Data that an agent keeps across restarts of its process; a later record replaces it. Not shown.

    With ``merges`` its members replace members of the same name alone, and a member that is None removes the one
    before. Use it for data that grows, since each record is stored.
    """

    data: JsonObject
    merges: bool = False


REQUEST_EVENTS = (EnvironmentContext, PromptBegun, PromptChanged)
"""Events that begin a request to a model: no client sees them, and they are made again if they were not written."""
