"""Turns the updates of an agent's turn into AgentEvents. Pure, except for the ids of texts."""

import base64
import binascii
import uuid
from collections.abc import Callable, Sequence
from typing import assert_never

from isthmus.acp.host.calls import CallTable
from isthmus.acp.host.known_agent import UNKNOWN, KnownAgent
from isthmus.acp.host.limits import HostLimits
from isthmus.acp.host.usage import request_used
from isthmus.acp.v1.content import (
    AudioBlock,
    ContentBlock,
    EmbeddedResource,
    ImageBlock,
    ResourceLink,
    TextBlock,
    UnknownBlock,
)
from isthmus.acp.v1.updates import (
    AgentMessageChunk,
    AgentThoughtChunk,
    CommandsUpdate,
    CompactionUpdate,
    ConfigOptionsUpdate,
    ModeUpdate,
    PlanUpdate,
    SessionInfoUpdate,
    SessionUpdate,
    ToolCallChanged,
    ToolCallStarted,
    UnknownUpdate,
    UsageUpdate,
    UserMessageChunk,
)
from isthmus.development_tool import AgentThought
from isthmus.events import AgentEvent, ArtifactPart, ArtifactUpdate, TextContent, Thought, ToolCallUpdate
from isthmus.text.thoughts import thought_of

PLAN_MARKS = {"completed": "x", "in_progress": "~"}
PLAN_ENTRIES = 100
"""Maximum number of entries of a plan that are shown."""


class UpdateReader:
    """The state of one turn: its calls, the text and the thought that are being sent.

    ``model`` returns the name of the session's model.
    """

    def __init__(
        self,
        agent: KnownAgent,
        limits: HostLimits,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        model: Callable[[], str] = lambda: UNKNOWN.title,
    ) -> None:
        self.calls = CallTable(agent, limits)
        self._agent = agent
        self._limits = limits
        self._new_id = new_id
        self._model = model
        self.has_tokens = False
        """Whether the agent has stated tokens of requests, and so not only of the whole turn."""
        self._text_id = new_id()
        self._named = ""
        """The agent's id of the message that is being sent; empty if it has none."""
        self._thought: list[str] = []

    def take(self, update: SessionUpdate) -> Sequence[AgentEvent]:
        """Return the events of an update."""
        match update:
            case AgentThoughtChunk(content):
                self._thought.append(content.text if isinstance(content, TextBlock) else "")
                return self.flush() if sum(map(len, self._thought)) > self._limits.text else ()
            case AgentMessageChunk(content, message_id, meta):
                used = request_used(meta, self._model())
                self.has_tokens = self.has_tokens or bool(used)
                return (*self._message(content, message_id or ""), *used)
            case ToolCallStarted() | ToolCallChanged():
                call = self.calls.take(update)
                return () if call is None else (*self.interrupt(), ToolCallUpdate(call))
            case PlanUpdate(entries):
                lines = [f"- [{PLAN_MARKS.get(item.status, ' ')}] {item.content}" for item in entries[:PLAN_ENTRIES]]
                text = "\n".join(lines)[: self._limits.text]
                return (*self.interrupt(), Thought(AgentThought("Plan", text))) if text else ()
            case (
                UserMessageChunk()
                | CommandsUpdate()
                | ModeUpdate()
                | ConfigOptionsUpdate()
                | SessionInfoUpdate()
                | UsageUpdate()
                | CompactionUpdate()
                | UnknownUpdate()
            ):
                return ()
            case _:
                assert_never(update)

    def interrupt(self) -> Sequence[AgentEvent]:
        """Return the thought so far; later text without an id of its own is another message."""
        self._text_id, self._named = self._new_id(), ""
        return self.flush()

    def flush(self) -> Sequence[AgentEvent]:
        """Return the thought so far."""
        text = "".join(self._thought)
        self._thought.clear()
        return (Thought(thought_of(text)),) if text.strip() else ()

    def _message(self, content: ContentBlock, named: str) -> Sequence[AgentEvent]:
        match content:
            case TextBlock(text):
                pass
            case ResourceLink(uri, name):
                text = f"[{name}]({uri})"
            case EmbeddedResource(resource):
                text = resource.text or ""
            case ImageBlock(data, kind) | AudioBlock(data, kind):
                return (*self.interrupt(), *self._artifact(data, kind))
            case UnknownBlock():
                return ()
            case _:
                assert_never(content)
        if not text or (self._agent.noise is not None and self._agent.noise.fullmatch(text)):
            return ()
        if named != self._named:
            self._text_id, self._named = self._new_id(), named
        return (*self.flush(), TextContent(self._text_id, text))

    def _artifact(self, data: str, kind: str) -> Sequence[AgentEvent]:
        try:
            base64.b64decode(data, validate=True)
        except (binascii.Error, ValueError):
            return ()
        if len(data) > self._limits.file:
            return ()
        return (ArtifactUpdate(self._new_id(), (ArtifactPart(raw=data, media_type=kind[: self._limits.title]),)),)
