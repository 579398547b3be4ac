from isthmus.mcp_host.diagnosis.server_log import MAXIMUM_LINES, ServerLog


def test_of_very_many_lines_at_once_the_last_ones_are_kept_and_the_others_counted() -> None:
    lines: list[str] = []
    log = ServerLog(lines.append)
    log.feed(b"".join(b"line %d\n" % number for number in range(10_000)))
    assert len(lines) == MAXIMUM_LINES + 1
    assert lines[0] == "[9500 lines are left out]"
    assert log.tail(1) == "line 9999"
