"""A model that follows a script: for tests, for demonstrations, and when no real model is available.

It keeps no state: its answer depends only on the user's last prompt and the number of the model's messages since then.
Both are taken from the request, so it continues after a restart of the process. script_file.py describes the script.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any, assert_never, cast

from isthmus.media import Media
from isthmus.models.port.base import (
    SESSION_UPDATE,
    Capabilities,
    Done,
    Finish,
    Message,
    ModelError,
    ModelErrorKind,
    ModelRequest,
    ModelThought,
    ModelToolResult,
    Opaque,
    Part,
    Retrying,
    StreamItem,
    Text,
    TextDelta,
    ThoughtDelta,
    ToolRequest,
    ToolRequestStarted,
    Usage,
    requests_of,
)
from isthmus.models.port.costs import ModelCosts, Price, request_cost
from isthmus.models.port.received import excerpt
from isthmus.models.scripted.script_file import (
    PLACEHOLDER,
    Alternative,
    CallStep,
    DelayStep,
    ErrorStep,
    Scenario,
    Script,
    TextStep,
    ThoughtStep,
    read_script,
)
from isthmus.record import record
from isthmus.text.money import PICODOLLARS

DEMO_SCRIPT = Path(__file__).with_name("demo.yaml")
DEMO_PROMPT = "Add a farewell function to greeting.py, in the style of the greeting that is there."
"""Prompt for which the built-in script has a whole session: it reads, runs, proposes an edit and sums up."""
WORKSPACE = re.compile(r"^\+?The workspace is (?P<path>.+?)(?: \(on .*)?\.?$", re.MULTILINE)
"""Matches the line of a system prompt, or of a change to it, that names the workspace."""
OWN_TEXT = re.compile(r"<(environment|session_update)>\n.*\n</\1>", re.DOTALL)
"""Matches a text of Isthmus's own in a user's message, which is not a part of the prompt."""
DEFAULT_RETRY_DELAY = 1.0
"""Delay in seconds before a retry, if the script names none."""


@record
class _Moment:
    """The position in a conversation."""

    prompt: str
    replies: int
    """Number of messages of the model since the prompt."""
    results: tuple[ModelToolResult, ...]
    """Results after the last of these messages."""
    calls: int
    """Number of tool calls in the whole conversation."""

    @property
    def result(self) -> str:
        return "\n".join(result.content for result in self.results)


class ScriptedModel:
    """A :class:`~isthmus.models.port.base.ChatModel` that follows a script."""

    def __init__(self, script: Script, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._script = script
        self._sleep = sleep

    @property
    def name(self) -> str:
        """The script's name."""
        return self._script.name

    @property
    def provider(self) -> str:
        """`scripted`."""
        return "scripted"

    @property
    def capabilities(self) -> Capabilities:
        """Abilities as of a usual model, with the script's price."""
        return Capabilities(128_000, thoughts=True, costs=self._costs)

    @cached_property
    def _costs(self) -> ModelCosts | None:
        if self._script.price is None:
            return None
        price = Decimal(self._script.price) / PICODOLLARS
        return ModelCosts((Price(0, price, price, price, price, price),))

    async def aclose(self) -> None:
        """Do nothing: no connection is open."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamItem, None]:
        """Stream the script's answer to the request.

        Raises:
            ModelError: BAD_REQUEST - no scenario matches the prompt; or an error of the script.
        """
        moment = _moment(request.messages)
        scenario, match = self._scenario(moment)
        chosen = _alternative(scenario, moment)
        if chosen is None:
            chosen, groups = (
                Alternative((TextStep(f"The script {self.name} has no further reply to this prompt."),)),
                {},
            )
        else:
            chosen, groups = chosen
        values = {
            "workspace": _workspace(request),
            "prompt": moment.prompt,
            "result": moment.result,
            **_groups(match),
            **groups,
        }
        parts: list[Part] = []
        for step in chosen.steps:
            match step:
                case TextStep(text):
                    filled = _fill(text, values)
                    parts.append(Text(filled))
                    async for piece in self._pieces(filled):
                        yield TextDelta(piece)
                case ThoughtStep(text):
                    filled = _fill(text, values)
                    parts.append(ModelThought(filled))
                    async for piece in self._pieces(filled):
                        yield ThoughtDelta(piece)
                case CallStep(name, arguments):
                    number = moment.calls + len(requests_of(Message("assistant", tuple(parts)))) + 1
                    parts.append(ToolRequest(f"call_{number}", name, _fill(arguments, values)))
                    yield ToolRequestStarted(name)
                case DelayStep(seconds):
                    await self._sleep(seconds)
                case ErrorStep():
                    if not step.times:
                        raise _error(step)
                    for attempt in range(step.times):
                        delay = DEFAULT_RETRY_DELAY if step.retry_after is None else step.retry_after
                        yield Retrying(attempt + 2, step.times + 1, delay, step.message)
                        await self._sleep(delay)
                case _:
                    assert_never(step)
        message = Message("assistant", tuple(parts))
        if not parts:
            raise ModelError(ModelErrorKind.EMPTY, f"{self.name} gave an empty answer")
        finish = chosen.finish or (Finish.TOOL_CALLS if requests_of(message) else Finish.STOP)
        usage = _usage(request, message)
        yield Done(message, replace(usage, cost=request_cost(usage, self._costs)), finish)

    def _scenario(self, moment: _Moment) -> tuple[Scenario, re.Match[str]]:
        for scenario in self._script.scenarios:
            if match := scenario.prompt.search(moment.prompt):
                return scenario, match
        raise ModelError(
            ModelErrorKind.BAD_REQUEST,
            f"no scenario of the script {self.name} matches the prompt {excerpt(moment.prompt, 80)!r}; add one with "
            "a matching `prompt`",
        )

    async def _pieces(self, text: str) -> AsyncGenerator[str, None]:
        size = self._script.chunk_characters
        for start in range(0, len(text), size):
            if start:
                await self._sleep(self._script.chunk_delay)
            yield text[start : start + size]


def open_scripted(path: Path) -> ScriptedModel:
    """Return the model of a script file.

    Raises:
        ScriptError: the file is not a script; the text names line and column.
    """
    return ScriptedModel(read_script(path))


def _moment(messages: Sequence[Message]) -> _Moment:
    prompts = [index for index, message in enumerate(messages) if message.role == "user" and _words(message)]
    since = messages[prompts[-1] + 1 :] if prompts else messages
    answers = [index for index, message in enumerate(since) if message.role == "assistant"]
    latest = since[answers[-1] + 1 :] if answers else ()
    return _Moment(
        _words(messages[prompts[-1]]) if prompts else "",
        len(answers),
        tuple(part for message in latest for part in message.parts if isinstance(part, ModelToolResult)),
        sum(len(requests_of(message)) for message in messages),
    )


def _words(message: Message) -> str:
    """Return the texts of a message, without Isthmus's own."""
    texts = [part.text for part in message.parts if isinstance(part, Text)]
    return "\n".join(text for text in texts if OWN_TEXT.fullmatch(text) is None)


def _alternative(scenario: Scenario, moment: _Moment) -> tuple[Alternative, Mapping[str, str]] | None:
    number = moment.replies % len(scenario.replies) if scenario.repeat else moment.replies
    if number >= len(scenario.replies):
        return None
    for alternative in scenario.replies[number]:
        condition = alternative.condition
        if condition is None:
            return alternative, {}
        if condition.result is None:
            if any(result.is_error for result in moment.results):
                return alternative, {}
        elif match := condition.result.search(moment.result):
            return alternative, {name: value or "" for name, value in match.groupdict().items()}
    return None


def _groups(match: re.Match[str]) -> Mapping[str, str]:
    numbered = {str(number): match[number] or "" for number in range((match.re.groups or 0) + 1)}
    return numbered | {name: value or "" for name, value in match.groupdict().items()}


def _workspace(request: ModelRequest) -> str:
    parts = (part for message in reversed(request.messages) for part in reversed(message.parts))
    updates = (part.text for part in parts if isinstance(part, Text) and part.text.startswith(SESSION_UPDATE))
    for text in (*updates, request.system):
        if match := WORKSPACE.search(text):
            return match["path"]
    return "."


def _fill(value: Any, values: Mapping[str, str]) -> Any:
    """Return a text, or the texts inside a JSON value, with the placeholders replaced."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda match: values.get(match[1], ""), value)
    if isinstance(value, Mapping):
        return {name: _fill(item, values) for name, item in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, list):
        return [_fill(item, values) for item in cast("list[Any]", value)]
    return value


def _error(step: ErrorStep) -> ModelError:
    return ModelError(step.kind, step.message, status=step.status, retry_after=step.retry_after)


def _usage(request: ModelRequest, reply: Message) -> Usage:
    """Return the usage at four characters per token; everything but the newest message counts as cached."""
    before = len(request.system) + sum(map(_size, request.messages[:-1]))
    newest = _size(request.messages[-1]) if request.messages else 0
    thoughts = sum(len(part.text) for part in reply.parts if isinstance(part, ModelThought))
    is_first = not any(message.role == "assistant" for message in request.messages)
    return Usage(
        input=_tokens(before + newest),
        output=_tokens(_size(reply)),
        cached=0 if is_first else _tokens(before),
        thoughts=_tokens(thoughts),
    )


def _size(message: Message) -> int:
    return sum(map(_part_size, message.parts))


def _part_size(part: Part) -> int:
    match part:
        case Text(text) | ModelThought(text):
            return len(text)
        case ToolRequest(_, name, arguments):
            return len(name) + len(str(arguments))
        case ModelToolResult(_, name, content):
            return len(name) + len(content)
        case Media():
            return 0
        case Opaque(_, raw):
            return len(str(raw))
        case _:
            assert_never(part)


def _tokens(characters: int) -> int:
    return (characters + 3) // 4
