"""Scripted answers of a language model, independent of a provider, and the server that all three wires share.

A test writes the model's replies; gemini_wire.py, anthropic_wire.py and openai_wire.py encode them:

    replies = [Failure(429, retry_after=1), Reply.of(Say("Hello", " there"), Call("glob", {"pattern": "*"}))]
    with GeminiWire(replies) as wire:
        ...  # a client with wire.base_url; afterwards wire.requests, wire.model_requests

`replies` is a list that is used up, or a callable that gets each model request (a `WireRequest`) and returns the reply.
When a list is used up, the answer is a 500 that says so, and `wire.unexpected` counts it.

As a program: `python -m support.gemini_wire --script FILE [--port N]` (with tests/ on PYTHONPATH). FILE is YAML, a list
of replies: `{text: ..., thought: ..., call: {name: ..., arguments: {...}}, finish: stop}` or
`{status: 429, message: ..., retry_after: 1}`. The last one is repeated.
"""

import argparse
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

from support.wire_server import (
    Answer,
    Cut,
    Framing,
    Hold,
    Pause,
    Piece,
    WireRequest,
    WireServer,
    in_pieces,
    in_pieces_of,
)


@dataclass(frozen=True, slots=True)
class Say:
    """Visible text, sent in as many events as there are strings in `texts`."""

    texts: tuple[str, ...]
    signature: str | None = None

    def __init__(self, *texts: str, signature: str | None = None) -> None:
        object.__setattr__(self, "texts", texts)
        object.__setattr__(self, "signature", signature)


@dataclass(frozen=True, slots=True)
class Think:
    """A thought; the provider expects `signature` back with it."""

    texts: tuple[str, ...]
    signature: str | None = None

    def __init__(self, *texts: str, signature: str | None = None) -> None:
        object.__setattr__(self, "texts", texts)
        object.__setattr__(self, "signature", signature)


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call. `arguments` as a string is sent unchanged, even if it is not JSON."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict[str, Any])
    id: str | None = None
    signature: str | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A part, block or delta of a kind that no client knows, in the provider's own JSON."""

    raw: Mapping[str, Any]


Step: TypeAlias = Say | Think | Call | Unknown
FinishName: TypeAlias = Literal["stop", "length", "safety"]


@dataclass(frozen=True, slots=True)
class WireUsage:
    """Token counts; `input` includes `cached` and `cache_write`, `output` includes `thoughts`, on every wire.

    `cache_write` includes `cache_write_1h`, which Anthropic alone has.
    """

    input: int = 10
    output: int = 5
    cached: int = 0
    cache_write: int = 0
    thoughts: int = 0
    cache_write_1h: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """One streamed reply and the division of its bytes.

    `piece_size` cuts the stream into pieces of that many bytes; `split_at` cuts it at given text, in the middle of its
    first character's bytes. After `cut_after` bytes the connection is closed; after `hold_after` events no more is sent
    the Hold in `hold` is released. `finish` None leaves out the end of the stream, as some servers do. Clients may tell
    messages apart by their ids, which have `identity` in them.
    """

    steps: tuple[Step, ...] = ()
    usage: WireUsage | None = field(default_factory=WireUsage)
    finish: FinishName | None = "stop"
    delay: float = 0
    piece_size: int | None = None
    split_at: str | None = None
    cut_after: int | None = None
    hold: Hold | None = None
    hold_after: int = 1
    framing: Framing = "chunked"
    identity: str = "scripted"

    @classmethod
    def of(cls, *steps: Step, **options: Any) -> "Reply":
        """Return a reply of these steps; `options` are the fields of Reply."""
        return replace(cls(steps), **options)


@dataclass(frozen=True, slots=True)
class Failure:
    """An HTTP error in the provider's form. `kind` selects the text that the real provider sends for it."""

    status: int
    message: str = "scripted failure"
    kind: Literal["plain", "context_too_long", "unknown_model", "wrong_key"] = "plain"
    retry_after: float | None = None


Script: TypeAlias = Reply | Failure | Answer
Replies: TypeAlias = Iterable[Script] | Callable[[WireRequest], Script]


class ScriptedWire:
    """The common part of the fake providers. Subclasses encode replies."""

    provider: ClassVar[str]

    def __init__(self, replies: Replies = (), port: int = 0) -> None:
        self._choose = replies if callable(replies) else None
        self._queue = [] if callable(replies) else list(replies)
        self._lock = threading.Lock()
        self._server = WireServer(self._respond, port)
        self.unexpected = 0
        """Number of model requests that came when the script was used up."""

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.stop()

    @property
    def base_url(self) -> str:
        """The value of the provider's *_BASE_URL variable."""
        return self._server.base_url

    @property
    def requests(self) -> list[WireRequest]:
        """All requests, in order of arrival."""
        return self._server.requests

    @property
    def model_requests(self) -> list[WireRequest]:
        """The requests that asked the model for an answer."""
        return [request for request in self.requests if self.asks_model(request)]

    def add(self, *replies: Script) -> None:
        """Add replies at the end of the list."""
        with self._lock:
            self._queue.extend(replies)

    def forget(self) -> None:
        """Remove the replies that were not requested yet."""
        with self._lock:
            self._queue.clear()

    def asks_model(self, request: WireRequest) -> bool:
        """Return whether a request asks for a reply of the model."""
        raise NotImplementedError

    def answer_other(self, request: WireRequest) -> Answer:
        """Return the response to any other request, e.g. to count tokens."""
        raise NotImplementedError

    def events(self, reply: Reply, request: WireRequest) -> Sequence[bytes]:
        """Return the reply as complete events of the wire."""
        raise NotImplementedError

    def failure(self, failure: Failure, request: WireRequest) -> Answer:
        """Return the failure in the provider's form."""
        raise NotImplementedError

    def unstreamed(self, reply: Reply, request: WireRequest) -> Answer | None:
        """Return the reply as one document, if the request does not ask for a stream."""
        return None

    def _respond(self, request: WireRequest) -> Answer:
        if not self.asks_model(request):
            return self.answer_other(request)
        script = self._choose(request) if self._choose is not None else self._next()
        match script:
            case Answer():
                return script
            case Failure():
                return self.failure(script, request)
            case Reply():
                whole = self.unstreamed(script, request)
                return whole if whole is not None else self._stream(script, request)

    def _next(self) -> Script:
        with self._lock:
            if self._queue:
                return self._queue.pop(0)
            self.unexpected += 1
            return Failure(500, "the test's script has no more replies")

    def _stream(self, reply: Reply, request: WireRequest) -> Answer:
        pieces: list[Piece] = [Pause(reply.delay)] if reply.delay else []
        events = self.events(reply, request)
        if reply.hold is not None:
            pieces += [*events[: reply.hold_after], reply.hold, *events[reply.hold_after :]]
        elif reply.cut_after is not None:
            pieces += [b"".join(events)[: reply.cut_after], Cut()]
        elif reply.piece_size is not None:
            pieces += in_pieces_of(b"".join(events), reply.piece_size)
        elif reply.split_at is not None:
            data = b"".join(events)
            pieces += in_pieces(data, data.index(reply.split_at.encode()) + 1)
        else:
            pieces += events
        return Answer(200, {"content-type": "text/event-stream"}, tuple(pieces), reply.framing)


def retry_headers(failure: Failure) -> dict[str, str]:
    """Return the Retry-After header of a failure, if it has one."""
    return {} if failure.retry_after is None else {"retry-after": f"{failure.retry_after:g}"}


def split_arguments(text: str) -> tuple[str, ...]:
    """Return the text of a tool call's arguments as a provider streams it: in three parts if it is long enough."""
    third = max(1, len(text) // 3)
    return tuple(part for part in (text[:third], text[third : 2 * third], text[2 * third :]) if part) or ("",)


def replies_of_yaml(text: str) -> list[Script]:
    """Return the replies of a script file; see the module's docstring."""
    import yaml

    loaded: Any = yaml.safe_load(text)
    if not isinstance(loaded, list):
        raise ValueError("a script is a YAML list of replies")
    return [_reply_of(cast("Mapping[str, Any]", item)) for item in cast("list[object]", loaded)]


def _reply_of(item: Mapping[str, Any]) -> Script:
    if "status" in item:
        return Failure(item["status"], item.get("message", "scripted failure"), retry_after=item.get("retry_after"))
    steps: list[Step] = []
    if "thought" in item:
        steps.append(Think(item["thought"]))
    if "text" in item:
        steps.append(Say(item["text"]))
    calls = item.get("calls", [item["call"]] if "call" in item else [])
    steps += [Call(call["name"], call.get("arguments", {})) for call in calls]
    return Reply(tuple(steps), finish=item.get("finish", "stop"))


def run_as_program(wire: Callable[[Replies, int], ScriptedWire]) -> None:
    """Serve a script file until Ctrl-C; print the address first and then a line for each request."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--script", type=Path, required=True)
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    replies = replies_of_yaml(arguments.script.read_text(encoding="utf-8"))

    def choose(request: WireRequest) -> Script:
        print(request.method, request.path, len(request.body), "bytes", flush=True)
        return replies.pop(0) if len(replies) > 1 else replies[0]

    with wire(choose, arguments.port) as running:
        print(running.base_url, flush=True)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            return
