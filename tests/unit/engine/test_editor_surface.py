import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from isthmus.client import PromptMessage
from isthmus.development_tool import ConfirmationOption, FileDiff, ModifiedFileDetails, ToolCallConfirmation
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.editor_surface import EditorPeer, EditorSurface, RejectedWith
from isthmus.engine.followers.open_questions import QuestionOpened
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.errors import IsthmusError
from isthmus.events import ConfirmationAccepted, TaskState
from support.agents import AskingAgent
from support.journals import journal_at
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

EDIT = FileDiff("a.txt", "/w/a.txt", "proposed\n", "old\n")


@dataclass
class Screen:
    """An editor with one review at a time; the test is the user who decides."""

    name: str = "Screen"
    is_there: bool = True
    shown: list[str] = field(default_factory=list[str])
    closed: int = 0
    ends: list[str] = field(default_factory=list[str])
    decision: "asyncio.Future[str | RejectedWith | None]" = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    async def review(self, path: Path, new_content: str) -> str | RejectedWith | None:
        self.shown.append(f"{path}: {new_content}")
        try:
            return await asyncio.shield(self.decision)
        except asyncio.CancelledError:
            self.closed += 1
            raise

    def answered_elsewhere(self, path: Path, by: str) -> None:
        assert not self.closed
        self.ends.append(f"{path}: {by}")


@dataclass
class Desk:
    engine: Engine
    agent: AskingAgent
    screen: Screen
    told: list[tuple[str, str]]
    task_id: str = ""

    async def ask(self) -> None:
        turn = await self.engine.prompt(PromptMessage("edit it"))
        self.task_id = turn.task_id
        await eventually_async(lambda: self.screen.shown)

    async def is_(self, state: TaskState) -> None:
        """Wait until the task is in a state."""

        async def found() -> bool:
            return (await self.engine.get(self.task_id)).state is state

        await eventually_async(found)

    async def answers(self) -> list[ConfirmationAccepted]:
        kept = [item.event async for item in (await self.engine.follow(self.task_id, 0)).deliveries]
        return [event for event in kept if isinstance(event, ConfirmationAccepted)]


@asynccontextmanager
async def desk(path: Path, screen: Screen, agent: AskingAgent | None = None) -> AsyncGenerator[Desk]:
    asking = agent or AskingAgent(edit=EDIT)
    options = EngineOptions(WorkspaceRule(default=path))
    engine = Engine(asking, await journal_at(path / "journal.sqlite"), options)
    await engine.start()

    async def find(_: QuestionOpened) -> EditorPeer | None:
        return screen

    told: list[tuple[str, str]] = []
    surface = EditorSurface(
        engine.for_user, engine.questions, find, lambda call_id, editor: told.append((call_id, editor))
    )
    running = asyncio.create_task(surface.run())
    try:
        yield Desk(engine, asking, screen, told)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await engine.aclose()


async def test_the_text_that_was_accepted_in_the_editor_is_the_answer(tmp_path: Path) -> None:
    async with desk(tmp_path, Screen()) as at:
        await at.ask()
        assert at.screen.shown == ["/w/a.txt: proposed\n"]
        at.screen.decision.set_result("changed\n")
        await at.is_(TaskState.COMPLETED)
        (answer,) = await at.answers()
        assert answer.answered_by == "Screen"
        assert answer.confirmation.file_details is not None
        assert answer.confirmation.file_details.new_content == "changed\n"


@pytest.mark.parametrize(("is_there", "told"), [(True, [("one", "Screen")]), (False, [])])
async def test_it_is_told_that_a_question_is_shown_in_an_editor_that_is_there(
    tmp_path: Path, is_there: bool, told: list[tuple[str, str]]
) -> None:
    async with desk(tmp_path, Screen(is_there=is_there)) as at:
        await at.ask()
        assert at.told == told


async def test_a_proposal_accepted_as_it_is_is_no_modification(tmp_path: Path) -> None:
    async with desk(tmp_path, Screen()) as at:
        await at.ask()
        at.screen.decision.set_result("proposed\n")
        await at.is_(TaskState.COMPLETED)
        assert (await at.answers())[0].confirmation == ToolCallConfirmation("one", "proceed_once")


async def test_a_rejection_in_the_editor_cancels_the_call(tmp_path: Path) -> None:
    async with desk(tmp_path, Screen()) as at:
        await at.ask()
        at.screen.decision.set_result(None)
        await at.is_(TaskState.COMPLETED)
        assert (await at.answers())[0].confirmation.selected_option_id == "cancel"
        assert at.agent.ran == []


async def test_a_servers_document_that_is_accepted_is_sent_to_it(tmp_path: Path) -> None:
    options = tuple(ConfirmationOption(name, name) for name in ("accept", "decline", "cancel"))
    async with desk(tmp_path, Screen(), AskingAgent(edit=EDIT, options=options)) as at:
        await at.ask()
        at.screen.decision.set_result("filled in\n")
        await at.is_(TaskState.COMPLETED)
        (answer,) = await at.answers()
        assert answer.confirmation == ToolCallConfirmation("one", "accept", ModifiedFileDetails("filled in\n"))


async def test_an_answer_elsewhere_closes_the_view_and_the_editor_is_told_by_whom(tmp_path: Path) -> None:
    async with desk(tmp_path, Screen()) as at:
        await at.ask()
        await at.engine.answer(at.task_id, [ToolCallConfirmation("one", "proceed_once")], answered_by="terminal")
        await eventually_async(lambda: at.screen.closed == 1)
        assert at.screen.ends == ["/w/a.txt: terminal"]
        await eventually_async(lambda: at.agent.ran == ["one"])


async def test_a_cancelled_task_closes_the_view(tmp_path: Path) -> None:
    async with desk(tmp_path, Screen()) as at:
        await at.ask()
        await at.engine.cancel(at.task_id)
        await eventually_async(lambda: at.screen.closed == 1)
        assert at.screen.ends == []
        assert at.agent.ran == []


async def test_a_question_that_waited_over_a_restart_is_shown_again(tmp_path: Path) -> None:
    async with desk(tmp_path, Screen()) as at:
        await at.ask()
    async with desk(tmp_path, Screen()) as again:
        await eventually_async(lambda: again.screen.shown == ["/w/a.txt: proposed\n"])


async def test_an_editor_that_cannot_show_it_leaves_the_question_to_the_others(tmp_path: Path) -> None:
    class Broken(Screen):
        async def review(self, path: Path, new_content: str) -> str | None:
            self.shown.append("tried")
            raise IsthmusError("no window")

    async with desk(tmp_path, Broken()) as at:
        await at.ask()
        turn = await at.engine.answer(at.task_id, [ToolCallConfirmation("one", "proceed_once")], answered_by="terminal")
        async for _ in turn.deliveries:
            pass
        assert at.agent.ran == ["one"]


async def test_a_command_is_not_shown_in_the_editor(tmp_path: Path) -> None:
    async with desk(tmp_path, Screen(), AskingAgent()) as at:
        turn = await at.engine.prompt(PromptMessage("run it"))
        async for _ in turn.deliveries:
            pass
        assert at.screen.shown == []


async def test_words_about_a_rejection_reach_the_agent(tmp_path: Path) -> None:
    async with desk(tmp_path, Screen()) as at:
        await at.ask()
        at.screen.decision.set_result(RejectedWith("keep it"))

        async def told() -> bool:
            kept = [item.event async for item in (await at.engine.follow(at.task_id, 0)).deliveries]
            return "I rejected the call of" in str(kept) and "keep it" in str(kept)

        await eventually_async(told)
