"""Explanations for the user of why a server cannot be used: the step that failed, and the server's own message.

Unwraps the SDK's errors: exception groups, codes without a message, ends of streams. URLs are shown without their
query, which may contain tokens.
"""

import json
import shlex

import httpx2
from mcp import MCPError
from mcp_types import (
    CONNECTION_CLOSED,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    UNSUPPORTED_PROTOCOL_VERSION,
)
from pydantic import ValidationError

from isthmus.mcp_host.config.server_config import Endpoint, HttpEndpoint, ServerConfig, StdioEndpoint
from isthmus.mcp_host.connection.errors import NeedsLoginError, ServerLostError, SessionForgottenError
from isthmus.mcp_host.diagnosis.server_log import ServerLog
from isthmus.mcp_host.diagnosis.unreachable import causes, connection_problem
from isthmus.mcp_host.transports.endpoints import HttpWatch
from isthmus.mcp_host.transports.session_refusals import REFUSED, SessionRefusal
from isthmus.mcp_host.transports.sse import LOST_REQUEST
from isthmus.sandbox.policy import SandboxError

_ENDS = ("Connection closed", "SSE stream ended", LOST_REQUEST)
"""Beginnings of the SDK's error messages for requests that lost their connection."""
_UNSUPPORTED = "Unsupported protocol version"
"""Beginning of the SDK's error message when the answer to ``initialize`` names a revision without a handshake."""
REFUSING_CODES = frozenset(
    {INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, HEADER_MISMATCH, UNSUPPORTED_PROTOCOL_VERSION}
)
"""Codes of JSON-RPC errors that refuse a request as such; other codes report a failure in the server."""
_OTHER_REFUSALS = frozenset({401, 403, 407, 408, 425, 429})
"""HTTP statuses below 500 that refuse the client, or ask it to try later, but do not refuse the request as such."""


def explain(error: BaseException, step: str, endpoint: Endpoint, log: ServerLog, watch: HttpWatch) -> str:
    """Return the reason why `step` (e.g. "initialize") failed at `endpoint`."""
    found = next(iter(causes(error)))
    for candidate in causes(error):
        if isinstance(candidate, OSError | httpx2.HTTPError | TimeoutError):
            found = candidate
            break
    return f"{_reason(found, step, endpoint, log, watch)}{log.last_words}"


def is_closed(error: MCPError) -> bool:
    """Return whether a request got no answer because its connection ended.

    The SDK reports this with the code -32000, which many servers use for their own errors, so the message decides.
    """
    return error.code == CONNECTION_CLOSED and error.message.startswith(_ENDS)


def request_failure(
    error: MCPError,
    config: ServerConfig,
    log: ServerLog,
    watch: HttpWatch | None,
    *,
    is_lost: bool,
    refusal: SessionRefusal | None = None,
) -> Exception:
    """Return the error to raise for a request's error.

    It is a ServerLostError if the connection can no longer be used, and a NeedsLoginError or ConnectFailedError if the
    login is missing or fails. `is_lost`: the connection was already known to be lost. `refusal` is what is known of
    the session after all.
    """
    server, status = f"the MCP server {config.name!r}", None if watch is None else watch.status
    if watch is not None and watch.login is not None and status in (401, 403):
        return type(watch.login)(str(watch.login))
    if refusal is SessionRefusal.CERTAIN:
        return SessionForgottenError(f"{server} no longer knows the session")
    if refusal is SessionRefusal.UNSENT:
        return SessionForgottenError(f"{server} cannot be reached: {error.message}")
    if is_closed(error) and (is_lost or isinstance(config.endpoint, HttpEndpoint)):
        details = "" if is_lost else f" ({error.message})"
        return ServerLostError(
            f"{server} ended{log.exit_text} before it answered; whether the call had an effect is not known, and it "
            f"was not repeated{log.last_words}{details}",
            was_sent=True,
        )
    if error.message == REFUSED and status is not None:
        if status == 401:
            return NeedsLoginError(f"HTTP 401: it wants a login; use /mcp auth {config.name}")
        return MCPError(error.code, f"{error.message}: HTTP {status}")
    return MCPError(error.code, _without_details(error)) if error.code == PARSE_ERROR else error


def _without_details(error: MCPError) -> str:
    """Return the message about an unreadable answer, without the SDK's long details."""
    summary, _, details = error.message.partition(":")
    return f"{summary}: it is not a JSON-RPC message" if "validation error" in details else error.message


def _reason(error: BaseException, step: str, endpoint: Endpoint, log: ServerLog, watch: HttpWatch) -> str:
    match error:
        case FileNotFoundError() | NotADirectoryError() if isinstance(endpoint, StdioEndpoint):
            if not endpoint.cwd.is_dir():
                return f"its working directory {endpoint.cwd} does not exist"
            return f"the program {endpoint.command!r} was not found; {_command_advice(endpoint)}"
        case PermissionError() if isinstance(endpoint, StdioEndpoint):
            return f"the program {endpoint.command!r} may not be run: {error.strerror}"
        case httpx2.HTTPStatusError():
            return f"{_place(error.request.url)} answered {step} with HTTP {error.response.status_code}"
        case httpx2.HTTPError():
            return f"{connection_problem(error)} ({_place_of(endpoint)})"
        case TimeoutError() if watch.status == 429:
            return f"{_place_of(endpoint)} takes no requests now (HTTP 429)"
        case TimeoutError():
            reason = f"no answer to {step}: {error}" if str(error) else f"no answer to {step}"
            return reason + (_by_mistake(log) if isinstance(endpoint, StdioEndpoint) else "")
        case MCPError() if is_closed(error) and isinstance(endpoint, StdioEndpoint):
            return f"it ended{log.exit_text} before it answered {step}"
        case MCPError() if error.code == PARSE_ERROR:
            return f"its answer to {step} could not be read: {_without_details(error)}"
        case MCPError() if watch.status is not None:
            return f"{_place_of(endpoint)} answered {step} with HTTP {watch.status} ({error.message})"
        case MCPError():
            return f"it answered {step} with the error {error.code}: {error.message}"
        case ValidationError():
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            return f"its answer to {step} does not fit MCP: {where}: {first['msg']}"
        case SandboxError():
            return str(error)
        case OSError():
            return f"it cannot be started: {error.strerror or error}"
        case _:
            return f"{step} failed: {error or type(error).__name__}"


def _command_advice(endpoint: StdioEndpoint) -> str:
    """Return what to do about a program that does not exist; a whole command line in its place is taken apart."""
    try:
        program, *arguments = shlex.split(endpoint.command)
    except ValueError:  # a quote is open, or it is blank
        program, arguments = endpoint.command, []
    if not arguments:
        return "check command and PATH"
    words = json.dumps(arguments, ensure_ascii=False)
    own = ", before those that are there" if endpoint.args else ""
    return f'put the arguments into args{own}: "command": {json.dumps(program, ensure_ascii=False)}, "args": {words}'


def _by_mistake(log: ServerLog) -> str:
    """Return what to do about a program that serves HTTP, though its entry says that it speaks on its streams."""
    if (url := log.listening_at) is None:
        return ""
    return (
        f"; it seems to listen at {url}: start it yourself and give its address as httpUrl (or url, for SSE) in place"
        " of command, or start it with its option for stdio"
    )


def _place_of(endpoint: Endpoint) -> str:
    return endpoint.command if isinstance(endpoint, StdioEndpoint) else _place(httpx2.URL(endpoint.url))


def _place(url: httpx2.URL) -> str:
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))


def refuses_handshake(error: BaseException, status: int | None) -> bool:
    """Return whether the server refused ``initialize`` itself, like a server that supports only revision 2026-07-28.

    `status` is the HTTP status of its answer, if that is an error. Servers of that revision use different statuses and
    codes, so any refusal of the request counts, except one that requires a login or reports a busy or broken server.
    """
    for inner in causes(error):
        match inner:
            case RuntimeError():
                if str(inner).startswith(_UNSUPPORTED):
                    return True
            case MCPError() if not is_closed(inner):
                if status is None:
                    return inner.code in REFUSING_CODES
                return 400 <= status < 500 and status not in _OTHER_REFUSALS
            case _:
                pass
    return False
