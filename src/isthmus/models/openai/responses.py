"""OpenAI's Responses over its SDK: the API in which a model keeps its reasoning between the calls of a turn.

Used for OpenAI's own server; servers that imitate OpenAI have Chat Completions
(:mod:`isthmus.models.openai.chat_completions`). The
events are read as raw JSON. https://platform.openai.com/docs/api-reference/responses-streaming
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from typing_extensions import override

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.models.answer_reader import AnswerReader, StreamedAnswer
from isthmus.models.attachments import Attachments
from isthmus.models.conversation import used_ids
from isthmus.models.endpoint.endpoint import ModelEndpoint
from isthmus.models.endpoint.failure import HttpFailure, error_object
from isthmus.models.endpoint.providers import OPENAI
from isthmus.models.openai.chat_body import origin_of
from isthmus.models.openai.chat_completions import OpenAIModel
from isthmus.models.openai.responses_body import ITEM, custom_tools, responses_body
from isthmus.models.port.base import (
    Capabilities,
    Finish,
    Message,
    ModelRequest,
    ModelThought,
    Opaque,
    Part,
    StreamItem,
    Text,
    TextDelta,
    ThoughtDelta,
    ToolRequest,
    ToolRequestStarted,
    Usage,
)
from isthmus.models.port.received import as_count, tool_arguments, without
from isthmus.models.web_search import ResponsesSearchReader, SearchReader, responses_search

_INCOMPLETE: Mapping[str, Finish] = {"max_output_tokens": Finish.LENGTH, "content_filter": Finish.SAFETY}
_THOUGHTS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


def responses_origin_of(where: ModelEndpoint) -> str:
    """Return the origin to which items are sent back; Chat Completions of the same server has another one."""
    return f"responses-{origin_of(where)}"


class ResponsesReader(AnswerReader):
    """Reader that folds the events of one answer."""

    def __init__(
        self, origin: str, used_ids: Collection[str] = (), custom: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        super().__init__(origin, used_ids)
        self._custom = custom
        self._items: dict[int, JsonObject] = {}
        self._shown: set[tuple[int, int]] = set()
        """Summaries of which something was shown, by the index of their item and their own."""
        self._has_ended = False
        self._refused = False

    @override
    def feed(self, event: object) -> Sequence[StreamItem] | HttpFailure:
        value = as_object(event)
        index = as_count(value.get("output_index"))
        match kind := as_text(value.get("type")):
            case "error" | "response.failed":
                failed = as_object(value.get("response")).get("error") or value.get("error") or value
                return HttpFailure(None, error_object({"error": failed}))
            case "response.output_text.delta":
                return self._text(value)
            case "response.refusal.delta":
                self._refused = True
                return self._text(value)
            case "response.output_item.added":
                item = as_object(value.get("item"))
                name = as_text(item.get("name"))
                is_call = item.get("type") in ("function_call", "custom_tool_call")
                return (ToolRequestStarted(name),) if is_call and name else ()
            case "response.output_item.done":
                self._items[index] = as_object(value.get("item"))
            case "response.completed" | "response.incomplete":
                response = as_object(value.get("response"))
                self._has_ended = True
                self._usage = as_object(response.get("usage"))
                self._reason = as_text(as_object(response.get("incomplete_details")).get("reason")) or "completed"
            case _ if kind in _THOUGHTS:
                return self._thought(value, index)
            case _:
                pass
        return ()

    def _text(self, value: Mapping[str, Any]) -> Sequence[StreamItem]:
        delta = as_text(value.get("delta"))
        return (TextDelta(delta),) if delta else ()

    def _thought(self, value: Mapping[str, Any], index: int) -> Sequence[StreamItem]:
        delta = as_text(value.get("delta"))
        place = (index, as_count(value.get("summary_index")))
        # Each summary is a paragraph.
        gap = "\n\n" if self._shown and place not in self._shown else ""
        self._shown.add(place)
        return (ThoughtDelta(gap + delta),) if delta else ()

    @override
    def answer(self) -> StreamedAnswer:
        parts: list[Part] = []
        for _, item in sorted(self._items.items()):
            parts += self._parts(item)
        calls = [part for part in parts if isinstance(part, ToolRequest)]
        finish = _INCOMPLETE.get(self._reason, Finish.STOP if self._reason == "completed" else Finish.OTHER)
        if self._refused:
            finish = Finish.SAFETY
        elif calls and finish is Finish.STOP:
            finish = Finish.TOOL_CALLS
        message = Message("assistant", tuple(parts))
        return StreamedAnswer(message, self._read_usage(), finish, self._reason or None, ended=self._has_ended)

    def _parts(self, item: JsonObject) -> Sequence[Part]:
        match item.get("type"):
            case "message":
                contents = map(as_object, as_list(item.get("content")))
                text = "".join(as_text(part.get("text") or part.get("refusal")) for part in contents)
                return (Text(text),) if text else ()
            case "reasoning":
                texts = [*as_list(item.get("summary")), *as_list(item.get("content"))]
                text = "\n\n".join(as_text(as_object(part).get("text")) for part in texts)
                return (ModelThought(text, self._state({ITEM: without(item, "status")})),)
            case "function_call":
                arguments, invalid = tool_arguments(as_text(item.get("arguments")))
                given, name = as_text(item.get("call_id")), as_text(item.get("name"))
                return (self._request(given, name, arguments, {}, invalid),)
            case "custom_tool_call":
                given, name = as_text(item.get("call_id")), as_text(item.get("name"))
                argument = self._custom.get(name, "input")
                return (self._request(given, name, {argument: as_text(item.get("input"))}, {}, None),)
            case _:
                return (Opaque(self._origin, dict(item)),)

    def _read_usage(self) -> Usage:
        given = as_object(self._usage.get("input_tokens_details"))
        made = as_object(self._usage.get("output_tokens_details"))
        return Usage(
            input=self._count("input_tokens"),
            output=self._count("output_tokens"),
            cached=as_count(given.get("cached_tokens")),
            cache_write=as_count(given.get("cache_write_tokens")),
            thoughts=as_count(made.get("reasoning_tokens")),
        )


class ResponsesModel(OpenAIModel):
    """A model of OpenAI by the Responses API."""

    path = "/responses"

    @property
    @override
    def provider(self) -> str:
        return OPENAI.id

    @property
    @override
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, web_search=True)

    @override
    def _search(self, query: str) -> tuple[JsonObject, SearchReader] | None:
        return responses_search(query, self.name), ResponsesSearchReader()

    @override
    def _body(self, request: ModelRequest, attachments: Attachments) -> JsonObject:
        return responses_body(request, self.name, responses_origin_of(self._endpoint), attachments)

    @override
    def _reader(self, request: ModelRequest) -> AnswerReader:
        origin = responses_origin_of(self._endpoint)
        return ResponsesReader(origin, used_ids(request.messages), custom_tools(request))


MODEL = ResponsesModel
