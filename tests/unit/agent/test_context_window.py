"""The context window that the agent reckons with, and what it says of one that is not known."""

from dataclasses import dataclass, field

import pytest

from isthmus.agent.context.summary import SUMMARY_ROOM, summary_request
from isthmus.agent.session.size import DEFAULT_WINDOW, context_window, say_if_unknown
from isthmus.models.port.base import Capabilities, Effort, Message, Text
from support.unstreamed import Unstreamed


@dataclass
class Named(Unstreamed):
    """A model with a name and a window alone."""

    name: str
    provider: str = "test"
    capabilities: Capabilities = field(default_factory=Capabilities)


def test_a_window_is_what_is_stated_and_never_guessed_by_a_name() -> None:
    assert context_window(Named("claude-sonnet-5-5", capabilities=Capabilities(1_000_000))) == 1_000_000
    assert context_window(Named("claude-sonnet-5-5")) == context_window(Named("gpt-3.5")) == DEFAULT_WINDOW


def test_an_unknown_window_is_said_once_in_a_process(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        say_if_unknown(Named("mystery-7"))
        say_if_unknown(Named("known", capabilities=Capabilities(5_000)))
    assert [record.getMessage() for record in caplog.records] == [
        "The context window of mystery-7 is unknown; assuming 128,000 tokens. "
        'Set isthmus.models in your settings: {"mystery-7": {"contextWindow": 128000}}'
    ]


def test_a_summary_is_asked_for_with_little_thought_and_room_for_it() -> None:
    messages = [Message("user", (Text("hello"),))]
    large, small = summary_request(messages, 1_000_000), summary_request(messages, 40_000)
    assert large.effort is small.effort is Effort.LOW
    assert (large.max_output_tokens, small.max_output_tokens) == (SUMMARY_ROOM, 10_000)
