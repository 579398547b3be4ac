"""Search of the web by a model's provider: the request in each provider's JSON, and the reader of its answer. Pure.

The query alone is sent, without the conversation. Sources are numbered in the order in which they are first named.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from typing_extensions import override

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.models.port.base import SearchAnswer, SearchSource, Usage
from isthmus.models.port.received import as_count

MAXIMUM_TOKENS = 4096
"""Maximum length of an answer in tokens, where a provider requires one."""
MAXIMUM_SOURCES = 30


class SearchReader(ABC):
    """Reader of the events of one answer. ``sources`` maps the URL of a source to its title."""

    def __init__(self) -> None:
        self.text = ""
        self.sources: dict[str, str] = {}
        self.usage = Usage()

    @abstractmethod
    def feed(self, event: object) -> None:
        """Take the next event of the answer."""

    def answer(self) -> SearchAnswer:
        """Return the answer after its last event."""
        found = [SearchSource(title or url, url) for url, title in self.sources.items()]
        return SearchAnswer(self.text.strip(), tuple(found[:MAXIMUM_SOURCES]), self.usage)

    def _add(self, url: object, title: object) -> int | None:
        """Add a source unless it is known; return its number from 1, None if it has no address of the web."""
        address = as_text(url)
        if not address.startswith(("https://", "http://")) or not address.isprintable():
            return None
        self.sources.setdefault(address, as_text(title))
        return list(self.sources).index(address) + 1


def gemini_search(query: str) -> JsonObject:
    """Return the body of Gemini's request."""
    return {"contents": [{"role": "user", "parts": [{"text": query}]}], "tools": [{"googleSearch": {}}]}


class GeminiSearchReader(SearchReader):
    """Reader for Gemini: the sources and the ranges that they support come with the last chunk."""

    def __init__(self) -> None:
        super().__init__()
        self._grounding: Mapping[str, Any] = {}

    @override
    def feed(self, event: object) -> None:
        chunk = as_object(event)
        candidate = as_object(next(iter(as_list(chunk.get("candidates"))), None))
        for part in map(as_object, as_list(as_object(candidate.get("content")).get("parts"))):
            if part.get("thought") is not True:
                self.text += as_text(part.get("text"))
        self._grounding = as_object(candidate.get("groundingMetadata")) or self._grounding
        if usage := as_object(chunk.get("usageMetadata")):
            thoughts = as_count(usage.get("thoughtsTokenCount"))
            asked = as_count(usage.get("promptTokenCount")) + as_count(usage.get("toolUsePromptTokenCount"))
            self.usage = Usage(asked, as_count(usage.get("candidatesTokenCount")) + thoughts, thoughts=thoughts)

    @override
    def answer(self) -> SearchAnswer:
        # With the numbers of its sources after the passages that they support.
        webs = [as_object(as_object(item).get("web")) for item in as_list(self._grounding.get("groundingChunks"))]
        numbers = [self._add(web.get("uri"), web.get("title")) for web in webs]
        data = self.text.encode()
        marks: dict[int, str] = {}
        for item in map(as_object, as_list(self._grounding.get("groundingSupports"))):
            end = as_count(as_object(item.get("segment")).get("endIndex"))  # in bytes
            given = [index for index in as_list(item.get("groundingChunkIndices")) if isinstance(index, int)]
            named = sorted({number for index in given if 0 <= index < len(numbers) and (number := numbers[index])})
            if named and 0 < end <= len(data):
                marks[end] = "".join(f"[{number}]" for number in named)
        for end in sorted(marks, reverse=True):
            data = data[:end] + marks[end].encode() + data[end:]
        self.text = data.decode(errors="replace")
        return super().answer()


def anthropic_search(query: str, model: str) -> JsonObject:
    """Return the body of Anthropic's request."""
    return {
        "model": model,
        "max_tokens": MAXIMUM_TOKENS,
        "stream": True,
        "messages": [{"role": "user", "content": f"Search the web and answer with what you find: {query}"}],
        "tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}],
    }


class AnthropicSearchReader(SearchReader):
    """Reader for Anthropic: a citation belongs to the text block in which it comes."""

    def __init__(self) -> None:
        super().__init__()
        self._cited: list[int] = []

    @override
    def feed(self, event: object) -> None:
        item = as_object(event)
        match item.get("type"):
            case "message_start":
                usage = as_object(as_object(item.get("message")).get("usage"))
                self.usage = Usage(as_count(usage.get("input_tokens")))
            case "content_block_start":
                self._cited = []
            case "content_block_delta":
                delta = as_object(item.get("delta"))
                self.text += as_text(delta.get("text")) if delta.get("type") == "text_delta" else ""
                citation = as_object(delta.get("citation"))
                number = self._add(citation.get("url"), citation.get("title"))
                if number is not None and number not in self._cited:
                    self._cited.append(number)
            case "content_block_stop":
                self.text += "".join(f"[{number}]" for number in self._cited)
                self._cited = []
            case "message_delta":
                usage = as_object(item.get("usage"))
                asked = as_count(usage.get("input_tokens")) or self.usage.input
                self.usage = Usage(asked, as_count(usage.get("output_tokens")))
            case _:
                pass


def responses_search(query: str, model: str) -> JsonObject:
    """Return the body of a request of OpenAI's Responses."""
    return {"model": model, "stream": True, "store": False, "input": query, "tools": [{"type": "web_search"}]}


class ResponsesSearchReader(SearchReader):
    """Reader for OpenAI's Responses: each whole item of the output has its texts with their annotations."""

    @override
    def feed(self, event: object) -> None:
        item = as_object(event)
        match item.get("type"):
            case "response.output_item.done":
                self._take_item(as_object(item.get("item")))
            case "response.completed" | "response.incomplete":
                usage = as_object(as_object(item.get("response")).get("usage"))
                thoughts = as_count(as_object(usage.get("output_tokens_details")).get("reasoning_tokens"))
                cached = as_count(as_object(usage.get("input_tokens_details")).get("cached_tokens"))
                self.usage = Usage(
                    as_count(usage.get("input_tokens")),
                    as_count(usage.get("output_tokens")),
                    cached=cached,
                    thoughts=thoughts,
                )
            case _:
                pass

    def _take_item(self, item: Mapping[str, Any]) -> None:
        if item.get("type") != "message":
            return
        for part in map(as_object, as_list(item.get("content"))):
            text = as_text(part.get("text"))
            marks: dict[int, str] = {}
            for note in map(as_object, as_list(part.get("annotations"))):
                number = self._add(note.get("url"), note.get("title")) if note.get("type") == "url_citation" else None
                end = as_count(note.get("end_index"))  # in characters
                if number is not None and 0 < end <= len(text):
                    marks[end] = marks.get(end, "") + f"[{number}]"
            for end in sorted(marks, reverse=True):
                text = text[:end] + marks[end] + text[end:]
            self.text += text
