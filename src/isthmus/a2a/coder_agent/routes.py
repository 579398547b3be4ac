"""HTTP routes that gemini-cli-a2a-server has beside JSON-RPC: slash commands, and tasks before their first message.

They are protected like all others (:mod:`isthmus.a2a.server.application`). A command is answered with its result
(``{name, data}``) or its events, as ``data:`` lines without blank lines between, which its clients expect. We also
accept ``agentSettings``, ``contextId`` and ``taskId`` in ``POST /executeCommand``, and the query ``workspacePath`` in
``GET /listCommands``.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any, cast

import anyio
from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from isthmus.a2a.coder_agent.commands import NO_EXTENSIONS, encode_command, encode_result, find_command
from isthmus.a2a.coder_agent.encoder import UNKNOWN_MODEL, CoderAgentEncoder, encode_task, wire_state
from isthmus.a2a.coder_agent.requests import settings_of
from isthmus.a2a.coder_agent.reservations import Reservation, Reservations
from isthmus.a2a.coder_agent.tools import available_tools
from isthmus.a2a.coder_agent.vocabulary import TASK_PATH
from isthmus.a2a.options import ServerOptions
from isthmus.a2a.protocol.errors import retry_headers, rpc_error
from isthmus.a2a.protocol.jsonrpc import InvalidParamsError, decode_value
from isthmus.a2a.protocol.parameters import optional_id, optional_mapping
from isthmus.a2a.server.framing import json_response
from isthmus.a2a.server.http.sse import EventStream, OpenStreams
from isthmus.a2a.server.logs.access_log import RequestNote, note_of
from isthmus.a2a.service import close
from isthmus.a2a.wire import Caller, JsonDict
from isthmus.client import CommandMessage, CommandScope, Delivery, TaskError, TaskNotFound, TaskSnapshot, Turn
from isthmus.development_tool import CommandExecutionStatus
from isthmus.encoding.json_text import encode
from isthmus.errors import Unavailable
from isthmus.events import StateChange, TaskState
from isthmus.rpc.messages import RpcError, response

STREAMED = ("init",)
"""Commands whose answer is a stream on gemini-cli-a2a-server."""
KEEP_ALIVE_SECONDS = 86_400.0
"""Time in seconds until a comment is sent; a day, as clients of these streams can only read ``data:`` lines."""


class CoderAgentRoutes:
    """Answers requests to these routes."""

    def __init__(self, options: ServerOptions, streams: OpenStreams, reservations: Reservations) -> None:
        self._options = options
        self._streams = streams
        self._reservations = reservations

    async def answer(self, http: HttpRequest, body: bytes, caller: Caller) -> Response:
        """Perform a request; a failure is an HTTP status with ``{"error": ...}``."""
        path: str = http.scope["path"]
        found = TASK_PATH.fullmatch(path)
        try:
            if path == "/listCommands":
                return await self._list(http, caller)
            if path == "/executeCommand":
                return await self._execute(_object(body), caller, note_of(http.scope))
            if path == "/tasks":
                return self._reserve(_object(body), caller)
            if found is None:
                return await self._all_metadata(caller)
            return await self._metadata(found[1], caller)
        except (RpcError, TaskError) as error:
            return _error(400, str(error))
        except Unavailable as error:
            return _error(503, str(error), retry_headers(rpc_error(error)))

    # --- commands ---

    async def _list(self, http: HttpRequest, caller: Caller) -> Response:
        settings = settings_of({"workspacePath": http.query_params.get("workspacePath")}, "query")
        tree = await caller.agent.commands(CommandScope(settings=settings))
        return json_response(encode({"commands": [encode_command(command) for command in tree]}))

    async def _execute(self, asked: Mapping[str, Any], caller: Caller, note: RequestNote) -> Response:
        command, args = asked.get("command"), cast("object", asked.get("args") or [])
        if not isinstance(command, str):
            return _error(400, 'Invalid "command" field.')
        if not isinstance(args, list):
            return _error(400, '"args" field must be an array.')
        words = [str(word) for word in cast("list[object]", args)]
        stated = optional_mapping(asked, "agentSettings", "body")
        scope = CommandScope(
            optional_id(asked, "taskId", "body"),
            optional_id(asked, "contextId", "body"),
            settings_of(stated or {}, "agentSettings"),
        )
        found = find_command(command, await caller.agent.commands(scope))
        if found is None and command in ("extensions", NO_EXTENSIONS["name"]):
            return json_response(encode(NO_EXTENSIONS))
        if found is None:
            return _error(404, f"Command not found: {command}")
        path, more = found
        message = CommandMessage(path, " ".join([*more, *words]).strip(), scope)
        await caller.check_quota()
        execution = await caller.agent.execute(message)
        if execution.turn is None or execution.status is CommandExecutionStatus.FAILED_TO_START:
            return _error(400, execution.message or f"{command} did not start")
        note.task_id = execution.turn.task_id
        if path[0] in STREAMED:
            return EventStream(self._events(execution.turn), self._streams, keep_alive=KEEP_ALIVE_SECONDS)
        return await self._whole(command, execution.turn)

    async def _whole(self, command: str, turn: Turn) -> Response:
        """Return the answer once the command has ended or asks the user, or the limit has passed."""
        deliveries: list[Delivery] = []
        try:
            with anyio.move_on_after(self._options.blocking_limit):
                async with self._streams.scope():
                    async for delivery in turn.deliveries:
                        deliveries.append(delivery)
        finally:
            await close(turn.deliveries)
        result = encode_result(command, turn.task_id, [delivery.event for delivery in deliveries])
        if isinstance(result, str):
            return _error(500, result)
        return json_response(encode(result))

    async def _events(self, turn: Turn) -> AsyncGenerator[bytes, None]:
        encoder = CoderAgentEncoder(turn.snapshot)
        yield _line(turn.task_id, encode_task(turn.snapshot))
        held: Delivery | None = None
        async with aclosing(cast("AsyncGenerator[Delivery, None]", turn.deliveries)) as deliveries:
            async for delivery in deliveries:
                for item in encoder.encode(held) if held is not None else ():
                    yield _line(turn.task_id, item)
                ends = isinstance(delivery.event, StateChange) and delivery.event.state.ends_stream
                held = delivery if ends else None
                for item in () if ends else encoder.encode(delivery):
                    yield _line(turn.task_id, item)
        for item in encoder.encode(held, final=True) if held is not None else ():
            yield _line(turn.task_id, item)

    # --- tasks ---

    def _reserve(self, asked: Mapping[str, Any], caller: Caller) -> Response:
        stated = optional_mapping(asked, "agentSettings", "body")
        settings = settings_of(stated or {}, "agentSettings")
        made = self._reservations.make(optional_id(asked, "contextId", "body"), settings, caller.name)
        return json_response(encode(made.task_id), 201)

    async def _all_metadata(self, caller: Caller) -> Response:
        tasks = [_metadata(task) for task in await caller.agent.tasks()]
        tasks += [_reserved(each) for each in self._reservations.of(caller.name)]
        return json_response(encode(tasks)) if tasks else Response(status_code=204)

    async def _metadata(self, task_id: str, caller: Caller) -> Response:
        reserved = self._reservations.get(task_id, caller.name)
        if reserved is not None:
            return json_response(encode({"metadata": _reserved(reserved)}))
        try:
            snapshot = await caller.agent.get(task_id, 0)
        except TaskNotFound:
            return _error(404, "Task not found")
        return json_response(encode({"metadata": _metadata(snapshot)}))


def _metadata(task: TaskSnapshot) -> JsonDict:
    return _metadata_object(task.task_id, task.context_id, wire_state(task.state), task.model)


def _reserved(task: Reservation) -> JsonDict:
    return _metadata_object(task.task_id, task.context_id, TaskState.SUBMITTED.value, "")


def _metadata_object(task_id: str, context_id: str, state: str, model: str) -> JsonDict:
    return {
        "id": task_id,
        "contextId": context_id,
        "taskState": state,
        "model": model or UNKNOWN_MODEL,
        "mcpServers": [],
        "availableTools": available_tools(),
    }


def _object(body: bytes) -> Mapping[str, Any]:
    value: object = decode_value(body) if body.strip() else {}
    if not isinstance(value, Mapping):
        raise InvalidParamsError("body", "expected an object")
    return cast("Mapping[str, Any]", value)


def _line(task_id: str, item: JsonDict) -> bytes:
    return b"data: %b\n" % encode(response(task_id, item))


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return json_response(encode({"error": message}), status, headers)
