"""Tool calls in a run of a LangGraph graph, as clients see them, and none of them twice; and the tokens of models.

A callback reports each tool before it runs, wherever in the graph that is. In the graph's ``ToolNode``s a call that an
earlier process made is not repeated: the graph gets its result.
"""

# LangChain's own types are partly unknown.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false, reportPrivateUsage=false

from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from dataclasses import replace
from typing import Any
from uuid import UUID

from langchain_core.callbacks import AsyncCallbackHandler
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult
from langchain_core.tools import ToolException
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

from isthmus.a2a.frameworks.langgraph_messages import files_of, text_of_content
from isthmus.a2a.frameworks.relay import Relay
from isthmus.a2a.frameworks.session_record import SessionRecord
from isthmus.a2a.frameworks.shown import TOOL_FAILED, json_object, output_of, text_of
from isthmus.agent.session.session import Session
from isthmus.development_tool import ErrorDetails, ToolCall, ToolCallStatus, ToolOutput
from isthmus.errors import IsthmusError
from isthmus.events import ToolCallUpdate
from isthmus.internal_events import ModelUsed

SHOWN = "langgraph:shown:"
"""Beginning of the names of entries with the ids under which clients see calls whose own ids were used before."""
CURRENT: ContextVar["ShownCalls | None"] = ContextVar("CURRENT", default=None)
"""The calls of the run that the present code belongs to."""


class AlreadyRunError(IsthmusError):
    """Raised in place of a call that an earlier process has made, where the graph cannot be given its result."""


class CallNames:
    """The ids under which clients see calls: their own, unless the task has used that for another call."""

    def __init__(self, session: Session, kept: SessionRecord) -> None:
        self._session = session
        self._kept = kept
        self._entry = f"{SHOWN}{session.task_id}"

    def shown(self, call_id: str) -> str:
        """Return the id under which clients see a call."""
        return self._kept.entry(self._entry).get(call_id, call_id)

    def name(self, call_id: str) -> str:
        """Choose and return the id under which clients see a new call."""
        shown, number = call_id, 1
        while shown in self._session.calls:
            number += 1
            shown = f"{call_id}.{number}"
        if shown != self.shown(call_id):
            self._kept.set(self._entry, {**self._kept.entry(self._entry), call_id: shown})
        return shown


class ShownCalls(AsyncCallbackHandler):
    """Reports the tool calls of one run; ``resumed`` are the ids of calls that an earlier run may have made."""

    raise_error = True
    run_inline = True

    def __init__(self, relay: Relay, session: Session, kept: SessionRecord, resumed: frozenset[str]) -> None:
        self._relay = relay
        self._session = session
        self._kept = kept
        self._names = CallNames(session, kept)
        self._begun: dict[UUID, ToolCall] = {}
        self._own = set(resumed)
        calls = {call_id: session.calls.get(self._names.shown(call_id)) for call_id in resumed}
        self._settled = {
            call_id: item.call
            for call_id, item in calls.items()
            if item is not None and item.call is not None and item.call.status.is_final
        }

    def take_settled(self, call_id: str) -> ToolCall | None:
        """Return a call that an earlier process has made and that the graph is about to make again, once."""
        return self._settled.pop(call_id, None)

    async def on_llm_end(self, response: LLMResult, **_: Any) -> None:
        """Tell the tokens of a request to a model, as far as its provider does."""
        for generation in (each for several in response.generations for each in several):
            message = generation.message if isinstance(generation, ChatGeneration) else None
            if isinstance(message, AIMessage) and (usage := message.usage_metadata):
                name = str(message.response_metadata.get("model_name") or "")
                cached = usage.get("input_token_details", {}).get("cache_read", 0)
                await self._relay.emit(ModelUsed(name, usage["input_tokens"], usage["output_tokens"], cached))

    async def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        inputs: dict[str, Any] | None = None,
        tool_call_id: str | None = None,
        **_: Any,
    ) -> None:
        """Report that a tool is about to run; return when that is stored."""
        name = str(serialized.get("name") or "tool")
        call_id = tool_call_id or str(run_id)
        if self.take_settled(call_id) is not None:
            raise AlreadyRunError(f"{name} has run before the process ended, and is not run again.")
        if call_id not in self._own:
            self._own.add(call_id)
            self._names.name(call_id)
            if (event := self._kept.take_changes()) is not None:
                await self._relay.emit(event)
        arguments = json_object(inputs if inputs is not None else {"input": input_str})
        call = ToolCall(self._names.shown(call_id), ToolCallStatus.PENDING, name, arguments)
        if call.tool_call_id not in self._session.calls:
            await self._relay.emit(ToolCallUpdate(call))
        self._begun[run_id] = replace(call, status=ToolCallStatus.EXECUTING)
        await self._relay.emit(ToolCallUpdate(self._begun[run_id]))

    async def on_tool_end(self, output: Any, *, run_id: UUID, **_: Any) -> None:
        """Report a tool's result; its files become artifacts before."""
        if (call := self._begun.pop(run_id, None)) is None:
            return
        for file in files_of(output):
            await self._relay.emit(file)
        if isinstance(output, ToolMessage):
            text = text_of_content(output.content)
            if output.status == "error":
                error = ErrorDetails(text, "tool_failed")
                await self._relay.emit(ToolCallUpdate(replace(call, status=ToolCallStatus.FAILED, error=error)))
                return
            shown = ToolOutput(text=text)
        else:
            shown = output_of(output)
        await self._relay.emit(ToolCallUpdate(replace(call, status=ToolCallStatus.SUCCEEDED, output=shown)))

    async def on_tool_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        """Report that a tool failed, or that it waits for the user."""
        if (call := self._begun.pop(run_id, None)) is None:
            return
        if isinstance(error, GraphBubbleUp):
            await self._relay.emit(ToolCallUpdate(replace(call, status=ToolCallStatus.PENDING)))
            return
        told = ErrorDetails(str(error), "tool_failed") if isinstance(error, ToolException) else TOOL_FAILED
        await self._relay.emit(ToolCallUpdate(replace(call, status=ToolCallStatus.FAILED, error=told)))


def keep_from_repeating(graph: Pregel[Any, Any, Any, Any]) -> None:
    """Let the graph's ToolNodes ask before each call whether an earlier process has made it."""
    graphs = [graph, *(each for _, each in graph.get_subgraphs(recurse=True))]
    for each in graphs:
        for node in getattr(each, "nodes", {}).values():
            tools = getattr(node, "bound", None)
            if isinstance(tools, ToolNode) and not getattr(tools, "_isthmus_asks", False):
                if tools._awrap_tool_call is None and tools._wrap_tool_call is not None:
                    continue  # a wrapper without await of the author's own; the callback refuses repetitions
                tools._awrap_tool_call = _once(tools._awrap_tool_call)
                vars(tools)["_isthmus_asks"] = True


def _once(inner: Callable[..., Awaitable[Any]] | None) -> Any:
    async def run_once(request: Any, execute: Callable[[Any], Awaitable[Any]]) -> Any:
        calls, call = CURRENT.get(), request.tool_call
        if calls is not None and (ended := calls.take_settled(call["id"])) is not None:
            return _message_of(ended, call)
        return await (inner(request, execute) if inner is not None else execute(request))

    return run_once


def _message_of(ended: ToolCall, call: Mapping[str, Any]) -> ToolMessage:
    if ended.output is None:
        text = ended.error.message if ended.error is not None else "It did not run."
        return ToolMessage(text, name=call["name"], tool_call_id=call["id"], status="error")
    content = text_of(ended.output.structured_data if ended.output.text is None else ended.output.text)
    return ToolMessage(content, name=call["name"], tool_call_id=call["id"])
