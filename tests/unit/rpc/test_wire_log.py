import asyncio
import logging

import pytest

from isthmus.rpc.wire_log import (
    MAXIMUM_CHARACTERS,
    RecordedMessage,
    WireLog,
    WireMessage,
    WireRecord,
    read_line,
)


def test_each_message_is_a_line_that_can_be_read_again(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "isthmus.wire")
    wire = WireLog("IDE")
    wire.sent("POST /mcp", b'{"method": "ping"}')
    wire.received("202 Accepted")
    wire.sent("POST /message:stream", "{}")
    wire.received("event 7", '{"text": "a: b\nc"}')
    assert caplog.messages[:2] == ['IDE -> POST /mcp: {"method": "ping"}', "IDE <- 202 Accepted"]
    assert [read_line(message) for message in caplog.messages] == [
        WireMessage("IDE", "->", "POST /mcp", '{"method": "ping"}'),
        WireMessage("IDE", "<-", "202 Accepted", ""),
        WireMessage("IDE", "->", "POST /message:stream", "{}"),
        WireMessage("IDE", "<-", "event 7", '{"text": "a: b\nc"}'),
    ]


def test_a_long_body_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "isthmus.wire")
    WireLog("IDE").sent("POST /mcp", "x" * (MAXIMUM_CHARACTERS + 1))
    assert caplog.messages[0].endswith("xxx... (20001 characters)")


@pytest.mark.parametrize(
    "body",
    [
        '{"pushNotificationConfig": {"url": "https://a.example", "token": "s3cr3t\\"s3cr3t"}}',
        '{"authentication": {"scheme": "Bearer", "credentials": "s3cr3t"}}',
        '{"mcp_servers": [{"name": "x", "env": {"KEY": "s3cr3t"}, "headers":{"Authorization": "Bearer s3cr3t"}}]}',
        '{"token": "s3cr3t',
        '{"env": {"KEY": "s3cr3t',
        '{"headers": {"A": "b}c", "B": "s3cr3t"}}',
        '{"env": {"A": {"B": "c"}, "D": "s3cr3t"}}',
        '{"authToken": "s3cr3t", "x-api-key": "s3cr3t"}',
    ],
)
def test_values_of_members_that_hold_secrets_are_hidden(caplog: pytest.LogCaptureFixture, body: str) -> None:
    caplog.set_level(logging.DEBUG, "isthmus.wire")
    WireLog("server").sent("POST /", body)
    assert "s3cr3t" not in caplog.messages[0]
    assert "[hidden]" in caplog.messages[0]


def test_nothing_is_written_above_the_level_debug(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "isthmus.wire")
    WireLog("IDE").sent("POST /mcp", "{}")
    assert not caplog.messages


@pytest.mark.parametrize("line", ["", "Sandbox: none", "IDE connected", "IDE -> "])
def test_other_lines_are_not_messages(line: str) -> None:
    assert read_line(line) is None


def _bodies(record: WireRecord, number: int = 0) -> list[str]:
    return [message.body for message in record.after(number)]


def test_a_record_keeps_the_newest_messages_within_its_limits() -> None:
    record = WireRecord(maximum_messages=3, maximum_bytes=10, clock=lambda: 7.5)
    for body in (b"one", b"two", b"three", b"four"):
        record.sent("an agent", body)
    assert _bodies(record) == ["three", "four"]
    record.received("an agent", b"x")
    record.received("an agent", b"y")
    assert record.after(5) == [RecordedMessage(6, 7.5, "an agent", "<-", "y")]
    assert _bodies(record, record.last) == []
    assert _bodies(record, 1000) == ["four", "x", "y"], "the number of a companion that ran before"
    record.sent("an agent", b"longer than all that is kept")
    assert len(_bodies(record)) == 1


def test_a_record_hides_secrets_and_cuts_long_bodies() -> None:
    record = WireRecord()
    record.sent("an agent", b'{"authToken": "s3cr3t", "a": "\xff"}')
    record.sent("an agent", b"x" * (MAXIMUM_CHARACTERS + 1))
    hidden, long = _bodies(record)
    assert hidden == '{"authToken": "[hidden]", "a": "\ufffd"}'
    assert long.endswith("xxx... (20001 in all)")


@pytest.mark.anyio
async def test_who_waits_for_a_message_gets_it_or_the_deadline() -> None:
    record = WireRecord()
    await record.wait(0, 0.01)
    assert record.last == 0
    waiting = asyncio.create_task(record.wait(0, 30))
    await asyncio.sleep(0)
    record.sent("an agent", b"one")
    await asyncio.wait_for(waiting, 10)
    await record.wait(0, 30)
