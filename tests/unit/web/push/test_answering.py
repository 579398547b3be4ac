"""Answers by the tokens of notifications: one question, as it was shown, from one device, once."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from isthmus.a2a.server.users.users import BrowserPush, TokenEntry
from isthmus.a2a.server.users.users_file import UsersFile
from isthmus.client import PromptMessage
from isthmus.engine import Engine
from isthmus.errors import IsthmusError
from isthmus.events import ConfirmationAccepted, TaskState
from isthmus.web.push.answering import AnswerTokenError, PushedAnswer, PushedAnswers, QuestionGoneError
from isthmus.web.push.pushed_facts import question_digest
from isthmus.web.push.sent_file import SentFile
from isthmus.web.push.sent_questions import AnswerRecord, AnswerToken, SentQuestion, token_digest
from isthmus.web.push.task_facts import JournalTaskFacts
from support.agents import AskingAgent
from support.engines import engine_on, once
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

PUSH = BrowserPush("https://push.example/1", "key", "auth", "en", answers=True)


@dataclass
class Asked:
    """A task that waits, and a device that was told of its question ``one`` at time 1000 with two tokens."""

    engine: Engine
    agent: AskingAgent
    folder: Path
    device: TokenEntry
    task_id: str
    time: float = 1000.0

    @property
    def users(self) -> UsersFile:
        return UsersFile(self.folder / "users.json")

    @property
    def told(self) -> SentFile:
        return SentFile(self.folder)

    @property
    def answers(self) -> PushedAnswers:
        """The answers of a server that has just begun: it knows what is in the files."""
        tasks = JournalTaskFacts(self.engine.journal)
        return PushedAnswers(self.told, self.users, tasks, self.engine.for_user, lambda: self.time)

    async def tell(self, **changes: object) -> None:
        pending = (await self.engine.get(self.task_id)).pending
        shown = question_digest(next(call for call in pending if call.tool_call_id == "one"))
        tokens = tuple(
            AnswerToken(token_digest(act), self.device.id, act, option, 2000.0)
            for act, option in (("reject", "cancel"), ("allow", "proceed_once"))
        )
        question = replace(SentQuestion("", self.task_id, "one", shown, 1000.0, tokens=tokens), **changes)
        self.told.change(lambda table: (table.with_question(question, 1000.0), None))

    def push(self, push: BrowserPush | None) -> None:
        self.users.change(lambda table: (table.with_push(self.device.id, push), None))

    async def accepted(self) -> list[ConfirmationAccepted]:
        events = await self.engine.journal.events(self.task_id, 0, 1000)
        return [each.event for each in events if isinstance(each.event, ConfirmationAccepted)]

    async def refused(self, act: str = "allow") -> IsthmusError:
        """Return why the token of an act is refused; nothing was answered."""
        before = await self.accepted()
        with pytest.raises((AnswerTokenError, QuestionGoneError)) as raised:
            await self.answers.answer(act)
        assert await self.accepted() == before
        return raised.value


@asynccontextmanager
async def asked(path: Path, *names: str) -> AsyncGenerator[Asked]:
    agent, users = AskingAgent(names or ("one",)), UsersFile(path / "users.json")

    async with engine_on(path, agent) as engine:
        turn = await engine.prompt(PromptMessage("go"))
        async for _ in turn.deliveries:
            pass
        entry = users.change(lambda table: table.with_device("", "Phone", 0.0, 5000.0)[:2])
        found = Asked(engine, agent, path, entry, turn.task_id)
        found.push(PUSH)
        await found.tell()
        yield found


async def test_a_token_allows_what_was_shown_and_the_task_goes_on(tmp_path: Path) -> None:
    async with asked(tmp_path) as at:
        taken = await at.answers.answer("allow")
        assert taken.outcome == AnswerRecord("Phone", 1000.0, "allow", at.device.id)

        async def ended() -> bool:
            return (await at.engine.get(at.task_id)).state is TaskState.COMPLETED

        await eventually_async(ended)
        assert at.agent.ran == ["one"]
        [answer] = await at.accepted()
        assert (answer.answered_by, answer.confirmation.selected_option_id) == ("Phone", "proceed_once")


async def test_a_token_rejects(tmp_path: Path) -> None:
    async with asked(tmp_path) as at:
        await at.answers.answer("reject")
        [answer] = await at.accepted()
        assert answer.confirmation.selected_option_id == "cancel"
        assert at.agent.ran == []


async def test_a_token_that_was_used_and_its_sibling_answer_nothing_more(tmp_path: Path) -> None:
    async with asked(tmp_path, "one", "two") as at:
        await at.answers.answer("allow")
        for token in ("allow", "reject"):
            error = await at.refused(token)
            assert isinstance(error, QuestionGoneError)
            assert error.is_own
            assert error.outcome == AnswerRecord("Phone", 1000.0, "allow", at.device.id)
        assert [call.tool_call_id for call in (await at.engine.get(at.task_id)).pending] == ["two"]


async def test_an_answer_that_was_stored_before_a_crash_is_not_stored_twice(tmp_path: Path) -> None:
    async with asked(tmp_path, "one", "two") as at:
        await at.answers.answer("allow")
        at.told.change(
            lambda table: (table.with_question(replace(next(iter(table.questions.values())), outcome=None), 0.0), None)
        )
        again: PushedAnswer = await at.answers.answer("allow")
        assert again.outcome.by == "Phone"
        assert len(await at.accepted()) == 1
        at.told.change(
            lambda table: (table.with_question(replace(next(iter(table.questions.values())), outcome=None), 0.0), None)
        )
        error = await at.refused("reject")
        assert isinstance(error, QuestionGoneError)
        assert error.outcome is not None
        assert error.outcome.by == "Phone"


async def test_two_presses_at_once_are_one_answer(tmp_path: Path) -> None:
    async with asked(tmp_path, "one", "two") as at:
        answers = at.answers
        done = await asyncio.gather(*(answers.answer("allow") for _ in range(4)), return_exceptions=True)
        assert any(isinstance(each, PushedAnswer) for each in done)
        assert all(isinstance(each, PushedAnswer | QuestionGoneError) for each in done)
        assert len(await at.accepted()) == 1
        assert answers.answering == {}


async def test_who_answered_first_elsewhere_is_told(tmp_path: Path) -> None:
    async with asked(tmp_path, "one", "two") as at:
        await at.engine.answer(at.task_id, once("one"), answered_by="Laptop")
        error = await at.refused()
        assert isinstance(error, QuestionGoneError)
        assert error.outcome is not None
        assert (error.outcome.by, error.is_own) == ("Laptop", False)
        assert at.told.read().questions[f"{at.task_id}/one"].outcome == error.outcome


async def test_a_task_that_went_on_without_an_answer_takes_none(tmp_path: Path) -> None:
    async with asked(tmp_path) as at:
        await at.engine.cancel(at.task_id)
        error = await at.refused()
        assert isinstance(error, QuestionGoneError)
        assert error.outcome is not None
        assert error.outcome.by == ""


async def test_a_token_for_another_command_or_other_options_answers_nothing(tmp_path: Path) -> None:
    async with asked(tmp_path) as at:
        await at.tell(shown="0" * 64)
        error = await at.refused()
        assert isinstance(error, QuestionGoneError)
        assert error.outcome is None
        assert (await at.engine.get(at.task_id)).state is TaskState.INPUT_REQUIRED
        await at.tell()
        await at.answers.answer("allow")


async def test_unknown_and_expired_tokens_answer_nothing(tmp_path: Path) -> None:
    async with asked(tmp_path) as at:
        for token in ("", "allo", token_digest("allow"), "allow ", "\ud800"):
            assert "answers nothing" in str(await at.refused(token))
        at.time = 2000.0
        assert "too old" in str(await at.refused())
        at.time = 1999.9
        await at.answers.answer("allow")


async def test_a_device_that_was_removed_expired_or_wants_no_answers_answers_nothing(tmp_path: Path) -> None:
    async with asked(tmp_path) as at:
        at.push(replace(PUSH, answers=False))
        assert "are off" in str(await at.refused())
        at.push(None)
        assert "are off" in str(await at.refused())
        at.push(PUSH)
        later = replace(at.device, expires=1000.0, push=PUSH)
        at.users.change(lambda table: (replace(table, entries={later.id: later}), None))
        assert "was removed" in str(await at.refused())
        other = replace(at.device, name="alice", push=PUSH)
        at.users.change(lambda table: (replace(table, entries={other.id: other}), None))
        assert "was removed" in str(await at.refused())
        at.users.change(lambda table: table.revoked(other.id))
        assert "was removed" in str(await at.refused())


async def test_a_question_of_another_user_is_not_reached(tmp_path: Path) -> None:
    async with asked(tmp_path) as at:
        alice = replace(at.device, name="alice", push=PUSH)
        at.users.change(lambda table: (replace(table, entries={alice.id: alice}), None))
        await at.tell(user="alice")  # as a damaged file might say
        error = await at.refused()
        assert isinstance(error, QuestionGoneError)
        assert (await at.engine.get(at.task_id)).state is TaskState.INPUT_REQUIRED
