"""A fake server of OpenAI's Responses: POST /v1/responses with its server-sent events, as Codex uses it.

See scripted_wire.py for how to use it. A call of a tool that the request declares as ``custom`` (``apply_patch``)
becomes a custom tool call; its arguments are a string.
"""

import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from support.scripted_wire import (
    Call,
    Failure,
    Reply,
    Say,
    ScriptedWire,
    Think,
    Unknown,
    WireUsage,
    retry_headers,
    run_as_program,
)
from support.wire_server import Answer, WireRequest


class ResponsesWire(ScriptedWire):
    """A fake OpenAI API; put `base_url` into the provider of Codex's config.toml (it ends in /v1)."""

    provider = "openai"

    @property
    def base_url(self) -> str:
        return super().base_url + "/v1"

    def asks_model(self, request: WireRequest) -> bool:
        return request.path == "/v1/responses"

    def answer_other(self, request: WireRequest) -> Answer:
        return _error(404, f"no such path: {request.path}")

    def events(self, reply: Reply, request: WireRequest) -> Sequence[bytes]:
        custom = {tool["name"] for tool in _tools(request) if tool["type"] == "custom"}
        events = [_event("response.created", response={"id": f"resp_{reply.identity}"})]
        for index, step in enumerate(reply.steps):
            match step:
                case Say(texts):
                    events += _message(index, texts)
                case Call():
                    item = _call(step, index, step.name in custom)
                    events.append(_event("response.output_item.added", output_index=index, item={**item, **_EMPTY}))
                    if item["type"] == "function_call":
                        place = {"item_id": item["id"], "output_index": index}
                        delta = item["arguments"]
                        events.append(_event("response.function_call_arguments.delta", **place, delta=delta))
                    events.append(_done(index, item))
                case Unknown(raw):
                    events.append(_done(index, raw))
                case Think(texts, signature):
                    events += _reasoning(index, texts, signature)
        usage = reply.usage or WireUsage(0, 0)
        response: dict[str, Any] = {"id": f"resp_{reply.identity}", "status": "completed", "usage": _usage(usage)}
        match reply.finish:
            case None:
                return events
            case "stop":
                return [*events, _event("response.completed", response=response)]
            case "length" | "safety":
                reason = "max_output_tokens" if reply.finish == "length" else "content_filter"
                ended = {**response, "status": "incomplete", "incomplete_details": {"reason": reason}}
                return [*events, _event("response.incomplete", response=ended)]

    def failure(self, failure: Failure, request: WireRequest) -> Answer:
        match failure.kind:
            case "context_too_long":
                message = "Your input exceeds the context window of this model. Please adjust your input and try again."
                return _error(400, message, code="context_length_exceeded")
            case "unknown_model":
                message = "The model `nope` does not exist or you do not have access to it."
                return _error(404, message, code="model_not_found")
            case "wrong_key":
                key = request.headers.get("authorization", "").removeprefix("Bearer ")
                return _error(401, f"Incorrect API key provided: {key}.", code="invalid_api_key")
            case "plain":
                return _error(failure.status, failure.message, headers=retry_headers(failure))


def _tools(request: WireRequest) -> Iterator[Mapping[str, Any]]:
    """Yield the tools of a request, also those that Codex sends in its input, by namespaces."""
    items: Sequence[Any] = request.json.get("input") or ()
    further: list[Any] = [item["tools"] for item in items if not isinstance(item, str) and item.get("tools")]
    for tool in itertools.chain(request.json.get("tools") or (), *further):
        yield from tool["tools"] if tool["type"] == "namespace" else (tool,)


def _usage(usage: WireUsage) -> dict[str, Any]:
    written = {"cache_write_tokens": usage.cache_write} if usage.cache_write else {}
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, **written},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.thoughts},
        "total_tokens": usage.input + usage.output,
    }


def _reasoning(index: int, texts: Sequence[str], signature: str | None) -> list[bytes]:
    item: dict[str, Any] = {"type": "reasoning", "id": f"rs_{index}", "summary": []}
    place = {"item_id": f"rs_{index}", "output_index": index, "summary_index": 0}
    part = {"type": "summary_text", "text": "".join(texts)}
    kept = {"encrypted_content": signature or f"encrypted-{index}"}
    return [
        _event("response.output_item.added", output_index=index, item=item),
        _event("response.reasoning_summary_part.added", **place, part={"type": "summary_text", "text": ""}),
        *(_event("response.reasoning_summary_text.delta", **place, delta=text) for text in texts),
        _event("response.reasoning_summary_text.done", **place, text="".join(texts)),
        _event("response.reasoning_summary_part.done", **place, part=part),
        _done(index, {**item, "summary": [part], **kept}),
    ]


_EMPTY = {"arguments": ""}


def _message(index: int, texts: Sequence[str]) -> list[bytes]:
    item = {"type": "message", "id": f"msg_{index}", "role": "assistant"}
    part = {"item_id": f"msg_{index}", "output_index": index, "content_index": 0}
    content: list[Any] = [{"type": "output_text", "text": "".join(texts), "annotations": []}]
    begun: dict[str, Any] = {**item, "status": "in_progress", "content": []}
    return [
        _event("response.output_item.added", output_index=index, item=begun),
        *(_event("response.output_text.delta", **part, delta=text) for text in texts),
        _done(index, {**item, "status": "completed", "content": content}),
    ]


def _call(call: Call, index: int, is_custom: bool) -> Mapping[str, Any]:
    arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments, ensure_ascii=False)
    item = {"call_id": call.id or f"call_{index}", "name": call.name}
    if is_custom:
        return {"type": "custom_tool_call", "id": f"ct_{index}", "status": "completed", **item, "input": arguments}
    return {"type": "function_call", "id": f"fc_{index}", **item, "arguments": arguments}


def _done(index: int, item: Mapping[str, Any]) -> bytes:
    return _event("response.output_item.done", output_index=index, item=item)


def _event(name: str, **data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data}, ensure_ascii=False)}\n\n".encode()


def _error(status: int, message: str, *, code: str | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return Answer.json({"error": error}, status, headers)


if __name__ == "__main__":
    run_as_program(ResponsesWire)
