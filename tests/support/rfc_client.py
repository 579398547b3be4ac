"""Client of the A2A development-tool extension, written from its RFC alone, on plain sockets.

It sends no header that the RFC and A2A's basics do not name: the extension is activated by the object that
the first message of a session carries in its metadata under the extension's URI.
"""

import json
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from support.rfc_commands import CommandStart, CommandStatus, SlashCommand, read_commands, read_start
from support.rfc_events import (
    OVER,
    PAUSED,
    TERMINAL,
    Deviation,
    Event,
    JsonObject,
    State,
    Task,
    ToolCall,
    ToolStatus,
    read_event,
    read_field,
    read_list,
    read_name,
    read_object,
    read_task,
)
from support.rfc_http import HttpAnswer

CARD_PATH = "/.well-known/agent-card.json"
URI = re.compile(r"https://github\.com/google-gemini/gemini-cli/blob/main/docs/a2a/developer-profile/v([^/]+)/spec\.md")
VERSION = re.compile(r"(0|[1-9]\d*)(?:\.(0|[1-9]\d*))?(?:\.(0|[1-9]\d*))?(?:-([0-9A-Za-z.-]+))?(?:\+[0-9A-Za-z.-]+)?")
KNOWN_VERSION = "0"


class RpcError(Exception):
    """An error that the server answered with."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


def is_compatible(offered: str, known: str = KNOWN_VERSION) -> bool:
    """Return whether a client of the known version can talk to the offered one, by Semantic Versioning 2.0.0.

    Numbers that are left out, as in the RFC's own "v0", are zeros. Under major version zero anything may change.
    """
    there, here = VERSION.fullmatch(offered), VERSION.fullmatch(known)
    if there is None or here is None:
        raise Deviation(f"the extension's URI should embed a semantic version, and embeds {offered!r}")
    theirs, ours = ([int(each or 0) for each in found.group(1, 2, 3)] for found in (there, here))
    if there[4] is not None or ours[0] == 0:  # a pre-release promises nothing either
        return theirs == ours and there[4] == here[4]
    return theirs[0] == ours[0] and theirs >= ours


@dataclass(frozen=True)
class Card:
    """An agent's name, the path of its JSON-RPC endpoint, and the URI of its development-tool extension."""

    name: str
    path: str
    uri: str


def read_card(value: object) -> Card:
    """Return the card of an agent that streams and has the extension in a version that this client knows."""
    fields = read_object(value, "the agent card")
    capabilities = read_object(fields.get("capabilities"), "the card's capabilities")
    if capabilities.get("streaming") is not True:
        raise Deviation(f"capabilities.streaming should be true, and is {capabilities.get('streaming')!r}")
    if fields.get("preferredTransport", "JSONRPC") != "JSONRPC":
        raise Deviation(f"the card's url should speak JSONRPC, and speaks {fields.get('preferredTransport')!r}")
    extensions = read_list(capabilities, "extensions", "capabilities")
    uris = [read_name(read_object(each, "an extension"), "uri", "an extension") for each in extensions]
    found = [known for uri in uris if (known := URI.fullmatch(uri))]
    if not found:
        raise Deviation(f"the card should list the development-tool extension, and lists {uris}")
    usable = [each[0] for each in found if is_compatible(each[1])]
    if not usable:
        raise Deviation(f"this client knows version {KNOWN_VERSION} of the extension, and the card has {uris}")
    return Card(
        read_name(fields, "name", "the card"), urlsplit(read_name(fields, "url", "the card")).path or "/", usable[0]
    )


class Stream:
    """Items that answer one request, each checked when it is read; iterating ends where the stream ends well."""

    def __init__(
        self,
        answer: HttpAnswer,
        results: Iterator[object],
        uri: str,
        first: Literal["submitted task", "event", "any"],
        task: tuple[str, str] | None,
        statuses: dict[tuple[str, str], ToolStatus],
    ) -> None:
        self._answer = answer
        self._results = results
        self._uri = uri
        self._first = first
        self._task: tuple[str, str] | None = task
        self._statuses = statuses
        self._seen = 0
        self._ended = False
        self._at_rest = False

    def __iter__(self) -> Iterator[Task | Event]:
        return self

    def __next__(self) -> Task | Event:
        try:
            value = next(self._results)
        except StopIteration:
            if not self._ended and not self._at_rest:
                raise Deviation(f"the stream ended after {self._seen} items without a final event (2)") from None
            raise
        if self._ended:
            raise Deviation(f"the stream ends with the final event (Appendix A, step 4), and went on: {value!r}")
        item = self._read(value)
        self._seen += 1
        task_id, context_id = self._task or (item.task_id, "")
        if item.task_id != task_id or context_id not in ("", item.context_id):
            raise Deviation(f"the stream is of task {task_id} in context {context_id}, and brought {item}")
        self._task = (item.task_id, item.context_id)
        for call in item.tool_calls:
            self._follow(task_id, call)
        self._ended = isinstance(item, Event) and item.final
        # A task that rests when its client comes back is told by its Task; the RFC says nothing of that.
        self._at_rest = self._first == "any" and isinstance(item, Task) and item.state in TERMINAL | PAUSED
        return item

    def _read(self, value: object) -> Task | Event:
        is_task = read_object(value, "the stream's item").get("kind") == "task"
        if self._seen == 0 and (self._first == "submitted task" or (is_task and self._first == "any")):
            task = read_task(value)
            if self._first == "submitted task" and task.state is not State.SUBMITTED:
                raise Deviation(f"a new task should be 'submitted' (Appendix A, step 2), and is {task.state}")
            return task
        return read_event(value, self._uri)

    def _follow(self, task_id: str, call: ToolCall) -> None:
        """Refuse a status that goes back in the life cycle of its tool call, or that begins it in a wrong way."""
        known = self._statuses.get((task_id, call.tool_call_id))
        if known is None and self._first == "submitted task" and call.status is not ToolStatus.PENDING:
            raise Deviation(f"a tool call is created with PENDING (Tool Call Lifecycle), and came as {call}")
        before = known or ToolStatus.PENDING
        back = before is ToolStatus.EXECUTING and call.status is ToolStatus.PENDING
        if back or (before in OVER and call.status is not before):
            raise Deviation(f"a tool call cannot go from {before} to {call.status} (Tool Call Lifecycle): {call}")
        self._statuses[task_id, call.tool_call_id] = call.status

    def close(self) -> None:
        """Drop the connection in the middle of the stream."""
        self._answer.close()


@dataclass(frozen=True)
class CommandRun:
    """A slash command that was asked for, and its progress where it started."""

    start: CommandStart
    stream: Stream | None


class RfcClient:
    """A client of one server; it fetches the agent's card when it is made."""

    def __init__(self, host: str, port: int, token: str, timeout: float = 30) -> None:
        self._host = host
        self._port = port
        self._token = token
        self._timeout = timeout
        self._statuses: dict[tuple[str, str], ToolStatus] = {}
        self.card = read_card(self._request("GET", CARD_PATH).json())

    def start(self, prompt: str, workspace_path: str) -> Stream:
        """Send a session's first message, with AgentSettings, and return the stream of its new task."""
        message = _user_message({"kind": "text", "text": prompt})
        message["metadata"] = {self.card.uri: {"workspace_path": workspace_path}}
        return self._stream("message/stream", {"message": message}, "submitted task", None)

    def confirm(
        self, task_id: str, context_id: str, tool_call_id: str, option_id: str, new_content: str | None = None
    ) -> Stream:
        """Answer a ConfirmationRequest and return the stream of what follows."""
        data: JsonObject = {"tool_call_id": tool_call_id, "selected_option_id": option_id}
        if new_content is not None:
            data["file_details"] = {"new_content": new_content}
        message = _user_message({"kind": "data", "data": data}) | {"taskId": task_id, "contextId": context_id}
        return self._stream("message/stream", {"message": message}, "event", (task_id, context_id))

    def continue_task(self, task_id: str, context_id: str, text: str) -> Stream:
        """Send another message to a task and return the stream of what follows."""
        message = _user_message({"kind": "text", "text": text}) | {"taskId": task_id, "contextId": context_id}
        return self._stream("message/stream", {"message": message}, "any", (task_id, context_id))

    def resubscribe(self, task_id: str) -> Stream:
        """Return a new stream of a task whose stream was lost."""
        return self._stream("tasks/resubscribe", {"id": task_id}, "any", (task_id, ""))

    def get(self, task_id: str) -> Task:
        """Return a task as it stands."""
        return read_task(self._call("tasks/get", {"id": task_id}))

    def commands(self) -> tuple[SlashCommand, ...]:
        """Return the slash commands, which may be asked for before any session."""
        return read_commands(self._call("commands/get", None))

    def execute(self, path: list[str], args: str) -> CommandRun:
        """Run a slash command; its progress is in the same stream, or is subscribed to by the execution's id."""
        request_id, answer = self._post("command/execute", {"command_path": path, "args": args})
        if answer.sort != "text/event-stream":
            start = read_start(_result(answer.json(), request_id))
            failed = start.status is CommandStatus.FAILED_TO_START
            return CommandRun(start, None if failed else self.resubscribe(start.execution_id))
        results = (_result(each, request_id) for each in answer.events())
        start = read_start(next(results, None))
        if start.status is CommandStatus.FAILED_TO_START:
            answer.close()
            return CommandRun(start, None)
        task = (start.execution_id, "")
        return CommandRun(start, Stream(answer, results, self.card.uri, "any", task, self._statuses))

    def _stream(
        self,
        method: str,
        params: JsonObject,
        first: Literal["submitted task", "event", "any"],
        task: tuple[str, str] | None,
    ) -> Stream:
        request_id, answer = self._post(method, params)
        if answer.status != 200 or answer.sort != "text/event-stream":
            raise Deviation(f"{method} should answer with a stream, and gave {_result(answer.json(), request_id)!r}")
        results = (_result(each, request_id) for each in answer.events())
        return Stream(answer, results, self.card.uri, first, task, self._statuses)

    def _call(self, method: str, params: JsonObject | None) -> object:
        request_id, answer = self._post(method, params)
        return _result(answer.json(), request_id)

    def _post(self, method: str, params: JsonObject | None) -> tuple[str, HttpAnswer]:
        request_id = uuid.uuid4().hex
        call: JsonObject = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if params is not None:
            call["params"] = params
        return request_id, self._request("POST", self.card.path, json.dumps(call).encode())

    def _request(self, method: str, path: str, body: bytes = b"") -> HttpAnswer:
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\nAuthorization: Bearer {self._token}\r\n"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        return HttpAnswer(self._host, self._port, head.encode() + b"\r\n" + body, self._timeout)


def _user_message(part: JsonObject) -> JsonObject:
    return {"kind": "message", "messageId": uuid.uuid4().hex, "role": "user", "parts": [part]}


def _result(value: object, request_id: str) -> object:
    """Return the result of a JSON-RPC response to the request, or raise the error that it holds."""
    response = read_object(value, "the JSON-RPC response")
    if "error" in response:
        error = read_object(response["error"], "the JSON-RPC error")
        raise RpcError(read_field(error, "code", int, "error"), read_field(error, "message", str, "error"))
    if response.get("jsonrpc") != "2.0" or response.get("id") != request_id or "result" not in response:
        raise Deviation(f"a JSON-RPC 2.0 response to the request {request_id} was expected, and came: {value!r}")
    return response["result"]


def rfc_client_of(url: str, token: str) -> RfcClient:
    """Return a client of the server at this URL."""
    parts = urlsplit(url)
    return RfcClient(parts.hostname or "", parts.port or 0, token)
