"""Connection to one A2A server over HTTP: its card, requests with deadlines, and event streams.

It speaks JSON-RPC, or HTTP+JSON of 1.0, and does not know tasks (see :mod:`isthmus.a2a.client.remote_agent`). Every
failure is a :class:`RemoteError` with advice, or the server's error; none contains the token.
"""

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias, cast

import httpx2

from isthmus.a2a.client.answers import (
    MAX_ANSWER_BYTES,
    MAX_EVENT_BYTES,
    ConnectionLostError,
    RemoteError,
    check_status,
    http_failure,
    json_of,
    redact_token,
    rest_error,
    result_of,
)
from isthmus.a2a.client.card import authorities, authorization, base_of, endpoint_of, fetch_card, read_body
from isthmus.a2a.client.discovery import NoInterfaceError, ServerProfile, read_card
from isthmus.a2a.client.wires import ClientWire, ClientWireV03, ClientWireV1, MethodCall, has_rest_request, rest_request
from isthmus.a2a.protocol.extension import NOTES_HEADER, PROMPTS_HEADER, Activation
from isthmus.encoding.json_text import encode
from isthmus.errors import IsthmusError
from isthmus.network.handshakes import close_cancelled_handshake
from isthmus.network.loopback import LOOPBACK_NAMES
from isthmus.rpc.messages import METHOD_NOT_FOUND, RpcError, request
from isthmus.rpc.wire_log import WireLog

__all__ = ["AgentConnection", "ConnectionLostError", "ItemStream", "RemoteError"]

SILENCE_SECONDS = 1800.0
"""Maximum time in seconds without an event in a stream of a server without the extension.

It is long because such servers may send nothing while a tool runs, and some end the task when the client leaves.
"""

Events: TypeAlias = AsyncIterator[httpx2.ServerSentEvent]
Unwrap: TypeAlias = Callable[[bytes, str], Any]
"""Function that returns the content of an event, given its data and name, or raises the error in it."""

_WIRE = WireLog("A2A")

_SAFE_METHODS = frozenset(
    {
        "tasks/get",
        "isthmus/tasks",
        "isthmus/session",
        "tasks/resubscribe",
        "commands/get",
        "GetTask",
        "ListTasks",
        "SubscribeToTask",
    }
)


class AgentConnection:
    """Connection to a server whose card has been read; ``profile`` is what the client uses of it."""

    def __init__(
        self,
        http: httpx2.AsyncClient,
        url: str,
        profile: ServerProfile,
        token: str | None = None,
        silence: float | None = None,
        rpc_url: str | None = None,
    ) -> None:
        self._http = http
        self._ids = itertools.count(1)
        self._token = token
        self._silence = silence
        self.url = url
        self.rpc_url = rpc_url
        """JSON-RPC URL of a server that is otherwise used by HTTP+JSON."""
        self.profile = profile
        self.wire: ClientWire = ClientWireV1() if profile.interface.major == "1.0" else ClientWireV03()

    @classmethod
    async def open(
        cls,
        url: str,
        token: str | None = None,
        *,
        deadline: float = 60,
        protocol: str | None = None,
        binding: str | None = None,
        ca_file: Path | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> "AgentConnection":
        """Connect to the server at ``url`` (its base, or its card), and read the card.

        ``deadline`` is the maximum time in seconds without data from the server. The card is first requested without
        the token. ``protocol`` (0.3 or 1.0) and ``binding`` (JSONRPC or HTTP+JSON) choose what to use of the server.
        ``ca_file`` (PEM) holds the authorities to trust instead of the usual ones.

        Raises:
            RemoteError: the server is not reachable, refuses the token, or does not speak A2A as this client does.
            IncompatibleExtensionError: it speaks an incompatible version of the extension.
        """
        base = base_of(url)
        http = _client(base, deadline, ca_file, transport)
        try:
            card = await fetch_card(http, base, token)
            try:
                profile = read_card(card, protocol, binding)
            except NoInterfaceError as error:
                raise RemoteError(f"{base} cannot be used: {error}") from error
            endpoint = endpoint_of(base, profile.interface.url, has_token=token is not None)
            rpc = None if profile.rpc is None else endpoint_of(base, profile.rpc.url, has_token=token is not None)
            found = next((each for each in (endpoint, rpc) if each is not None and each.scheme == "https"), base)
            if found.scheme != base.scheme:  # a card over plain HTTP may name a server with TLS
                await http.aclose()
                http = _client(found, deadline, ca_file, transport)
            silence = deadline if profile.activation.active else max(deadline, SILENCE_SECONDS)
            return cls(http, str(endpoint), profile, token, silence, None if rpc is None else str(rpc))
        except BaseException:
            await http.aclose()
            raise

    def without_token(self, text: str) -> str:
        """Return a text of the server with the token removed."""
        return text.replace(self._token, "[token]") if self._token else text

    @property
    def activation(self) -> Activation:
        """The extension as the server spells it, if it has it."""
        return self.profile.activation

    @property
    def is_rest(self) -> bool:
        """Whether requests are sent as HTTP+JSON, except for those that this binding does not have."""
        return self.profile.interface.binding == "HTTP+JSON"

    def _goes_by_rest(self, ask: MethodCall) -> bool:
        return self.is_rest and (self.rpc_url is None or has_rest_request(ask))

    async def aclose(self) -> None:
        """Close every connection."""
        await self._http.aclose()

    async def call(self, ask: MethodCall, *, waits: bool = False) -> Any:
        """Return the result of a request. With ``waits`` the answer may take as long as a stream may be silent.

        Raises:
            TaskError: the server refuses the request.
            RemoteError: the server cannot be used.
        """
        response = await self._send(ask, "application/json", read=self._silence if waits else None)
        return self._result(ask, await self._whole(response, self._silence if waits else None), response)

    async def stream(self, ask: MethodCall, after: int | None = None) -> "ItemStream":
        """Return the event stream that answers a request, resumed after the event ``after`` if given.

        Raises:
            TaskError: the server refuses the request.
            RemoteError: the server cannot be used.
        """
        found = await self.stream_or_result(ask, after)
        if isinstance(found, ItemStream):
            return found
        raise RemoteError(f"expected an event stream from {self.url} for {ask.method}, received a single answer")

    async def stream_or_result(self, ask: MethodCall, after: int | None = None) -> "ItemStream | Any":
        """Return the event stream or the result that answers a request; otherwise like :meth:`stream`."""
        headers = {} if after is None else {"Last-Event-ID": str(after), PROMPTS_HEADER: "1"}
        response = await self._send(ask, "text/event-stream, application/json", headers, read=self._silence)
        if not _is_stream(response) or response.status_code != 200:
            return self._result(ask, await self._whole(response), response)
        unwrapped = self._unwrapped_rest if self._goes_by_rest(ask) else self._unwrapped
        return ItemStream(response, self.url, unwrapped, _events(response))

    async def resource(self, verb: str, path: str, body: object = None) -> "tuple[int, Any] | ItemStream":
        """Request a JSON resource of the server beside the protocol; return its status and content, or a stream."""
        base = httpx2.URL(self.url)
        url = base.copy_with(raw_path=(base.path.rstrip("/") + path).encode())
        headers = self._headers("application/json, text/event-stream")
        response = await self._sent(self._built(verb, url, headers, body, self._timeout(self._silence)))
        if _is_stream(response) and response.status_code == 200:
            return ItemStream(response, self.url, self._unwrapped, _data_lines(response))
        return response.status_code, json_of(await self._whole(response) or b"null", self.url)

    # --- Requests and answers ---------------------------------------------------------------------------------------

    def _headers(self, accept: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
        headers = {"Accept": accept, **authorization(self._token), **(more or {})}
        if self.activation.uri is not None:
            headers |= {"A2A-Extensions": self.activation.uri, "X-A2A-Extensions": self.activation.uri}
            headers[NOTES_HEADER] = "1"
        if self.wire.version == "1.0":
            headers["A2A-Version"] = "1.0"
        return headers

    def _timeout(self, read: float | None) -> httpx2.Timeout:
        base = self._http.timeout
        return base if read is None else httpx2.Timeout(read, connect=base.connect, write=base.write, pool=base.pool)

    def _request(
        self, ask: MethodCall, accept: str, more: Mapping[str, str] | None, read: float | None
    ) -> httpx2.Request:
        headers, timeout = self._headers(accept, more), self._timeout(read)
        interface, url = self.profile.interface, self.url
        if not self._goes_by_rest(ask):
            if self.rpc_url is not None and self.profile.rpc is not None:
                interface, url = self.profile.rpc, self.rpc_url
            params = {**ask.params, "tenant": interface.tenant} if interface.tenant else ask.params
            body = encode(request(next(self._ids), ask.method, params))
            headers["Content-Type"] = "application/json"
            return self._http.build_request("POST", url, content=body, headers=headers, timeout=timeout)
        found = rest_request(ask)
        if found is None:
            raise RpcError(METHOD_NOT_FOUND, f"{self.url} is used by HTTP+JSON, which does not have {ask.method}")
        verb, path, query, body = found
        base = httpx2.URL(self.url)
        tenant = f"/{interface.tenant}" if interface.tenant else ""
        path = base.raw_path.decode().partition("?")[0].rstrip("/") + tenant + path
        place = base.copy_with(raw_path=path.encode()).copy_merge_params(query)
        return self._built(verb, place, headers, body, timeout)

    def _built(
        self, verb: str, url: httpx2.URL, headers: dict[str, str], body: object, timeout: httpx2.Timeout
    ) -> httpx2.Request:
        if body is None:
            return self._http.build_request(verb, url, headers=headers, timeout=timeout)
        headers["Content-Type"] = "application/json"
        return self._http.build_request(verb, url, content=encode(body), headers=headers, timeout=timeout)

    async def _send(
        self, ask: MethodCall, accept: str, more: Mapping[str, str] | None = None, *, read: float | None = None
    ) -> httpx2.Response:
        try:
            return await self._sent(self._request(ask, accept, more, read))
        except ConnectionLostError as error:
            # A kept-alive connection may have died unnoticed; a request that changes nothing is repeated on a new one.
            is_broken = isinstance(error.__cause__, httpx2.NetworkError | httpx2.RemoteProtocolError)
            if ask.method not in _SAFE_METHODS or not is_broken:
                raise
            return await self._sent(self._request(ask, accept, more, read))

    async def _sent(self, request: httpx2.Request) -> httpx2.Response:
        _WIRE.sent(f"{request.method} {request.url.path}", request.content)
        try:
            return await self._http.send(request, stream=True)
        except httpx2.HTTPError as error:
            raise http_failure(self.url, error) from error

    async def _whole(self, response: httpx2.Response, seconds: float | None = None) -> bytes:
        """Return the body, which must arrive within ``seconds``, by default the read timeout."""
        try:
            async with asyncio.timeout(seconds or self._http.timeout.read):
                body = await read_body(response, MAX_ANSWER_BYTES, self.url)
        except TimeoutError as error:
            raise ConnectionLostError(f"{self.url} did not finish its answer in time") from error
        except httpx2.HTTPError as error:
            raise http_failure(self.url, error) from error
        finally:
            await response.aclose()
        _WIRE.received(f"{response.status_code} {response.reason_phrase}", body)
        return body

    def _result(self, ask: MethodCall, body: bytes, response: httpx2.Response) -> Any:
        with redact_token(self._token):
            if response.status_code not in (200, 201, 204):
                error = rest_error(body)
                if error is not None and response.status_code not in (401, 403):
                    raise error
            check_status(response, self.url, has_token=self._token is not None)
            if self._goes_by_rest(ask):
                return json_of(body or b"{}", self.url)
            return result_of(json_of(body, self.url), self.url)

    def _unwrapped(self, data: bytes, event: str) -> Any:
        with redact_token(self._token):
            return result_of(json_of(data, self.url), self.url)

    def _unwrapped_rest(self, data: bytes, event: str) -> Any:
        with redact_token(self._token):
            value = json_of(data, self.url)
            error = rest_error(data)
            if error is not None:
                raise error
            if event == "error":
                raise RemoteError(f"{self.url} ended the stream with an error: {data[:200].decode('utf-8', 'replace')}")
            return value


class ItemStream:
    """The items of one event stream."""

    def __init__(self, response: httpx2.Response, url: str, unwrap: Unwrap, events: Events) -> None:
        self._response = response
        self._url = url
        self._unwrap = unwrap
        self._events = events
        self._last_id = ""

    async def next(self) -> tuple[Any, int | None] | None:
        """Return the next result and its event id (None if it has none); None at the end of the stream.

        Raises:
            TaskError: the server reports an error instead.
            ConnectionLostError: the connection broke.
            RemoteError: the event is not an answer of an A2A server.
        """
        while True:
            try:
                event = await anext(self._events, None)
            except httpx2.HTTPError as error:
                raise http_failure(self._url, error) from error
            if event is None:
                return None
            if event.data:
                # The parser repeats the last id for events without one.
                is_kept = event.id != self._last_id and event.id.isdecimal()
                self._last_id = event.id
                _WIRE.received(f"event {event.id}" if is_kept else "event", event.data)
                return self._unwrap(event.data.encode(), event.event), int(event.id) if is_kept else None

    async def finish(self) -> None:
        """Close a stream whose last item was read; wait briefly for its end, so that the connection can be reused."""
        with suppress(IsthmusError, TimeoutError):
            async with asyncio.timeout(1):
                while await self.next() is not None:
                    pass
        await self.aclose()

    async def aclose(self) -> None:
        """Close the stream; the task continues."""
        await cast("AsyncGenerator[httpx2.ServerSentEvent, None]", self._events).aclose()
        await self._response.aclose()


def _events(response: httpx2.Response) -> Events:
    return aiter(httpx2.EventSource(response, max_event_size=MAX_EVENT_BYTES))


async def _data_lines(response: httpx2.Response) -> AsyncGenerator[httpx2.ServerSentEvent, None]:
    """Yield an event for each line of data; for a command gemini-cli-a2a-server sends no blank lines between events."""
    rest = b""
    async for chunk in response.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > MAX_EVENT_BYTES:
            raise httpx2.DecodingError("an event is too large")
        for line in lines:
            if line.startswith(b"data:"):
                yield httpx2.ServerSentEvent(data=line[5:].decode("utf-8", "replace").strip())
    if rest.startswith(b"data:"):
        yield httpx2.ServerSentEvent(data=rest[5:].decode("utf-8", "replace").strip())


def _is_stream(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").lower().startswith("text/event-stream")


def _client(
    base: httpx2.URL, deadline: float, ca_file: Path | None, transport: httpx2.AsyncBaseTransport | None
) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        timeout=httpx2.Timeout(deadline, connect=min(deadline, 10)),
        # A stream stays open while its task works, so the number of connections must not be limited. Only the server
        # closes idle connections: gemini-cli-a2a-server aborts a task when the connection that began it is closed.
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=256, keepalive_expiry=None),
        trust_env=base.host not in LOOPBACK_NAMES,
        verify=authorities(ca_file, is_encrypted=base.scheme == "https"),
        transport=transport,
        event_hooks={"request": [close_cancelled_handshake]},
    )
