"""The next message of a model: emitted as it is received, and the end of the turn if the message ends it.

A text that was shown before the model was asked again is marked as replaced, so that the task contains the last answer
alone. Not here: the retries themselves, see :mod:`isthmus.models.streaming`.
"""

import uuid
from collections.abc import Collection, Mapping
from contextlib import aclosing
from dataclasses import replace

from isthmus.agent.calls.split_calls import with_split_calls
from isthmus.agent.session.loops import TextLoop
from isthmus.agent.session.retries import note_connection, note_retry
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import AgentThought
from isthmus.events import StateChange, TaskState, TextContent, Thought
from isthmus.internal_events import MediaRefused, ModelReply, ThoughtProgress
from isthmus.models.port.base import (
    ChatModel,
    Done,
    Finish,
    Message,
    ModelRequest,
    Retrying,
    TextDelta,
    ThoughtDelta,
    ToolRequest,
    ToolRequestStarted,
    key_of,
    requests_of,
)
from isthmus.models.port.message import message_to_json
from isthmus.text.thoughts import ThoughtStream
from isthmus.tools.port.base import Tool


class RepeatedTextError(Exception):
    """The answer repeated one passage without end, and was stopped and discarded."""

    def __init__(self, passage: str) -> None:
        super().__init__(passage)
        self.passage = passage


class ReplyStream:
    """One message of a model, which may take several requests, even to different models."""

    def __init__(self, turn: AgentTurn, *, stops_loops: bool = True) -> None:
        self._turn = turn
        self._stops_loops = stops_loops
        self._message_id = str(uuid.uuid4())
        self._has_text = False
        self._void: str | None = None
        """Text of an earlier request that is still shown."""

    async def stream(self, model: ChatModel, request: ModelRequest, tools: Mapping[str, Tool]) -> StateChange | None:
        """Emit the model's message, then the ModelReply; return the end of the turn if the message ends it.

        ``tools`` are the tools by name, those that the model does not see included.
        Calls receive ids that are new in the session: a model knows only the ids that are still in its conversation.

        Raises:
            ModelError: there is no usable answer. A later call starts the message again.
            RepeatedTextError: the model repeats itself without end.
        """
        self._start_again()
        turn = self._turn
        thinking = ThoughtStream()
        done: Done | None = None
        repeated: str | None = None
        said, thought = TextLoop(), TextLoop()
        async with aclosing(model.stream(request)) as stream:
            async for item in stream:
                if turn.session.is_offline and not isinstance(item, Retrying):
                    await note_connection(turn)
                if not isinstance(item, ThoughtDelta) and (last := thinking.finish()) is not None:
                    await turn.emit(Thought(last))
                match item:
                    case TextDelta(text):
                        await self._show(text)
                        repeated = said.add(text)
                    case ThoughtDelta(text):
                        for part in thinking.feed(text):
                            await turn.emit(Thought(part) if isinstance(part, AgentThought) else ThoughtProgress(part))
                        repeated = thought.add(text)
                    case Retrying():
                        self._start_again()
                        said, thought = TextLoop(), TextLoop()
                        await note_retry(turn, item)
                    case ToolRequestStarted():
                        pass
                    case Done():
                        done = item
                if repeated is not None and self._stops_loops:
                    break
        if done is None and repeated is not None:
            self._start_again()
            await self._end_void()
            raise RepeatedTextError(repeated)
        if done is None:
            raise RuntimeError(f"the {model.provider} model's stream ended without its Done item")
        await self._end_void()
        usage = done.usage
        if done.refused:
            media = tuple(sorted(done.refused, key=lambda item: item.path))
            await turn.emit(MediaRefused(key_of(model), media))
        await turn.emit(
            ModelReply(
                self._message_id,
                model.name,
                message_to_json(_with_new_ids(with_split_calls(done.message, tools), turn.session.call_ids)),
                input_tokens=usage.input,
                output_tokens=usage.output,
                cached_tokens=usage.cached,
                thought_tokens=usage.thoughts,
                cost=usage.cost,
            )
        )
        return _end_of_turn(done)

    async def _show(self, text: str) -> None:
        void, self._void, self._has_text = self._void, None, True
        await self._turn.emit(TextContent(self._message_id, text, void))

    async def _end_void(self) -> None:
        """Mark the text that is void if no other one has taken its place."""
        if self._void is not None:
            await self._show("")

    def _start_again(self) -> None:
        if self._has_text:
            self._void, self._message_id, self._has_text = self._message_id, str(uuid.uuid4()), False


def _with_new_ids(message: Message, used_ids: Collection[str]) -> Message:
    if not any(request.id in used_ids for request in requests_of(message)):
        return message
    parts = tuple(
        replace(part, id=f"call_{uuid.uuid4().hex[:16]}")
        if isinstance(part, ToolRequest) and part.id in used_ids
        else part
        for part in message.parts
    )
    return replace(message, parts=parts)


def _end_of_turn(done: Done) -> StateChange | None:
    if requests_of(done.message):
        return None
    match done.finish:
        case Finish.SAFETY:
            return StateChange(
                TaskState.FAILED, "The model stopped for safety reasons. Rephrase the request.", "safety"
            )
        case Finish.LENGTH:
            message = "The model's answer was cut at its output limit. Send a message to continue."
            return StateChange(TaskState.FAILED, message, "output_limit")
        case Finish.STOP | Finish.TOOL_CALLS | Finish.OTHER:
            return StateChange(TaskState.COMPLETED)
