"""Notifications about questions: who is told of what, once, also after a restart, and how a question ended."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.a2a.server.users.users import TokenEntry
from isthmus.client import AgentClient
from isthmus.development_tool import ToolCall
from isthmus.engine.followers.open_questions import OpenQuestions
from isthmus.web.push.answering import PushedAnswers
from isthmus.web.push.notices import QuestionNotices
from isthmus.web.push.sent_file import FILE, SentFile
from isthmus.web.push.sent_questions import AnswerRecord, token_digest
from support.push_service import KnownTasks, PushService, add_device, command_call, notifications_in
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


def no_agent(user: str) -> AgentClient:
    raise AssertionError(user)


@dataclass
class Server:
    """A server's notifications, which can begin again with the same folder."""

    folder: Path
    service: PushService
    tasks: KnownTasks

    def notices(self) -> QuestionNotices:
        notifications = notifications_in(self.folder)
        answers = PushedAnswers(SentFile(self.folder), notifications.users, self.tasks, no_agent)
        return QuestionNotices(notifications, answers, self.tasks, "Gemini CLI", "/home/me", 0.01)

    @asynccontextmanager
    async def running(self, questions: OpenQuestions | None = None) -> AsyncGenerator[OpenQuestions]:
        questions, notices = questions or OpenQuestions(), self.notices()
        task = asyncio.create_task(notices.run(questions))
        try:
            yield questions
            await eventually_async(lambda: not notices.notifications.open_messages, 10)
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            await notices.notifications.sender.aclose()

    async def device(self, user: str = "", *, answers: bool = False, label: str = "Phone") -> TokenEntry:
        notifications = notifications_in(self.folder)
        entry = add_device(notifications, user, label=label)
        await notifications.subscribe(entry.id, self.service.subscription("en", answers=answers))
        return entry

    async def messages(self, count: int) -> list[dict[str, Any]]:
        await eventually_async(lambda: len(self.service.server.requests) >= count, 10)
        return self.service.messages()


@pytest.fixture
def server(tmp_path: Path) -> Generator[Server]:
    service = PushService()
    with service.server:
        yield Server(tmp_path, service, KnownTasks({"task": "Feet beside metres"}))


def ask(questions: OpenQuestions, *calls: ToolCall | str, task: str = "task", user: str = "") -> None:
    asked = [command_call(call) if isinstance(call, str) else call for call in calls]
    questions.waiting(task, "context", "/home/me/harbour", asked, user=user)


async def told(server: Server, condition: Callable[[], bool]) -> None:
    await eventually_async(condition, 10)


async def test_a_question_is_told_with_what_it_is_about_and_not_answerable_unless_wanted(server: Server) -> None:
    await server.device()
    async with server.running() as questions:
        ask(questions, "call-1")
        [message] = await server.messages(1)
    assert message.pop("asked") > 0
    assert message == {
        "kind": "question",
        "key": "task/call-1",
        "agent": "Gemini CLI",
        "session": "Feet beside metres",
        "waiting": 1,
        "about": {"kind": "command", "text": "npm test", "folder": "~/harbour"},
        "answers": {},
        "language": "en",
    }
    assert "npm" not in (server.folder / FILE).read_text("utf-8")


async def test_a_device_that_wants_to_answer_gets_tokens_that_are_kept_as_digests(server: Server) -> None:
    entry = await server.device(answers=True)
    async with server.running() as questions:
        ask(questions, "call-1")
        [message] = await server.messages(1)
        await told(server, lambda: bool(SentFile(server.folder).read().questions["task/call-1"].told))
    tokens = message["answers"]
    assert list(tokens) == ["reject", "allow"]
    [kept] = SentFile(server.folder).read().questions.values()
    assert (kept.told, {token.act: token.digest for token in kept.tokens}) == (
        (entry.id,),
        {act: token_digest(token) for act, token in tokens.items()},
    )
    text = (server.folder / FILE).read_text("utf-8")
    assert not any(token in text for token in tokens.values())
    assert (server.folder / FILE).stat().st_mode & 0o777 == 0o600


async def test_each_question_of_a_task_is_told_once_and_its_end_by_who_was_first(server: Server) -> None:
    await server.device()
    async with server.running() as questions:
        ask(questions, "one", "two")
        await server.messages(2)
        ask(questions, "one", "two")
        questions.closed("task", "one", "Laptop")
        messages = await server.messages(3)
    assert [(each["kind"], each["key"]) for each in messages] == [
        ("question", "task/one"),
        ("question", "task/two"),
        ("ended", "task/one"),
    ]
    assert (messages[2]["by"], messages[2]["waiting"], messages[2]["about"]["text"]) == ("Laptop", 1, "npm test")
    topics = [request.headers["topic"] for request in server.service.server.requests]
    assert topics[0] == topics[2] != topics[1]
    assert all(len(topic) == 32 for topic in topics)


async def test_questions_of_one_form_are_one_notification(server: Server) -> None:
    await server.device()
    form = [replace(command_call(f"call?{number}"), tool_name="ask_user") for number in (1, 2, 3, 4, 5)]
    async with server.running() as questions:
        ask(questions, *form)
        await server.messages(1)
        ask(questions, *form[1:])
        questions.closed("task")
        messages = await server.messages(2)
    assert [(each["kind"], each["key"]) for each in messages] == [("question", "task/call?1"), ("ended", "task/call?1")]


async def test_more_than_three_questions_are_one_summary_without_answers(server: Server) -> None:
    await server.device(answers=True)
    async with server.running() as questions:
        ask(questions, "1", "2", "3", "4", "5")
        [message] = await server.messages(1)
        assert message == {"kind": "many", "waiting": 5, "agent": "Gemini CLI", "language": "en"}
        await told(server, lambda: all(each.told for each in SentFile(server.folder).read().questions.values()))
        questions.closed("task", "1", "Laptop")
        messages = await server.messages(2)
    assert (messages[1]["kind"], messages[1]["waiting"]) == ("ended", 4)
    assert not any(each.tokens for each in SentFile(server.folder).read().questions.values())


async def test_after_a_restart_only_questions_that_were_not_told_are_told(server: Server) -> None:
    await server.device()
    async with server.running() as questions:
        ask(questions, "known")
        await server.messages(1)
        await told(server, lambda: bool(SentFile(server.folder).read().questions["task/known"].told))
    again = OpenQuestions()
    ask(again, "known")
    ask(again, "missed", task="other")
    async with server.running(again):
        messages = await server.messages(2)
        assert messages[1]["key"] == "other/missed"
        await told(server, lambda: bool(SentFile(server.folder).read().questions["other/missed"].told))
    async with server.running(again):
        pass
    assert len(server.service.messages()) == 2


async def test_a_device_that_was_not_told_before_a_crash_is_told_after_it(server: Server) -> None:
    await server.device(answers=True)
    async with server.running() as questions:
        ask(questions, "known")
        [first] = await server.messages(1)
        await told(server, lambda: bool(SentFile(server.folder).read().questions["task/known"].told))
    book = SentFile(server.folder)
    book.change(lambda table: (table.with_question(replace(table.questions["task/known"], told=()), 0.0), None))
    async with server.running(questions):
        messages = await server.messages(2)
    assert messages[1]["key"] == first["key"]
    assert book.read().find(first["answers"]["allow"]) is None  # its notification was replaced
    assert book.read().find(messages[1]["answers"]["allow"]) is not None


async def test_a_question_that_asks_for_something_else_is_told_again(server: Server) -> None:
    await server.device(answers=True)
    async with server.running() as questions:
        ask(questions, command_call("1", "npm test"))
        [first] = await server.messages(1)
        ask(questions, command_call("1", "npm publish"))
        messages = await server.messages(2)
        await told(server, lambda: len(server.service.messages()) >= 2)
    assert messages[-1]["about"]["text"] == "npm publish"
    assert SentFile(server.folder).read().find(first["answers"]["allow"]) is None


async def test_what_ended_while_no_server_ran_is_told_at_the_start(server: Server) -> None:
    await server.device()
    async with server.running() as questions:
        ask(questions, "open")
        ask(questions, "answered", task="other")
        await server.messages(2)
        await told(server, lambda: all(each.told for each in SentFile(server.folder).read().questions.values()))
    server.tasks.waiting.add("task/open")  # in another process
    server.tasks.outcomes["other/answered"] = AnswerRecord("Terminal", 1000.0)
    async with server.running():
        messages = await server.messages(3)
        await told(server, lambda: SentFile(server.folder).read().questions["other/answered"].outcome is not None)
    assert [(each["key"], each.get("by"), each.get("at")) for each in messages[2:]] == [
        ("other/answered", "Terminal", 1000.0)
    ]


async def test_questions_of_others_are_not_told(server: Server) -> None:
    await server.device("alice")
    async with server.running() as questions:
        ask(questions, "of-bob", task="1", user="bob")
        ask(questions, "of-owner", task="2")
        ask(questions, "of-alice", task="3", user="alice")
        messages = await server.messages(1)
    assert [each["key"] for each in messages] == ["3/of-alice"]


async def test_a_damaged_file_is_begun_again(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    await server.device()
    (server.folder / FILE).write_text('{"version": 7}', "utf-8")
    async with server.running() as questions:
        ask(questions, "1")
        await server.messages(1)
    assert "expected version 1" in caplog.text
