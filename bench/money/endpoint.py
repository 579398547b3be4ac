"""A model's endpoint that speaks four wires, decides the calls of a session's steps, and bills what each request costs.

Texts are the same for every client. Requests that continue the session's conversation get the calls of its step; all
others, for titles and summaries, get a text, and are billed too.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

from bench.money.caches import PromptCache, RequestRefused, price_of
from bench.money.calls import calls_of, offered
from bench.money.differences import Difference, first_difference
from bench.money.prompt import Prompt, Wire, read_prompt, tokens_of
from bench.money.script import LINE_TOKENS, Step
from isthmus.models.port.base import Usage
from support.anthropic_wire import AnthropicWire
from support.gemini_wire import GeminiWire
from support.openai_wire import OpenAIWire
from support.responses_wire import ResponsesWire
from support.scripted_wire import Call, Reply, Say, ScriptedWire, WireUsage
from support.wire_server import Answer, WireRequest, WireServer

REQUEST_SECONDS = 5
"""Time that a request takes on the clock of the caches."""
SUMMARY = (
    "<state_snapshot><summary>"
    + "The user has parts of a project read, and lines changed. " * 40
    + ("</summary></state_snapshot>")
)
TITLE = "Parts of a project"
_SUMMARY_WISH = re.compile(r"<summary>|<analysis>|state_snapshot|CONTEXT CHECKPOINT|[Ss]ummarize|summary of")
_LINE = re.compile(rb"value_(\d\d)_(\d{4}) = ")
_WIRES: Mapping[Wire, type[ScriptedWire]] = {
    "anthropic": AnthropicWire,
    "chat": OpenAIWire,
    "responses": ResponsesWire,
    "gemini": GeminiWire,
}


_BEFORE = Step(0, "talk", "")
"""Step before the first one."""


@dataclass(frozen=True, slots=True)
class Bill:
    """A request that was answered.

    ``lines`` is the number of lines of the workspace's files in it; None: it is not of the conversation.
    """

    step: int
    model: str
    usage: Usage
    price: Decimal | None
    lines: int | None

    @property
    def file_tokens(self) -> int:
        """Tokens of the workspace's files that the model saw, each line counted once."""
        return (self.lines or 0) * LINE_TOKENS


@dataclass
class BilledEndpoint:
    """The endpoint; use it in a ``with`` block, and call :meth:`begin` before each prompt.

    ``root`` is the workspace; ``bodies`` is a folder in which the bodies of all requests are kept, or None.
    """

    root: str
    bodies: Path | None = None
    bills: list[Bill] = field(default_factory=list[Bill])
    differences: list[Difference] = field(default_factory=list[Difference])
    problems: list[str] = field(default_factory=list[str])
    _step: Step = _BEFORE
    _next: int = 0
    _calls: int = 0
    _now: float = 0
    _cache: PromptCache = field(default_factory=PromptCache)
    _before: Prompt | None = None

    def __post_init__(self) -> None:
        self._server = WireServer(self.answer)
        self._wires: Mapping[Wire, ScriptedWire] = {name: wire() for name, wire in _WIRES.items()}

    def __enter__(self) -> "BilledEndpoint":
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    @property
    def url(self) -> str:
        """Address of the server, without a path."""
        return self._server.base_url

    def begin(self, step: Step) -> None:
        """Take the next prompt of the user: the time before it passes."""
        self._step, self._next = step, 0
        self._now += step.seconds_before

    def is_done(self) -> bool:
        """Return whether the step got all of its calls, and its last message."""
        return self._next > len(self._step.calls)

    def answer(self, request: WireRequest) -> Answer:
        """Answer a request in the form of its wire."""
        wire = _wire_of(request.path)
        if wire is None or request.method != "POST":
            return _other(request)
        try:
            return self._answer(wire, request)
        except Exception as error:
            self.problems.append(f"step {self._step.number}: {type(error).__name__}: {error}")
            raise

    def _answer(self, wire: Wire, request: WireRequest) -> Answer:
        if self.bodies is not None:
            self.bodies.mkdir(parents=True, exist_ok=True)
            (self.bodies / f"{len(self.bills):03d}.json").write_bytes(request.body)
        body: dict[str, Any] = request.json
        prompt = read_prompt(wire, request.path, body)
        self._now += REQUEST_SECONDS
        try:
            usage = self._cache.count(prompt, self._now)
        except RequestRefused as error:
            self.problems.append(f"step {self._step.number}: {error}")
            return Answer.json(
                {"type": "error", "error": {"type": "invalid_request_error", "message": str(error)}}, 400
            )
        is_main = self._is_of_conversation(wire, body)
        reply = self._reply(wire, body) if is_main else Reply.of(Say(_text_beside(wire, body)))
        usage = replace(usage, output=_output(reply))
        lines = len(set(_LINE.findall(request.body))) if is_main else None
        self.bills.append(Bill(self._step.number, prompt.model, usage, price_of(prompt, usage), lines))
        if is_main:
            if self._before is not None and (found := first_difference(self._step.number, self._before, prompt)):
                self.differences.append(found)
            self._before = prompt
        shown = WireUsage(usage.input, usage.output, usage.cached, usage.cache_write, 0, usage.cache_write_1h)
        return self._encoded(wire, replace(reply, usage=shown, identity=f"{len(self.bills):04d}"), request)

    def _is_of_conversation(self, wire: Wire, body: Mapping[str, Any]) -> bool:
        if not offered(wire, body):
            return False
        newest = _newest(wire, body)
        if self._step.mark in json.dumps(newest):
            return True
        return any(_is_result(item) for item in newest) and not _SUMMARY_WISH.search(_words(newest))

    def _reply(self, wire: Wire, body: Mapping[str, Any]) -> Reply:
        number, self._next = self._next, self._next + 1
        if number >= len(self._step.calls):
            return Reply.of(Say(self._step.answer))
        tools = offered(wire, body)
        calls: list[Call] = []
        for place, (name, arguments) in enumerate(calls_of(self._step.calls[number], tools, self.root)):
            self._calls += 1
            # Gemini signs the first call of a message, and its clients must return the signature.
            signature = f"signature-{self._calls:04d}" if wire == "gemini" and place == 0 else None
            calls.append(Call(name, arguments, id=f"call_{self._calls:04d}", signature=signature))
        return Reply.of(*calls)

    def _encoded(self, wire: Wire, reply: Reply, request: WireRequest) -> Answer:
        encoder = self._wires[wire]
        is_stream = wire == "gemini" or request.json.get("stream")
        if not is_stream:
            return _whole(wire, reply, request)
        if (whole := encoder.unstreamed(reply, request)) is not None:
            return whole
        return Answer(200, {"content-type": "text/event-stream"}, (b"".join(encoder.events(reply, request)),))


def _wire_of(path: str) -> Wire | None:
    match path.rpartition("/v1/")[2]:
        case "messages":
            return "anthropic"
        case "chat/completions":
            return "chat"
        case "responses":
            return "responses"
        case _:
            return "gemini" if path.endswith((":generateContent", ":streamGenerateContent")) else None


def _other(request: WireRequest) -> Answer:
    count = tokens_of(request.body.decode("utf-8", "replace"))
    if request.path.endswith(":countTokens"):
        return Answer.json({"totalTokens": count})
    if request.path.endswith("/count_tokens"):
        return Answer.json({"input_tokens": count})
    if request.method == "HEAD":
        return Answer()
    return Answer.json({"error": {"message": f"no such path: {request.path}", "type": "not_found", "code": 404}}, 404)


def _newest(wire: Wire, body: Mapping[str, Any]) -> list[Any]:
    """Return what came after the model's last message."""
    items: Sequence[Any] = body[{"gemini": "contents", "responses": "input"}.get(wire, "messages")]
    found: list[Any] = []
    for item in reversed(items):
        kind = item.get("type", "")
        if item.get("role") in ("assistant", "model") or kind in ("reasoning", "function_call", "custom_tool_call"):
            break
        found.append(item)
    return found


def _text_beside(wire: Wire, body: Mapping[str, Any]) -> str:
    """Return a summary if one is asked for, otherwise a title."""
    asked = json.dumps([_newest(wire, body), body.get("messages", ())[:1], body.get("systemInstruction")])
    return SUMMARY if _SUMMARY_WISH.search(asked) or "title" not in asked else TITLE


def _words(items: Sequence[Any]) -> str:
    """Return what users and clients said in some items, without results of tools."""
    found: list[str] = []
    for item in items:
        content = item.get("content", item.get("parts", ()))
        parts = [{"text": content}] if isinstance(content, str) else content or ()
        if item.get("role") == "user":
            found += [str(part.get("text", "")) for part in parts]
    return "\n".join(found)


def _is_result(item: Mapping[str, Any]) -> bool:
    if item.get("role") == "tool" or str(item.get("type", "")).endswith("_call_output"):
        return True
    content: Any = item.get("content", item.get("parts"))
    parts: Sequence[Mapping[str, Any]] = () if isinstance(content, str) else content or ()
    return any(part.get("type") == "tool_result" or "functionResponse" in part for part in parts)


def _output(reply: Reply) -> int:
    count = 0
    for step in reply.steps:
        match step:
            case Say(texts):
                count += tokens_of("".join(texts))
            case Call(name, arguments):
                count += tokens_of(name) + tokens_of(arguments)
            case _:
                raise ValueError(f"a step that is never replied: {step}")
    return count


def _whole(wire: Wire, reply: Reply, request: WireRequest) -> Answer:
    """Return a reply of texts as one document."""
    text = "".join("".join(step.texts) for step in reply.steps if isinstance(step, Say))
    usage = reply.usage or WireUsage()
    model = request.json.get("model")
    match wire:
        case "anthropic":
            counts = {
                "input_tokens": usage.input - usage.cached - usage.cache_write,
                "cache_creation_input_tokens": usage.cache_write,
                "cache_read_input_tokens": usage.cached,
                "output_tokens": usage.output,
            }
            content = [{"type": "text", "text": text}]
            message = {"id": "msg_whole", "type": "message", "role": "assistant", "model": model, "content": content}
            return Answer.json({**message, "stop_reason": "end_turn", "stop_sequence": None, "usage": counts})
        case "chat":
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            counts = {
                "prompt_tokens": usage.input,
                "completion_tokens": usage.output,
                "total_tokens": usage.input + usage.output,
                "prompt_tokens_details": {"cached_tokens": usage.cached},
            }
            envelope = {"id": "chatcmpl-whole", "object": "chat.completion", "created": 1, "model": model}
            return Answer.json({**envelope, "choices": [choice], "usage": counts})
        case "responses" | "gemini":
            raise ValueError(f"{wire} is always streamed here")
