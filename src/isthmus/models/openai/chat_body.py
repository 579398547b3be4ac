"""The body of a request to OpenAI's Chat Completions: messages, tools, and media.

Not here: the answer, see :mod:`isthmus.models.openai.chat_completions`.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, assert_never
from urllib.parse import urlsplit

from isthmus.encoding.compact_json import compact_encoder
from isthmus.encoding.json_shapes import as_text
from isthmus.encoding.remembered_json import RememberedJson
from isthmus.media import Media
from isthmus.models.attachments import NO_ATTACHMENTS, Attachment, Attachments
from isthmus.models.catalogue.table import effective_facts, owner_of_host
from isthmus.models.conversation import in_order, sampling_fields, state_for
from isthmus.models.endpoint.endpoint import ModelEndpoint
from isthmus.models.endpoint.providers import OPENAI
from isthmus.models.fitting import effort_for
from isthmus.models.port.base import (
    Effort,
    Message,
    ModelRequest,
    ModelThought,
    ModelToolResult,
    Opaque,
    Text,
    ToolChoice,
    ToolRequest,
    ToolSpec,
    text_of,
)
from isthmus.models.port.received import without

REASONING_MODELS = re.compile(r"(o\d|gpt-[5-9]|codex)", re.IGNORECASE)
"""Beginnings of the names of OpenAI's models that reason, for those without a row in the table."""
TOOL_CHOICES: Mapping[ToolChoice, str] = MappingProxyType(
    {ToolChoice.AUTO: "auto", ToolChoice.ANY: "required", ToolChoice.NONE: "none"}
)
"""Words of both of OpenAI's interfaces."""

_encode = compact_encoder(allow_nan=False)
_schema = RememberedJson(_encode)


def origin_of(where: ModelEndpoint) -> str:
    """Return the origin to which state is sent back: every server that imitates the API is its own provider."""
    return f"openai@{urlsplit(where.base_url).netloc.rpartition('@')[2]}"


def request_body(
    request: ModelRequest, name: str, origin: str, attachments: Attachments = NO_ATTACHMENTS
) -> dict[str, Any]:
    """Return the body of `POST /chat/completions`."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    wire_ids: dict[str, str] = {}
    for message in in_order(request.messages):
        if message.role == "assistant":
            messages.append(_assistant(message, origin, wire_ids))
        else:
            messages += _user(message, wire_ids, attachments)
    body: dict[str, Any] = {
        "model": name,
        "messages": messages,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    host = origin.removeprefix("openai@").partition(":")[0]
    is_openai = host.endswith(".openai.com")
    if is_openai:
        body["prompt_cache_key"] = cache_key(request)
    if (effort := _effort(request, name, host, is_openai=is_openai)) is not None:
        body["reasoning_effort"] = effort.value
    if request.tools:
        body["tools"] = [{"type": "function", "function": _function(tool, is_full=is_openai)} for tool in request.tools]
        if request.choice is not ToolChoice.AUTO:
            body["tool_choice"] = TOOL_CHOICES[request.choice]
    body |= sampling_fields(request.sampling)
    if request.max_output_tokens is not None:
        # OpenAI's own models refuse the old name, and most imitators do not know the new one.
        body["max_completion_tokens" if is_openai else "max_tokens"] = request.max_output_tokens
    return body


def cache_key(request: ModelRequest) -> str:
    """Return a key that all requests of a conversation share, so that they reach the same cache."""
    first = text_of(request.messages[0]) if request.messages else ""
    of_all = request.conversation or f"{request.system}\0{first}"
    return hashlib.sha256(of_all.encode(errors="replace")).hexdigest()[:32]


def _effort(request: ModelRequest, name: str, host: str, *, is_openai: bool) -> Effort | None:
    """Return the level to send. Models that do not reason refuse one; what an unknown imitator has is not known."""
    facts = effective_facts(OPENAI.id if is_openai else owner_of_host(host), name, {})
    if facts is None and is_openai and not REASONING_MODELS.match(name):
        return None
    return effort_for(request.effort, facts)


def encoded_body(body: Mapping[str, Any]) -> bytes:
    """Return the JSON of a body. The schemas of tools, which are most of one to Chat Completions, are encoded once."""
    rest = _encode({name: value for name, value in body.items() if name != "tools"})
    if not (tools := body.get("tools")):
        return rest.encode()
    return f'{rest[:-1]},"tools":[{",".join(map(_encoded_tool, tools))}]}}'.encode()


def _encoded_tool(tool: Mapping[str, Any]) -> str:
    function: Mapping[str, Any] | None = tool.get("function")
    if function is None:  # the form of the Responses API
        return _encode(tool)
    name, description = _encode(function["name"]), _encode(function["description"])
    schema = _schema(function["parameters"])
    return f'{{"type":"function","function":{{"name":{name},"description":{description},"parameters":{schema}}}}}'


def _function(tool: ToolSpec, *, is_full: bool) -> dict[str, Any]:
    # Imitators accept only a part of JSON Schema, and refuse the whole request otherwise.
    parameters = tool.json_schema if is_full else tool.parameters
    return {"name": tool.name, "description": tool.description, "parameters": parameters}


def _user(message: Message, wire_ids: Mapping[str, str], attachments: Attachments) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    content: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case ModelToolResult(identity, name, text, _, media):
                result = attachments.with_notes(text, media)
                results.append({"role": "tool", "tool_call_id": wire_ids.get(identity, identity), "content": result})
                if images := [_image(item) for item in attachments.of(media)]:
                    # Results can only be text here, so images go into the next user message.
                    content += [
                        {"type": "text", "text": f"What the call of {name} above gave besides its text:"},
                        *images,
                    ]
            case Text(text):
                content += [{"type": "text", "text": text}] if text else []
            case Media():
                sent = [_image(item) for item in attachments.of((part,))]
                content += sent or [{"type": "text", "text": attachments.note(part)}]
            case _:
                pass
    if not content:
        return results
    if all(item["type"] == "text" for item in content):
        # Not every server accepts a list of parts.
        return [*results, {"role": "user", "content": "\n\n".join(item["text"] for item in content)}]
    return [*results, {"role": "user", "content": content}]


def _image(attachment: Attachment) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:{attachment.media_type};base64,{attachment.data}"}}


def _assistant(message: Message, origin: str, wire_ids: dict[str, str]) -> dict[str, Any]:
    texts: list[str] = []
    calls: list[dict[str, Any]] = []
    kept: dict[str, Any] = {}
    for part in message.parts:
        match part:
            case Text(text):
                texts.append(text)
            case ModelThought(text, state):
                if name := as_text(state_for(origin, state).get("field")):
                    kept[name] = as_text(kept.get(name)) + text
            case ToolRequest(identity, name, arguments, state):
                data = state_for(origin, state)
                wire_ids[identity] = as_text(data.get("id")) or identity
                function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
                call = {**without(data, "id"), "id": wire_ids[identity], "type": "function", "function": function}
                calls.append(call)
            case Opaque(provider, raw):
                if provider == origin:
                    kept |= raw
            case ModelToolResult() | Media():
                pass
            case _:
                assert_never(part)
    text = "".join(texts)
    encoded: dict[str, Any] = {"role": "assistant", "content": text if text or not calls else None, **kept}
    return {**encoded, "tool_calls": calls} if calls else encoded
