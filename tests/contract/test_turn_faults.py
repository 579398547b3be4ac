"""Faults of a provider in the middle of a turn: the whole agent with each real provider over its wire."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.client import Delivery
from isthmus.events import TaskState
from isthmus.task_view import TaskView
from support.agent_harness import AgentHarness
from support.model_bench import Provider, each_provider
from support.scripted_wire import Call, Failure, Replies, Reply, Say, Think
from support.wire_server import WireRequest

pytestmark = pytest.mark.anyio

WRITE = Call("write_file", {"file_path": "a.txt", "content": "grün\n"}, id="c1")
REQUEST = WireRequest("POST", "/v1/models/test:streamGenerateContent", "", {}, b'{"model": "test", "stream": true}')
READ = Call("read_file", {"file_path": "a.txt"}, id="c2")


@contextmanager
def agent(
    provider: Provider, workspace: Path, replies: Replies, policy: Policy | None = None
) -> Generator[AgentHarness]:
    with provider.wire(replies) as wire:
        yield AgentHarness(
            workspace,
            wire,
            Policy(ApprovalMode.YOLO, may_ask=False),
            provider=provider.name,
            variables=(provider.key, provider.base_url),
        )


def told(at: AgentHarness, request: int = -1) -> str:
    return json.dumps(at.wire.model_requests[request].json, ensure_ascii=False)


def final_texts(at: AgentHarness) -> list[str]:
    """Return the texts that a user sees in the end."""
    view = TaskView()
    for number, event in enumerate(at.events, 1):
        view.apply(Delivery(number, float(number), event))
    return [message.text for message in view.messages.values()]


@each_provider
@given(place=st.floats(0, 1), again=st.booleans())
@settings(max_examples=8, deadline=None)
def test_a_stream_that_is_cut_anywhere_does_its_work_once(provider: Provider, place: float, again: bool) -> None:
    reply = Reply.of(Think("Grü"), Say("Ich schr", "eibe."), WRITE)

    async def turn(workspace: Path) -> None:
        with agent(provider, workspace, []) as at:
            size = len(b"".join(at.wire.events(reply, REQUEST)))
            cut = replace(reply, cut_after=int(place * size))
            at.wire.add(cut, *([cut] if again else []), reply, Reply.of(Say("Fertig.")))
            end = await at.prompt("schreib es")
            assert (end.state, end.error) == (TaskState.COMPLETED, None)
            assert (workspace / "a.txt").read_text("utf-8") == "grün\n"
            assert at.states("write_file").count("EXECUTING") == 1
            assert final_texts(at) == ["Ich schreibe.", "Fertig."]

    with TemporaryDirectory() as folder:
        anyio.run(turn, Path(folder))


@each_provider
@pytest.mark.parametrize("empty", [Reply.of(Think("Hm.")), Reply.of()], ids=["thoughts alone", "nothing"])
async def test_an_answer_without_content_is_asked_for_again(provider: Provider, workspace: Path, empty: Reply) -> None:
    with agent(provider, workspace, [empty, empty, Reply.of(Say("Recovered."))]) as at:
        assert (await at.prompt("go")).state is TaskState.COMPLETED
        assert final_texts(at) == ["Recovered."]


@each_provider
@pytest.mark.parametrize(
    ("call", "said"),
    [
        (Call("no_such_tool", {}, id="c"), "There is no tool 'no_such_tool'"),
        (
            Call("read_file", '{"file_path": "a.t', id="c"),
            "The call of read_file cannot be made: the arguments are not ",
        ),
        (Call("read_file", {}, id="c"), "file_path"),
        (Call("read_file", {"file_path": 7}, id="c"), "file_path"),
    ],
    ids=["unknown tool", "broken JSON", "missing argument", "wrong type"],
)
async def test_a_malformed_call_is_told_to_the_model_which_goes_on(
    provider: Provider, workspace: Path, call: Call, said: str
) -> None:
    with agent(provider, workspace, [Reply.of(call), Reply.of(Say("Sorry."))]) as at:
        assert (await at.prompt("go")).state is TaskState.COMPLETED
        assert said in told(at)
        assert final_texts(at) == ["Sorry."]


@each_provider
async def test_a_key_that_is_revoked_in_the_middle_keeps_what_was_done(provider: Provider, workspace: Path) -> None:
    with agent(provider, workspace, [Reply.of(Say("I write."), WRITE), Failure(401, kind="wrong_key")]) as at:
        end = await at.prompt("write it")
        assert (end.state, end.reason) == (TaskState.FAILED, "model_authentication")
        assert provider.key in (end.error or "")
        # With a new key the conversation goes on, and nothing is done twice.
        at.wire.add(Reply.of(Say("Going on.")))
        assert (await at.prompt("go on")).state is TaskState.COMPLETED
        assert "grün" in told(at)
        assert at.states("write_file").count("EXECUTING") == 1


@each_provider
async def test_a_conversation_that_became_too_long_is_summarised_and_goes_on(
    provider: Provider, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("x" * 30_000, "utf-8")
    replies = [Reply.of(READ), Reply.of(Say("Read.")), Failure(400, kind="context_too_long")]
    with agent(provider, workspace, [*replies, Reply.of(Say("SUMMARY")), Reply.of(Say("Answered."))]) as at:
        await at.prompt("read it")
        end = await at.prompt("and now?")
        assert (end.state, end.error) == (TaskState.COMPLETED, None)
        assert "SUMMARY" in told(at)
        assert "x" * 30_000 not in told(at)
        assert final_texts(at)[-1] == "Answered."


@each_provider
async def test_a_first_prompt_that_is_too_long_says_what_to_do(provider: Provider, workspace: Path) -> None:
    with agent(provider, workspace, [Failure(400, kind="context_too_long")] * 3) as at:
        end = await at.prompt("x" * 1000)
        assert (end.state, end.reason) == (TaskState.FAILED, "model_context_too_long")
        assert end.error


@each_provider
async def test_a_loop_ends_for_its_own_reason_where_nobody_can_be_asked(provider: Provider, workspace: Path) -> None:
    (workspace / "a.txt").write_text("x", "utf-8")
    with agent(provider, workspace, lambda _: Reply.of(READ)) as at:
        at.limit = 100
        end = await at.prompt("read it")
        assert (end.state, end.reason) == (TaskState.FAILED, "loop")
        assert len(at.wire.model_requests) < 15
