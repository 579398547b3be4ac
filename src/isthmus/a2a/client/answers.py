"""Reads the responses of an A2A server: results from their envelopes, and errors with advice. Sans-I/O."""

import json
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import httpx2

from isthmus.a2a.protocol.errors import ERRORS
from isthmus.a2a.protocol.jsonrpc import PUSH_NOT_SUPPORTED, TASK_NOT_CANCELABLE, TASK_NOT_FOUND, UNSUPPORTED_OPERATION
from isthmus.a2a.token_file import TOKEN_VARIABLE
from isthmus.client import InvalidRequest, TaskError, TaskNotCancelable, TaskNotFound, TaskNotResumable
from isthmus.encoding.json_text import JsonError, decode
from isthmus.errors import IsthmusError
from isthmus.rpc.messages import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from isthmus.text.visible import visible_line

MAX_EVENT_BYTES = 64_000_000
"""Maximum size of a stream item in bytes; it may hold a tool call with the content of a file."""
MAX_ANSWER_BYTES = 64_000_000
"""Maximum size of an answer in bytes; it may hold a task with its history and artifacts."""


class RemoteError(IsthmusError):
    """A server cannot be used: it is not reachable, refuses the client, or is not an A2A server."""


class ConnectionLostError(RemoteError):
    """The connection broke; the same request may succeed on a new one."""


_TASK_ERRORS: Mapping[int, type[TaskError]] = {
    TASK_NOT_FOUND: TaskNotFound,
    TASK_NOT_CANCELABLE: TaskNotCancelable,
    UNSUPPORTED_OPERATION: TaskNotResumable,
    INVALID_PARAMS: InvalidRequest,
    INVALID_REQUEST: InvalidRequest,
    PUSH_NOT_SUPPORTED: InvalidRequest,
}

_DESCRIPTION = re.compile(r'error_description="([^"\\]{1,200})"')
_REASONS: Mapping[str, int] = {ERRORS[code].v1_reason: code for code in (*_TASK_ERRORS, METHOD_NOT_FOUND)}
_STATUSES: Mapping[int, int] = {400: INVALID_PARAMS, 404: TASK_NOT_FOUND, 501: METHOD_NOT_FOUND}


def result_of(answer: Any, url: str) -> Any:
    """Return the result in a JSON-RPC answer.

    Raises:
        TaskError: it holds an error that concerns the task or the request.
        RpcError: it holds another error.
        RemoteError: it is not a JSON-RPC answer.
    """
    if not isinstance(answer, Mapping):
        raise RemoteError(f"{url} is not an A2A server: it answered {json.dumps(answer)[:80]} to a JSON-RPC request")
    found = cast("Mapping[str, Any]", answer)
    error = found.get("error")
    if isinstance(error, Mapping):
        source = cast("Mapping[str, Any]", error)
        raise error_of_code(source.get("code"), str(source.get("message", "no message")))
    if "result" not in found:
        raise RemoteError(f"{url} is not an A2A server: its answer has neither result nor error")
    return found["result"]


def rest_error(body: bytes) -> IsthmusError | None:
    """Return the error in the body of a failed HTTP request, of HTTP+JSON or JSON-RPC; None when there is none."""
    try:
        value = decode(body)
    except JsonError:
        return None
    error = cast("Mapping[str, Any]", value).get("error") if isinstance(value, Mapping) else None
    if not isinstance(error, Mapping):
        return None
    source = cast("Mapping[str, Any]", error)
    code, text = source.get("code"), str(source.get("message", "no message"))
    details = source.get("details")
    for detail in cast("list[Any]", details) if isinstance(details, list) else ():
        reason = cast("Mapping[str, Any]", detail).get("reason") if isinstance(detail, Mapping) else None
        if isinstance(reason, str) and reason in _REASONS:
            return error_of_code(_REASONS[reason], text)
    return error_of_code(_STATUSES.get(code, code) if isinstance(code, int) else code, text)


def error_of_code(code: object, text: str) -> IsthmusError:
    """Return the error for an error code of A2A."""
    number = code if isinstance(code, int) else 0
    known = _TASK_ERRORS.get(number)
    return known(text) if known is not None else RpcError(number, f"the server answered: {text} ({code})")


def check_status(response: httpx2.Response, url: str, *, has_token: bool) -> None:
    """Check that the HTTP status reports success.

    Raises:
        RemoteError: the server refuses the client, or cannot serve.
        InvalidRequest: the server refuses this request.
    """
    match response.status_code:
        case 200 | 201 | 204:
            return
        case 401 if has_token:
            found = _DESCRIPTION.search(response.headers.get("www-authenticate", ""))
            reason = f": {visible_line(found[1])}" if found is not None else ""
            raise RemoteError(f"{url} refuses the token (401){reason}; check the token file or {TOKEN_VARIABLE}")
        case 401:
            raise RemoteError(f"{url} needs a token (401): give its token file, or set {TOKEN_VARIABLE}")
        case status if 300 <= status < 400:
            place = response.headers.get("location", "nowhere")[:500]
            raise RemoteError(
                f"{url} redirects to {place} (HTTP {status}), and redirects are not followed; if that is the right"
                " server, use its URL"
            )
        case 429:
            again = response.headers.get("retry-after", "")
            later = f"in {again} s" if again.isdecimal() and len(again) < 8 else "later"
            raise RemoteError(f"{url} takes no more requests of yours for now (429): try again {later}")
        case 413:
            raise InvalidRequest(f"{url} refuses the request as too large (413)")
        case status if status >= 500:
            raise ConnectionLostError(f"{url} cannot serve now (HTTP {status})")
        case status:
            raise RemoteError(f"{url} refuses A2A requests (HTTP {status} {response.reason_phrase})")


def json_of(body: bytes, url: str) -> Any:
    """Return the JSON value of a body.

    Raises:
        RemoteError: it is not JSON.
    """
    try:
        return decode(body)
    except JsonError as error:
        raise RemoteError(f"{url} is not an A2A server: {error}") from error


def http_failure(url: str, error: httpx2.HTTPError) -> RemoteError:
    """Return the error for a request that failed in HTTP."""
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return RemoteError(
            f"the certificate of {url} is not trusted ({error}); if the server has its own certificate, give its file "
            "or that of its issuer with --ca-file or SSL_CERT_FILE"
        )
    if isinstance(error, httpx2.ConnectError):
        return ConnectionLostError(f"nothing answers at {url} ({error}); is the server running?")
    if isinstance(error, httpx2.TimeoutException):
        return ConnectionLostError(f"{url} did not answer in time ({type(error).__name__})")
    if isinstance(error, httpx2.SSEError | httpx2.DecodingError):
        return RemoteError(f"{url} sent an invalid event stream: {error}")
    return ConnectionLostError(f"the connection to {url} broke: {error or type(error).__name__}")


@contextmanager
def redact_token(token: str | None) -> Generator[None]:
    """Remove the token from the errors raised inside; the server may have repeated it."""
    try:
        yield
    except IsthmusError as error:
        if token:
            error.args = tuple(item.replace(token, "[token]") if isinstance(item, str) else item for item in error.args)
        raise
