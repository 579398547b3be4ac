"""A fake Gemini API: /v1beta/models/M:streamGenerateContent?alt=sse, :generateContent and :countTokens.

It works with google-genai and the real Gemini CLI. See scripted_wire.py for how to use it.
"""

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

FINISH = {"stop": "STOP", "length": "MAX_TOKENS", "safety": "SAFETY"}
STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}


class GeminiWire(ScriptedWire):
    """A fake Gemini API; put `base_url` into GOOGLE_GEMINI_BASE_URL."""

    provider = "gemini"

    def asks_model(self, request: WireRequest) -> bool:
        return request.path.endswith((":streamGenerateContent", ":generateContent"))

    def answer_other(self, request: WireRequest) -> Answer:
        if request.path.endswith(":countTokens"):
            return Answer.json({"totalTokens": max(1, len(request.body) // 4)})
        return _error(404, f"no such path: {request.path}")

    def events(self, reply: Reply, request: WireRequest) -> Sequence[bytes]:
        chunks = [_chunk(parts, request) for parts in _parts(reply)]
        last = chunks[-1] if chunks else _chunk([], request)
        if not chunks:
            del last["candidates"][0]["content"]
            chunks = [last]
        if reply.finish is not None:
            last["candidates"][0]["finishReason"] = FINISH[reply.finish]
        if reply.usage is not None:
            last["usageMetadata"] = _usage(reply.usage)
        return [b"data: " + json.dumps(chunk, ensure_ascii=False).encode() + b"\r\n\r\n" for chunk in chunks]

    def unstreamed(self, reply: Reply, request: WireRequest) -> Answer | None:
        if request.path.endswith(":streamGenerateContent"):
            return None
        whole = _chunk([part for parts in _parts(reply) for part in parts], request)
        if reply.finish is not None:
            whole["candidates"][0]["finishReason"] = FINISH[reply.finish]
        if reply.usage is not None:
            whole["usageMetadata"] = _usage(reply.usage)
        return Answer.json(whole)

    def failure(self, failure: Failure, request: WireRequest) -> Answer:
        match failure.kind:
            case "context_too_long":
                return _error(
                    400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)."
                )
            case "unknown_model":
                return _error(
                    404, "models/nope is not found for API version v1beta, or is not supported for generateContent."
                )
            case "wrong_key":
                reason = {
                    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                    "reason": "API_KEY_INVALID",
                    "domain": "googleapis.com",
                }
                return _error(400, "API key not valid. Please pass a valid API key.", details=[reason])
            case "plain":
                return _error(failure.status, failure.message, headers=retry_headers(failure))


def _parts(reply: Reply) -> Iterator[list[dict[str, Any]]]:
    """Yield the parts of each chunk."""
    for step in reply.steps:
        match step:
            case Say(texts, signature):
                for index, text in enumerate(texts):
                    yield [_signed({"text": text}, signature if index == len(texts) - 1 else None)]
            case Think(texts, signature):
                for index, text in enumerate(texts):
                    yield [_signed({"text": text, "thought": True}, signature if index == len(texts) - 1 else None)]
            case Call(name, arguments, identity, signature):
                call: dict[str, Any] = {"name": name, "args": arguments}
                if identity is not None:
                    call["id"] = identity
                yield [_signed({"functionCall": call}, signature)]
            case Unknown(raw):
                yield [dict(raw)]


def _signed(part: dict[str, Any], signature: str | None) -> dict[str, Any]:
    return part if signature is None else {**part, "thoughtSignature": signature}


def _chunk(parts: list[dict[str, Any]], request: WireRequest) -> dict[str, Any]:
    model = request.path.rpartition("/")[2].partition(":")[0]
    return {
        "candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}],
        "modelVersion": model,
        "responseId": "scripted-response",
    }


def _usage(usage: WireUsage) -> dict[str, int]:
    # Gemini counts thoughts beside the candidates, and cached tokens inside the prompt.
    counts = {
        "promptTokenCount": usage.input,
        "candidatesTokenCount": usage.output - usage.thoughts,
        "totalTokenCount": usage.input + usage.output,
    }
    if usage.cached:
        counts["cachedContentTokenCount"] = usage.cached
    if usage.thoughts:
        counts["thoughtsTokenCount"] = usage.thoughts
    return counts


def _error(
    status: int, message: str, *, details: Sequence[Mapping[str, Any]] = (), headers: Mapping[str, str] | None = None
) -> Answer:
    body: dict[str, Any] = {"code": status, "message": message, "status": STATUS.get(status, "UNKNOWN")}
    if details:
        body["details"] = list(details)
    return Answer.json({"error": body}, status, headers)


if __name__ == "__main__":
    run_as_program(GeminiWire)
