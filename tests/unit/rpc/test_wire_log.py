import logging

import pytest

from isthmus.rpc.wire_log import MAXIMUM_CHARACTERS, WireLog, WireMessage, read_line


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
