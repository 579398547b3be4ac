"""A client written for gemini-cli-a2a-server, on bare HTTP, and the transcript of what it sent and received.

One JSON object a line, with names for what differs between runs (TASK, CONTEXT, CALL-1, TIME, WORKSPACE ...) and
``...`` for long texts that do not matter.
"""

import asyncio
import contextlib
import json
import re
import uuid
from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, TypeAlias, cast

import httpx2

from support.gemini_wire import GeminiWire
from support.scripted_wire import Script

Line: TypeAlias = dict[str, Any]


class Scene:
    """A client with one task, and its messages so far. ``model`` is the wire of the server's model."""

    def __init__(self, url: str, http: httpx2.AsyncClient, model: GeminiWire, workspace: Path) -> None:
        self._url = url
        self._http = http
        self._model = model
        self.workspace = workspace
        self.lines: list[Line] = []
        self.task_id: str | None = None
        self.context_id: str | None = None
        self.call_ids: list[str] = []

    def plan(self, *replies: Script) -> None:
        """Add the model's next replies."""
        self._model.add(*replies)

    @property
    def settings(self) -> dict[str, Any]:
        """Return AgentSettings as a client of that server sends them."""
        return {"kind": "agent-settings", "workspacePath": str(self.workspace)}

    async def say(self, text: str, settings: Mapping[str, Any] | None = None, method: str = "message/stream") -> None:
        """Send a text to the task; the first one creates it."""
        message: dict[str, Any] = {"parts": [{"kind": "text", "text": text}]}
        if settings is not None:
            message["metadata"] = {"coderAgent": dict(settings)}
        await self._send(method, message)

    async def answer(self, outcome: str, call_id: str | None = None, **more: Any) -> None:
        """Answer the question of the newest call, or of ``call_id``."""
        data = {"callId": call_id or self.call_ids[-1], "outcome": outcome, **more}
        await self._send("message/stream", {"parts": [{"kind": "data", "data": data}]})

    async def _send(self, method: str, message: Mapping[str, Any]) -> None:
        content: dict[str, Any] = {"kind": "message", "role": "user", "messageId": str(uuid.uuid4()), **message}
        if self.task_id is not None:
            content["taskId"] = self.task_id
        await (self.stream if method == "message/stream" else self.call)(method, {"message": content})

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """Send a JSON-RPC request with one response; return its result, None if it is refused."""
        self.lines.append({"client": {"method": method, "params": params}})
        response = await self._http.post(self._url, json=_rpc(method, params))
        answer = response.json()
        self._take(answer)
        return answer.get("result")

    async def stream(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a JSON-RPC request whose response is an event stream, and read it to its end."""
        self.lines.append({"client": {"method": method, "params": params}})
        headers = {"Accept": "text/event-stream"}
        async with self._http.stream("POST", self._url, json=_rpc(method, params), headers=headers) as response:
            async for line in response.aiter_lines():
                if line.startswith("data:"):
                    self._take(json.loads(line[5:]))

    async def silent(self, sending: Awaitable[None], seconds: float = 60) -> None:
        """Send a request whose stream does not end within ``seconds``, then disconnect."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await sending
                return
        self.lines.append({"silence": True})

    async def http(self, method: str, path: str, body: object = None) -> Any:
        """Send a plain HTTP request; return the response as JSON, or as an event stream."""
        self.lines.append({"client": {"http": f"{method} {path}", "body": body}})
        content = None if body is None else json.dumps(body)
        headers = {} if body is None else {"Content-Type": "application/json"}
        url = self._url.rstrip("/") + path
        response = await self._http.request(method, url, content=content, headers=headers)
        kind = response.headers.get("content-type", "").partition(";")[0]
        received: Any = response.text
        if kind == "application/json":
            received = response.json()
        elif kind == "text/event-stream":
            received = [json.loads(line[5:]) for line in response.text.splitlines() if line.startswith("data:")]
        self.lines.append({"server": {"status": response.status_code, "type": kind, "body": received}})
        return received

    def _take(self, answer: Mapping[str, Any]) -> None:
        self.lines.append({"server": answer["result"]} if "result" in answer else {"error": answer["error"]})
        result = answer.get("result")
        if not isinstance(result, dict):
            return
        found = cast("dict[str, Any]", result)
        self.task_id = found["id"] if found.get("kind") == "task" else found.get("taskId", self.task_id)
        self.context_id = found.get("contextId", self.context_id)
        for part in parts_of(found):
            call_id = part.get("data", {}).get("request", {}).get("callId")
            if call_id is not None and call_id not in self.call_ids:
                self.call_ids.append(call_id)

    def transcript(self) -> list[Line]:
        """Return the lines, with names for what differs between runs."""
        names = {call_id: f"CALL-{index}" for index, call_id in enumerate(self.call_ids, 1)}
        names |= {str(self.workspace): "WORKSPACE", str(self.workspace.parent): "FOLDER"}
        if self.task_id is not None:
            names[self.task_id] = "TASK"
        if self.context_id is not None:
            names[self.context_id] = "CONTEXT"
        return [cast("Line", _named("", line, names)) for line in self.lines]


def parts_of(event: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of an event's or a task's message."""
    message: dict[str, Any] = event.get("status", {}).get("message") or {}
    return message.get("parts", [])


def _rpc(method: str, params: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


_FIXED = {"messageId": "MESSAGE", "prompt_id": "PROMPT", "timestamp": "TIME", "traceId": "TRACE"}
_LONG = ("schema", "parameterSchema", "parameters", "availableTools")
_REDACTED = re.compile(r"PGID: \d+|[ \t]+$", re.MULTILINE)


def _named(key: str, value: Any, names: Mapping[str, str]) -> Any:
    if key in _LONG:
        return "..."
    if isinstance(value, dict):
        source = cast("dict[str, Any]", value)
        is_tool = "parameterSchema" in source
        named = {name: _named(name, item, names) for name, item in source.items() if name != "checkpoint"}
        return {**named, "description": "..."} if is_tool else named
    if isinstance(value, list):
        return [_named(key, item, names) for item in cast("list[Any]", value)]
    if not isinstance(value, str):
        return value
    if key in _FIXED:
        return _FIXED[key]
    for received, name in names.items():
        value = value.replace(received, name)
    return _REDACTED.sub("", value) if key in ("text", "output", "resultDisplay") else value
