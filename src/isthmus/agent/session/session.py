"""A session: the conversation of one contextId, folded from the journal.

``apply`` takes the events of all tasks of the session, in order, and keeps what the next step needs: the messages as
the model saw them (:mod:`isthmus.agent.session.conversation`), the tool calls that are still open
(:mod:`isthmus.agent.session.open_calls`), and what the user has allowed. No other place computes them, whether a turn
runs or is resumed after a crash. No I/O, no clock.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar, assert_never

from isthmus.agent.session.choices import Choices
from isthmus.agent.session.conversation import SessionConversation
from isthmus.agent.session.loops import CallLoops
from isthmus.agent.session.open_calls import OpenCalls
from isthmus.agent.session.prompt_prefix import PromptPrefix
from isthmus.agent.session.said_text import SaidText
from isthmus.agent.session.statistics import Statistics
from isthmus.client import OFFLINE
from isthmus.development_tool import (
    AgentSettings,
    ToolCall,
    ToolCallConfirmation,
    ToolCallStatus,
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
    CacheEmptied,
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
    PromptBegun,
    PromptChanged,
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
    NOT_RUN,
    Message,
    Text,
    requests_of,
)
from isthmus.models.port.message import message_from_json
from isthmus.questions import LOOP_QUESTION

ReadSession: TypeAlias = "Callable[[], Awaitable[Session]]"
"""Reads a session with all its events, when it is needed."""
EventT = TypeVar("EventT", bound=AgentEvent)

PROMPT_REFUSED = "prompt_refused_by_hook"
"""Reason of a task that failed because a hook refused the prompt, which the model then never reads."""
CANCELLED_UNHEARD = "[The user cancelled this request before you answered it. Do not act on it unless asked to.]"
"""Text after a prompt that was cancelled before the model spoke: the model reads it with the next one."""
STOPPED = "The call was stopped while it ran, since a new message came: whether it had an effect is not known."
"""Result that a model receives for a call that ran when the user sent another message."""


@dataclass(slots=True)
class Session:
    """The state of a conversation after the events applied so far."""

    context_id: str
    conversation: SessionConversation = field(default_factory=SessionConversation)
    """The messages as the model saw them, and as they were earlier."""
    calls: OpenCalls = field(default_factory=OpenCalls)
    """The tool calls of the last model message or of the command."""
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
    choices: Choices = field(default_factory=Choices)
    """Choices of the user, a client and the agent for the rest of the session."""
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
    statistics: Statistics = field(default_factory=Statistics)
    """Usage of all tasks of the session."""
    prompt: str = ""
    """The text of the last prompt."""
    message: Prompt | None = None
    """The user's last message with its id, parts and metadata; answers to questions do not replace it."""
    said: SaidText = field(default_factory=SaidText)
    """The text of the agent before the calls that are open, or that it makes next."""
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
    beside: list[Prompt] = field(default_factory=list[Prompt])
    """Messages of the task that came with answers, and that have no events of their own yet."""
    call_ids: set[str] = field(default_factory=set[str])
    """The ids of all calls that models requested, including those that a compaction or a restore has removed."""
    loops: CallLoops = field(default_factory=CallLoops)
    """The latest calls of the model, in which a loop shows."""
    prefixes: dict[str, PromptPrefix] = field(default_factory=dict[str, PromptPrefix])
    """The beginning of the requests to each model, by :func:`~isthmus.models.port.base.key_of`."""
    windows: dict[str, WindowLearned] = field(default_factory=dict[str, WindowLearned])
    """The context windows that providers stated in refusals, by model."""
    is_cache_emptied: bool = False
    """Whether the user was told that hooks empty the prompt cache."""
    refused_media: dict[str, frozenset[Media]] = field(default_factory=dict[str, frozenset[Media]])
    """The media that providers refused, by model."""

    @property
    def messages(self) -> list[Message]:
        """The messages of the conversation, of both sides."""
        return self.conversation.messages

    @property
    def settings(self) -> AgentSettings | None:
        """The AgentSettings of the session; None before a client names some."""
        return self.choices.settings

    @property
    def record(self) -> JsonObject | None:
        """The data that the agent keeps in the session, of its AgentRecords; None before the first."""
        return self.choices.record

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
            case TextContent(message_id, text):  # first, since these are most of the events
                if self.command is not None and not self.has_command_prompt:
                    self.command_texts.add(message_id)
                else:
                    self.said.take_part(message_id, text)
            case Prompt():
                self._take_prompt(event)
            case Command():
                self._take_command(event)
            case CommandPrompt():
                self._take_command_prompt(event)
            case SubagentBegun(answered=answered):
                self.subagent = event
                self.answered = [(item.tool_call, item.option_id) for item in answered]
            case LoopNotice() | ContextNote() | EnvironmentContext() | ReferredContent() | PromptChanged():
                self._take_context(event)
            case PromptBegun(model):
                self.prefixes[model] = PromptPrefix.of(event, self.messages)
            case StateChange():
                self._take_state(event)
            case ModelReply():
                self._take_reply(event)
            case ToolCallUpdate(call, version):
                self._take_call(call, version)
            case ConfirmationAccepted(confirmation, beside=beside):
                self._take_confirmation(confirmation)
                self.beside += () if beside is None else (beside,)
            case ToolResultRecorded():
                self._take_result(event)
            case AgentMessage(text=text):
                self.said.take_whole(text)
                if self.command is None:
                    self.messages.append(Message("assistant", (Text(text),)))
            case FilesSeen():
                self.conversation.known_files.take(event, len(self.messages))
            case Compacted() | ResultsPruned() | Checkpoint() | Restored() | Rewound() | ChatResumed():
                self._rewrite_conversation(event)
            case CacheEmptied():
                self.is_cache_emptied = True
            case WindowLearned(model):
                self.windows[model] = event
            case MediaRefused(model, media):
                self.refused_media[model] = self.refused_media.get(model, frozenset()) | frozenset(media)
            case FolderIncluded() | WorktreeUsed() | ModelChosen() | EffortChosen() | ToolsLoaded() | AgentRecord():
                self.choices.take(event)
            case Thought() | ThoughtProgress() | RetryNotice() | ArtifactUpdate() | ModelUsed():
                pass
            case _:
                assert_never(event)
        return event

    def _enter_task(self, task_id: str) -> None:
        """Go on with another task of the session. Open questions of the previous task are answered there, not here."""
        self._give_up_calls()
        self.conversation.end_task(self.task_id)
        self.calls, self.new_prompts, self.requests, self.beside = OpenCalls(), [], [], []
        self.task_id = task_id
        self.state = TaskState.SUBMITTED

    def _give_up_calls(self) -> None:
        for item in self.calls.unsettled:
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
        self.beside = [one for one in self.beside if one.message_id != prompt.message_id]
        self._add_request(prompt.text)
        self._begin_work(prompt.settings)
        self.command = None
        self.prompt, self.message = prompt.text, prompt
        self.conversation.take_rewind_point(prompt.text)
        if not self.new_prompts:
            self._before_prompt = tuple(self.messages)
        self.new_prompts.append(prompt)
        self._is_unheard = True
        self.said.begin()
        self.conversation.add_user_parts(Text(prompt.text), *prompt.media)

    def _take_context(
        self, event: LoopNotice | ContextNote | EnvironmentContext | ReferredContent | PromptChanged
    ) -> None:
        """Add what the model reads beside the user's prompts."""
        match event:
            case ContextNote(source, text):
                self.note_sources.add(source)
                if source == HOOK_NOTE:
                    self.requests.append(text)
                self.conversation.add_user_parts(Text(text))
            case ReferredContent(text, media):
                self.new_prompts = []
                self.conversation.add_user_parts(Text(text), *media)
            case LoopNotice(text):
                self.loops.note_warning()
                self.conversation.add_user_parts(Text(text))
            case EnvironmentContext(text):
                self.conversation.add_user_parts(Text(text))
            case PromptChanged(text):
                self.prefixes = {model: prefix.after(event) for model, prefix in self.prefixes.items()}
                self.conversation.add_user_parts(Text(text))
            case _:
                assert_never(event)

    def _take_state(self, change: StateChange) -> None:
        self.state, self.is_offline = change.state, change.reason == OFFLINE
        self._is_over |= change.state.is_terminal
        if change.reason == PROMPT_REFUSED:
            self.conversation.rewind_points.refuse(max(1, len(self.new_prompts)))
            self.conversation.messages = list(self._before_prompt)
            self.new_prompts, self._is_unheard = [], False
        elif change.state is TaskState.CANCELED and self._is_unheard:
            self._is_unheard, self.new_prompts = False, []
            self.conversation.add_user_parts(Text(CANCELLED_UNHEARD))

    def _take_command_prompt(self, prompt: CommandPrompt) -> None:
        self.has_command_prompt = True
        if (command := self.command) is not None:
            self.conversation.take_rewind_point(" ".join(("/" + " ".join(command.path), command.args)).strip())
        self._before_prompt = tuple(self.messages)
        self._is_unheard = True
        self._add_request(prompt.text)
        self.requested_file = prompt.requested_file
        self.conversation.add_user_parts(Text(prompt.text), *prompt.media)

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
        self.conversation.compactions = []
        self.note_sources = set()
        self.state = TaskState.SUBMITTED
        if settings is not None:
            before = "" if self.settings is None else self.settings.workspace_path
            now = self.choices.take_settings(settings)
            if now.workspace_path != before:  # the agent may have chosen a folder for it
                self.workspace = now.workspace_path

    def _rewrite_conversation(
        self, event: Compacted | ResultsPruned | Checkpoint | Restored | Rewound | ChatResumed
    ) -> None:
        """Keep the conversation for later, or replace its messages."""
        match event:
            case Compacted():
                self.conversation.compact(event)
                self.prefixes = {}
            case ResultsPruned(count, freed):
                self.conversation.prune(count, freed)
            case Checkpoint(checkpoint_id, call_id):
                item = self.calls.get(call_id)
                if item is None or item.is_models:
                    self.conversation.keep_before_reply(checkpoint_id)
                else:
                    self.conversation.keep_present(checkpoint_id)
            case Restored(checkpoint_id):
                if self.conversation.restore(checkpoint_id):
                    self._keep_prefixes()
            case Rewound(number):
                if self.conversation.rewind(number):
                    self._keep_prefixes()
            case ChatResumed(messages=messages):
                self._resume_chat([message_from_json(message) for message in messages])
            case _:
                assert_never(event)

    def _resume_chat(self, messages: Sequence[Message]) -> None:
        self.conversation.replace_messages(messages)
        self._keep_prefixes()
        requests = [request for message in messages for request in requests_of(message)]
        self.call_ids.update(request.id for request in requests)
        self.choices.use_tools(*(request.name for request in requests))
        self.loops.reset()

    def _keep_prefixes(self) -> None:
        """Go on with the same beginnings of requests, before another conversation."""
        self.prefixes = {model: prefix.before(self.messages) for model, prefix in self.prefixes.items()}

    def _take_reply(self, reply: ModelReply) -> None:
        message = message_from_json(reply.message)
        self.conversation.add_reply(message, reply.input_tokens and reply.input_tokens + reply.output_tokens)
        self.new_prompts, self._is_unheard = [], False
        self.model_turns += 1
        self.said.take_reply(message)
        self.choices.unsaid = None
        self.loops.add(requests_of(message))
        self.calls = OpenCalls.requested(requests_of(message))
        self.call_ids.update(self.calls)

    def _take_call(self, call: ToolCall, version: str | None) -> None:
        self.choices.use_tools(call.tool_name)
        if call.status is ToolCallStatus.SUCCEEDED and call.output is not None and call.output.diff is not None:
            self.conversation.known_files.take_edit(call.output.diff, len(self.messages))
        if call.status.is_final:
            self.said.end_call()
        item = self.calls.take(call)
        if call.tool_name == LOOP_QUESTION and not item.is_models and call.status is ToolCallStatus.SUCCEEDED:
            self.loops.reset()
        if version is not None:
            self.tool_versions[call.tool_call_id] = version

    def _take_confirmation(self, confirmation: ToolCallConfirmation) -> None:
        item = self.calls.get(confirmation.tool_call_id)
        if item is None or item.call is None:
            return
        self.calls[confirmation.tool_call_id] = replace(item, confirmation=confirmation)
        self.answered.append((item.call, confirmation.selected_option_id))

    def _take_result(self, recorded: ToolResultRecorded) -> None:
        if results := self.calls.settle(recorded):
            self.conversation.add_user_parts(*results)
