"""A run of a pydantic-ai agent as clients see it: texts, thoughts, files and calls, and what is stored meanwhile."""

import uuid
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext, ToolDefinition
from pydantic_ai.capabilities import AbstractCapability, WrapModelRequestHandler, WrapToolExecuteHandler
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    ToolFailed,
    ToolFailedError,
    ToolRetryError,
)
from pydantic_ai.messages import (
    AgentStreamEvent,
    FilePart,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelResponse,
    PartDeltaEvent,
    PartEndEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
)
from pydantic_ai.models import ModelRequestContext

from isthmus.a2a.frameworks.pydantic_ai_files import artifact_of, files_of, without_files
from isthmus.a2a.frameworks.pydantic_ai_state import RunState
from isthmus.a2a.frameworks.relay import Relay
from isthmus.a2a.frameworks.shown import TOOL_FAILED, json_object, output_of, text_of
from isthmus.agent.session.session import Session
from isthmus.development_tool import ErrorDetails, ToolCall, ToolCallStatus
from isthmus.events import AgentEvent, TextContent, Thought, ToolCallUpdate
from isthmus.internal_events import ModelUsed
from isthmus.text.thoughts import thought_of


def _usage_of(response: ModelResponse) -> ModelUsed:
    usage = response.usage
    return ModelUsed(response.model_name or "", usage.input_tokens, usage.output_tokens, usage.cache_read_tokens)


class ShownRun(AbstractCapability[Any]):
    """A capability of one run that shows it to clients and stores its messages.

    ``resumed`` are the calls that an earlier run may have made, None for a new prompt. A call of these that has ended
    is not run again: the framework gets its result.
    """

    def __init__(
        self,
        relay: Relay,
        session: Session,
        state: RunState,
        resumed: Sequence[str] | None,
        streams_text: bool,
    ) -> None:
        self._relay = relay
        self._session = session
        self._state = state
        self._streams_text = streams_text
        self._text_id = ""
        self._text = ""
        self._known = set(resumed or ())
        ended = {call_id: self._call(call_id) for call_id in resumed or ()}
        self._settled = {call_id: call for call_id, call in ended.items() if call is not None and call.status.is_final}

    async def finish_text(self, output: str) -> None:
        """Send the final text, unless it is what was streamed."""
        if output.strip() and output.strip() != self._text.strip():
            voided = self._text_id if self._text else None
            await self._relay.emit(TextContent(str(uuid.uuid4()), output, replaces=voided))

    async def wrap_run_event_stream(
        self, ctx: RunContext[Any], *, stream: AsyncIterable[AgentStreamEvent]
    ) -> AsyncIterable[AgentStreamEvent]:
        """Show each event of the stream before the framework goes on."""
        try:
            async for event in stream:
                await self._show(event)
                yield event
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: WrapModelRequestHandler
    ) -> ModelResponse:
        """Store the messages before the request, and with a response that has calls; tell the tokens."""
        await self._emit(self._state.save(ctx.messages))
        response = await handler(request_context)
        await self._emit(_usage_of(response))
        for part in response.tool_calls:
            self._state.name(part.tool_call_id)
        if response.tool_calls:
            await self._emit(self._state.save([*ctx.messages, response]))
        return response

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,
        args: dict[str, Any],
        handler: WrapToolExecuteHandler,
    ) -> Any:
        """Run a tool once: EXECUTING is stored before, and the result of a call that has ended is used again."""
        if (ended := self._settled.pop(call.tool_call_id, None)) is not None:
            if ended.output is not None:
                return ended.output.structured_data if ended.output.text is None else ended.output.text
            raise ToolFailed(ended.error.message if ended.error is not None else "It did not run.")
        shown = ToolCall(
            self._state.shown(call.tool_call_id), ToolCallStatus.EXECUTING, call.tool_name, json_object(args)
        )
        await self._emit(ToolCallUpdate(shown))
        try:
            result = await handler(args)
        except (ApprovalRequired, CallDeferred):
            await self._emit(ToolCallUpdate(replace(shown, status=ToolCallStatus.PENDING)))
            raise
        except Exception as error:
            is_told = isinstance(error, ModelRetry | ToolFailed | ToolFailedError | ToolRetryError)
            details = ErrorDetails(str(error), "tool_failed") if is_told else TOOL_FAILED
            await self._emit(ToolCallUpdate(replace(shown, status=ToolCallStatus.FAILED, error=details)))
            raise
        # Before the call's end, since they belong to it.
        for file in files_of(result):
            await self._emit(artifact_of(file))
        ended = replace(shown, status=ToolCallStatus.SUCCEEDED, output=output_of(without_files(result)))
        await self._emit(ToolCallUpdate(ended))
        return result

    async def _emit(self, event: AgentEvent | None) -> None:
        if event is not None:
            await self._relay.emit(event)

    async def _show(self, event: AgentStreamEvent) -> None:
        match event:
            case PartStartEvent(part=TextPart(content=text)):
                self._text_id, self._text = str(uuid.uuid4()), ""
                await self._more_text(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                await self._more_text(text)
            case PartEndEvent(part=ThinkingPart(content=text)) if text.strip():
                await self._emit(Thought(thought_of(text)))
            case PartEndEvent(part=FilePart(content=file)):
                await self._emit(artifact_of(file))
            case FunctionToolCallEvent(part=part) if part.tool_call_id not in self._known:
                self._known.add(part.tool_call_id)
                arguments = json_object(part.args_as_dict())
                announced = ToolCall(
                    self._state.shown(part.tool_call_id), ToolCallStatus.PENDING, part.tool_name, arguments
                )
                await self._emit(ToolCallUpdate(announced))
            case FunctionToolResultEvent(part=part):
                self._known.discard(part.tool_call_id)
                call = self._call(part.tool_call_id)
                if (
                    call is not None and not call.status.is_final
                ):  # it did not run: its result was given, or it is refused
                    ended = replace(call, status=ToolCallStatus.SUCCEEDED, confirmation_request=None)
                    if part.outcome == "success":
                        ended = replace(ended, output=output_of(part.content))
                    else:
                        error = ErrorDetails(text_of(part.content), "not_run")
                        ended = replace(ended, status=ToolCallStatus.FAILED, error=error)
                    await self._emit(ToolCallUpdate(ended))
            case _:
                pass

    async def _more_text(self, text: str) -> None:
        if self._streams_text and text:
            self._text += text
            await self._emit(TextContent(self._text_id, text))

    def _call(self, call_id: str) -> ToolCall | None:
        item = self._session.calls.get(self._state.shown(call_id))
        return item.call if item is not None else None
