"""The turn loop: model, tool calls, results, model again, until an answer or a question.

A turn is an async generator of AgentEvents. What it yields is in the journal before it goes on: that is how a tool
with an effect runs only after EXECUTING is on the disk. It keeps no state of its own besides the Session, which is a
fold of those same events, so that it can end at a question and be taken up by another process. Deliberately not here:
leases, subscribers, and who answers.
"""

import uuid
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

from isthmus.agent.calls import CallRunner
from isthmus.agent.options import AgentOptions
from isthmus.agent.prompt import system_prompt
from isthmus.agent.session import Session
from isthmus.agent.thoughts import thought_of
from isthmus.events import (
    AgentEvent,
    EditorContext,
    ModelReply,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
)
from isthmus.models.base import (
    ChatModel,
    Done,
    Finish,
    ModelError,
    ModelRequest,
    Retrying,
    TextDelta,
    ThoughtDelta,
    ToolRequestStarted,
    ToolSpec,
    requests_of,
)
from isthmus.models.message import message_to_json
from isthmus.tools.base import ToolSet

TURN_LIMIT = "turn_limit"
"""The ``reason`` of a task that failed because the model wanted too many turns."""

ContextSource = Callable[[Path], Awaitable[str | None]]
"""Gives what the person's editor shows, as text for the model, or None."""


class CodingAgent:
    """An agent with a model and tools, as the engine runs it."""

    def __init__(
        self,
        open_model: Callable[[], Awaitable[ChatModel]],
        tools: ToolSet,
        options: AgentOptions,
        editor_context: ContextSource | None = None,
    ) -> None:
        self._open_model = open_model
        self._tools = tools
        self._options = options
        self._editor_context = editor_context

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """The next segment of the session's task; ends with a StateChange that ends the stream."""
        calls = CallRunner(self._tools, self._options, session)
        if session.state is TaskState.SUBMITTED:
            yield session.apply(StateChange(TaskState.WORKING))
        if not session.has_editor_context and self._editor_context is not None and not session.unsettled:
            shown = await self._editor_context(Path(session.workspace))
            if shown is not None:
                yield session.apply(EditorContext(shown))
        while True:
            async with aclosing(calls.settle()) as settling:
                async for event in settling:
                    yield event
            if session.waiting:
                yield session.apply(StateChange(TaskState.INPUT_REQUIRED))
                return
            if session.model_turns >= self._options.max_model_turns:
                limit = self._options.max_model_turns
                message = f"The model wanted more than {limit} turns for one prompt. Send a message to let it go on."
                yield session.apply(StateChange(TaskState.FAILED, message, TURN_LIMIT))
                return
            end: StateChange | None = None
            try:
                async with aclosing(self._ask_model(session)) as asking:
                    async for event in asking:
                        if isinstance(event, StateChange):
                            end = event
                        else:
                            yield session.apply(event)
            except ModelError as error:
                end = StateChange(TaskState.FAILED, str(error), f"model_{error.kind}")
            if end is not None:
                yield session.apply(end)
                return

    async def _ask_model(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """One model message as it comes, the ModelReply, and a StateChange when it is the last of the turn."""
        model = await self._open_model()
        workspace = Path(session.workspace)
        request = ModelRequest(
            system=system_prompt(workspace, self._options.policy.mode),
            messages=tuple(session.messages),
            tools=tuple(ToolSpec(tool.name, tool.description, tool.parameters) for tool in self._tools.tools.values()),
        )
        message_id = str(uuid.uuid4())
        thinking: list[str] = []
        done: Done | None = None
        async with aclosing(model.stream(request)) as stream:
            async for item in stream:
                if thinking and not isinstance(item, ThoughtDelta):
                    yield Thought(thought_of("".join(thinking)))
                    thinking.clear()
                match item:
                    case TextDelta(text):
                        yield TextContent(message_id, text)
                    case ThoughtDelta(text):
                        thinking.append(text)
                    case Retrying(attempt, attempts, delay, reason):
                        yield RetryNotice(attempt, attempts, delay, reason)
                    case ToolRequestStarted():
                        pass
                    case Done():
                        done = item
        if done is None:
            raise RuntimeError(f"the {model.provider} model's stream ended without its Done item")
        usage = done.usage
        yield ModelReply(
            message_id,
            model.name,
            message_to_json(done.message),
            input_tokens=usage.input,
            output_tokens=usage.output,
            cached_tokens=usage.cached,
            thought_tokens=usage.thoughts,
        )
        if (end := _end_of_turn(done)) is not None:
            yield end


def _end_of_turn(done: Done) -> StateChange | None:
    if requests_of(done.message):
        return None
    match done.finish:
        case Finish.SAFETY:
            return StateChange(
                TaskState.FAILED, "The model stopped for safety reasons. Rephrase the request.", "safety"
            )
        case Finish.LENGTH:
            message = "The model's answer was cut at its output limit. Send a message to let it go on."
            return StateChange(TaskState.FAILED, message, "output_limit")
        case Finish.STOP | Finish.TOOL_CALLS | Finish.OTHER:
            return StateChange(TaskState.COMPLETED)
