"""A fake Anthropic API: POST /v1/messages with its server-sent events.

See scripted_wire.py for how to use it. `Think` makes a thinking block with its signature; an `Unknown` with a `type`
becomes a content block of that kind.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from support.scripted_wire import (
    Call,
    Failure,
    Reply,
    Say,
    ScriptedWire,
    Step,
    Think,
    Unknown,
    WireUsage,
    retry_headers,
    run_as_program,
    split_arguments,
)
from support.wire_server import Answer, WireRequest

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


class AnthropicWire(ScriptedWire):
    """A fake Anthropic API; put `base_url` into ANTHROPIC_BASE_URL."""

    provider = "anthropic"

    def asks_model(self, request: WireRequest) -> bool:
        return request.path == "/v1/messages"

    def answer_other(self, request: WireRequest) -> Answer:
        if request.path == "/v1/messages/count_tokens":
            return Answer.json({"input_tokens": max(1, len(request.body) // 4)})
        return _error(404, f"no such path: {request.path}")

    def events(self, reply: Reply, request: WireRequest) -> Sequence[bytes]:
        usage = reply.usage or WireUsage(0, 0)
        message: dict[str, Any] = {
            "id": f"msg_{reply.identity}",
            "type": "message",
            "role": "assistant",
            "model": request.json.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }
        if reply.usage is not None:
            message["usage"] = _input_usage(usage)
        events = [_event("message_start", message=message), _event("ping")]
        for index, step in enumerate(reply.steps):
            events += _block(index, step)
        if reply.finish is not None:
            delta = {"stop_reason": _stop_reason(reply), "stop_sequence": None}
            counts = {} if reply.usage is None else {"usage": {"output_tokens": usage.output}}
            events += [_event("message_delta", delta=delta, **counts), _event("message_stop")]
        return events

    def failure(self, failure: Failure, request: WireRequest) -> Answer:
        match failure.kind:
            case "context_too_long":
                return _error(400, "prompt is too long: 208310 tokens > 200000 maximum")
            case "unknown_model":
                return _error(404, "model: nope")
            case "wrong_key":
                return _error(401, "invalid x-api-key")
            case "plain":
                return _error(failure.status, failure.message, retry_headers(failure))


def _block(index: int, step: Step) -> list[bytes]:
    match step:
        case Say(texts):
            start: Mapping[str, Any] = {"type": "text", "text": ""}
            deltas: list[Mapping[str, Any]] = [{"type": "text_delta", "text": text} for text in texts]
        case Think(texts, signature):
            start = {"type": "thinking", "thinking": "", "signature": ""}
            deltas = [{"type": "thinking_delta", "thinking": text} for text in texts]
            if signature is not None:
                deltas.append({"type": "signature_delta", "signature": signature})
        case Call(name, arguments, identity):
            start = {"type": "tool_use", "id": identity or f"toolu_{index}", "name": name, "input": {}}
            text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in ("", *split_arguments(text))]
        case Unknown(raw):
            start, deltas = raw, []
    return [
        _event("content_block_start", index=index, content_block=start),
        *(_event("content_block_delta", index=index, delta=delta) for delta in deltas),
        _event("content_block_stop", index=index),
    ]


def _stop_reason(reply: Reply) -> str:
    match reply.finish:
        case "length":
            return "max_tokens"
        case "safety":
            return "refusal"
        case _:
            return "tool_use" if any(isinstance(step, Call) for step in reply.steps) else "end_turn"


def _input_usage(usage: WireUsage) -> dict[str, Any]:
    short = usage.cache_write - usage.cache_write_1h
    by_lifetime = {"ephemeral_5m_input_tokens": short, "ephemeral_1h_input_tokens": usage.cache_write_1h}
    # Anthropic counts tokens read from and written to the cache beside the input.
    return {
        "input_tokens": usage.input - usage.cached - usage.cache_write,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached,
        **({"cache_creation": by_lifetime} if usage.cache_write_1h else {}),
        "output_tokens": 1,
    }


def _event(name: str, **data: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **data}, ensure_ascii=False)}\n\n".encode()


def _error(status: int, message: str, headers: Mapping[str, str] | None = None) -> Answer:
    kind = ERROR_TYPES.get(status, "api_error")
    body = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_scripted"}
    return Answer.json(body, status, headers)


if __name__ == "__main__":
    run_as_program(AnthropicWire)
