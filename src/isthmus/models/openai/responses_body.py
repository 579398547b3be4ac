"""The body of a request to OpenAI's Responses: instructions, input items, tools, and media.

Nothing is stored on the server: the reasoning comes back encrypted, and goes with the next request.
https://platform.openai.com/docs/api-reference/responses/create. Not here: the answer, see
:mod:`isthmus.models.openai.responses`.
"""

import json
from collections.abc import Collection, Mapping
from typing import Any, assert_never

from isthmus.encoding.json_shapes import as_object, as_text
from isthmus.media import Media
from isthmus.models.attachments import NO_ATTACHMENTS, Attachment, Attachments
from isthmus.models.catalogue.facts import Thinking
from isthmus.models.catalogue.table import effective_facts
from isthmus.models.conversation import in_order, sampling_fields, state_for
from isthmus.models.endpoint.providers import OPENAI
from isthmus.models.fitting import effort_for, thinking_form
from isthmus.models.openai.chat_body import REASONING_MODELS, TOOL_CHOICES, cache_key
from isthmus.models.port.base import (
    Message,
    ModelRequest,
    ModelThought,
    ModelToolResult,
    Opaque,
    Text,
    ToolChoice,
    ToolRequest,
    ToolSpec,
)

ITEM = "item"
"""Name in the state of a thought under which its item is kept, as it came."""


def responses_body(
    request: ModelRequest, name: str, origin: str, attachments: Attachments = NO_ATTACHMENTS
) -> dict[str, Any]:
    """Return the body of `POST /responses`."""
    items: list[dict[str, Any]] = []
    wire_ids: dict[str, str] = {}
    custom = custom_tools(request)
    for message in in_order(request.messages):
        if message.role == "assistant":
            items += _assistant(message, origin, wire_ids, custom)
        else:
            items += _user(message, wire_ids, attachments, custom)
    body: dict[str, Any] = {
        "model": name,
        "instructions": request.system,
        "input": items,
        "stream": True,
        "store": False,
        "prompt_cache_key": cache_key(request),
    }
    facts = effective_facts(OPENAI.id, name, {})
    usual = Thinking.EFFORT if REASONING_MODELS.match(name) else Thinking.NONE
    if thinking_form(facts, usual) is not Thinking.NONE:
        # Models that do not reason refuse the parameters for it.
        level = effort_for(request.effort, facts)
        effort = {} if level is None else {"effort": level.value}
        body["reasoning"] = {**effort, "summary": "auto"}
        body["include"] = ["reasoning.encrypted_content"]
    if request.tools:
        body["tools"] = list(map(_tool, request.tools))
        if request.allowed is not None and request.choice is not ToolChoice.NONE:
            body["tool_choice"] = _allowed_tools(request, request.allowed)
        elif request.choice is not ToolChoice.AUTO:
            body["tool_choice"] = TOOL_CHOICES[request.choice]
    body |= sampling_fields(request.sampling)
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
    return body


def custom_tools(request: ModelRequest) -> Mapping[str, str]:
    """Return the names of the tools of a request whose input is a text, with the name of that argument."""
    return {tool.name: tool.free_form.argument for tool in request.tools if tool.free_form is not None}


def _allowed_tools(request: ModelRequest, allowed: Collection[str]) -> dict[str, Any]:
    """Return the choice among some of the tools, which leaves their list in the cache."""
    tools = [
        {"type": "function" if tool.free_form is None else "custom", "name": tool.name}
        for tool in request.tools
        if tool.name in allowed
    ]
    return {"type": "allowed_tools", "mode": TOOL_CHOICES[request.choice], "tools": tools}


def _tool(tool: ToolSpec) -> dict[str, Any]:
    about = {"name": tool.name, "description": tool.description}
    if tool.free_form is not None:
        form = {"type": "grammar", "syntax": "lark", "definition": tool.free_form.grammar}
        return {"type": "custom", **about, "format": form}
    return {"type": "function", **about, "parameters": tool.json_schema, "strict": False}


def _user(
    message: Message, wire_ids: Mapping[str, str], attachments: Attachments, custom: Mapping[str, str]
) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = []
    content: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case ModelToolResult(identity, name, text, _, media):
                output = attachments.with_notes(text, media)
                kind = "custom_tool_call_output" if name in custom else "function_call_output"
                results.append({"type": kind, "call_id": wire_ids.get(identity, identity), "output": output})
                if images := [_image(item) for item in attachments.of(media)]:
                    content += [_text(f"What the call of {name} above gave besides its text:"), *images]
            case Text(text):
                content += [_text(text)] if text else []
            case Media():
                sent = [_image(item) for item in attachments.of((part,))]
                content += sent or [_text(attachments.note(part))]
            case _:
                pass
    return [*results, {"type": "message", "role": "user", "content": content}] if content else results


def _text(text: str) -> dict[str, Any]:
    return {"type": "input_text", "text": text}


def _image(attachment: Attachment) -> dict[str, Any]:
    return {"type": "input_image", "image_url": f"data:{attachment.media_type};base64,{attachment.data}"}


def _assistant(
    message: Message, origin: str, wire_ids: dict[str, str], custom: Mapping[str, str]
) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    for part in message.parts:
        match part:
            case Text(text):
                items.append({"type": "message", "role": "assistant", "content": text})
            case ModelThought(_, state):
                if item := as_object(state_for(origin, state).get(ITEM)):
                    items.append(dict(item))
            case ToolRequest(identity, name, arguments, state):
                wire_ids[identity] = as_text(state_for(origin, state).get("id")) or identity
                about = {"call_id": wire_ids[identity], "name": name}
                if name in custom:
                    items.append({"type": "custom_tool_call", **about, "input": as_text(arguments.get(custom[name]))})
                    continue
                given = json.dumps(arguments, ensure_ascii=False)
                items.append({"type": "function_call", **about, "arguments": given})
            case Opaque(provider, raw):
                if provider == origin:
                    items.append(dict(raw))
            case ModelToolResult() | Media():
                pass
            case _:
                assert_never(part)
    return items
