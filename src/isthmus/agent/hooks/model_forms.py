"""Requests and answers of a model in the form that Gemini CLI's hooks get and return, and back. Pure.

The form has only text: calls, results and media are not in it, and stay as they are. It is the same for every provider.
Its source is ``packages/core/src/hooks/hookTranslator.ts`` of Gemini CLI.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object, as_text, is_object
from isthmus.models.port.base import Finish, Message, ModelRequest, Sampling, Text, Usage, text_of
from isthmus.models.port.message import ROLES
from isthmus.record import record

_ROLES = MappingProxyType({"user": "user", "model": "assistant"})
_FINISH: Mapping[Finish, str] = MappingProxyType(
    {
        Finish.STOP: "STOP",
        Finish.TOOL_CALLS: "STOP",
        Finish.LENGTH: "MAX_TOKENS",
        Finish.SAFETY: "SAFETY",
        Finish.OTHER: "OTHER",
    }
)


class UnusableFormError(ValueError):
    """A hook returned something that cannot be carried out; the text says what was expected and what came."""


@record
class NamedRequest:
    """A request, with the name of the model that is to answer it."""

    model: str
    request: ModelRequest


def request_form(named: NamedRequest) -> dict[str, Any]:
    """Return the ``llm_request`` of a hook; the system prompt and the tools are not in it."""
    request = named.request
    messages = [
        {"role": "user" if message.role == "user" else "model", "content": text}
        for message in _joined(request.messages)
        if (text := text_of(message))
    ]
    return {"model": named.model, "messages": messages, "config": _config(request)}


def response_form(text: str, finish: Finish | None, usage: Usage | None) -> dict[str, Any]:
    """Return the ``llm_response`` of a hook for a part of an answer; ``finish`` and ``usage`` are in its last part."""
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": [text] if text else []}, "index": 0}
    if finish is not None:
        candidate["finishReason"] = _FINISH[finish]
    form: dict[str, Any] = {"text": text, "candidates": [candidate]}
    if usage is not None:
        form["usageMetadata"] = {
            "promptTokenCount": usage.input,
            "candidatesTokenCount": usage.output - usage.thoughts,
            "totalTokenCount": usage.input + usage.output,
        }
    return form


def response_text(form: object) -> str | None:
    """Return the text of an ``llm_response`` that a hook returned; None if it has no part, and so replaces nothing.

    Raises:
        UnusableFormError: it has another form.
    """
    if not is_object(form):
        raise UnusableFormError(f"llm_response must be an object; it is {_shown(form)}")
    candidates = form.get("candidates")
    if not isinstance(candidates, list):
        raise UnusableFormError(f"llm_response.candidates must be a list; it is {_shown(candidates)}")
    parts = as_list(as_object(as_object(next(iter(as_list(form.get("candidates"))), None)).get("content")).get("parts"))
    texts = [part if isinstance(part, str) else as_object(part).get("text") for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise UnusableFormError("the parts of an llm_response must be texts")
    return "".join(map(as_text, texts)) if texts else None


def changed_request(named: NamedRequest, form: object) -> NamedRequest:
    """Return a request with what a hook's ``llm_request`` has otherwise; what it leaves out stays.

    Messages are matched by their order, as in Gemini CLI: the first one of the form takes the place of the text of the
    first message with text, and so on; more of them are added at the end, and fewer leave the rest as it is.

    Raises:
        UnusableFormError: something in it cannot be carried out.
    """
    if not is_object(form):
        raise UnusableFormError(f"llm_request must be an object; it is {_shown(form)}")
    given = request_form(named)
    request, model = named.request, named.model
    if (wanted := form.get("model")) is not None:
        if not isinstance(wanted, str) or not wanted.strip():
            raise UnusableFormError(f"llm_request.model must be a name; it is {_shown(wanted)}")
        model = wanted
    if (messages := form.get("messages")) is not None and messages != given["messages"]:
        if not isinstance(messages, list):
            raise UnusableFormError(f"llm_request.messages must be a list; it is {_shown(messages)}")
        request = replace(request, messages=_merged(_joined(request.messages), as_list(form.get("messages"))))
    if (config := form.get("config")) is not None and config != given["config"]:
        request = _configured(request, config)
    return NamedRequest(model, request)


def with_additions(before: NamedRequest, after: NamedRequest) -> tuple[NamedRequest, tuple[str, ...]]:
    """Return a changed request in which added messages of the user are parts of the last one, and their texts.

    A text that the conversation has already is left out. Additions that cannot be kept in a conversation stay as they
    are: those of the model, and those behind a message of the model.
    """
    count = len(_joined(before.request.messages))
    kept, added = after.request.messages[:count], after.request.messages[count:]
    if not added or not kept or any(message.role != "user" for message in (kept[-1], *added)):
        return after, ()
    known = {
        part.text for message in kept if message.role == "user" for part in message.parts if isinstance(part, Text)
    }
    texts = tuple(text for text in dict.fromkeys(map(text_of, added)) if text and text not in known)
    return replace(after, request=replace(after.request, messages=with_texts(kept, texts))), texts


def with_texts(messages: Sequence[Message], texts: Iterable[str]) -> tuple[Message, ...]:
    """Return messages, of which the last one is the user's, with more texts in it."""
    last = messages[-1]
    return (*messages[:-1], replace(last, parts=(*last.parts, *map(Text, texts))))


def _joined(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages with neighbouring ones of the user as one, as a provider gets them."""
    joined: list[Message] = []
    for message in messages:
        if joined and joined[-1].role == message.role == "user":
            joined[-1] = Message("user", (*joined[-1].parts, *message.parts))
        else:
            joined.append(message)
    return joined


def _merged(messages: Sequence[Message], wanted: Sequence[object]) -> tuple[Message, ...]:
    waiting = [_message(each) for each in wanted]
    merged: list[Message] = []
    for message in messages:
        text = text_of(message)
        if not text or not waiting:
            merged.append(message)
            continue
        new = waiting.pop(0)
        others = [part for part in message.parts if not isinstance(part, Text)]
        first = next(at for at, part in enumerate(message.parts) if isinstance(part, Text))
        if text_of(new) == text and new.role == message.role:
            merged.append(message)  # with the state that its provider wants back
        elif new.role == message.role or not others:
            merged.append(Message(new.role, (*others[:first], *new.parts, *others[first:])))
        else:
            raise UnusableFormError("a message with calls, results or files cannot become one of the other side")
    return (*merged, *waiting)


def _message(value: object) -> Message:
    fields = as_object(value)
    role = ROLES.get(_ROLES.get(as_text(fields.get("role")), ""))
    content = fields.get("content")
    if role is None or not isinstance(content, str):
        raise UnusableFormError(
            "each of llm_request.messages must have the role user or model, and a text as content; "
            f"one has {_shown(fields.get('role'))} and {type(content).__name__}"
        )
    return Message(role, (Text(content),))


def _config(request: ModelRequest) -> dict[str, Any]:
    sampling = request.sampling
    values = {
        "temperature": sampling.temperature,
        "maxOutputTokens": request.max_output_tokens,
        "topP": sampling.top_p,
        "topK": sampling.top_k,
    }
    return {name: value for name, value in values.items() if value is not None}


def _configured(request: ModelRequest, config: object) -> ModelRequest:
    if not is_object(config):
        raise UnusableFormError(f"llm_request.config must be an object; it is {_shown(config)}")
    known = _config(request)
    unknown = [name for name in config if name not in ("temperature", "maxOutputTokens", "topP", "topK")]
    if unknown:
        raise UnusableFormError(f"llm_request.config cannot have {_shown(unknown[0])}")
    values = {**known, **{name: _number(name, value) for name, value in config.items() if value is not None}}
    limit, top_k = values.get("maxOutputTokens"), values.get("topK")
    return replace(
        request,
        max_output_tokens=None if limit is None else int(limit),
        sampling=Sampling(values.get("temperature"), values.get("topP"), None if top_k is None else int(top_k)),
    )


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e9:
        raise UnusableFormError(f"llm_request.config.{name} must be a number from 0; it is {_shown(value)}")
    return value


def _shown(value: object) -> str:
    return repr(value)[:80]


def names_of(form: JsonObject) -> frozenset[str]:
    """Return the names of tools in a ``toolConfig``; empty if it allows them all.

    Raises:
        UnusableFormError: they are not a list of texts.
    """
    given: object = form.get("allowedFunctionNames")
    names = as_list(given)
    if given is not None and not (isinstance(given, list) and all(isinstance(name, str) for name in names)):
        raise UnusableFormError(f"toolConfig.allowedFunctionNames must be a list of names; it is {_shown(names)}")
    return frozenset(map(str, names))
