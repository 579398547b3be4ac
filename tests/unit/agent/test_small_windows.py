"""A server whose context window is smaller than it is known: the agent with a real provider over its wire."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from isthmus.agent.context.windows import LearnedWindows, learnt_window, window_of
from isthmus.agent.session.session import Session
from isthmus.events import AgentEvent
from isthmus.internal_events import Compacted
from isthmus.models.port.base import Capabilities, ModelErrorKind, RefusedSize
from support.emitting import collecting_turn
from support.scripted_wire import Call, Failure, Reply, Say, Script
from support.wire_server import WireRequest

if TYPE_CHECKING:
    from support.agent_harness import AgentHarness

pytestmark = pytest.mark.anyio

SUMMARY = "Write the summary of the "


class SmallServer:
    """A server that counts four bytes as a token, and refuses requests that have more than ``limit``."""

    def __init__(self, answer: Callable[[int], Script]) -> None:
        self.limit = 10**9
        self.refused = 0
        self.sizes: list[int] = []
        self._answer = answer

    def __call__(self, request: WireRequest) -> Script:
        size = len(request.body) // 4
        if size > self.limit:
            self.refused += 1
            said = f"your messages resulted in {size} tokens. Please reduce the length of the messages."
            return Failure(400, f"This model's maximum context length is {self.limit} tokens. However, {said}")
        if SUMMARY in request.body.decode():
            return Reply.of(Say("## Goal\nTo talk."))
        self.sizes.append(size)
        return self._answer(len(self.sizes))


def words(number: int, count: int) -> str:
    return " ".join(f"{number}-{word}" for word in range(count))


def compactions(events: Sequence[AgentEvent]) -> int:
    return len([event for event in events if isinstance(event, Compacted)])


async def test_a_window_is_learnt_from_the_first_refusal_and_kept(harness: Any) -> None:
    server = SmallServer(lambda number: Reply.of(Say(words(number, 1_500)), usage=None))
    at: AgentHarness = harness(server)
    assert (await at.prompt("first")).error is None
    server.limit = server.sizes[0] + 8_000
    for number in range(10):
        assert (await at.prompt(f"prompt {number}")).error is None
    assert server.refused == 1
    assert compactions(at.events) >= 2
    assert max(server.sizes) <= server.limit


def reading(workspace: Path) -> SmallServer:
    """Return a server whose model reads one long file after its first answer, part by part and without end."""
    (workspace / "long.txt").write_text("\n".join(words(number, 10) for number in range(5_000)), encoding="utf-8")

    def answer(number: int) -> Script:
        if number == 1:
            return Reply.of(Say("hm"), usage=None)
        lines = {"file_path": "long.txt", "start_line": 60 * number, "end_line": 60 * number + 55}
        return Reply.of(Call("read_file", lines), usage=None)

    return SmallServer(answer)


async def test_long_work_in_a_small_window_is_not_compacted_all_the_time(harness: Any, workspace: Path) -> None:
    server = reading(workspace)
    at: AgentHarness = harness(server, limit=30)
    await at.prompt("first")
    server.limit = server.sizes[0] + 3_000
    end = await at.prompt("Read all of long.txt.")
    assert end.reason == f"model_{ModelErrorKind.CONTEXT_TOO_LONG}"
    assert "larger context window" in (end.error or "")
    assert server.refused <= 2
    assert compactions(at.events) <= 4


async def test_a_turn_that_does_not_fit_any_more_ends_with_words(harness: Any, workspace: Path) -> None:
    server = reading(workspace)
    at: AgentHarness = harness(server, limit=30)
    await at.prompt("first")
    server.limit = server.sizes[0] + 500
    end = await at.prompt("Read all of long.txt.")
    assert end.reason == f"model_{ModelErrorKind.CONTEXT_TOO_LONG}"
    assert "could not be made short enough" in (end.error or "")
    before = (server.refused, compactions(at.events), len(server.sizes))
    assert before[0] <= 4
    end = await at.prompt("Go on.")
    assert end.reason == f"model_{ModelErrorKind.CONTEXT_TOO_LONG}"
    assert "larger context window" in (end.error or "")
    assert (server.refused, len(server.sizes)) == (before[0], before[2])


class Named:
    """A model of which only its name and window count."""

    provider = "openai"

    def __init__(self, window: int | None, name: str = "local") -> None:
        self.name, self.capabilities = name, Capabilities(window)


async def test_later_sessions_of_the_process_know_a_window_and_a_new_setting_voids_it() -> None:
    windows, model = LearnedWindows(), Named(None)
    first, second = Session("one"), Session("two")
    await windows.learn(collecting_turn(first, []), model, 30_000)  # type: ignore[arg-type]
    events: list[AgentEvent] = []
    for _ in range(2):
        await windows.tell(collecting_turn(second, events), model)  # type: ignore[arg-type]
    assert len(events) == 1
    for session in (first, second):
        assert window_of(session, model) == 30_000  # type: ignore[arg-type]
        assert window_of(session, Named(64_000)) == 64_000  # type: ignore[arg-type]
        assert window_of(session, Named(None, "other")) == 128_000  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("size", "sent", "window"),
    [
        (RefusedSize(limit=30_000, counted=35_000), 35_000, 30_000),
        (RefusedSize(limit=30_000, counted=35_000), 50_000, 30_000),
        (RefusedSize(limit=30_000, counted=40_000), 30_000, 22_500),
        (RefusedSize(limit=30_000, counted=4_000_000), 30_000, 15_000),
        (RefusedSize(limit=30_000), 10_000, 30_000),
        (RefusedSize(excess=5_000), 35_000, 30_000),
        (RefusedSize(excess=35_000), 30_000, None),
        (RefusedSize(), 30_000, None),
    ],
)
def test_the_window_is_in_tokens_as_we_count_them(size: RefusedSize, sent: int, window: int | None) -> None:
    assert learnt_window(size, sent) == window
