"""Old tool results are removed before a summary is paid for."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isthmus.agent.session.pruning import planned_pruning, pruned
from isthmus.agent.session.size import messages_tokens
from isthmus.events import TaskState
from isthmus.internal_events import Compacted, ModelReply, ResultsPruned
from isthmus.models.port.base import Message, ModelToolResult, Text, ToolRequest
from support.scripted_wire import Call, Reply, Say, WireUsage


def conversation(sizes: list[int]) -> list[Message]:
    messages = [Message("user", (Text("go"),))]
    for number, size in enumerate(sizes):
        messages.append(Message("assistant", (ToolRequest(f"c{number}", "read_file", {"n": number}),)))
        messages.append(Message("user", (ModelToolResult(f"c{number}", "read_file", "x" * size),)))
    return messages


@given(st.lists(st.integers(0, 8_000), max_size=12), st.integers(1_000, 20_000))
def test_only_results_change_and_the_newest_stay(sizes: list[int], room: int) -> None:
    messages = conversation(sizes)
    plan = planned_pruning(messages, room)
    if plan is None:
        return
    after = pruned(messages, plan.count)
    assert messages_tokens(messages) - messages_tokens(after) == plan.freed_tokens >= room * 0.15
    assert after[plan.count :] == messages[plan.count :]
    assert [message for message in after if message.role == "assistant"] == messages[1::2]
    assert pruned(after, plan.count) == after


def test_what_is_still_new_is_not_removed() -> None:
    assert planned_pruning(conversation([400] * 5), 10_000) is None
    assert planned_pruning(conversation([40_000]), 10_000) is None


@pytest.mark.anyio
async def test_a_conversation_of_large_reads_is_pruned_and_not_summarised(harness: Any, workspace: Path) -> None:
    for number in range(12):
        (workspace / f"{number}.txt").write_text(f"content {number}\n" * 3_000, encoding="utf-8")
    usage = WireUsage(0, 0)
    reads = [Reply.of(Call("read_file", {"file_path": f"{number}.txt"}), usage=usage) for number in range(12)]
    at = harness([*reads, Reply.of(Say("done"), usage=usage)], share=0.25)
    assert (await at.prompt("read all")).state is TaskState.COMPLETED
    assert any(isinstance(event, ResultsPruned) for event in at.events)
    assert not any(isinstance(event, Compacted) for event in at.events)
    assert len([event for event in at.events if isinstance(event, ModelReply)]) == 13
    assert "content 11" in at.told()
    assert "content 0" not in at.told()
    assert "Isthmus removed this old result" in json.dumps(at.body()["contents"][2])
