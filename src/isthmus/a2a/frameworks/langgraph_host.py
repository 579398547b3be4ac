"""Graphs of LangGraph behind the interface of :mod:`isthmus.agent.hosted`.

A task is a thread of the graph, with the task's id. It begins with a copy of the state of the task of its session that
ended last, so the conversation goes on. The checkpoints are in the journal (:class:`SessionSaver`), unless the graph
was compiled with a checkpointer of its own; one that keeps them in memory is replaced.

As a process may end at any moment, each run asks the checkpointer for the state of the thread, whose metadata name the
last message that the graph has received:

    the thread waits at an interrupt, and the user has answered       the graph goes on with the answer
    the thread waits at an interrupt                                  the user is asked (again)
    the last message is neither in the metadata nor an answer         it is the graph's input
    anything else: the process ended in a node                        LangGraph runs what is not done

Which message was the answer to which interrupt is stored before the graph gets it: a message never answers two.
"""

# LangGraph's own types are partly unknown.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportMissingTypeStubs=false

import copy
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import StateGraph
from langgraph.types import Command, StateSnapshot

from isthmus.a2a.frameworks.langgraph_asking import Asking, answered_call
from isthmus.a2a.frameworks.langgraph_calls import CURRENT, ShownCalls, keep_from_repeating
from isthmus.a2a.frameworks.langgraph_messages import human_message, open_calls
from isthmus.a2a.frameworks.langgraph_output import ShownGraph
from isthmus.a2a.frameworks.langgraph_saver import SessionSaver
from isthmus.a2a.frameworks.relay import Relay
from isthmus.a2a.frameworks.session_record import SessionRecord
from isthmus.a2a.frameworks.shown import NOT_ANSWERED, text_of
from isthmus.agent.calls.events import cancelled_call
from isthmus.agent.hosted import ask, decision, is_allowed
from isthmus.agent.session.session import Session
from isthmus.development_tool import GenericDetails
from isthmus.events import AgentEvent, AgentMessage, Prompt, ToolCallUpdate

if TYPE_CHECKING:
    from langgraph.pregel import Pregel

Graph: TypeAlias = "Pregel[Any, Any, Any, Any]"
FromSession: TypeAlias = Callable[[Session], Any]
MESSAGE = "isthmus_message"
"""Member of the metadata of checkpoints: the id of the last message that the graph has received."""
LAST = "langgraph:last"
"""Entry with the id of the task whose work ended last."""


class LangGraphAgent:
    """A graph as an AgentPort; each run continues from the checkpoint of its task."""

    def __init__(
        self,
        graph: "Graph | StateGraph[Any, Any, Any, Any]",
        make_input: FromSession | None = None,
        make_context: FromSession | None = None,
    ) -> None:
        self._graph: Graph = graph.compile() if isinstance(graph, StateGraph) else graph
        self._make_input = make_input
        self._make_context = make_context
        if make_input is None and "messages" not in self._graph.channels:
            raise TypeError(
                "host() got a graph whose state has no `messages`; expected input=, a function that makes the graph's"
                " input from the session, such as `input=lambda session: {'question': session.prompt}`"
            )
        keep_from_repeating(self._graph)

    async def run(self, session: Session) -> AsyncGenerator[AgentEvent, None]:
        """Run the graph until it has ended or asks the user."""
        if session.message is None:
            return  # a slash command, of which graphs have none
        segment = _Segment(self._graph, self._make_input, self._make_context, session, session.message)
        async with aclosing(segment.relay.events(segment.work())) as events:
            async for event in events:
                yield event


class _Segment:
    """One run of the graph, from a message or answers to the end or to questions."""

    def __init__(
        self,
        graph: Graph,
        make_input: FromSession | None,
        make_context: FromSession | None,
        session: Session,
        message: Prompt,
    ) -> None:
        self.relay = Relay()
        self._kept = SessionRecord(session)
        self._asking = Asking(self.relay, session, message, self._kept)
        self._session = session
        self._message = message
        self._make_input = make_input
        self._make_context = make_context
        self._graph = copy.copy(graph)
        if not isinstance(graph.checkpointer, BaseCheckpointSaver) or isinstance(graph.checkpointer, InMemorySaver):
            saver = SessionSaver(self._kept, self.relay)
            allowed: Any = getattr(graph, "_serde_allowlist", None)
            self._graph.checkpointer = saver.with_allowlist(allowed) if allowed is not None else saver
        self._thread = RunnableConfig(configurable={"thread_id": session.task_id})

    async def work(self) -> None:
        at = await self._graph.aget_state(self._thread)
        if at.metadata is None and await self._continue_last_task():
            at = await self._graph.aget_state(self._thread)
        if at.interrupts:
            if not (answers := await self._asking.answers(at.interrupts)):
                await self._asking.ask(at)
                return
            await self._run(Command(resume=answers), at)
        elif self._is_new(at):
            await self._run(self._input(at), at)
        elif at.tasks:  # `next` leaves out those that have ended without the step
            if await self._may_go_on(at):
                await self._run(None, at)
        else:
            await self._finish(at, ShownGraph(self.relay))

    def _is_new(self, at: StateSnapshot) -> bool:
        """Return whether the graph has not received the last message, neither as input nor as an answer."""
        received = (at.metadata or {}).get(MESSAGE), self._asking.answered_by
        return self._message.message_id not in received

    async def _continue_last_task(self) -> bool:
        """Begin with the state of the task that ended last in the session; return whether there is one."""
        saver = self._graph.checkpointer
        last = self._kept.entry(LAST).get("task")
        if last is None or not isinstance(saver, BaseCheckpointSaver):
            return False
        found = await saver.aget_tuple({"configurable": {"thread_id": last, "checkpoint_ns": ""}})
        if found is None:
            return False
        here = RunnableConfig(configurable={"thread_id": self._session.task_id, "checkpoint_ns": ""})
        step = found.metadata.get("step", 0)
        versions = found.checkpoint["channel_versions"]
        await saver.aput(here, found.checkpoint, {"source": "fork", "step": step, "parents": {}}, versions)
        return True

    def _input(self, at: StateSnapshot) -> Any:
        if self._make_input is not None:
            return self._make_input(self._session)
        unanswered = open_calls(at.values.get("messages", ())) if isinstance(at.values, dict) else ()
        closed = [
            ToolMessage(self._known_result(call["id"]), name=call["name"], tool_call_id=call["id"])
            for call in unanswered
        ]
        return {"messages": [*closed, human_message(self._message)]}

    def _known_result(self, call_id: str) -> str:
        item = self._session.calls.get(call_id)
        call = item.call if item is not None else None
        if call is not None and call.output is not None:
            return text_of(call.output.structured_data if call.output.text is None else call.output.text)
        return call.error.message if call is not None and call.error is not None else NOT_ANSWERED

    async def _run(self, given: Any, at: StateSnapshot) -> None:
        resumed = frozenset[str]()
        if at.tasks and not isinstance(given, dict) and isinstance(at.values, dict):
            resumed = frozenset(str(call["id"]) for call in open_calls(at.values.get("messages", ())))
        calls = ShownCalls(self.relay, self._session, self._kept, resumed)
        shown = ShownGraph(self.relay)
        metadata = {MESSAGE: self._message.message_id}
        config = RunnableConfig({**self._thread, "metadata": metadata, "callbacks": [calls]})
        token = CURRENT.set(calls)
        try:
            stream = self._graph.astream(
                given,
                config,
                context=self._make_context(self._session) if self._make_context is not None else None,
                stream_mode=["messages", "custom"],
                subgraphs=True,
                durability="sync",
            )
            async for _, mode, item in stream:
                await shown.show(mode, item)
        finally:
            CURRENT.reset(token)
        await shown.end_thought()
        at = await self._graph.aget_state(self._thread)
        if at.interrupts:
            await self._asking.ask(at)
        elif at.tasks:
            await self._may_go_on(at)
        else:
            await self._finish(at, shown)

    async def _finish(self, at: StateSnapshot, shown: ShownGraph) -> None:
        await shown.finish(at.values, self._graph.output_channels, self._message.message_id)
        self._kept.set(LAST, {"task": self._session.task_id})
        await self._store()

    async def _store(self) -> None:
        if (event := self._kept.take_changes()) is not None:
            await self.relay.emit(event)

    async def _may_go_on(self, at: StateSnapshot) -> bool:
        """Return whether a graph that has more to do may do it; at a breakpoint of its author the user is asked."""
        before = getattr(self._graph, "interrupt_before_nodes", ())
        after = getattr(self._graph, "interrupt_after_nodes", ())
        if not before and not after:
            return True
        call_id = f"go-on-{at.config.get('configurable', {}).get('checkpoint_id')}"
        known = self._session.calls.get(call_id)
        if known is None or known.call is None:
            nodes = ", ".join(at.next)
            await self.relay.emit(ask(call_id, nodes, {}, GenericDetails(f"The next step is {nodes}. Go on?")))
            return False
        answer = decision(self._session, call_id)
        if answer is None:
            return False
        if known.call.status.is_final:  # the process ended after the answer was taken
            return is_allowed(answer)
        if is_allowed(answer):
            await self.relay.emit(ToolCallUpdate(answered_call(known.call, "Allowed")))
            return True
        await self.relay.emit(ToolCallUpdate(cancelled_call(known.call, "Rejected by the user")))
        await self.relay.emit(AgentMessage("", "Stopped, as you wished."))
        return False
