"""Notifications to one Claude CLI, their times, and the ends of its openDiff calls."""

import asyncio
import json
from typing import Any

import pytest

from isthmus.ide.claude.session import KEPT_DECISIONS, KEPT_MENTIONS, ClaudeSession
from isthmus.ide.context_tracker import UserFocus
from isthmus.ide.editor import FileMentioned, OpenFile, Position, Range, Selection
from isthmus.ide.mcp.mcp_peer import ToolDefinition
from isthmus.ide.reviews.review import DiffReview
from isthmus.rpc.messages import Notification

_INITIALIZED = Notification("notifications/initialized", {})


def _session(*, settled: bool = True) -> ClaudeSession:
    session = ClaudeSession("1", ())
    session.notified(_INITIALIZED)
    if settled:
        session.settle()
    session.take()
    return session


def _taken(session: ClaudeSession) -> list[dict[str, Any]]:
    return [json.loads(data) for data in session.take()]


def _context(path: str = "/w/a b.py", text: str = "", line: int = 0) -> UserFocus:
    at = Range(Position(line, 0), Position(line, len(text)))
    selection = Selection(at, text) if text else None
    return UserFocus((OpenFile(path, 1.0, True, Position(line, 0), selection),))


def test_nothing_is_sent_before_the_client_is_initialized_and_then_the_newest() -> None:
    session = ClaudeSession("1", ())
    session.context_changed(_context(text="one"))
    session.context_changed(_context(text="two"))
    session.mentioned(FileMentioned("/w/a.py"))
    assert session.take() == []
    session.notified(_INITIALIZED)
    assert session.wake.is_set()
    (message,) = _taken(session)
    assert message["params"]["text"] == "two"
    assert not session.wake.is_set()


def test_mentions_wait_until_the_client_listens_and_the_selection_is_said_once_more() -> None:
    session = _session(settled=False)
    session.context_changed(_context(text="one"))
    session.mentioned(FileMentioned("/w/a.py", 0, 1))
    (first,) = _taken(session)
    session.settle()
    assert _taken(session) == [
        first,
        {
            "jsonrpc": "2.0",
            "method": "at_mentioned",
            "params": {"filePath": "/w/a.py", "lineStart": 0, "lineEnd": 1},
        },
    ]
    assert _taken(session) == []


def test_a_selection_is_0_based_with_a_percent_encoded_url() -> None:
    session = _session()
    session.context_changed(_context("/w/ä b.py", "one", line=2))
    assert _taken(session) == [
        {
            "jsonrpc": "2.0",
            "method": "selection_changed",
            "params": {
                "text": "one",
                "filePath": "/w/ä b.py",
                "fileUrl": "file:///w/%C3%A4%20b.py",
                "selection": {
                    "start": {"line": 2, "character": 0},
                    "end": {"line": 2, "character": 3},
                    "isEmpty": False,
                },
            },
        }
    ]


def test_a_selection_that_ends_is_an_empty_text_at_the_cursor() -> None:
    session = _session()
    session.context_changed(_context(text="one", line=4))
    session.take()
    session.context_changed(_context(line=4))
    (message,) = _taken(session)
    place = {"line": 4, "character": 0}
    assert message["params"]["text"] == ""
    assert message["params"]["selection"] == {"start": place, "end": place, "isEmpty": True}


def test_closing_the_selected_file_withdraws_the_selection_and_another_says_nothing() -> None:
    session = _session()
    session.context_changed(_context(text="one"))
    session.take()
    session.context_changed(UserFocus())
    (message,) = _taken(session)
    assert (message["params"]["text"], message["params"]["selection"]["isEmpty"]) == ("", True)
    session.context_changed(UserFocus())
    assert session.take() == []
    session = _session()
    session.context_changed(UserFocus())
    assert session.take() == []


def test_what_changes_nothing_for_this_client_is_not_sent() -> None:
    session = _session()
    session.context_changed(_context(text="one"))
    assert len(session.take()) == 1
    another = OpenFile("/w/other.py", 0.5)
    session.context_changed(UserFocus((*_context(text="one").files, another)))
    assert session.take() == []


def test_a_long_selection_is_cut_and_says_so() -> None:
    session = _session()
    session.context_changed(_context(text="x" * 20_000))
    (message,) = _taken(session)
    assert len(message["params"]["text"]) == 16_384
    assert message["params"]["text"].endswith("[TRUNCATED]")


@pytest.mark.parametrize(
    ("mention", "lines"),
    [
        (FileMentioned("/w/a.py"), {}),
        (FileMentioned("/w/a.py", 3), {"lineStart": 3, "lineEnd": 3}),
        (FileMentioned("/w/a.py", 0, 9), {"lineStart": 0, "lineEnd": 9}),
    ],
)
def test_a_mention_has_lines_only_if_there_are_some(mention: FileMentioned, lines: dict[str, int]) -> None:
    session = _session()
    session.mentioned(mention)
    (message,) = _taken(session)
    assert message["params"] == {"filePath": "/w/a.py", **lines}


def test_of_a_client_that_does_not_read_the_newest_mentions_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    session = _session()
    for line in range(KEPT_MENTIONS + 5):
        session.mentioned(FileMentioned("/w/a.py", line))
    assert [record.getMessage() for record in caplog.records] == [
        "the mention of /w/a.py is lost: its agent does not read its messages"
    ] * 5
    messages = _taken(session)
    assert [message["params"]["lineStart"] for message in messages] == list(range(5, KEPT_MENTIONS + 5))


def test_changed_tools_are_told() -> None:
    session = _session()
    session.offer((ToolDefinition("mine", "Does it.", {"type": "object"}),))
    assert [message["method"] for message in _taken(session)] == ["notifications/tools/list_changed"]


@pytest.mark.parametrize(("pid", "known"), [(7, 7), ("7", None), (True, None), (-1, None), (None, None)])
def test_the_process_id_that_the_client_tells_is_kept_if_it_is_one(pid: Any, known: int | None) -> None:
    session = _session()
    session.notified(Notification("ide_connected", {"pid": pid}))
    session.notified(Notification("something/else", {}))
    assert session.pid == known


def test_the_title_is_the_products() -> None:
    session = ClaudeSession("1", ())
    assert session.title == "agent"
    for name, title in (("claude-code", "Claude Code"), ("isthmus", "Isthmus"), ("other", "other")):
        session = ClaudeSession("1", ())
        message = {"protocolVersion": "2025-11-25", "clientInfo": {"name": name}}
        session.peer.receive(json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": message}))
        assert session.title == title


def _review(number: int = 1) -> DiffReview:
    return DiffReview(str(number), "/w/a.py", "new")


@pytest.mark.anyio
@pytest.mark.parametrize("is_early", [False, True], ids=["decided while it waits", "decided before it waits"])
async def test_a_decision_ends_the_wait(is_early: bool) -> None:
    session = _session()
    review = _review()
    if is_early:
        assert session.decided(review.accept("mine")) is None
    waiting = asyncio.create_task(session.wait_for_decision(review))
    if not is_early:
        await asyncio.sleep(0)
        session.decided(review.accept("mine"))
        session.decided(review.reject())
    assert await waiting == review.accept("mine")


@pytest.mark.anyio
async def test_a_review_that_is_taken_back_ends_the_wait_and_only_its_own() -> None:
    session = _session()
    first = asyncio.create_task(session.wait_for_decision(_review(1)))
    second = asyncio.create_task(session.wait_for_decision(_review(2)))
    await asyncio.sleep(0)
    session.review_closed(_review(1).close("typed"))
    assert await first == _review(1).close("typed")
    assert not second.done()
    session.reject_waiting()
    assert await second == _review(2).reject()
    assert await session.wait_for_decision(_review(3).reject()) == _review(3).reject()


@pytest.mark.anyio
async def test_decisions_that_nobody_waits_for_do_not_pile_up() -> None:
    session = _session()
    waiting = asyncio.create_task(session.wait_for_decision(_review(-1)))
    await asyncio.sleep(0)
    for number in range(KEPT_DECISIONS * 3):
        session.decided(_review(number).reject())
    newest = _review(KEPT_DECISIONS * 3 - 1)
    assert await session.wait_for_decision(newest) == newest.reject()
    session.decided(_review(-1).reject())
    assert await waiting == _review(-1).reject()


@pytest.mark.anyio
async def test_a_wait_that_is_cancelled_leaves_nothing_behind() -> None:
    session = _session()
    waiting = asyncio.create_task(session.wait_for_decision(_review()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    session.decided(_review().reject())
    assert await session.wait_for_decision(_review()) == _review().reject()
