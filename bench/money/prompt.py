"""The prompt of a request, as the bytes that a provider's cache compares: the same count of tokens for every client.

A token is four bytes of the compact JSON of each part, in the order in which the provider reads them; an image or a
document is 1,000 tokens. Marks of caches, and names that the model does not see, are left out.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

Wire: TypeAlias = Literal["anthropic", "chat", "responses", "gemini"]
BYTES_PER_TOKEN = 4
IMAGE_TOKENS = 1_000
FIVE_MINUTES, HALF_HOUR, HOUR, DAY = 300, 1_800, 3_600, 86_400
LIFETIMES: Mapping[str, int] = {"5m": FIVE_MINUTES, "30m": HALF_HOUR, "1h": HOUR, "12h": 12 * HOUR}
"""Seconds by the names that requests use."""
_BILLING_HEADER = "x-anthropic-billing-header:"
"""Beginning of a part by which Claude Code tells its version to the provider, and nothing to the model."""
_MEDIA_NAMES = frozenset({"media_type", "mimeType", "mime_type"})
_UNSEEN = ("cache_control", "prompt_cache_breakpoint")
_UNSEEN_OF_ITEMS = (*_UNSEEN, "id", "status")


@dataclass(frozen=True, slots=True)
class Block:
    """Part of a prompt. ``lifetime`` in seconds: the request marks its end for the cache; 0: it does not.

    ``is_new`` is True for the last part of a message that the model did not write.
    """

    place: str
    data: bytes
    lifetime: int = 0
    is_new: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """Prompt of a request. ``key`` is the client's name for the cache, ``retention`` its wish; both may be empty."""

    wire: Wire
    model: str
    blocks: tuple[Block, ...]
    key: str = ""
    retention: str = ""
    is_explicit: bool = False
    """Whether only marked ends are cached (OpenAI's mode ``explicit``)."""

    @property
    def size(self) -> int:
        """Number of tokens."""
        return sum(len(block.data) for block in self.blocks) // BYTES_PER_TOKEN


def tokens_of(value: object) -> int:
    """Return the number of tokens of a text, or of a value as JSON; at least 1."""
    data = value.encode() if isinstance(value, str) else _rendered(value)
    return max(1, -(-len(data) // BYTES_PER_TOKEN))


def read_prompt(wire: Wire, path: str, body: Mapping[str, Any]) -> Prompt:
    """Return the prompt of a request: its tools, instructions and messages in the order of the provider."""
    match wire:
        case "anthropic":
            return _anthropic(body)
        case "chat":
            return _chat(body)
        case "responses":
            return _responses(body)
        case "gemini":
            return _gemini(path, body)


def _anthropic(body: Mapping[str, Any]) -> Prompt:
    blocks = [Block(f"tools[{n}]", _rendered(tool), _lifetime(tool)) for n, tool in enumerate(body.get("tools", ()))]
    system = [part for part in _parts(body.get("system")) if not part.get("text", "").startswith(_BILLING_HEADER)]
    blocks += [Block(f"system[{n}]", _rendered(part), _lifetime(part)) for n, part in enumerate(system)]
    # A change of these empties the cache of messages alone.
    switches = {name: body[name] for name in ("tool_choice", "thinking") if name in body}
    for number, message in enumerate(body["messages"]):
        parts = _parts(message["content"])
        for place, part in enumerate(parts):
            shown = {"role": message["role"], **({"switches": switches} if number == place == 0 else {}), "part": part}
            is_new = message["role"] != "assistant" and place == len(parts) - 1
            blocks.append(Block(f"messages[{number}][{place}]", _rendered(shown), _lifetime(part), is_new))
    if (mark := body.get("cache_control")) is not None and blocks:
        last = blocks[-1]
        blocks[-1] = Block(last.place, last.data, last.lifetime or LIFETIMES[mark.get("ttl", "5m")], last.is_new)
    return Prompt("anthropic", body["model"], tuple(blocks))


def _chat(body: Mapping[str, Any]) -> Prompt:
    blocks = [Block(f"tools[{n}]", _rendered(tool)) for n, tool in enumerate(body.get("tools") or ())]
    if "response_format" in body:
        blocks.append(Block("response_format", _rendered(body["response_format"])))
    for number, message in enumerate(body["messages"]):
        is_new = message["role"] != "assistant"
        blocks.append(Block(f"messages[{number}]", _rendered(message), _marked(message), is_new))
    return _openai("chat", body, blocks)


def _responses(body: Mapping[str, Any]) -> Prompt:
    blocks = [Block(f"tools[{n}]", _rendered(tool)) for n, tool in enumerate(body.get("tools") or ())]
    text: Mapping[str, Any] = body.get("text") or {}
    if form := text.get("format"):
        blocks.append(Block("text.format", _rendered(form)))
    if body.get("instructions"):
        blocks.append(Block("instructions", body["instructions"].encode()))
    given: Any = body["input"]
    items: Sequence[Mapping[str, Any]] = [{"role": "user", "content": given}] if isinstance(given, str) else given
    for number, item in enumerate(items):
        kind = item.get("type", "message")
        is_new = item.get("role") not in (None, "assistant") or kind.endswith("_output")
        shown = {name: value for name, value in item.items() if name not in _UNSEEN_OF_ITEMS}
        blocks.append(Block(f"input[{number}]", _rendered(shown), _marked(item), is_new))
    return _openai("responses", body, blocks)


def _openai(wire: Wire, body: Mapping[str, Any], blocks: Sequence[Block]) -> Prompt:
    options: Mapping[str, Any] = body.get("prompt_cache_options") or {}
    return Prompt(
        wire,
        body["model"],
        tuple(blocks),
        body.get("prompt_cache_key") or "",
        body.get("prompt_cache_retention") or "",
        options.get("mode") == "explicit",
    )


def _gemini(path: str, body: Mapping[str, Any]) -> Prompt:
    model = path.rpartition("/")[2].partition(":")[0]
    blocks: list[Block] = []
    for name in ("systemInstruction", "tools", "toolConfig"):
        if body.get(name):
            blocks.append(Block(name, _rendered(body[name])))
    for number, content in enumerate(body["contents"]):
        parts = content.get("parts", ())
        for place, part in enumerate(parts):
            is_new = content.get("role") != "model" and place == len(parts) - 1
            shown = {"role": content.get("role"), "part": part}
            blocks.append(Block(f"contents[{number}][{place}]", _rendered(shown), is_new=is_new))
    return Prompt("gemini", model, tuple(blocks))


def _parts(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or ())


def _lifetime(part: Mapping[str, Any]) -> int:
    """Return the seconds of a mark of Anthropic's on a part, or on the last part within it."""
    mark = part.get("cache_control")
    if mark is None and part.get("type") == "tool_result" and isinstance(part.get("content"), list):
        return max((_lifetime(inner) for inner in part["content"]), default=0)
    return 0 if not mark else LIFETIMES[mark.get("ttl", "5m")]


def _marked(message: Mapping[str, Any]) -> int:
    """Return the seconds of OpenAI's marks on a message; 0 without one."""
    content: Any = message.get("content", message.get("output"))
    parts: Sequence[Mapping[str, Any]] = () if isinstance(content, str) else content or ()
    marks = [message.get("prompt_cache_breakpoint"), *(part.get("prompt_cache_breakpoint") for part in parts)]
    return max((LIFETIMES[mark.get("ttl", "30m")] for mark in marks if mark), default=0)


def _rendered(value: object) -> bytes:
    return json.dumps(_seen(value), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _seen(value: Any) -> Any:
    """Return a value as the model sees it: without marks, with a stand-in of a fixed size for each medium."""
    if isinstance(value, dict):
        given = cast("Mapping[str, Any]", value)
        if isinstance(data := given.get("data"), str) and not _MEDIA_NAMES.isdisjoint(given):
            return _medium(data)
        return {name: _seen(inner) for name, inner in given.items() if name not in _UNSEEN}
    if isinstance(value, list):
        return [_seen(inner) for inner in cast("list[Any]", value)]
    return _medium(value) if isinstance(value, str) and value.startswith("data:image/") else value


def _medium(data: str) -> str:
    digest = hashlib.sha256(data.encode()).hexdigest()
    return digest.ljust(IMAGE_TOKENS * BYTES_PER_TOKEN, ".")


def ends(prompt: Prompt) -> Iterator[tuple[int, bytes]]:
    """Yield for each block the number of tokens up to its end, and what identifies the prompt up to there."""
    digest = hashlib.sha256(f"{prompt.model}\0{prompt.key}".encode())
    size = 0
    for block in prompt.blocks:
        size += len(block.data)
        digest.update(len(block.data).to_bytes(8, "big") + block.data)
        yield size // BYTES_PER_TOKEN, digest.digest()
