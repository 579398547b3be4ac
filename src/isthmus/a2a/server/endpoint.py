"""The endpoint: finds the wire of a request and answers the request, for every version and dialect.

Requests are authenticated in :mod:`isthmus.a2a.server.application`, read and written by wires, framed in
:mod:`isthmus.a2a.server.framing`, and performed in :mod:`isthmus.a2a.server.answering`.
"""

import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from isthmus.a2a.openings import remembered_activation
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.errors import internal_error
from isthmus.a2a.protocol.extension import HEADERS, URI, Activation, activation
from isthmus.a2a.protocol.extension_requests import SCOPED
from isthmus.a2a.protocol.jsonrpc import InvalidParamsError, decode_request, decode_value, id_of
from isthmus.a2a.protocol.parameters import metadata_of
from isthmus.a2a.server.answering import Answering, echo
from isthmus.a2a.server.card import version_of
from isthmus.a2a.server.framing import Framing, JsonRpcFraming, check_content_type
from isthmus.a2a.server.http.sse import OpenStreams
from isthmus.a2a.server.logs.access_log import note_of
from isthmus.a2a.server.rest import RestFraming, raw_path
from isthmus.a2a.server.rest_bindings import REST_V03, binding_of
from isthmus.a2a.v1.operations import METHODS as V1_METHODS
from isthmus.a2a.v1.wire import is_version
from isthmus.a2a.wire import Call, Caller, Wire
from isthmus.a2a.wires import FOLLOWING, Wires
from isthmus.errors import IsthmusError
from isthmus.rpc.messages import Notification, Request, RpcError
from isthmus.runtime.large_work import off_loop

if TYPE_CHECKING:
    from isthmus.a2a.dialect import Dialect, DialectRoutes

_LOG = logging.getLogger(__name__)


class A2AEndpoint:
    """Answers the requests of one principal."""

    def __init__(self, options: ServerOptions, wires: Wires | None = None) -> None:
        self._options = options
        self._wires = wires or Wires.of(options)
        self.streams = OpenStreams()
        self._routes: dict[Dialect, DialectRoutes] = {}

    async def answer(self, http: HttpRequest, body: bytes, caller: Caller) -> Response:
        """Perform a request: JSON-RPC at ``/``, where every failure is a JSON-RPC error; REST at other paths."""
        path: str = http.scope["path"]
        size = len(body)
        if path != "/":
            dialect = self._wires.dialect_with(path)
            if dialect is not None and http.method in dialect.methods_of(path):
                if dialect not in self._routes:
                    self._routes[dialect] = dialect.routes(self._options, self.streams)
                return await self._routes[dialect].answer(http, body, caller)
            reading = self.answer_rest(http, body, caller)
            del body
            return await reading
        accept = ",".join(http.headers.getlist("accept"))
        only_streams = "text/event-stream" in accept and "application/json" not in accept
        framing = JsonRpcFraming(None, only_streams=only_streams)
        try:
            check_content_type(http.headers.get("content-type"))
            decoding = off_loop(size, decode_value, body)
            del body  # what is large is let go as soon as it was read into something else
            value = await decoding
            framing = JsonRpcFraming(id_of(value), only_streams=only_streams)
            request = decode_request(value)
        except RpcError as error:
            note_of(http.scope).error = error.code
            return framing.failure(self._wires.of_version(version_of(http)).error(error), {})
        if request.method in V1_METHODS:
            framing = JsonRpcFraming(id_of(value))  # in 1.0 a request for a stream fails with JSON
        performing = self.perform(request, framing, caller, http, size=size)
        del value, request
        return await performing

    async def answer_rest(self, http: HttpRequest, body: bytes, caller: Caller) -> Response:
        """Perform a REST request, in the version that has its path; failures are HTTP statuses."""
        path = raw_path(http.scope)
        binding = binding_of(path)
        framing = RestFraming(binding, http.headers.getlist("accept"))
        speaker = self._wires.v03_rest if binding is REST_V03 else self._wires.v1
        try:
            check_content_type(http.headers.get("content-type") if body else None)
            size, query = len(body), http.query_params.multi_items()
            reading = off_loop(size, binding.request, http.method, path, query, body)
            del body
            request = await reading
        except RpcError as error:
            note_of(http.scope).error = error.code
            return framing.failure(speaker.error(error), {})
        version = version_of(http)
        is_stated = version is None or (binding is REST_V03 and is_version(version, binding.version))
        wire = speaker if is_stated else None
        performing = self.perform(request, framing, caller, http, wire, size=size)
        del request
        return await performing

    async def perform(
        self,
        request: Request | Notification,
        framing: Framing,
        caller: Caller,
        http: HttpRequest,
        wire: Wire | None = None,
        *,
        size: int = 0,
    ) -> Response:
        """Perform a request of ``size`` bytes with ``wire``, by default the one chosen for it.

        A bug gives an error without details.
        """
        note = note_of(http.scope)
        active = Activation()
        version = version_of(http)
        speaker = wire or self._wires.of_version(version)
        try:
            asked = [item for name in HEADERS for item in http.headers.getlist(name) if item.strip(" ,")]
            active = activation(asked, *metadata_of(request.params))
            if request.method in SCOPED and not active.active:
                active = Activation(URI)  # a client that calls a method of the extension speaks it
            wants_stream = "text/event-stream" in http.headers.get("accept", "")
            after = _last_event_id(http) if request.method in FOLLOWING else None
            has_push = caller.push is not None
            is_stated = active.active or bool(asked)
            openings = self._wires.openings
            opening = None if active.active else await openings.of(request.params, caller.agent, caller.name)
            call = Call(
                request.method,
                request.params,
                active,
                after,
                wants_stream,
                version,
                has_push=has_push,
                user=caller.name,
                needs_workspace=not self._options.identity.default_workspace,
                opening=opening,
            )
            speaker = wire or self._wires.choose(call)
            if not is_stated and not self._wires.is_dialect(speaker):
                active = remembered_activation(request.params, opening)
                call = replace(call, activation=active)
            operation = await off_loop(size, speaker.decode, call)
            note.method = request.method
            note.task_id = getattr(operation, "task_id", None) or ""
            answering = Answering(speaker, framing, caller, active, self._options, self.streams, http, openings)
            responding = answering.respond(operation)
            del request, call, operation
            return await responding
        except IsthmusError as error:
            failure = speaker.error(error)
        except Exception:  # the client receives an error without details
            _LOG.exception("a request failed because of a bug")
            failure = speaker.error(internal_error())
        note.error = failure.code
        return framing.failure(failure, echo(active))


def _last_event_id(http: HttpRequest) -> int | None:
    for source, value in (
        ("Last-Event-ID", http.headers.get("last-event-id")),
        ("last_event_id", http.query_params.get("last_event_id") if http.scope["query_string"] else None),
    ):
        if value:
            if not (value.isascii() and value.isdecimal() and len(value) < 19):
                raise InvalidParamsError(source, f"expected the id of an event of this task, received {value[:80]!r}")
            return int(value)
    return None
