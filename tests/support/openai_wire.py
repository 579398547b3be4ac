"""A fake server of OpenAI's Chat Completions: POST /v1/chat/completions with stream, and GET /v1/models.

See scripted_wire.py for how to use it. `quirks` makes it behave like the servers that imitate that wire.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from support.scripted_wire import (
    Call,
    Failure,
    Replies,
    Reply,
    Say,
    ScriptedWire,
    Think,
    Unknown,
    WireUsage,
    retry_headers,
    run_as_program,
    split_arguments,
)
from support.wire_server import Answer, WireRequest

FINISH = {"stop": "stop", "length": "length", "safety": "content_filter"}


@dataclass(frozen=True, slots=True)
class Quirks:
    """Differences between a server and OpenAI's own.

    `index_zero`: every tool call has index 0, and comes whole in one chunk (Ollama, some proxies).
    `no_ids`: tool calls have no id. `thought_field`: the field with thoughts (`reasoning_content`: DeepSeek, llama.cpp,
    vLLM; `reasoning`: OpenRouter, Ollama, newer vLLM). `no_done`: the stream ends without `[DONE]`.
    `no_reason`: the stream ends with it alone, without a finish reason.
    """

    index_zero: bool = False
    no_ids: bool = False
    thought_field: str = "reasoning_content"
    no_done: bool = False
    no_reason: bool = False


class OpenAIWire(ScriptedWire):
    """A fake OpenAI API; put `base_url` into OPENAI_BASE_URL (it ends in /v1)."""

    provider = "openai"

    def __init__(self, replies: Replies = (), port: int = 0, *, quirks: Quirks | None = None) -> None:
        super().__init__(replies, port)
        self.quirks = quirks or Quirks()

    @property
    def base_url(self) -> str:
        return super().base_url + "/v1"

    def asks_model(self, request: WireRequest) -> bool:
        return request.path == "/v1/chat/completions"

    def answer_other(self, request: WireRequest) -> Answer:
        if request.path == "/v1/models":
            return Answer.json({"object": "list", "data": [{"id": "scripted", "object": "model"}]})
        return _error(404, f"no such path: {request.path}")

    def events(self, reply: Reply, request: WireRequest) -> Sequence[bytes]:
        model = request.json.get("model")
        events = [_chunk(model, reply.identity, delta) for delta in self._deltas(reply)]
        if reply.finish is not None:
            has_calls = any(isinstance(step, Call) for step in reply.steps)
            reason = "tool_calls" if has_calls and reply.finish == "stop" else FINISH[reply.finish]
            events.append(_chunk(model, reply.identity, {}, finish_reason=None if self.quirks.no_reason else reason))
        if reply.usage is not None and request.json.get("stream_options", {}).get("include_usage"):
            events.append(_data({**_envelope(model, reply.identity), "choices": [], "usage": _usage(reply.usage)}))
        if reply.finish is not None and not self.quirks.no_done:
            events.append(b"data: [DONE]\n\n")
        return events

    def _deltas(self, reply: Reply) -> list[dict[str, Any]]:
        deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
        calls = 0
        for step in reply.steps:
            match step:
                case Say(texts):
                    deltas += [{"content": text} for text in texts]
                case Think(texts, signature):
                    deltas += [{self.quirks.thought_field: text} for text in texts]
                    if signature is not None:
                        detail = {"type": "reasoning.encrypted", "data": signature, "index": 0}
                        deltas.append({"reasoning_details": [detail]})
                case Call():
                    deltas += self._call(step, calls)
                    calls += 1
                case Unknown(raw):
                    deltas.append(dict(raw))
        return deltas

    def _call(self, call: Call, position: int) -> list[dict[str, Any]]:
        arguments = call.arguments
        text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        head: dict[str, Any] = {"index": 0 if self.quirks.index_zero else position, "type": "function"}
        if not self.quirks.no_ids:
            head["id"] = call.id or f"call_{position}"
        if self.quirks.index_zero:
            return [{"tool_calls": [{**head, "function": {"name": call.name, "arguments": text}}]}]
        first = {**head, "function": {"name": call.name, "arguments": ""}}
        rest = [{"index": position, "function": {"arguments": part}} for part in split_arguments(text)]
        return [{"tool_calls": [item]} for item in (first, *rest)]

    def failure(self, failure: Failure, request: WireRequest) -> Answer:
        match failure.kind:
            case "context_too_long":
                message = (
                    "This model's maximum context length is 128000 tokens. However, your messages resulted in 140512 "
                    "tokens. Please reduce the length of the messages."
                )
                return _error(400, message, code="context_length_exceeded")
            case "unknown_model":
                message = "The model `nope` does not exist or you do not have access to it."
                return _error(404, message, code="model_not_found")
            case "wrong_key":
                key = request.headers.get("authorization", "").removeprefix("Bearer ")
                return _error(401, f"Incorrect API key provided: {key}.", code="invalid_api_key")
            case "plain":
                return _error(failure.status, failure.message, headers=retry_headers(failure))


def _envelope(model: str | None, identity: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{identity}", "object": "chat.completion.chunk", "created": 1, "model": model}


def _chunk(model: str | None, identity: str, delta: Mapping[str, Any], finish_reason: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return _data({**_envelope(model, identity), "choices": [choice]})


def _usage(usage: WireUsage) -> dict[str, Any]:
    written = {"cache_write_tokens": usage.cache_write} if usage.cache_write else {}
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, **written},
        "completion_tokens_details": {"reasoning_tokens": usage.thoughts},
    }


def _data(body: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(body, ensure_ascii=False)}\n\n".encode()


def _error(status: int, message: str, *, code: str | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return Answer.json(body, status, headers)


if __name__ == "__main__":
    run_as_program(OpenAIWire)
