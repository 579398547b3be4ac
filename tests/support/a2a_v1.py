"""A raw client of A2A 1.0 for both bindings, JSON-RPC and HTTP with JSON; it shows every response."""

import itertools
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import httpx2

from isthmus.a2a.protocol.extension import URI
from support.a2a_serving import rpc

ACTIVE = {"A2A-Version": "1.0", "A2A-Extensions": URI}
PLAIN = {"A2A-Version": "1.0"}
_NUMBERS = itertools.count(1)
_ROUTES = {
    "SendMessage": ("POST", "message:send"),
    "SendStreamingMessage": ("POST", "message:stream"),
    "GetTask": ("GET", "tasks/{id}"),
    "ListTasks": ("GET", "tasks"),
    "CancelTask": ("POST", "tasks/{id}:cancel"),
    "SubscribeToTask": ("GET", "tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": ("POST", "tasks/{taskId}/pushNotificationConfigs"),
    "ListTaskPushNotificationConfigs": ("GET", "tasks/{taskId}/pushNotificationConfigs"),
    "GetTaskPushNotificationConfig": ("GET", "tasks/{taskId}/pushNotificationConfigs/{id}"),
    "DeleteTaskPushNotificationConfig": ("DELETE", "tasks/{taskId}/pushNotificationConfigs/{id}"),
    "GetExtendedAgentCard": ("GET", "extendedAgentCard"),
}


@dataclass(frozen=True, slots=True)
class Failed:
    """An error as both bindings report it; ``status`` is the HTTP status of REST, 200 in JSON-RPC."""

    reason: str
    message: str
    status: int
    code: int
    details: Sequence[Mapping[str, Any]]


class Reached(Protocol):
    """A server at ``url`` and a client that has its token."""

    @property
    def url(self) -> str: ...

    @property
    def http(self) -> httpx2.AsyncClient: ...


@dataclass(frozen=True, slots=True)
class Client:
    """A client that sends requests over ``binding``: JSONRPC or HTTP+JSON."""

    raw: Reached
    binding: str

    async def call(self, method: str, params: Mapping[str, Any], headers: Mapping[str, str] = ACTIVE) -> dict[str, Any]:
        """Return the result of a request that succeeds."""
        async with self._opened(method, params, headers) as response:
            assert response.status_code == 200, response.text
            answer: dict[str, Any] = response.json()
        if self.binding == "JSONRPC":
            assert "error" not in answer, answer
            return answer["result"]
        assert response.headers["content-type"] == "application/json"
        return answer

    async def fails(self, method: str, params: Mapping[str, Any], headers: Mapping[str, str] = ACTIVE) -> Failed:
        """Return the error of a request that is refused."""
        async with self._opened(method, params, headers) as response:
            error = response.json()["error"]
        details = error["data"] if self.binding == "JSONRPC" else error["details"]
        assert details[0]["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
        assert details[0]["domain"] == "a2a-protocol.org"
        return Failed(details[0]["reason"], error["message"], response.status_code, error["code"], details)

    async def stream(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str] = ACTIVE
    ) -> list[tuple[str | None, dict[str, Any]]]:
        """Return every item of a stream, with its id."""
        async with self._opened(method, params, headers) as response:
            assert response.headers["content-type"].startswith("text/event-stream"), response.text
            found: list[tuple[str | None, dict[str, Any]]] = []
            for frame in response.text.split("\n\n"):
                lines = [line for line in frame.split("\n") if not line.startswith(":")]
                fields = dict(line.split(": ", 1) for line in lines if line)
                if fields:
                    item = json.loads(fields["data"])
                    found.append((fields.get("id"), item["result"] if self.binding == "JSONRPC" else item))
        return found

    @asynccontextmanager
    async def _opened(
        self, method: str, params: Mapping[str, Any], headers: Mapping[str, str]
    ) -> AsyncGenerator[httpx2.Response]:
        if self.binding == "JSONRPC":
            yield await self.raw.http.post(self.raw.url, json=rpc(method, params), headers=headers)
            return
        verb, path = _ROUTES[method]
        url = self.raw.url + path.format(**params)
        named = [name for name in ("id", "taskId") if f"{{{name}}}" in path]
        rest = {name: value for name, value in params.items() if name not in named}
        if verb == "POST":
            yield await self.raw.http.post(url, json=rest, headers=headers)
        else:
            query = {name: str(value).lower() if isinstance(value, bool) else value for name, value in rest.items()}
            yield await self.raw.http.request(verb, url, params=query, headers=headers)


def said(text: str, workspace: object = None, **more: Any) -> dict[str, Any]:
    """Return parameters of a message: a text, with AgentSettings when a workspace is given."""
    message: dict[str, Any] = {
        "role": "ROLE_USER",
        "messageId": f"message-{next(_NUMBERS)}",
        "parts": [{"text": text}],
        **more,
    }
    if workspace is not None:
        message["metadata"] = {URI: {"workspace_path": str(workspace)}}
    return {"message": message}


async def task_of(client: Client, text: str, **more: Any) -> dict[str, Any]:
    """Return the task that a plain client's message creates or continues."""
    return (await client.call("SendMessage", said(text, **more), PLAIN))["task"]


def chosen(task_id: str, *confirmations: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters of a message that answers questions."""
    parts = [{"data": dict(confirmation)} for confirmation in confirmations]
    return {
        "message": {"role": "ROLE_USER", "messageId": f"answer-{next(_NUMBERS)}", "taskId": task_id, "parts": parts}
    }
