"""Permission questions at the companion: only an answer of the user is passed on, while the terminal still asks."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from isthmus.editors.headless import HeadlessEditor
from isthmus.encoding.codec import JsonObject
from isthmus.errors import DecodeError, IsthmusError
from isthmus.ide.companion import Companion
from isthmus.ide.control.commands import ControlCommandError
from isthmus.ide.control.page_commands import PAGE_COMMANDS
from isthmus.ide.control.permissions import PermissionQuestions
from isthmus.ide.control.question_commands import QUESTION_COMMANDS
from isthmus.ide.control.questions import MAXIMUM_QUESTIONS, ClientQuestion
from isthmus.ide.editor import Consent
from isthmus.ide.options import CompanionLimits, PermissionLimits
from isthmus.ide.permissions import PermissionAnswer, PermissionAsked, PermissionHook
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

LIMITS = CompanionLimits(permissions=PermissionLimits(look_seconds=0.01, terminal_seconds=0.05, first_seconds=0.2))


@dataclass
class Terminal:
    """The terminal of an agent; `asks` is the name of its question."""

    asks: str | None = "1"
    is_watched: bool = True
    may_be_first: bool = False
    looks: list[str | None] = field(default_factory=list[str | None])

    def look(self) -> str | None:
        self.looks.append(self.asks)
        return self.asks

    def hook(self) -> PermissionHook:
        def read(message: JsonObject) -> PermissionAsked | None:
            if "title" not in message:
                raise DecodeError("message", "a title", message)
            if message["title"] is None:
                return None
            return PermissionAsked("An agent", str(message["title"]), "the whole text", None, self.may_be_first)

        def watch(message: JsonObject, ancestors: Sequence[int]) -> "Terminal | None":
            return self if self.is_watched else None

        def write(answer: PermissionAnswer) -> JsonObject:
            return {"allowed": answer.is_allowed, "by": answer.by, "reason": answer.reason}

        return PermissionHook(read, watch, write)


@dataclass
class Asking:
    """A companion with one hook."""

    companion: Companion
    permissions: PermissionQuestions

    def ask(self, **message: object) -> "asyncio.Task[JsonObject]":
        given: dict[str, object] = {"title": "May I?", **message}
        return asyncio.create_task(self.permissions.ask({"protocol": "an", "message": given}, None))

    async def question(self) -> ClientQuestion:
        (question,) = await self.companion.asking.wait(30)
        return question

    async def none_waits(self) -> None:
        await eventually_async(lambda: not self.companion.asking.open_questions, what="no question waits")


@pytest.fixture
def terminal() -> Terminal:
    return Terminal()


@pytest.fixture
async def asking(terminal: Terminal, workspace: Path) -> AsyncGenerator[Asking]:
    companion = Companion(HeadlessEditor((str(workspace),)), limits=LIMITS)
    yield Asking(companion, PermissionQuestions(companion, {"an": terminal.hook()}))
    companion.asking.stop()


async def _result(asked: "asyncio.Task[JsonObject]") -> Any:
    return (await asyncio.wait_for(asked, 30))["output"]


@pytest.mark.parametrize("consent", [Consent.YES, Consent.NO])
async def test_the_users_answer_is_passed_on_with_the_place_and_the_words(asking: Asking, consent: Consent) -> None:
    asked = asking.ask()
    question = await asking.question()
    assert (question.client, question.title, question.text) == ("An agent", "May I?", "the whole text")
    asking.companion.asking.answer(question.id, consent, by="a phone", reason="because")
    assert await _result(asked) == {"allowed": consent is Consent.YES, "by": "a phone", "reason": "because"}


@pytest.mark.parametrize("now", ["2", "", None], ids=["asks-something-else", "asks-nothing", "has-ended"])
async def test_an_answer_in_the_terminal_takes_the_question_back(
    asking: Asking, terminal: Terminal, now: str | None
) -> None:
    asked = asking.ask()
    question = await asking.question()
    terminal.asks = now
    assert await _result(asked) is None
    assert asking.companion.asking.answer(question.id, Consent.YES) is None
    outcome = asking.companion.asking.outcomes.get(question.id)
    assert outcome is not None
    assert (outcome.decision, outcome.by) == ("closed", "An agent")


@pytest.mark.parametrize("now", ["2", "", None], ids=["asks-something-else", "asks-nothing", "has-ended"])
async def test_an_answer_that_comes_just_after_the_terminals_does_not_count(
    asking: Asking, terminal: Terminal, now: str | None
) -> None:
    asked = asking.ask()
    question = await asking.question()
    terminal.asks = now  # the next look is that of the answer: nothing else runs before it
    assert asking.companion.asking.answer(question.id, Consent.YES, by="a phone") is None
    assert await _result(asked) is None
    outcome = asking.companion.asking.outcomes.get(question.id)
    assert outcome is not None
    assert outcome.decision == "closed"


async def test_the_end_of_the_hook_takes_the_question_back(asking: Asking) -> None:
    asked = asking.ask()
    await asking.question()
    asked.cancel()
    await asking.none_waits()


async def test_the_end_of_the_companion_is_no_answer(asking: Asking) -> None:
    asked = asking.ask()
    await asking.question()
    asking.companion.asking.stop()
    assert await _result(asked) is None
    assert await _result(asking.ask()) is None


async def test_what_the_terminal_does_not_ask_is_not_asked_elsewhere(asking: Asking, terminal: Terminal) -> None:
    terminal.asks = ""
    assert await _result(asking.ask()) is None
    terminal.asks = None
    assert await _result(asking.ask()) is None
    terminal.asks, terminal.is_watched = "1", False
    assert await _result(asking.ask()) is None
    terminal.is_watched = True
    assert await _result(asking.ask(title=None)) is None
    assert asking.companion.asking.outcomes.all == ()


async def test_a_terminal_that_asks_a_moment_later_counts(asking: Asking, terminal: Terminal) -> None:
    terminal.asks = ""
    asked = asking.ask()
    await eventually_async(lambda: terminal.looks, what="a look")
    terminal.asks = "1"
    asking.companion.asking.answer((await asking.question()).id, Consent.YES)
    assert (await _result(asked))["allowed"] is True


async def test_a_hook_that_comes_first_waits_for_a_while(asking: Asking, terminal: Terminal) -> None:
    terminal.asks, terminal.may_be_first = "", True
    asked = asking.ask()
    question = await asking.question()
    assert question.text == "Its terminal: asks if there is no answer within 0.2 seconds\nthe whole text"
    assert await _result(asked) is None
    asked = asking.ask()
    asking.companion.asking.answer((await asking.question()).id, Consent.YES)
    assert (await _result(asked))["allowed"] is True
    asked = asking.ask()
    await asking.question()
    terminal.asks = None  # the CLI has ended
    assert await _result(asked) is None


async def test_several_questions_at_a_time_are_left_to_the_terminal(asking: Asking, terminal: Terminal) -> None:
    first = asking.ask()
    await asking.question()
    assert await _result(asking.ask()) is None
    assert await _result(first) is None
    assert await _result(asking.ask()) is None  # one of them still waits there
    terminal.asks = "2"
    asked = asking.ask()
    asking.companion.asking.answer((await asking.question()).id, Consent.NO)
    assert (await _result(asked))["allowed"] is False


async def test_a_message_that_cannot_be_read_and_too_many_questions_are_errors(
    asking: Asking, terminal: Terminal
) -> None:
    with pytest.raises(ControlCommandError, match="that has permission questions: an"):
        await asking.permissions.ask({"protocol": "other", "message": {}}, None)
    with pytest.raises(DecodeError):
        await asking.permissions.ask({"protocol": "an", "message": {}}, None)
    others = [asyncio.create_task(asking.companion.asking.ask("x", "y", "z")) for _ in range(MAXIMUM_QUESTIONS)]
    await eventually_async(lambda: len(asking.companion.asking.open_questions) == MAXIMUM_QUESTIONS, what="many")
    with pytest.raises(IsthmusError, match="wait for the user already"):
        await asking.permissions.ask({"protocol": "an", "message": {"title": "May I?"}}, None)
    asking.companion.asking.stop()
    await asyncio.gather(*others)


Command = Callable[[Companion, JsonObject], Any]


async def test_the_commands_of_a_user_refuse_what_an_answer_cannot_have(asking: Asking) -> None:
    asked = asking.ask()
    question = await asking.question()
    answer, companion = QUESTION_COMMANDS["answer"], asking.companion
    with pytest.raises(ControlCommandError, match="one step"):
        await answer(companion, {"id": question.id, "yes": True, "session": True})
    with pytest.raises(ControlCommandError, match="one step"):
        await PAGE_COMMANDS["reply"](companion, {"id": question.id, "answer": "session", "by": "a phone"})
    with pytest.raises(ControlCommandError, match="20000 characters"):
        await answer(companion, {"id": question.id, "yes": False, "reason": "x" * 20_001})
    with pytest.raises(ControlCommandError, match=r"(?s)not shown here yet.*the whole text"):
        await answer(companion, {"id": question.id, "yes": True})
    (waiting,) = (await PAGE_COMMANDS["waiting"](companion, {}))["questions"]
    assert waiting["permission"] is True
    told = await PAGE_COMMANDS["reply"](companion, {"id": question.id, "answer": "no", "by": "a phone", "reason": "w"})
    assert told["outcome"]["decision"] == "no"
    assert await _result(asked) == {"allowed": False, "by": "a phone", "reason": "w"}
    with pytest.raises(ControlCommandError, match="; a phone answered no; waiting questions: none"):
        await answer(companion, {"id": question.id, "yes": True})


async def test_words_for_an_agent_that_gets_none_are_refused(asking: Asking) -> None:
    asked = asyncio.create_task(asking.companion.asking.ask("An agent", "Run code?", "print(1)"))
    question = await asking.question()
    with pytest.raises(ControlCommandError, match="gets no reason"):
        await QUESTION_COMMANDS["answer"](asking.companion, {"id": question.id, "yes": False, "reason": "w"})
    asking.companion.asking.stop()
    assert await asked is False
