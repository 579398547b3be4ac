"""A turn outlives the network: the agent with a real provider, behind a proxy that is closed and opened again."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.client import OFFLINE, Delivery
from isthmus.events import AgentEvent, RetryNotice, StateChange, TaskState, TextContent, ToolCallUpdate
from isthmus.internal_events import Compacted, ModelReply
from isthmus.models.endpoint.patience import BACK
from isthmus.models.endpoint.sleep_watch import SleepLimits
from isthmus.models.streaming import StreamOptions
from isthmus.task_view import TaskView
from support.agent_harness import AgentHarness
from support.cutting_proxy import CuttingProxy, cutting_proxy
from support.fake_clock import FakeClock
from support.scripted_wire import Call, Failure, Reply, Say, Script
from support.waiting import eventually_async
from support.wire_server import Hold, WireRequest

pytestmark = pytest.mark.anyio

TIMES = (5, 60, 600)
WHOLE = "It is fine, and has been."
"""The answer, in whole."""
WORDS = " ".join(map(str, range(2_000)))
"""A long text without repetition."""


@dataclass
class Journey:
    """An agent behind a proxy, and clocks that the test sets."""

    agent: AgentHarness
    proxy: CuttingProxy
    clock: FakeClock = field(default_factory=FakeClock)

    @property
    def events(self) -> list[AgentEvent]:
        return self.agent.events

    @property
    def offline_states(self) -> list[str | None]:
        """The reasons of the states of a task at work after the first one."""
        states = [event for event in self.events if isinstance(event, StateChange)]
        return [state.reason for state in states if state.state is TaskState.WORKING][1:]

    def shown(self) -> TaskView:
        view = TaskView()
        for number, event in enumerate(self.events, 1):
            view.apply(Delivery(number, float(number), event))
        return view

    def check(self, away: float) -> None:
        """Check that the turn waited for the network once, told so, and ended as if it had not been away."""
        assert self.events[-1] == StateChange(TaskState.COMPLETED)
        notices = [event for event in self.events if isinstance(event, RetryNotice)]
        assert [notice.is_offline for notice in notices] == [True, False]
        assert notices[1].reason == BACK
        assert self.offline_states == [OFFLINE, None]
        assert away <= self.clock.passed <= away + 1.5
        assert self.shown().final_text == WHOLE
        assert [message.text for message in self.shown().messages.values()].count(WHOLE) == 1


@asynccontextmanager
async def journey(
    harness: Callable[..., AgentHarness], replies: Sequence[Script] | Callable[[WireRequest], Script], away: float
) -> AsyncGenerator[Journey]:
    agent = harness(replies, policy=Policy(ApprovalMode.YOLO))
    async with cutting_proxy(agent.wire.base_url) as proxy:
        it = Journey(agent, proxy)
        agent.address = proxy.url.rstrip("/")
        agent.stream_options = StreamOptions(
            sleep=it.clock.sleep, random=lambda: 0.5, now=it.clock.now, monotonic=it.clock.monotonic
        )
        it.clock.at(away, proxy.open)
        yield it


@pytest.mark.parametrize("away", TIMES)
async def test_before_the_first_byte(harness: Any, away: float) -> None:
    async with journey(harness, [Reply.of(Say(WHOLE))], away) as it:
        it.proxy.close()
        await it.agent.prompt("is it?")
        it.check(away)
        assert len(it.agent.wire.model_requests) == 1


@pytest.mark.parametrize("away", TIMES)
async def test_in_the_middle_of_the_answer(harness: Any, away: float) -> None:
    whole = Reply.of(Say("It is fine, ", "and has been."))
    async with journey(harness, [whole, whole], away) as it:
        it.proxy.cuts, it.proxy.closes_with_cut = [400], True
        await it.agent.prompt("is it?")
        it.check(away)
        assert len([event for event in it.events if isinstance(event, ModelReply)]) == 1
        said: dict[str, str] = {}
        for event in it.events:
            if isinstance(event, TextContent):
                said[event.message_id] = said.get(event.message_id, "") + event.text
                assert event.replaces is None or said[event.replaces] == "It is fine, "
        assert list(said.values()) == ["It is fine, ", WHOLE]


@pytest.mark.parametrize("away", TIMES)
async def test_in_the_request_with_the_result_of_a_call(harness: Any, workspace: Path, away: float) -> None:
    command = Call("run_shell_command", {"command": "echo once >> ran.txt; echo told"})
    replies = [Reply.of(command), Reply.of(Say("lost")), Reply.of(Say(WHOLE))]
    async with journey(harness, replies, away) as it:
        it.proxy.lost_replies, it.proxy.closes_with_cut = [b"functionResponse"], True
        await it.agent.prompt("run it")
        it.check(away)
        assert (workspace / "ran.txt").read_text("utf-8") == "once\n"
        states = [event.tool_call.status.name for event in it.events if isinstance(event, ToolCallUpdate)]
        assert states.count("SUCCEEDED") == 1
        first, second = it.agent.wire.model_requests[1:]
        assert first.json == second.json


@pytest.mark.parametrize("away", TIMES)
async def test_in_the_request_for_a_summary(harness: Any, away: float) -> None:
    replies = [
        *(Reply.of(Say(f"answer {number} " + WORDS)) for number in range(3)),
        Failure(400, kind="context_too_long"),
        Reply.of(Say("lost")),
        Reply.of(Say("## Goal\nTo talk.")),
        Reply.of(Say(WHOLE)),
    ]
    async with journey(harness, replies, away) as it:
        for number in range(3):
            await it.agent.prompt(f"prompt {number}")
        before = len(it.events)
        it.proxy.lost_replies, it.proxy.closes_with_cut = [b"Write the summary of the transcript"], True
        await it.agent.prompt("and now?")
        assert len([event for event in it.events if isinstance(event, Compacted)]) == 1
        earlier, it.agent.events = it.events[:before], it.events[before:]
        assert earlier[-1] == StateChange(TaskState.COMPLETED)
        it.check(away)


async def test_the_computer_sleeps_in_the_middle_of_the_answer(harness: Any, workspace: Path) -> None:
    command = Call("run_shell_command", {"command": "echo once >> ran.txt"})
    silent = Reply.of(Say("It is fine, ", "and has been."), hold=Hold(), hold_after=1)
    async with journey(harness, [Reply.of(command), silent, Reply.of(Say(WHOLE))], 10_000) as it:
        it.agent.stream_options = replace(it.agent.stream_options, sleep_limits=SleepLimits(look=0.01, grace=0.2))
        working = asyncio.create_task(it.agent.prompt("run it"))
        await eventually_async(lambda: any(isinstance(event, TextContent) for event in it.events))
        it.clock.sleep_computer(600)
        assert (await working).state is TaskState.COMPLETED
        assert (workspace / "ran.txt").read_text("utf-8") == "once\n"
        assert len(it.agent.wire.model_requests) == 3
        assert it.offline_states == []
        assert [message.text for message in it.shown().messages.values()] == [WHOLE]


async def test_a_refusal_is_not_waited_for(harness: Any) -> None:
    async with journey(harness, [Failure(400, "strange field")], 5) as it:
        end = await it.agent.prompt("hi")
        assert (end.state, end.reason) == (TaskState.FAILED, "model_bad_request")
        assert (it.clock.pauses, it.offline_states) == ([], [])


async def test_a_network_that_stays_away_ends_the_turn_with_words(harness: Any) -> None:
    async with journey(harness, [], 10_000) as it:
        it.proxy.close()
        end = await it.agent.prompt("hi")
        assert (end.state, end.reason) == (TaskState.FAILED, "model_unreachable")
        assert "No connection came within 10 min. Send a message to go on" in (end.error or "")
        assert it.clock.passed == pytest.approx(600)


async def test_a_summary_that_the_network_prevents_is_not_waited_for_twice(harness: Any) -> None:
    replies = [Reply.of(Say(WORDS)), Reply.of(Say(WORDS)), Reply.of(Say("never"))]
    async with journey(harness, replies, 10_000) as it:
        it.agent.share = 0.00001
        await it.agent.prompt("one")
        await it.agent.prompt("two")
        it.proxy.close()
        end = await it.agent.prompt("three")
        assert (end.state, end.reason) == (TaskState.FAILED, "model_unreachable")
        assert it.clock.passed == pytest.approx(600)


async def test_cancelling_ends_the_wait_at_once(harness: Any) -> None:
    async with journey(harness, [], 10_000) as it:
        it.proxy.close()
        never = asyncio.Event()

        async def forever(_: float) -> None:
            await never.wait()

        it.agent.stream_options = StreamOptions(sleep=forever)
        working = asyncio.create_task(it.agent.prompt("hi"))
        await eventually_async(lambda: OFFLINE in it.offline_states)
        working.cancel()
        async with asyncio.timeout(2):
            with pytest.raises(asyncio.CancelledError):
                await working


async def test_the_next_process_goes_on_where_the_last_one_waited(harness: Any) -> None:
    whole = Reply.of(Say("It is fine, ", "and has been."))
    async with journey(harness, [whole, whole], 10_000) as it:
        it.proxy.cuts, it.proxy.closes_with_cut = [400], True
        never = asyncio.Event()

        async def forever(_: float) -> None:
            await never.wait()

        options, it.agent.stream_options = it.agent.stream_options, StreamOptions(sleep=forever)
        working = asyncio.create_task(it.agent.prompt("is it?"))
        await eventually_async(lambda: OFFLINE in it.offline_states)
        working.cancel()
        await asyncio.wait({working})
        assert it.shown().is_offline
        it.agent.stream_options = options
        await it.proxy.open()
        assert (await it.agent.segment()).state is TaskState.COMPLETED
        assert it.offline_states == [OFFLINE, None]
        assert not it.shown().is_offline
        assert it.shown().final_text == WHOLE
