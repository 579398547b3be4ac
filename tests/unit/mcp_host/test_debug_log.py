import logging

import pytest

from isthmus.mcp_host.config.server_config import HttpEndpoint, HttpKind, Origin, ServerConfig
from isthmus.mcp_host.diagnosis.debug_log import DebugLog, is_info
from isthmus.mcp_host.diagnosis.server_log import ServerLog


@pytest.mark.requirement("MCP-136")
@pytest.mark.parametrize(
    "line",
    [
        "INFO: started",
        "[INFO] started",
        "2026-01-01 12:00:00,000 - server - INFO - started",
        "[2026-01-01T12:00:00Z] INFO (42): started",
        "[info] started",
        "info: started",
        '{"level":"info","msg":"an ERROR is not one"}',
        "time=12:00 level=info msg=started",
    ],
)
def test_a_line_that_says_that_its_level_is_info_is_one(line: str) -> None:
    assert is_info(line)


@pytest.mark.parametrize(
    "line",
    [
        "Secure MCP Filesystem Server running on stdio",
        "ERROR: no INFO for this",
        "[WARN] see info: below",
        "Traceback (most recent call last):",
        "more information follows",
        "open http://x/info: it is there",
        '{"level":"error","msg":"x","info":1}',
        "x" * 200 + " INFO",
        "",
    ],
)
def test_other_lines_are_not_information(line: str) -> None:
    assert not is_info(line)


@pytest.mark.requirement("MCP-135", "MCP-136")
def test_error_output_is_logged_with_the_servers_name_and_without_its_secrets(caplog: pytest.LogCaptureFixture) -> None:
    endpoint = HttpEndpoint("http://x/", HttpKind.SSE, {"Authorization": "Bearer abc-123"})
    log = ServerLog(DebugLog(ServerConfig("notes", Origin.USER, endpoint)).wrote)
    with caplog.at_level(logging.DEBUG, "isthmus.mcp.debug"):
        log.feed(b"INFO: up\nrefused: abc-")
        log.feed(b"123\n\n")
    assert [record.getMessage() for record in caplog.records] == ["MCP STDERR (notes): refused: ***"]
    assert log.tail() == "INFO: up\nrefused: abc-123"
    with caplog.at_level(logging.INFO, "isthmus.mcp.debug"):
        log.feed(b"more\n")
    assert len(caplog.records) == 1


@pytest.mark.requirement("MCP-135")
def test_steps_are_logged_with_their_times(caplog: pytest.LogCaptureFixture) -> None:
    debug = DebugLog(ServerConfig("notes", Origin.USER, HttpEndpoint("http://x/", HttpKind.SSE, {})))
    with caplog.at_level(logging.DEBUG, "isthmus.mcp.debug"):
        debug.begins("connecting")
        debug.done("initialize")
        debug.failed("tools/list", "it answered 500")
    began, done, failed = (record.getMessage() for record in caplog.records)
    assert began == "MCP server notes: connecting"
    assert done.startswith("MCP server notes: initialize took ")
    assert failed.startswith("MCP server notes: tools/list failed after ")
    assert failed.endswith(" s: it answered 500")
