"""One A2A server as a client reaches it over HTTP: its card, requests with deadlines, and event streams.

Speaks JSON-RPC and knows no tasks. Every failure is a :class:`RemoteError` that says what to do, or the error that
the server answered. Deliberately not here: resuming streams, and what results mean (:mod:`isthmus.a2a.client`).
"""

import itertools
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

import httpx2

from isthmus.a2a.auth import LOOPBACK_NAMES, TOKEN_VARIABLE
from isthmus.a2a.card import PATHS
from isthmus.a2a.extension import Activation, activated_by_card
from isthmus.a2a.json_text import JsonError, decode
from isthmus.a2a.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    TASK_NOT_CANCELABLE,
    TASK_NOT_FOUND,
    UNSUPPORTED_OPERATION,
    Request,
    RpcError,
    encode_request,
)
from isthmus.a2a.wire_v03_requests import GET, LIST, RESUBSCRIBE
from isthmus.client import InvalidRequest, TaskError, TaskNotCancelable, TaskNotFound, TaskNotResumable
from isthmus.errors import IsthmusError

MAX_EVENT_BYTES = 64_000_000
"""The largest stream item that is read: a tool call is sent whole, with the content of its file."""


_SAFE_METHODS = frozenset({GET, LIST, RESUBSCRIBE})


class RemoteError(IsthmusError):
    """A server cannot be used: it is not there, refuses us, or is not what it should be."""


class ConnectionLostError(RemoteError):
    """The connection broke; the same request may work on a new one."""


class Connection:
    """A server whose card has been read. ``activation`` is what it is asked to speak."""

    def __init__(self, http: httpx2.AsyncClient, url: str, activation: Activation) -> None:
        self._http = http
        self._ids = itertools.count(1)
        self.url = url
        self.activation = activation

    @classmethod
    async def open(
        cls,
        url: str,
        token: str | None = None,
        *,
        deadline: float = 60,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> "Connection":
        """Read the card of the server at ``url`` (its base, or the card itself). ``deadline`` is seconds of silence.

        Raises:
            RemoteError: nobody is there, the token is refused, or it is not an A2A server.
            IncompatibleExtensionError: it speaks another version of the extension.
        """
        try:
            base = httpx2.URL(url)
        except httpx2.InvalidURL as error:
            raise RemoteError(f"{url!r} is not a URL: {error}") from error
        if base.scheme not in ("http", "https") or not base.host:
            raise RemoteError(f"{url!r} is not the URL of a server: expected http://HOST:PORT/ or https://...")
        http = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx2.Timeout(deadline, connect=min(deadline, 10)),
            # A stream stays open as long as its task works; no number of them may block a request.
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=8),
            trust_env=base.host not in LOOPBACK_NAMES,
            transport=transport,
        )
        try:
            card = await _read_card(http, base, has_token=token is not None)
            asked = activated_by_card(card)
            http.headers.update(_extension_headers(asked))
            return cls(http, str(_endpoint(base, card)), asked)
        except BaseException:
            await http.aclose()
            raise

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result of a request.

        Raises:
            TaskError: the server refuses the request.
            RemoteError: the server cannot be used.
        """
        response = await self._send(method, params, {"Accept": "application/json"})
        try:
            body = await response.aread()
        except httpx2.HTTPError as error:
            raise _lost(self.url, error) from error
        finally:
            await response.aclose()
        _check_status(response, self.url, has_token="authorization" in self._http.headers)
        return result_of(_json(body, self.url), self.url)

    async def stream(self, method: str, params: Mapping[str, Any], after: int | None = None) -> "Stream":
        """The open answer of a streaming request, resumed after an event when ``after`` is given.

        Raises:
            TaskError: the server refuses the request.
            RemoteError: the server cannot be used.
        """
        headers = {"Accept": "text/event-stream, application/json"}
        if after is not None:
            headers["Last-Event-ID"] = str(after)
        response = await self._send(method, params, headers)
        try:
            _check_status(response, self.url, has_token="authorization" in self._http.headers)
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                result_of(_json(await response.aread(), self.url), self.url)
                raise RemoteError(f"{self.url} answers {method} without an event stream")
        except httpx2.HTTPError as error:
            await response.aclose()
            raise _lost(self.url, error) from error
        except BaseException:
            await response.aclose()
            raise
        return Stream(response, self.url)

    async def _send(self, method: str, params: Mapping[str, Any], headers: Mapping[str, str]) -> httpx2.Response:
        body = encode_request(Request(next(self._ids), method, params))
        headers = {"Content-Type": "application/json", **headers}

        async def send() -> httpx2.Response:
            request = self._http.build_request("POST", self.url, content=body, headers=headers)
            return await self._http.send(request, stream=True)

        try:
            try:
                return await send()
            except (httpx2.NetworkError, httpx2.RemoteProtocolError):
                # A kept connection may have died unseen; what changes nothing is sent again on a new one.
                if method not in _SAFE_METHODS:
                    raise
                return await send()
        except httpx2.HTTPError as error:
            raise _lost(self.url, error) from error


class Stream:
    """The items of one event stream."""

    def __init__(self, response: httpx2.Response, url: str) -> None:
        self._response = response
        self._url = url
        self._events = aiter(httpx2.EventSource(response, max_event_size=MAX_EVENT_BYTES))
        self._last_id = ""

    async def next(self) -> tuple[Any, int | None] | None:
        """The next result and its event id (None for progress); None when the stream has ended.

        Raises:
            TaskError: the server reports an error instead.
            ConnectionLostError: the connection broke.
            RemoteError: what came is no answer of an A2A server.
        """
        while True:
            try:
                event = await anext(self._events, None)
            except httpx2.HTTPError as error:
                raise _lost(self._url, error) from error
            if event is None:
                return None
            if event.data:
                # The parser repeats the last id for events that have none of their own.
                is_kept = event.id != self._last_id and event.id.isdecimal()
                self._last_id = event.id
                return result_of(_json(event.data.encode(), self._url), self._url), int(event.id) if is_kept else None

    async def aclose(self) -> None:
        """Leave the stream; the task goes on."""
        await cast("AsyncGenerator[httpx2.ServerSentEvent, None]", self._events).aclose()
        await self._response.aclose()


def result_of(answer: Any, url: str) -> Any:
    """The result in a JSON-RPC answer.

    Raises:
        TaskError: it holds an error that concerns the task or the request.
        RpcError: it holds another error.
        RemoteError: it is no JSON-RPC answer.
    """
    if not isinstance(answer, Mapping):
        raise RemoteError(f"{url} is not an A2A server: it answered {json.dumps(answer)[:80]} to a JSON-RPC request")
    found = cast("Mapping[str, Any]", answer)
    error = found.get("error")
    if isinstance(error, Mapping):
        raise _refused(cast("Mapping[str, Any]", error))
    if "result" not in found:
        raise RemoteError(f"{url} is not an A2A server: its answer has neither result nor error")
    return found["result"]


def _refused(error: Mapping[str, Any]) -> IsthmusError:
    code, text = error.get("code"), str(error.get("message", "no message"))
    known = _TASK_ERRORS.get(code) if isinstance(code, int) else None
    if known is not None:
        return known(text)
    return RpcError(code if isinstance(code, int) else 0, f"the server answers: {text} ({code})")


_TASK_ERRORS: Mapping[int, type[TaskError]] = {
    TASK_NOT_FOUND: TaskNotFound,
    TASK_NOT_CANCELABLE: TaskNotCancelable,
    UNSUPPORTED_OPERATION: TaskNotResumable,
    INVALID_PARAMS: InvalidRequest,
    INVALID_REQUEST: InvalidRequest,
}


async def _read_card(http: httpx2.AsyncClient, base: httpx2.URL, *, has_token: bool) -> Mapping[str, Any]:
    if base.path.endswith(".json"):
        places = [base]
    else:
        places = [base.copy_with(raw_path=(base.path.rstrip("/") + path).encode()) for path in PATHS]
    for place in places:
        try:
            response = await http.get(place, headers={"Accept": "application/json"})
        except httpx2.HTTPError as error:
            raise _lost(str(base), error) from error
        if response.status_code in (404, 405):
            continue
        _check_status(response, str(base), has_token=has_token)
        card = _json(response.content, str(base))
        if isinstance(card, Mapping) and "url" in card and "capabilities" in card:
            return cast("Mapping[str, Any]", card)
        break
    raise RemoteError(f"{base} is not an A2A server: it has no agent card of A2A 0.3 at {places[0].path}")


def _endpoint(base: httpx2.URL, card: Mapping[str, Any]) -> httpx2.URL:
    """Where requests go. Never to another origin than the one the person named: the token goes along."""
    try:
        stated = httpx2.URL(str(card["url"]))
    except httpx2.InvalidURL as error:
        raise RemoteError(f"the agent card of {base} has no valid url: {error}") from error
    return base.copy_with(raw_path=stated.raw_path or b"/", fragment=None)


def _extension_headers(asked: Activation) -> dict[str, str]:
    return {} if asked.uri is None else {"A2A-Extensions": asked.uri, "X-A2A-Extensions": asked.uri}


def _check_status(response: httpx2.Response, url: str, *, has_token: bool) -> None:
    match response.status_code:
        case 200:
            return
        case 401 if has_token:
            raise RemoteError(f"{url} refuses the token (401): check the token file or {TOKEN_VARIABLE}")
        case 401:
            raise RemoteError(f"{url} needs a token (401): give its token file, or set {TOKEN_VARIABLE}")
        case 413:
            raise InvalidRequest(f"{url} refuses the request as too large (413)")
        case status if status >= 500:
            raise ConnectionLostError(f"{url} cannot serve now (HTTP {status})")
        case status:
            raise RemoteError(f"{url} does not serve A2A to us (HTTP {status} {response.reason_phrase})")


def _json(body: bytes, url: str) -> Any:
    try:
        return decode(body)
    except JsonError as error:
        raise RemoteError(f"{url} is not an A2A server: {error}") from error


def _lost(url: str, error: httpx2.HTTPError) -> RemoteError:
    if isinstance(error, httpx2.ConnectError):
        return ConnectionLostError(f"nothing answers at {url} ({error}); is the server running?")
    if isinstance(error, httpx2.TimeoutException):
        return ConnectionLostError(f"{url} did not answer in time ({type(error).__name__})")
    return ConnectionLostError(f"the connection to {url} broke: {error or type(error).__name__}")
