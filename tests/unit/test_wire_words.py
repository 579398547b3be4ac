"""Constants for the wire or the exit status, as literals: other tests may compare with the names."""

import pytest

from isthmus.a2a.client.discovery import GEMINI_CARD
from isthmus.a2a.protocol import jsonrpc
from isthmus.a2a.protocol.extension import URI
from isthmus.a2a.server.rest import MEDIA_TYPE
from isthmus.client import MISSED_EVENTS
from isthmus.ide.gemini import wire
from isthmus.ide.mcp import mcp_peer
from isthmus.mcp_host.elicitation.url_elicitation import URL_ELICITATION_REQUIRED
from isthmus.mcp_host.results.result import MAXIMUM_SIZE_KEY
from isthmus.programs.setup.sandbox_choice import SANDBOX_STATUS
from isthmus.questions import ELICITATION, SAMPLING
from isthmus.rpc import lsp, messages
from isthmus.terminal.headless.headless import ExitCode
from isthmus.tools.port.tool_set import SEARCH_TOOL


@pytest.mark.parametrize(
    ("constant", "literal"),
    [
        (URI, "https://github.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v0/spec.md"),
        (GEMINI_CARD, "Gemini SDLC Agent"),
        (MEDIA_TYPE, "application/json"),
        (MISSED_EVENTS, "missed-events"),
        (ELICITATION, "elicitation"),
        (SAMPLING, "sampling"),
        (SEARCH_TOOL, "search_mcp_tools"),
        (MAXIMUM_SIZE_KEY, "anthropic/maxResultSizeChars"),
        (wire.CONTEXT_UPDATE, "ide/contextUpdate"),
        (wire.DIFF_ACCEPTED, "ide/diffAccepted"),
        (wire.DIFF_REJECTED, "ide/diffRejected"),
        (mcp_peer.PROTOCOL_VERSIONS, ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")),
    ],
)
def test_a_word_on_the_wire_stays_as_it_is(constant: object, literal: object) -> None:
    assert constant == literal


@pytest.mark.parametrize(
    ("constant", "code"),
    [
        (messages.PARSE_ERROR, -32700),
        (messages.INVALID_REQUEST, -32600),
        (messages.METHOD_NOT_FOUND, -32601),
        (messages.INVALID_PARAMS, -32602),
        (messages.INTERNAL_ERROR, -32603),
        (jsonrpc.TASK_NOT_FOUND, -32001),
        (jsonrpc.TASK_NOT_CANCELABLE, -32002),
        (jsonrpc.PUSH_NOT_SUPPORTED, -32003),
        (jsonrpc.UNSUPPORTED_OPERATION, -32004),
        (jsonrpc.CONTENT_TYPE_NOT_SUPPORTED, -32005),
        (jsonrpc.INVALID_AGENT_RESPONSE, -32006),
        (jsonrpc.NO_EXTENDED_CARD, -32007),
        (jsonrpc.EXTENSION_REQUIRED, -32008),
        (jsonrpc.VERSION_NOT_SUPPORTED, -32009),
        (jsonrpc.LIMIT_REACHED, -32000),
        (jsonrpc.UNAVAILABLE, -32050),
        (lsp.SERVER_NOT_INITIALIZED, -32002),
        (messages.SERVER_ERROR, -32000),
        (URL_ELICITATION_REQUIRED, -32042),
    ],
)
def test_an_error_code_of_json_rpc_stays_as_it_is(constant: int, code: int) -> None:
    assert constant == code


def test_the_exit_statuses_are_those_of_gemini_cli() -> None:
    statuses = {code.name: code.value for code in ExitCode}
    own = {"REQUIRED_SERVER": 45, "LOOP": 56, "REFUSED": 57, "UNFIT": 58, "BUDGET": 59}
    assert statuses == {"COMPLETED": 0, "ERROR": 1, "BAD_INPUT": 42, "TURN_LIMIT": 53, "CANCELLED": 130, **own}
    assert SANDBOX_STATUS == 44
