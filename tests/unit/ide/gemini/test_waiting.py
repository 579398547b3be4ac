"""State that waits for an agent of the companion protocol while its companion is killed and started again."""

import json

import pytest

from isthmus.ide.gemini.session import GeminiSession, SessionTable
from isthmus.ide.gemini.waiting import UnsettledProposals, has_received
from isthmus.ide.mcp.mcp_peer import ClientInfo
from isthmus.ide.reviews.review import DiffReview

CLIENT = ClientInfo("gemini-cli", "1", "2025-06-18")


@pytest.mark.parametrize(
    ("last", "heard"),
    [("e-3", True), ("e-4", True), ("e-2", False), ("f-9", False), ("", False), ("e-x", False), (None, False)],
)
def test_an_event_is_heard_by_whom_names_it_or_a_later_one_of_the_same_life(last: str | None, heard: bool) -> None:
    assert has_received("e-3", last) is heard


def _decided(session: GeminiSession, *paths: str) -> None:
    for path in paths:
        session.decided(DiffReview(f"review of {path}", path, "new").accept(f"text of {path}"))


def _next_life(table: SessionTable, epoch: str) -> SessionTable:
    """Return the table as another process reads it from a file."""
    written = json.dumps({key: found.to_json() for key, found in table.waiting().items()})
    left = {key: UnsettledProposals.from_json(value) for key, value in json.loads(written).items()}
    return SessionTable(epoch, table.clients(), lambda: 0.0, unsettled=left)


def _told(session: GeminiSession) -> list[str]:
    messages = [json.loads(data) for _, data in session.log.after(session.log.sent)]
    return [message["params"]["content"] for message in messages]


def _first_life(*paths: str) -> tuple[SessionTable, GeminiSession]:
    table = SessionTable("first", {}, lambda: 0.0)
    session = table.create()
    assert session is not None
    session.peer.client = CLIENT
    _decided(session, *paths)
    return table, session


def test_a_decision_no_stream_carried_is_told_in_the_next_life_also_after_a_kill() -> None:
    table, session = _first_life("/heard", "/a")
    session.log.sent = 1
    second = _next_life(table, "second")
    third = _next_life(second, "third")  # no agent connected to the second
    again = third.get(session.id)
    assert again is not None
    again.queue_former_decisions(None)
    assert _told(again) == ["text of /a"]
    again.queue_former_decisions(None)
    assert _told(again) == ["text of /a"]
    last = _next_life(third, "last").get(session.id)
    assert last is not None
    last.queue_former_decisions(None)
    assert _told(last) == ["text of /a"]


def test_a_decision_that_the_agent_has_heard_though_nobody_knew_is_not_told_again() -> None:
    table, session = _first_life("/a", "/b")
    again = _next_life(table, "second").get(session.id)
    assert again is not None
    again.queue_former_decisions("first-1")
    assert _told(again) == ["text of /b"]


@pytest.mark.parametrize("has_come_back", [True, False])
def test_a_decision_is_not_told_once_its_agent_asks_anew_for_the_file(has_come_back: bool) -> None:
    table, session = _first_life("/a", "/b")
    again = _next_life(table, "second").get(session.id)
    assert again is not None
    if has_come_back:
        again.queue_former_decisions(None)
    again.discard_decisions("/a")
    again.queue_former_decisions(None)
    assert _told(again) == ["text of /b"]
