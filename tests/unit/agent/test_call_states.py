"""The states of tool calls under every order of answers, crashes, prompts and cancellations: a state machine."""

import asyncio
import json
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from isthmus.agent.calls.events import cancelled_calls
from isthmus.agent.calls.runner import CallRunner
from isthmus.agent.options import AgentOptions
from isthmus.agent.session.session import Session
from isthmus.development_tool import ToolCall, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, ToolCallUpdate, event_from_json, event_to_json
from isthmus.internal_events import ModelReply
from isthmus.models.port.base import Message, ToolRequest
from isthmus.models.port.message import message_to_json
from isthmus.tools.port.base import ToolKind
from isthmus.tools.port.tool_set import ToolSet
from support.effect_tools import EffectTool
from support.emitting import collecting_turn, until_killed

NAMES = ("plain", "read", "one_a", "one_b", "two_a")


class CallStates(RuleBasedStateMachine):
    """The machine. ``kept`` is the journal: its content survives each crash; a tool's effects do so, too."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = ToolSet.of(
            EffectTool("plain"),
            EffectTool("read", ToolKind.READ),
            EffectTool("one_a", server="one"),
            EffectTool("one_b", server="one"),
            EffectTool("two_a", server="two"),
        )
        self.options = AgentOptions(Path("/outputs"), {})
        self.kept: list[AgentEvent] = []
        self.number = 0
        self.session = Session("c")

    def keep(self, event: AgentEvent) -> None:
        if not (isinstance(event, ToolCallUpdate) and event.is_ephemeral):
            self.kept.append(event)

    def add(self, event: AgentEvent) -> None:
        self.session.apply(event)
        self.keep(event)

    def crash(self) -> None:
        """Restore the session from the journal, as another process does."""
        self.session = Session("c")
        for event in self.kept:
            self.session.apply(event_from_json(json.loads(json.dumps(event_to_json(event)))), "t")

    def settle(self, steps: int | None = None) -> None:
        """Run the calls; with ``steps`` the process is killed after that many events."""

        async def run() -> None:
            events: list[AgentEvent] = []
            turn = collecting_turn(self.session, events, steps)
            await until_killed(CallRunner(turn, self.tools, self.options).settle())
            for event in events:
                self.keep(event)

        asyncio.run(run())
        if steps is not None:
            self.crash()

    @initialize()
    def begin(self) -> None:
        self.crash()
        self.add(Prompt("p", "do it", {"workspace_path": "/"}))

    @precondition(lambda self: not self.session.calls.unsettled)
    @rule(names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4))
    def the_model_asks(self, names: list[str]) -> None:
        requests: list[ToolRequest] = []
        for name in names:
            self.number += 1
            requests.append(ToolRequest(f"call-{self.number}", name, {}))
        message = message_to_json(Message("assistant", tuple(requests)))
        self.add(ModelReply("m", "test", message))
        self.settle()

    @precondition(lambda self: bool(self.session.calls.waiting))
    @rule(data=st.data())
    def clients_answer(self, data: st.DataObject) -> None:
        """Answer one or more questions at once, in any order; the engine accepts one answer for each call."""
        waiting = data.draw(st.permutations(self.session.calls.waiting))
        for call in waiting[: data.draw(st.integers(1, len(waiting)))]:
            assert call.confirmation_request is not None
            option = data.draw(st.sampled_from([option.id for option in call.confirmation_request.options]))
            self.add(ConfirmationAccepted(ToolCallConfirmation(call.tool_call_id, option), "somebody"))
        if data.draw(st.booleans()):
            self.settle(data.draw(st.integers(0, 6)))
        self.settle()

    @rule(steps=st.integers(0, 6))
    def the_process_is_killed(self, steps: int) -> None:
        self.settle(steps)

    @rule()
    def it_goes_on(self) -> None:
        self.settle()

    @precondition(lambda self: bool(self.session.calls.waiting))
    @rule()
    def a_message_comes_instead_of_an_answer(self) -> None:
        self.add(Prompt("p", "something else"))
        self.settle()

    @precondition(lambda self: bool(self.session.calls.unsettled))
    @rule()
    def the_task_is_cancelled(self) -> None:
        for event in cancelled_calls(self.session):
            self.add(event)

    def calls(self) -> dict[str, list[ToolCall]]:
        states: dict[str, list[ToolCall]] = defaultdict(list)
        for event in self.kept:
            if isinstance(event, ToolCallUpdate):
                states[event.tool_call.tool_call_id].append(event.tool_call)
        return states

    @invariant()
    def each_call_goes_forward_and_ends_once(self) -> None:
        order = [ToolCallStatus.PENDING, ToolCallStatus.EXECUTING]
        for states in self.calls().values():
            ranks = [order.index(call.status) if not call.status.is_final else 2 for call in states]
            reads = states[0].tool_name == "read"
            assert ranks == sorted(ranks) or reads
            assert ranks.count(2) <= 1
            assert ranks.count(1) <= 1 or reads
            for call in states:
                assert call.confirmation_request is None or call.status is ToolCallStatus.PENDING

    @invariant()
    def an_effect_happens_once_at_the_most_and_never_without_a_yes(self) -> None:
        answers = {
            event.confirmation.tool_call_id: event.confirmation.selected_option_id
            for event in self.kept
            if isinstance(event, ConfirmationAccepted)
        }
        states = self.calls()
        for name, tool in self.tools.tools.items():
            if name == "read":
                continue
            assert isinstance(tool, EffectTool)
            for call_id, times in tool.effects.items():
                assert times == 1
                assert answers.get(call_id) != "cancel"
                assert call_id in answers or self.is_granted(tool, answers, states)
                assert ToolCallStatus.EXECUTING in [call.status for call in states[call_id]]

    @staticmethod
    def is_granted(tool: EffectTool, answers: dict[str, str], states: dict[str, list[ToolCall]]) -> bool:
        """Return whether an answer to another call allowed this tool, or all of its server."""
        for call_id, option in answers.items():
            name = states[call_id][0].tool_name
            if option == "proceed_always_tool" and name == tool.name:
                return True
            if option == "proceed_always_server" and tool.server == name.partition("_")[0]:
                return True
        return False

    def teardown(self) -> None:
        """Check that every path ends: once the user has decided all calls, none is open."""
        for _ in range(20):
            self.settle()
            for call in self.session.calls.waiting:
                self.add(ConfirmationAccepted(ToolCallConfirmation(call.tool_call_id, "proceed_once"), "somebody"))
            if not self.session.calls.unsettled:
                break
        assert not self.session.calls.unsettled
        for states in self.calls().values():
            assert states[-1].status.is_final


CallStates.TestCase.settings = settings(max_examples=30, stateful_step_count=25, deadline=None)


@pytest.mark.slow
class TestCallStates(CallStates.TestCase):
    """The machine, as a test."""
