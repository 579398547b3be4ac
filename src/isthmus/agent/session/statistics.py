"""Usage of a session's tasks: model requests and tokens, tool calls, time. A fold of their events.

Times are known only for events in the journal. Not here: the display, see `isthmus.agent.commands.builtin.stats`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from isthmus.development_tool import ToolCall, ToolCallStatus
from isthmus.events import (
    AgentEvent,
    Command,
    ConfirmationAccepted,
    Prompt,
    StateChange,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from isthmus.internal_events import Compacted, ModelReply, ModelUsed
from isthmus.questions import QUESTION_MARK, QUESTION_TOOLS
from isthmus.task_view import ModelUsage, model_of

K = TypeVar("K")


@dataclass(slots=True)
class ToolStatistics:
    """Calls of one tool by outcome; ``seconds`` is their total running time."""

    succeeded: int = 0
    failed: int = 0
    cancelled: int = 0
    seconds: float = 0.0

    def __iadd__(self, other: "ToolStatistics") -> "ToolStatistics":
        self.succeeded += other.succeeded
        self.failed += other.failed
        self.cancelled += other.cancelled
        self.seconds += other.seconds
        return self


@dataclass(slots=True)
class TaskUse:
    """Usage of one task. ``seconds`` is its working time, without waits for a user."""

    models: dict[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    tools: dict[str, ToolStatistics] = field(default_factory=dict[str, ToolStatistics])
    prompts: int = 0
    seconds: float = 0.0

    def __iadd__(self, other: "TaskUse") -> "TaskUse":
        for model, use in other.models.items():
            self.models.setdefault(model, ModelUsage()).__iadd__(use)
        for tool, calls in other.tools.items():
            self.tools.setdefault(tool, ToolStatistics()).__iadd__(calls)
        self.prompts += other.prompts
        self.seconds += other.seconds
        return self


def total(uses: Iterable[TaskUse]) -> TaskUse:
    """Return the total usage of several tasks."""
    whole = TaskUse()
    for use in uses:
        whole += use
    return whole


@dataclass(slots=True)
class Statistics:
    """Usage of all tasks of a session. ``tasks`` are in the order in which they started.

    ``turn`` is the use by models since the turn began, ``turn_before`` that of the last turn before it that used any.
    ``last`` is the use of the last request, with all of a subagent as one. A turn ends with a terminal state of its
    task; the user's messages before that belong to it.
    """

    tasks: dict[str, TaskUse] = field(default_factory=dict[str, TaskUse])
    turn: dict[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    turn_before: dict[str, ModelUsage] = field(default_factory=dict[str, ModelUsage])
    last: ModelUsage | None = None
    _summaries: ModelUsage = field(default_factory=ModelUsage)
    """Usage of the summaries of the conversation, which is that of their models, too."""
    _turn_of: str = ""
    """Id of the task of the turn; empty after the turn's end."""
    _working_since: dict[str, float] = field(default_factory=dict[str, float])
    _executing_since: dict[tuple[str, str], float] = field(default_factory=dict[tuple[str, str], float])
    _asked_since: dict[str, float] = field(default_factory=dict[str, float])
    """Times at which a user was asked while calls of the task were executing."""
    _ended: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    @property
    def models(self) -> dict[str, ModelUsage]:
        """Usage of each model in the session."""
        return total(self.tasks.values()).models

    @property
    def cached_share(self) -> float | None:
        """The share of the input tokens that providers have read from their caches; None without any.

        Summaries of the conversation are left out: their requests have nothing in common with the others.
        """
        uses = self.models.values()
        cached = sum(use.cached_tokens for use in uses) - self._summaries.cached_tokens
        return cached / (sum(use.input_tokens for use in uses) - self._summaries.input_tokens) if cached else None

    def take(self, event: AgentEvent, task_id: str, at: float | None) -> None:
        """Count one event of a task; ``at`` is its time in the journal, in Unix seconds, if any."""
        use = self.tasks.get(task_id)
        if use is None:
            use = self.tasks[task_id] = TaskUse()
        if at is not None and task_id in self._asked_since:
            self._leave_out(task_id, at)
        match event:
            case TextContent() | Thought():  # first, since these are most of the events
                pass
            case Prompt() | Command() | ConfirmationAccepted():
                use.prompts += isinstance(event, Prompt)
                self._begin_turn(event, task_id)
                if at is not None:
                    self._working_since.setdefault(task_id, at)
            case StateChange(state):
                if state.ends_stream:
                    use.seconds += _since(self._working_since, task_id, at)
                    if at is not None and any(task == task_id for task, _ in self._executing_since):
                        self._asked_since[task_id] = at
                if state.is_terminal:
                    self._turn_of = ""
            case ModelReply() | ModelUsed() | Compacted():
                self.last = ModelUsage.of(event)
                if isinstance(event, Compacted):
                    self._summaries += self.last
                for models in (use.models, self.turn):
                    found = models.setdefault(model_of(event), ModelUsage())
                    found += self.last
            case ToolCallUpdate(call):
                self._take_call(use, call, task_id, at)
            case _:
                pass

    def _begin_turn(self, event: AgentEvent, task_id: str) -> None:
        if not isinstance(event, ConfirmationAccepted) and task_id != self._turn_of:
            self.turn_before = self.turn or self.turn_before
            self.turn, self._turn_of = {}, task_id

    def _leave_out(self, task_id: str, at: float) -> None:
        """Subtract the wait for the user from calls that ask in the middle of their work."""
        waited = max(0.0, at - self._asked_since.pop(task_id))
        for key in self._executing_since:
            if key[0] == task_id:
                self._executing_since[key] += waited
        self._working_since.setdefault(task_id, at)

    def _take_call(self, use: TaskUse, call: ToolCall, task_id: str, at: float | None) -> None:
        key = (task_id, call.tool_call_id)
        if call.status is ToolCallStatus.EXECUTING and at is not None:
            self._executing_since.setdefault(key, at)
        if not call.status.is_final or key in self._ended or call.tool_name in QUESTION_TOOLS:
            return  # These are questions of a server or of the guard against loops, not tools.
        asker = call.tool_call_id.rpartition(QUESTION_MARK)[0]
        if (task_id, asker) in self._executing_since:
            return  # A question of a subagent, whose own task has the call.
        self._ended.add(key)
        found = use.tools.setdefault(call.tool_name, ToolStatistics())
        found.seconds += _since(self._executing_since, key, at)
        match call.status:
            case ToolCallStatus.SUCCEEDED:
                found.succeeded += 1
            case ToolCallStatus.CANCELLED:
                found.cancelled += 1
            case _:
                found.failed += 1


def _since(times: dict[K, float], key: K, at: float | None) -> float:
    begun = times.pop(key, None)
    return max(0.0, at - begun) if begun is not None and at is not None else 0.0
