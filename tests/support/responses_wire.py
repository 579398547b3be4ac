"""A fake server of OpenAI's Responses: POST /v1/responses with its server-sent events, as Codex uses it.

See scripted_wire.py for how to use it. A call of a tool that the request declares as ``custom`` (``apply_patch``)
becomes a custom tool call; its arguments are a string.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from support.scripted_wire import Call, Failure, Reply, Say, ScriptedWire, Think, Unknown, WireUsage, run_as_program
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
        custom = {tool["name"] for tool in request.json.get("tools", []) if tool["type"] == "custom"}
        events = [_event("response.created", response={"id": "resp_scripted"})]
        for index, step in enumerate(reply.steps):
            match step:
                case Say(texts):
                    events += _message(index, texts)
                case Call():
                    events.append(_done(index, _call(step, index, step.name in custom)))
                case Unknown(raw):
                    events.append(_done(index, raw))
                case Think(texts):
                    summary = [{"type": "summary_text", "text": "".join(texts)}]
                    events.append(_done(index, {"type": "reasoning", "id": f"rs_{index}", "summary": summary}))
        usage = reply.usage or WireUsage(0, 0)
        counts = {
            "input_tokens": usage.input,
            "output_tokens": usage.output,
            "total_tokens": usage.input + usage.output,
        }
        return [*events, _event("response.completed", response={"id": "resp_scripted", "usage": counts})]

    def failure(self, failure: Failure, request: WireRequest) -> Answer:
        return _error(failure.status, failure.message)


def _message(index: int, texts: Sequence[str]) -> list[bytes]:
    item = {"type": "message", "id": f"msg_{index}", "role": "assistant"}
    part = {"item_id": f"msg_{index}", "output_index": index, "content_index": 0}
    content = [{"type": "output_text", "text": "".join(texts)}]
    return [
        _event("response.output_item.added", output_index=index, item={**item, "content": []}),
        *(_event("response.output_text.delta", **part, delta=text) for text in texts),
        _done(index, {**item, "content": content}),
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


def _error(status: int, message: str) -> Answer:
    return Answer.json(
        {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}, status
    )


if __name__ == "__main__":
    run_as_program(ResponsesWire)
