"""A session: the conversation of one contextId, folded from the journal.

``apply`` takes the events of all tasks of the session, in order, and keeps what the next step needs: the messages as
the model saw them, the tool calls that are still open, and what the user has allowed. No other place computes
them, whether a turn runs or is resumed after a crash. No I/O, no clock.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar, assert_never

from isthmus.agent.session.added_folders import AddedFolders
from isthmus.agent.session.compacted_sizes import CompactedSizes
from isthmus.agent.session.known_files import FilesSnapshot, KnownFiles
from isthmus.agent.session.loops import CallLoops
from isthmus.agent.session.open_call import OpenCall
from isthmus.agent.session.pruning import pruned
from isthmus.agent.session.rewinding import RewindPoints
from isthmus.agent.session.size import messages_tokens
from isthmus.agent.session.statistics import Statistics
from isthmus.client import LOOP_QUESTION, OFFLINE, QUESTION_MARK
from isthmus.development_tool import (
    AgentSettings,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
    merge_agent_settings,
)
from isthmus.encoding.codec import JsonObject, well_formed
from isthmus.events import (
    AgentEvent,
    AgentMessage,
    ArtifactUpdate,
    Command,
    ConfirmationAccepted,
    Prompt,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from isthmus.internal_events import (
    HOOK_NOTE,
    AgentRecord,
    ChatResumed,
    Checkpoint,
    CommandPrompt,
    Compacted,
    ContextNote,
    EffortChosen,
    EnvironmentContext,
    FilesSeen,
    FolderIncluded,
    LoopNotice,
    MediaRefused,
    ModelChosen,
    ModelReply,
    ModelUsed,
    ReferredContent,
    Restored,
    ResultsPruned,
    Rewound,
    SubagentBegun,
    ThoughtProgress,
    ToolResultRecorded,
    ToolsLoaded,
    WindowLearned,
    WorktreeUsed,
)
from isthmus.media import Media
from isthmus.models.port.base import (
    DEFAULT_EFFORT,
    NOT_RUN,
    Message,
    ModelToolResult,
    Part,
    Text,
    ToolRequest,
    requests_of,
    text_of,
)
from isthmus.models.port.message import message_from_json

ReadSession: TypeAlias = "Callable[[], Awaitable[Session]]"
"""Reads a session with all its events, when it is needed."""
EventT = TypeVar("EventT", bound=AgentEvent)

PROMPT_REFUSED = "prompt_refused_by_hook"
"""Reason of a task that failed because a hook refused the prompt, which the model then never reads."""
CANCELLED_UNHEARD = "[The user cancelled this request before you answered it. Do not act on it unless asked to.]"
"""Text after a prompt that was cancelled before the model spoke: the model reads it with the next one."""
STOPPED = "The call was stopped while it ran, since a new message came: whether it had an effect is not known."
"""Result that a model receives for a call that ran when the user sent another message."""
SUMMARY_HEADING = "Summary of the conversation so far (its older messages were replaced by it):"
"""Beginning of the message that replaces compacted messages."""
SUMMARY_SEEN = Message("assistant", (Text("I go on from this summary."),))
"""Reply between a summary and the user's next message, since providers expect the roles to alternate."""


def is_summary(message: Message) -> bool:
    """Return whether a message is the summary of compacted messages."""
    return message.role == "user" and text_of(message).startswith(SUMMARY_HEADING)


@dataclass(slots=True)
class Session:
    """The state of a conversation after the events applied so far."""

    context_id: str
    messages: list[Message] = field(default_factory=list[Message])
    calls: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    answered: list[tuple[ToolCall, str]] = field(default_factory=list[tuple[ToolCall, str]])
    """Each answered call with the option that the user chose; grants follow from these."""
    tool_versions: dict[str, str] = field(default_factory=dict[str, str])
    """Tool versions of the calls that a user was asked about, by call id; only for tools that have versions."""
    task_id: str = ""
    user: str = ""
    """The session's user; empty for the local user."""
    state: TaskState = TaskState.SUBMITTED
    """The last announced state; ``submitted`` after a prompt until work is announced."""
    is_offline: bool = False
    """Whether the last announced state says that the network is away."""
    workspace: str = ""
    model_turns: int = 0
    """Number of model messages since the last prompt."""
    note_sources: set[str] = field(default_factory=set[str])
    """Sources of the notes since the last prompt."""
    subagent: SubagentBegun | None = None
    """The subagent whose work the session is; None for the agent itself."""
    command: Command | None = None
    """The slash command that the task runs; None while it works on a prompt."""
    command_texts: set[str] = field(default_factory=set[str])
    """The message ids of the texts that the command printed."""
    has_command_prompt: bool = False
    """Whether the command has handed the task over to the model."""
    requested_file: str = ""
    """The file that the user requested by that command; empty if none."""
    worktrees: tuple[str, ...] = ()
    """The folders of its worktree of a repository on the machines that worked on it, the last one last."""
    folders: tuple[str, ...] = ()
    """The further folders that the user has added to the session."""
    settings: AgentSettings | None = None
    """The last AgentSettings that a prompt or a command brought."""
    model: str | None = None
    """The model that AgentSettings or a command chose last; None for the agent's own."""
    effort: str | None = None
    """The effort that AgentSettings or a command chose last; None for the agent's own."""
    statistics: Statistics = field(default_factory=Statistics)
    """Usage of all tasks of the session."""
    prompt: str = ""
    """The text of the last prompt."""
    message: Prompt | None = None
    """The user's last message with its id, parts and metadata; answers to questions do not replace it."""
    torn_text: str | None = None
    """The id of the text that the previous process was streaming when it ended."""
    _before_prompt: tuple[Message, ...] = ()
    """The messages before the prompts that the model has not answered."""
    requests: list[str] = field(default_factory=list[str])
    """The user's words in this turn: the prompt that began it, and all that was added since."""
    _is_unheard: bool = False
    """Whether the model has not answered the last prompt."""
    _is_over: bool = False
    """Whether the turn has ended, so that the next prompt begins another one."""
    new_prompts: list[Prompt] = field(default_factory=list[Prompt])
    """Prompts of the task that the model has not answered and whose references have not been read."""
    record: JsonObject | None = None
    """The last AgentRecord of the session, with those merged into it."""
    _merged_record: dict[str, object] | None = None
    """The record if it was merged; it is changed in place, as there may be thousands of members."""
    checkpoints: dict[str, tuple[list[Message], int, FilesSnapshot]] = field(
        default_factory=dict[str, "tuple[list[Message], int, FilesSnapshot]"]
    )
    """The conversation before each checkpoint, by checkpoint id: a list of messages, the number that belongs to it, and
    a snapshot of ``known_files``.

    The list goes on growing, but messages before a model message never change.
    """
    rewind_points: RewindPoints = field(default_factory=RewindPoints)
    """The conversation before each message of the user's."""
    ends: dict[str, tuple[list[Message], int]] = field(default_factory=dict[str, "tuple[list[Message], int]"])
    """The conversation at the end of each earlier task, by task id, as in ``checkpoints``."""
    call_ids: set[str] = field(default_factory=set[str])
    """The ids of all calls that models requested, including those that a compaction or a restore has removed."""
    known_files: KnownFiles = field(default_factory=KnownFiles)
    """The files that the model has read or written, as they were then."""
    _known_before_reply: FilesSnapshot = field(default_factory=lambda: KnownFiles().snapshot())
    """Snapshot of ``known_files`` before the last model message."""
    loops: CallLoops = field(default_factory=CallLoops)
    """The latest calls of the model, in which a loop shows."""
    loaded_tools: tuple[str, ...] | None = None
    """The tools that were loaded on demand or called, in order; None while the model gets the schemas of all tools."""
    windows: dict[str, WindowLearned] = field(default_factory=dict[str, WindowLearned])
    """The context windows that providers stated in refusals, by model."""
    refused_media: dict[str, frozenset[Media]] = field(default_factory=dict[str, frozenset[Media]])
    """The media that providers refused, by model."""
    compactions: list[CompactedSizes] = field(default_factory=list[CompactedSizes])
    """The sizes of the compactions since the last prompt or command."""
    measured_tokens: int = 0
    """Tokens of the system prompt, the tools and the first ``measured_messages`` messages, as the provider counted."""
    measured_messages: int = 0
    """Number of messages that were measured; 0 if none since the conversation was last cut or restored."""

    @property
    def key(self) -> str:
        """Key of the session in stores; it includes the user, since two users may choose the same contextId."""
        return f"{self.user}\0{self.context_id}" if self.user else self.context_id

    @property
    def checkpoints_key(self) -> str:
        """Key of the session's checkpoints in the store; those of subagents belong to the session that began them."""
        return (self.subagent and self.subagent.checkpoints_of) or self.key

    def apply(self, event: EventT, task_id: str | None = None, at: float | None = None) -> EventT:
        """Fold in one event and return it with well-formed texts.

        ``at`` is the time in Unix seconds at which the journal stored it, if it has.
        """
        event = well_formed(event)
        if task_id is not None and task_id != self.task_id:
            self._enter_task(task_id)
        self.statistics.take(event, self.task_id, at)
        match event:
            case TextContent(message_id):  # first, since these are most of the events
                if self.command is not None and not self.has_command_prompt:
                    self.command_texts.add(message_id)
            case Prompt():
                self._take_prompt(event)
            case Command():
                self._take_command(event)
            case CommandPrompt():
                self._take_command_prompt(event)
            case SubagentBegun(answered=answered):
                self.subagent = event
                self.answered = [(item.tool_call, item.option_id) for item in answered]
            case LoopNotice() | ContextNote() | EnvironmentContext() | ReferredContent():
                self._take_context(event)
            case StateChange():
                self._take_state(event)
            case ModelReply():
                self._take_reply(event)
            case ToolCallUpdate(call, version):
                self._take_call(call, version)
            case ConfirmationAccepted(confirmation):
                self._take_confirmation(confirmation)
            case ToolResultRecorded():
                self._take_result(event)
            case AgentMessage(text=text):
                if self.command is None:
                    self.messages.append(Message("assistant", (Text(text),)))
            case FilesSeen():
                self.known_files.take(event, len(self.messages))
            case Compacted() | ResultsPruned() | Checkpoint() | Restored() | Rewound() | ChatResumed():
                self._rewrite_conversation(event)
            case WindowLearned(model):
                self.windows[model] = event
            case MediaRefused(model, media):
                self.refused_media[model] = self.refused_media.get(model, frozenset()) | frozenset(media)
            case FolderIncluded() | WorktreeUsed() | ModelChosen() | EffortChosen() | ToolsLoaded() | AgentRecord():
                self._keep_choice(event)
            case Thought() | ThoughtProgress() | RetryNotice() | ArtifactUpdate() | ModelUsed():
                pass
            case _:
                assert_never(event)
        return event

    @property
    def added_folders(self) -> AddedFolders:
        """The further folders of the session."""
        return AddedFolders(self.folders, self.settings.additional_directories if self.settings is not None else ())

    @property
    def waiting(self) -> tuple[ToolCall, ...]:
        """The calls that wait for a user."""
        return tuple(item.call for item in self.calls.values() if item.is_waiting and item.call is not None)

    @property
    def given_up(self) -> tuple[ToolCall, ...]:
        """The announced calls that will not run; the model has been given a result for each."""
        settled = [item.call for item in self.calls.values() if item.result is not None and item.call is not None]
        return tuple(call for call in settled if not call.status.is_final)

    @property
    def unsettled(self) -> tuple[OpenCall, ...]:
        """The calls of the last model message that have no result yet, in order."""
        return tuple(item for item in self.calls.values() if item.result is None)

    def asker_of(self, item: OpenCall) -> str | None:
        """Return the id of the call that asks this question; None for an ordinary call."""
        call_id, mark, _ = item.request.id.rpartition(QUESTION_MARK)
        return call_id if mark and not item.is_models and call_id in self.calls else None

    def questions_of(self, call_id: str) -> tuple[OpenCall, ...]:
        """Return the questions that a call has asked, in order."""
        return tuple(item for item in self.calls.values() if self.asker_of(item) == call_id)

    def _enter_task(self, task_id: str) -> None:
        """Go on with another task of the session. Open questions of the previous task are answered there, not here."""
        self._give_up_calls()
        self.ends[self.task_id] = (self.messages, len(self.messages))
        if self.messages and self.messages[-1].role == "user":
            self.messages = list(self.messages)  # The next prompt is added to this message, in a list of its own.
        self.calls, self.new_prompts, self.requests = {}, [], []
        self.task_id = task_id
        self.state = TaskState.SUBMITTED

    def _give_up_calls(self) -> None:
        for item in self.unsettled:
            was_running = item.call is not None and item.call.status is ToolCallStatus.EXECUTING
            self._take_result(ToolResultRecorded(item.request.id, STOPPED if was_running else NOT_RUN, is_error=True))

    def _add_request(self, text: str) -> None:
        """Add words of the user to the request of the turn; after its end, or an answer, they begin another one."""
        last = self.messages[-1] if self.messages else None
        if self._is_over or (last is not None and last.role == "assistant" and not requests_of(last)):
            self.requests = []
        self.requests.append(text)
        self._is_over = False

    def _take_prompt(self, prompt: Prompt) -> None:
        self._add_request(prompt.text)
        self._begin_work(prompt.settings)
        self.command = None
        self.prompt, self.message = prompt.text, prompt
        self._take_rewind_point(prompt.text)
        if not self.new_prompts:
            self._before_prompt = tuple(self.messages)
        self.new_prompts.append(prompt)
        self._is_unheard = True
        self._add_user_parts(Text(prompt.text), *prompt.media)

    def _take_rewind_point(self, text: str) -> None:
        # The new message is added to the last one if that is the user's, too.
        is_added = bool(self.messages) and self.messages[-1].role == "user"
        messages = tuple(self.messages) if is_added else self.messages
        self.rewind_points.take(text, messages, self.known_files.snapshot(), len(self.checkpoints))

    def _take_context(self, event: LoopNotice | ContextNote | EnvironmentContext | ReferredContent) -> None:
        """Add what the model reads beside the user's prompts."""
        match event:
            case ContextNote(source, text):
                self.note_sources.add(source)
                if source == HOOK_NOTE:
                    self.requests.append(text)
                self._add_user_parts(Text(text))
            case ReferredContent(text, media):
                self.new_prompts = []
                self._add_user_parts(Text(text), *media)
            case LoopNotice(text):
                self.loops.note_warning()
                self._add_user_parts(Text(text))
            case EnvironmentContext(text):
                self._add_user_parts(Text(text))
            case _:
                assert_never(event)

    def _take_state(self, change: StateChange) -> None:
        self.state, self.is_offline = change.state, change.reason == OFFLINE
        self._is_over |= change.state.is_terminal
        if change.reason == PROMPT_REFUSED:
            self.rewind_points.refuse(max(1, len(self.new_prompts)))
            self.messages, self.new_prompts, self._is_unheard = list(self._before_prompt), [], False
        elif change.state is TaskState.CANCELED and self._is_unheard:
            self._is_unheard, self.new_prompts = False, []
            self._add_user_parts(Text(CANCELLED_UNHEARD))

    def _keep_choice(
        self, event: FolderIncluded | WorktreeUsed | ModelChosen | EffortChosen | ToolsLoaded | AgentRecord
    ) -> None:
        """Keep what the user or the agent has chosen for the rest of the session."""
        match event:
            case FolderIncluded(path):
                self.folders = (*self.folders, path)
            case WorktreeUsed(folder):
                self.worktrees = (*self.worktrees, folder)
            case ModelChosen(model):
                self.model = model
            case EffortChosen(effort):
                self.effort = effort
            case ToolsLoaded(names):
                self._load_tools(*names)
            case AgentRecord(data, merges):
                if merges:
                    self._merge_record(data)
                else:
                    self.record, self._merged_record = data, None
            case _:
                assert_never(event)

    def _take_command_prompt(self, prompt: CommandPrompt) -> None:
        self.has_command_prompt = True
        if (command := self.command) is not None:
            self._take_rewind_point(" ".join(("/" + " ".join(command.path), command.args)).strip())
        self._before_prompt = tuple(self.messages)
        self._is_unheard = True
        self._add_request(prompt.text)
        self.requested_file = prompt.requested_file
        self._add_user_parts(Text(prompt.text), *prompt.media)

    def _take_command(self, command: Command) -> None:
        self._begin_work(command.settings)
        self.command = command
        self.command_texts = set()
        self.has_command_prompt = False

    def _begin_work(self, settings: JsonObject | None) -> None:
        self._give_up_calls()
        self.requested_file = ""
        self.model_turns = 0
        self.loops.reset()
        self.compactions = []
        self.note_sources = set()
        self.state = TaskState.SUBMITTED
        if settings is not None:
            before = "" if self.settings is None else self.settings.workspace_path
            self.settings = merge_agent_settings(self.settings, settings)
            if self.settings.workspace_path != before:  # the agent may have chosen a folder for it
                self.workspace = self.settings.workspace_path
            if "model" in settings:
                self.model = self.settings.model or None
            if "effort" in settings:
                self.effort = None if self.settings.effort in (None, "", DEFAULT_EFFORT) else self.settings.effort

    def _rewrite_conversation(
        self, event: Compacted | ResultsPruned | Checkpoint | Restored | Rewound | ChatResumed
    ) -> None:
        """Keep the conversation for later, or replace its messages."""
        match event:
            case Compacted():
                self._compact(event)
            case ResultsPruned(count, freed):
                # A new list: earlier checkpoints need the old one.
                self.messages = pruned(self.messages, count)
                self.measured_tokens = max(0, self.measured_tokens - freed)
            case Checkpoint(checkpoint_id, call_id):
                self._take_checkpoint(checkpoint_id, call_id)
            case Restored(checkpoint_id):
                self._restore(checkpoint_id)
            case Rewound(number):
                if (point := self.rewind_points.rewind(number)) is not None:
                    self._go_back(point.messages[: point.length], point.known)
            case ChatResumed(messages=messages):
                self._resume_chat(messages)
            case _:
                assert_never(event)

    def _compact(self, compacted: Compacted) -> None:
        before = messages_tokens(self.messages)
        rest = self.messages[max(0, len(self.messages) - compacted.kept) :]
        summary = [Message("user", (Text(compacted.summary),))]
        if not rest or rest[0].role == "user":
            summary.append(SUMMARY_SEEN)
        # A new list: earlier checkpoints need the old one.
        self.messages = [*summary, *rest]
        self.compactions.append(CompactedSizes(before, messages_tokens(self.messages)))
        self.known_files.cut(len(self.messages))
        if self.measured_messages:  # Otherwise the count lacks the system prompt and the tools.
            self.measured_tokens, self.measured_messages = compacted.tokens_after, len(self.messages)

    def _take_checkpoint(self, checkpoint_id: str, call_id: str) -> None:
        self.rewind_points.note_checkpoint(checkpoint_id)
        item = self.calls.get(call_id)
        if item is not None and not item.is_models:
            # For a command: the present conversation.
            self.checkpoints[checkpoint_id] = (list(self.messages), len(self.messages), self.known_files.snapshot())
            return
        # Before the message that asked for the call.
        asked = next((at for at in range(len(self.messages), 0, -1) if self.messages[at - 1].role == "user"), 0)
        self.checkpoints[checkpoint_id] = (self.messages, asked, self._known_before_reply)

    def _restore(self, checkpoint_id: str) -> None:
        if (kept := self.checkpoints.get(checkpoint_id)) is None:
            return
        messages, length, known = kept
        self._go_back(messages[:length], known)
        self.rewind_points.restore(checkpoint_id)

    def _go_back(self, messages: Sequence[Message], known: FilesSnapshot) -> None:
        # A new list: earlier checkpoints need the old one.
        self.messages = list(messages)
        self.known_files.restore(known)
        self.measured_tokens = self.measured_messages = 0

    def _resume_chat(self, saved: Sequence[JsonObject]) -> None:
        # A new list: earlier checkpoints need the old one.
        self.messages = [message_from_json(message) for message in saved]
        self.known_files.clear()
        requests = [request for message in self.messages for request in requests_of(message)]
        self.call_ids.update(request.id for request in requests)
        if self.loaded_tools is not None:
            self._load_tools(*(request.name for request in requests))
        self.measured_tokens = self.measured_messages = 0
        self.loops.reset()

    def _take_reply(self, reply: ModelReply) -> None:
        message = message_from_json(reply.message)
        self.known_files.model_spoke(len(self.messages))
        self._known_before_reply = self.known_files.snapshot()
        self.messages.append(message)
        self.new_prompts, self._is_unheard = [], False
        self.model_turns += 1
        self.loops.add(requests_of(message))
        self.calls = {request.id: OpenCall(request) for request in requests_of(message)}
        self.call_ids.update(self.calls)
        if reply.input_tokens:
            self.measured_tokens = reply.input_tokens + reply.output_tokens
            self.measured_messages = len(self.messages)

    def _load_tools(self, *names: str) -> None:
        self.loaded_tools = tuple(dict.fromkeys((*(self.loaded_tools or ()), *names)))

    def _take_call(self, call: ToolCall, version: str | None) -> None:
        if self.loaded_tools is not None and call.tool_name not in self.loaded_tools:
            self._load_tools(call.tool_name)
        if call.status is ToolCallStatus.SUCCEEDED and call.output is not None and call.output.diff is not None:
            self.known_files.take_edit(call.output.diff, len(self.messages))
        item = self.calls.get(call.tool_call_id)
        if item is None:
            request = ToolRequest(call.tool_call_id, call.tool_name, call.input_parameters)
            item = OpenCall(request, is_models=False)
        if call.tool_name == LOOP_QUESTION and not item.is_models and call.status is ToolCallStatus.SUCCEEDED:
            self.loops.reset()
        asked = call.confirmation_request
        proposal = asked.details if asked is not None else item.proposal
        is_announced = call.status is ToolCallStatus.PENDING and asked is None
        announcements = item.announcements + is_announced
        self.calls[call.tool_call_id] = replace(item, call=call, proposal=proposal, announcements=announcements)
        if version is not None:
            self.tool_versions[call.tool_call_id] = version

    def _merge_record(self, changes: JsonObject) -> None:
        if self._merged_record is None:
            self._merged_record = dict(self.record or {})
        for name, value in changes.items():
            if value is None:
                self._merged_record.pop(name, None)
            else:
                self._merged_record[name] = value
        self.record = self._merged_record

    def _take_confirmation(self, confirmation: ToolCallConfirmation) -> None:
        item = self.calls.get(confirmation.tool_call_id)
        if item is None or item.call is None:
            return
        self.calls[confirmation.tool_call_id] = replace(item, confirmation=confirmation)
        self.answered.append((item.call, confirmation.selected_option_id))

    def _take_result(self, recorded: ToolResultRecorded) -> None:
        item = self.calls.get(recorded.tool_call_id)
        if item is None or item.result is not None:
            return
        result = ModelToolResult(
            recorded.tool_call_id, item.request.name, recorded.content, recorded.is_error, recorded.media
        )
        self.calls[recorded.tool_call_id] = replace(item, result=result)
        if not item.is_models:
            return
        # The model gets all results of its message at once, in the order of its requests.
        asked = [item.result for item in self.calls.values() if item.is_models]
        results = [result for result in asked if result is not None]
        if len(results) == len(asked):
            self._add_user_parts(*results)

    def _add_user_parts(self, *parts: Part) -> None:
        if self.messages and self.messages[-1].role == "user":
            self.messages[-1] = replace(self.messages[-1], parts=(*self.messages[-1].parts, *parts))
        else:
            self.messages.append(Message("user", parts))
