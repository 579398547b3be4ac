"""Sessions and their event logs."""

import pytest

from isthmus.ide.context_tracker import UserFocus
from isthmus.ide.gemini import wire
from isthmus.ide.gemini.session import MAXIMUM_SESSIONS, EventLog, GeminiSession, SessionTable
from isthmus.ide.mcp.mcp_peer import ClientInfo

_CLIENT = ClientInfo("client", "1", "2025-06-18")


def test_kept_events_stay_and_replaced_ones_do_not() -> None:
    log = EventLog("e")
    log.replace(b"context 1")
    log.append(b"accepted")
    log.replace(b"context 2")
    assert log.after(0) == [(2, b"accepted"), (3, b"context 2")]
    assert log.after(2) == [(3, b"context 2")]
    assert log.after(3) == []
    log.append(b"rejected")
    assert log.after(0) == [(2, b"accepted"), (3, b"context 2"), (4, b"rejected")]


def test_a_stream_starts_after_the_event_the_client_names_or_the_last_one_sent() -> None:
    log = EventLog("e")
    for text in (b"1", b"2", b"3"):
        log.append(text)
    assert log.position(log.event_id(2)) == 2
    log.sent = 3
    assert log.position(None) == 3
    for other in ("former-2", "", "2", "e-", "e-x", "e-²", "e-" + "9" * 30, "e--1"):
        assert log.position(other) == 0, other


def test_what_was_sent_is_forgotten_when_it_is_large_and_what_was_not_sent_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    log = EventLog("e", kept_bytes=10, unsent_bytes=100)
    for _ in range(5):
        log.append(b"x" * 8)
    assert [number for number, _ in log.after(0)] == [1, 2, 3, 4, 5]
    log.sent = 5
    log.append(b"y" * 8)
    assert [number for number, _ in log.after(0)] == [6]
    assert not caplog.records
    log.append(b"w" * 99, "/a.py")
    log.append(b"z" * 200)
    assert [number for number, _ in log.after(0)] == [8]
    assert [record.getMessage() for record in caplog.records] == [
        "the decision about  is lost: its agent does not read its events",
        "the decision about /a.py is lost: its agent does not read its events",
    ]


def test_many_small_events_are_kept_up_to_a_number() -> None:
    log = EventLog("e")
    for _ in range(300):
        log.append(b"x")
    assert [number for number, _ in log.after(0)] == list(range(45, 301))


def test_events_of_a_settled_subject_are_forgotten_and_the_others_stay() -> None:
    log = EventLog("e")
    for subject in ("/a", "/b", "/a"):
        log.append(subject.encode(), subject)
    log.drop("/a")
    log.drop("/c")
    log.append(b"new", "/a")
    assert log.after(0) == [(2, b"/b"), (4, b"new")]


def _table(now: list[float], **restorable: ClientInfo) -> SessionTable:
    return SessionTable("e", dict(restorable), lambda: now[0])


def test_a_former_session_comes_back_when_asked_for_and_stays_gone_once_ended() -> None:
    table = _table([0.0], old=_CLIENT)
    assert table.all() == ()
    session = table.get("old")
    assert session is not None
    assert session.peer.client == _CLIENT
    assert table.get("old") is session
    table.remove("old")
    assert table.get("old") is None
    assert table.get("unknown") is None
    assert table.get(None) is None


def test_those_who_never_come_back_are_not_kept_from_life_to_life() -> None:
    former = {f"old {number}": _CLIENT for number in range(MAXIMUM_SESSIONS + 5)}
    table = SessionTable("e", former, lambda: 0.0)
    assert list(table.clients()) == list(former)[5:]


def test_what_is_kept_for_a_next_life_are_the_initialized_and_the_not_yet_restored() -> None:
    table = _table([0.0], old=_CLIENT)
    created = table.create()
    assert created is not None
    assert set(table.clients()) == {"old"}
    created.peer.client = _CLIENT
    assert set(table.clients()) == {"old", created.id}


def test_there_is_room_for_64_sessions_and_the_longest_unused_one_makes_room() -> None:
    now = [0.0]
    table = _table(now)
    sessions: list[GeminiSession] = []
    for number in range(64):
        now[0] = float(number)
        assert table.session_to_end() is None
        session = table.create()
        assert session is not None
        sessions.append(session)
    assert len({session.id for session in sessions}) == 64
    assert table.create() is None
    table.attach_stream(sessions[0])
    assert table.session_to_end() is sessions[1]
    for session in sessions:
        table.attach_stream(session)
    assert table.session_to_end() is None


def test_a_session_without_a_stream_expires_and_one_with_a_stream_does_not() -> None:
    now = [0.0]
    table = _table(now)
    silent, streaming = table.create(), table.create()
    assert silent is not None
    assert streaming is not None
    key = table.attach_stream(streaming)
    now[0] = 601.0
    assert table.expired() == (silent,)
    table.detach_stream(streaming, key)
    assert streaming not in table.expired()
    now[0] = 631.9
    assert table.newly_lost() == (streaming,)
    assert table.newly_lost() == ()
    now[0] = 1202.0
    assert set(table.expired()) == {silent, streaming}


def test_a_client_that_comes_back_in_time_is_not_gone() -> None:
    now = [0.0]
    table = _table(now)
    session = table.create()
    assert session is not None
    first = table.attach_stream(session)
    second = table.attach_stream(session)
    table.detach_stream(session, first)
    now[0] = 100.0
    assert table.newly_lost() == ()
    table.detach_stream(session, second)
    table.attach_stream(session)
    now[0] = 200.0
    assert table.newly_lost() == ()


def test_only_the_newest_context_waits_for_a_slow_client() -> None:
    session = _table([0.0]).create()
    assert session is not None
    for trusted in (True, False):
        session.context_changed(UserFocus((), trusted))
    ((number, data),) = session.log.after(0)
    assert number == 2
    assert b'"isTrusted":false' in data


@pytest.mark.parametrize(
    ("client", "title"),
    [
        (ClientInfo("streamable-http-client", "0.61.0", "2025-06-18"), "Gemini CLI"),
        (ClientInfo("streamable-http-client", "1.0.0", "2025-06-18"), "Gemini CLI"),
        (ClientInfo("streamable-http-client", "1.0.0", "2025-11-25"), "Qwen Code"),
        (ClientInfo("isthmus", "0.1.0", "2025-11-25"), "Isthmus"),
        (ClientInfo("my-agent", "1.0.0", "2025-11-25"), "my-agent"),
        (ClientInfo("", "", "2025-11-25"), "agent"),
        (None, "agent"),
    ],
)
def test_a_client_is_called_what_its_user_calls_it(client: ClientInfo | None, title: str) -> None:
    assert wire.client_title(client) == title
