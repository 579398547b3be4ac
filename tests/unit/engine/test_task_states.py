import asyncio
import tempfile
from collections import Counter
from collections.abc import Awaitable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.client import PromptMessage, TaskError, TaskSnapshot
from isthmus.development_tool import ToolCallConfirmation, ToolCallStatus
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import AgentEvent, ConfirmationAccepted, Prompt, StateChange, TaskState, ToolCallUpdate
from support.agents import AskingAgent
from support.journals import journal_at
from support.turns import all_of

STEPS = st.lists(
    st.sampled_from(
        [
            *("allow one", "allow two", "reject one", "both at once", "unknown option", "unknown call"),
            *("say more", "cancel", "restart", "other context"),
        ]
    ),
    max_size=14,
)
FOLLOWS = {
    TaskState.SUBMITTED: {TaskState.WORKING, TaskState.CANCELED},
    TaskState.WORKING: {TaskState.INPUT_REQUIRED, TaskState.COMPLETED, TaskState.CANCELED},
    TaskState.INPUT_REQUIRED: {TaskState.INPUT_REQUIRED, TaskState.COMPLETED, TaskState.CANCELED, TaskState.WORKING},
    TaskState.COMPLETED: {TaskState.COMPLETED, TaskState.WORKING, TaskState.CANCELED},
    TaskState.FAILED: set[TaskState](),
    TaskState.CANCELED: set[TaskState](),
}
"""States that may be announced after each state. Only a message continues a completed task."""


class RestartState:
    """A task with two questions, and all actions on it, over restarts."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._agent = AskingAgent(("one", "two"))
        self._answered: dict[str, str] = {}
        self._task_id = ""
        self._engine: Engine | None = None

    async def __aenter__(self) -> "RestartState":
        await self._start()
        turn = await self.engine.prompt(PromptMessage("do both"))
        self._task_id = turn.task_id
        await all_of(turn)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.engine.aclose()

    @property
    def engine(self) -> Engine:
        assert self._engine is not None
        return self._engine

    async def _start(self) -> None:
        journal = await journal_at(self._folder / "journal.sqlite")
        self._engine = Engine(self._agent, journal, EngineOptions(WorkspaceRule(default=self._folder)))
        await self.engine.start()

    async def step(self, step: str) -> None:
        """Do one action; a refused one must leave the task unchanged."""
        before = await self.engine.get(self._task_id)
        match step.split():
            case ["allow", call]:
                accepted = await self._try(self._answer(call, "proceed_once"), before)
                assert accepted == (call in ids(before))
            case ["reject", call]:
                accepted = await self._try(self._answer(call, "cancel"), before)
                assert accepted == (call in ids(before))
            case ["both", *_]:
                options = ["proceed_once", "cancel", "proceed_once"]
                results = await asyncio.gather(
                    *(self._answer("one", option) for option in options), return_exceptions=True
                )
                won = [result for result in results if not isinstance(result, BaseException)]
                assert len(won) == ("one" in ids(before))
                assert all(isinstance(result, TaskError) for result in results if result not in won)
            case ["unknown", what]:
                call, option = ("one", "perhaps") if what == "option" else ("three", "proceed_once")
                assert not await self._try(self._answer(call, option), before)
            case ["say", _]:
                prompt = PromptMessage("more", task_id=self._task_id)
                accepted = await self._try(self._say(prompt), before)
                assert accepted == (before.state in (TaskState.INPUT_REQUIRED, TaskState.COMPLETED))
            case ["other", _]:
                prompt = PromptMessage("more", task_id=self._task_id, context_id="another")
                assert not await self._try(self._say(prompt), before)
            case ["cancel"]:
                accepted = await self._try(self._cancel(), before)
                assert accepted == (before.state is TaskState.INPUT_REQUIRED)
            case ["restart"]:
                await self.engine.aclose()
                await self._start()
                assert await self.engine.get(self._task_id) == before
            case _:
                raise AssertionError(step)

    async def _try(self, doing: Awaitable[None], before: TaskSnapshot) -> bool:
        """Return whether the action was accepted."""
        try:
            await doing
        except TaskError:
            assert await self.engine.get(self._task_id) == before
            return False
        return True

    async def _answer(self, call: str, option: str) -> None:
        answer = [ToolCallConfirmation(call, option)]
        turn = await self.engine.answer(self._task_id, answer, answered_by="test")
        self._answered[call] = option
        await all_of(turn)

    async def _say(self, prompt: PromptMessage) -> None:
        await all_of(await self.engine.prompt(prompt))

    async def _cancel(self) -> None:
        assert (await self.engine.cancel(self._task_id)).state is TaskState.CANCELED

    async def check(self) -> None:
        """Check the journal against the rules."""
        snapshot = await self.engine.get(self._task_id)
        kept = await self.engine.journal.events(self._task_id, 0, 10_000)
        assert [item.seq for item in kept] == list(range(1, snapshot.seq + 1))
        events = [item.event for item in kept]
        check_states(events, snapshot.state)
        self._check_calls(events, snapshot)

    def _check_calls(self, events: Sequence[AgentEvent], snapshot: TaskSnapshot) -> None:
        answers = [event.confirmation for event in events if isinstance(event, ConfirmationAccepted)]
        assert {answer.tool_call_id: answer.selected_option_id for answer in answers} == self._answered
        assert len(answers) == len(self._answered)
        allowed = [call for call, option in self._answered.items() if option == "proceed_once"]
        assert sorted(self._agent.ran) == sorted(allowed)
        updates = [event.tool_call for event in events if isinstance(event, ToolCallUpdate)]
        last = {call.tool_call_id: call for call in updates}
        finals = Counter(call.tool_call_id for call in updates if call.status.is_final)
        assert all(count == 1 for count in finals.values())
        waiting = {call_id for call_id, call in last.items() if call.status is ToolCallStatus.PENDING}
        assert ids(snapshot) == waiting
        assert bool(waiting) == (snapshot.state is TaskState.INPUT_REQUIRED)


def check_states(events: Sequence[AgentEvent], last: TaskState) -> None:
    state, prompts = TaskState.SUBMITTED, 0
    for event in events:
        if isinstance(event, Prompt):
            prompts += 1
        if state in (TaskState.FAILED, TaskState.CANCELED):
            raise AssertionError(f"{event} came after {state}")
        if isinstance(event, StateChange):
            assert event.state in FOLLOWS[state], f"{event.state} after {state}"
            assert state is not TaskState.COMPLETED or prompts, "taken up again without a message"
            prompts = 0
            state = event.state
    assert state is last


def ids(snapshot: TaskSnapshot) -> set[str]:
    return {call.tool_call_id for call in snapshot.pending}


@pytest.mark.slow
@settings(max_examples=30)
@given(STEPS)
def test_whatever_is_done_to_a_task_its_states_calls_and_answers_keep_to_the_rules(steps: Sequence[str]) -> None:
    async def live() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with RestartState(Path(folder)) as life:
                for step in steps:
                    await life.step(step)
                    await life.check()

    asyncio.run(live())
