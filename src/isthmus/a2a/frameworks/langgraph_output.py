"""The stream and the result of a LangGraph graph, as clients see them.

Texts of models come as they are streamed. Of what a node writes with ``get_stream_writer()``, three kinds are shown: a
text (more of the answer), an event of :mod:`isthmus.events` such as an ArtifactUpdate, and a content block with a file.
Files in messages of models, and in the artifact of a tool, become artifacts, too.
"""

# LangGraph's own types are partly unknown.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, AIMessageChunk

from isthmus.a2a.frameworks.langgraph_messages import files_of, thinking_of
from isthmus.a2a.frameworks.relay import Relay
from isthmus.a2a.frameworks.shown import data_artifact
from isthmus.events import EVENT_TYPES, AgentMessage, TextContent, Thought
from isthmus.text.thoughts import thought_of

STRUCTURED = "structured_response"
"""Member of the state of LangChain's agents with a result that is not text."""


class ShownGraph:
    """Shows one run of a graph to clients."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._ids: dict[str | None, str] = {}
        self._streamed: set[str | None] = set()
        self._thinking: list[str] = []
        self._written = str(uuid.uuid4())

    async def show(self, mode: str, item: Any) -> None:
        """Show one item of the stream."""
        if mode == "messages":
            message, _ = cast("tuple[object, object]", item)
            if isinstance(message, AIMessage):
                await self._show_message(message)
            return
        if isinstance(item, str):
            if item:
                await self._relay.emit(TextContent(self._written, item))
        elif isinstance(item, tuple(EVENT_TYPES.values())):
            await self._relay.emit(item)
        else:
            for file in files_of(item):
                await self._relay.emit(file)

    async def end_thought(self) -> None:
        """Show what the model has thought."""
        text = "".join(self._thinking)
        self._thinking = []
        if text.strip():
            await self._relay.emit(Thought(thought_of(text)))

    async def finish(self, values: Any, output_channels: str | Sequence[str], message_id: str) -> None:
        """Show the result of the graph, as far as it was not streamed."""
        if not isinstance(values, dict):
            if isinstance(values, str):
                await self._relay.emit(AgentMessage("", values))
            elif values is not None:
                await self._relay.emit(data_artifact(f"output-{message_id}", values))
            return
        state = cast("dict[str, Any]", values)
        messages: Sequence[object] = state.get("messages") or ()
        if messages and isinstance(last := messages[-1], AIMessage) and last.id not in self._streamed:
            await self._show_message(last)
            await self.end_thought()
        if state.get(STRUCTURED) is not None:
            await self._relay.emit(data_artifact(f"output-{message_id}", state[STRUCTURED]))
        elif "messages" not in state:
            names = [output_channels] if isinstance(output_channels, str) else output_channels
            result: Mapping[str, Any] = {name: state[name] for name in names if name in state}
            await self._relay.emit(data_artifact(f"output-{message_id}", result))

    async def _show_message(self, message: AIMessage) -> None:
        if not isinstance(message, AIMessageChunk) and message.id in self._streamed:
            return
        self._streamed.add(message.id)
        if thinking := thinking_of(message):
            self._thinking.append(thinking)
        text = str(message.text)
        if text:
            await self.end_thought()
            # Ids of LangChain may be the same for two messages of a task.
            text_id = self._ids.setdefault(message.id, str(uuid.uuid4()))
            await self._relay.emit(TextContent(text_id, text))
        for file in files_of(message):
            await self._relay.emit(file)
