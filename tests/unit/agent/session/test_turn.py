"""The turn loop with the real Gemini provider over its wire, the real tools and real files."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.development_tool import ToolCallConfirmation, ToolCallStatus
from isthmus.events import (
    ConfirmationAccepted,
    RetryNotice,
    StateChange,
    TaskState,
    TextContent,
    Thought,
    ToolCallUpdate,
)
from support.agent_harness import edit, is_update
from support.scripted_wire import Call, Failure, Reply, Say, Think

pytestmark = pytest.mark.anyio


async def test_an_answer_without_tools_completes_the_turn(harness: Any) -> None:
    at = harness([Reply.of(Think("**Greeting** short"), Say("Hel", "lo"))])
    assert await at.prompt("hi") == StateChange(TaskState.COMPLETED)
    texts = [event.text for event in at.events if isinstance(event, TextContent)]
    thoughts = [event.thought for event in at.events if isinstance(event, Thought)]
    assert "".join(texts) == "Hello"
    assert [(item.subject, item.description) for item in thoughts] == [("Greeting", "short")]
    assert at.events[1] == StateChange(TaskState.WORKING)


async def test_a_read_runs_without_a_question_and_its_result_goes_to_the_model(harness: Any, workspace: Path) -> None:
    (workspace / "a.txt").write_text("the content\n", encoding="utf-8")
    at = harness([Reply.of(Call("read_file", {"file_path": "a.txt"})), Reply.of(Say("read"))])
    assert (await at.prompt("read it")).state is TaskState.COMPLETED
    assert at.states("read_file") == ["PENDING", "EXECUTING", "SUCCEEDED"]
    assert "the content" in at.told()


@pytest.mark.slow
async def test_an_edit_waits_and_nothing_is_written_before_the_answer(harness: Any, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")
    at = harness([Reply.of(edit(path, "two", "zwei")), Reply.of(Say("done"))])
    assert (await at.prompt("translate")).state is TaskState.INPUT_REQUIRED
    (call,) = at.calls
    assert call.confirmation_request is not None
    proposed = call.confirmation_request.file_edit_details
    assert proposed is not None
    assert (proposed.file_path, proposed.old_content, proposed.new_content) == (str(path), "one\ntwo\n", "one\nzwei\n")
    assert path.read_text(encoding="utf-8") == "one\ntwo\n"
    assert (await at.answer(call)).state is TaskState.COMPLETED
    assert path.read_text(encoding="utf-8") == "one\nzwei\n"
    assert at.states("replace") == ["PENDING", "EXECUTING", "SUCCEEDED"]
    assert at.calls[0].confirmation_request is None


async def test_the_model_is_told_what_the_user_changed(harness: Any, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    at = harness([Reply.of(edit(path, "one", "eins")), Reply.of(Say("done"))])
    await at.prompt("translate")
    await at.answer(at.calls[0], content="uno\n")
    assert path.read_text(encoding="utf-8") == "uno\n"
    assert "User modified" in at.told()
    assert "uno" in at.told()


async def test_a_rejected_edit_is_not_made_and_the_model_goes_on(harness: Any, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    at = harness([Reply.of(edit(path, "one", "eins")), Reply.of(Say("as you like"))])
    await at.prompt("translate")
    assert (await at.answer(at.calls[0], "cancel")).state is TaskState.COMPLETED
    assert path.read_text(encoding="utf-8") == "one\n"
    assert at.calls[0].status is ToolCallStatus.CANCELLED
    assert "rejected" in at.told()


async def test_a_file_that_changed_since_the_proposal_is_not_overwritten(harness: Any, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    at = harness([Reply.of(edit(path, "one", "eins")), Reply.of(Say("sorry"))])
    await at.prompt("translate")
    path.write_text("one, and my own line\n", encoding="utf-8")
    assert (await at.answer(at.calls[0])).state is TaskState.COMPLETED
    assert path.read_text(encoding="utf-8") == "one, and my own line\n"
    assert at.calls[0].error is not None
    assert at.calls[0].error.type == "file_changed"


async def test_a_patch_of_two_files_becomes_two_calls_with_a_question_each(harness: Any, workspace: Path) -> None:
    (workspace / "a.txt").write_text("one\n", encoding="utf-8")
    patch = "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+eins\n*** Add File: b.txt\n+zwei\n*** End Patch\n"
    at = harness([Reply.of(Call("apply_patch", {"input": patch})), Reply.of(Say("done"))])
    await at.prompt("translate")
    assert [call.description for call in at.calls] == ["Update a.txt", "Create b.txt"]
    assert (await at.answer(at.calls[0])).state is TaskState.INPUT_REQUIRED
    assert (await at.answer(at.calls[1], "cancel")).state is TaskState.COMPLETED
    assert (workspace / "a.txt").read_text(encoding="utf-8") == "eins\n"
    assert not (workspace / "b.txt").exists()
    asked = [part["functionCall"]["args"]["input"] for part in at.body()["contents"][-2]["parts"]]
    assert asked == [
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+eins\n*** End Patch",
        "*** Begin Patch\n*** Add File: b.txt\n+zwei\n*** End Patch",
    ]
    results = [part["functionResponse"]["name"] for part in at.body()["contents"][-1]["parts"]]
    assert results == ["apply_patch", "apply_patch"]


async def test_several_questions_wait_together_and_what_follows_waits_for_them(harness: Any, workspace: Path) -> None:
    first, second = workspace / "a.txt", workspace / "b.txt"
    for path in (first, second):
        path.write_text("one\n", encoding="utf-8")
    calls = (edit(first, "one", "eins"), edit(second, "one", "zwei"), Call("read_file", {"file_path": "a.txt"}))
    at = harness([Reply.of(*calls), Reply.of(Say("done"))])
    await at.prompt("translate")
    assert [call.status.name for call in at.calls] == ["PENDING", "PENDING"]
    assert (await at.answer(at.calls[1])).state is TaskState.INPUT_REQUIRED
    assert (first.read_text(encoding="utf-8"), second.read_text(encoding="utf-8")) == ("one\n", "zwei\n")
    assert (await at.answer(at.calls[0])).state is TaskState.COMPLETED
    assert at.states("read_file") == ["PENDING", "EXECUTING", "SUCCEEDED"]
    results = [part["functionResponse"]["name"] for part in at.body()["contents"][-1]["parts"]]
    assert results == ["replace", "replace", "read_file"]


@pytest.mark.slow
async def test_two_edits_of_one_file_are_proposed_one_on_the_other(harness: Any, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")
    at = harness([Reply.of(edit(path, "one", "eins"), edit(path, "two", "zwei")), Reply.of(Say("done"))])
    await at.prompt("translate")
    assert len(at.calls) == 1
    assert (await at.answer(at.calls[0])).state is TaskState.INPUT_REQUIRED
    assert (await at.answer(at.calls[1])).state is TaskState.COMPLETED
    assert path.read_text(encoding="utf-8") == "eins\nzwei\n"


async def test_always_for_this_tool_holds_for_the_rest_of_the_session(harness: Any, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")
    at = harness([Reply.of(edit(path, "one", "eins")), Reply.of(edit(path, "two", "zwei")), Reply.of(Say("done"))])
    await at.prompt("translate")
    assert (await at.answer(at.calls[0], "proceed_always_tool")).state is TaskState.COMPLETED
    assert path.read_text(encoding="utf-8") == "eins\nzwei\n"


async def test_a_call_that_was_interrupted_is_reported_and_not_run_again(harness: Any, workspace: Path) -> None:
    trace = workspace / "trace"
    command = Call("run_shell_command", {"command": f"echo ran >> {trace}"})
    at = harness([Reply.of(command), Reply.of(Say("I see"))])
    await at.prompt("run it")
    (call,) = at.calls
    running = replace(call, status=ToolCallStatus.EXECUTING, confirmation_request=None)
    confirmation = ToolCallConfirmation(call.tool_call_id, "proceed_once")
    at.events += [ConfirmationAccepted(confirmation, "test"), ToolCallUpdate(running)]
    assert (await at.segment()).state is TaskState.COMPLETED
    assert not trace.exists()
    assert at.calls[0].error is not None
    assert at.calls[0].error.type == "interrupted"
    assert "outcome is not known" in at.told()


@pytest.mark.slow
async def test_a_read_that_was_interrupted_is_run_again(harness: Any, workspace: Path) -> None:
    (workspace / "a.txt").write_text("the content\n", encoding="utf-8")
    at = harness([Reply.of(Call("read_file", {"file_path": "a.txt"})), Reply.of(Say("x")), Reply.of(Say("read"))])
    await at.prompt("read it")
    executing = next(i for i, event in enumerate(at.events) if is_update(event) and event.tool_call.status.value == 2)
    del at.events[executing + 1 :]
    assert (await at.segment()).state is TaskState.COMPLETED
    assert at.states("read_file")[-1] == "SUCCEEDED"


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["EXECUTING", "PENDING", "nothing"])
async def test_a_read_in_which_the_process_ended_twice_is_not_run_a_third_time(
    harness: Any, workspace: Path, kept: str
) -> None:
    (workspace / "a.txt").write_text("the content\n", encoding="utf-8")
    at = harness([Reply.of(Call("read_file", {"file_path": "a.txt"})), *[Reply.of(Say("I see"))] * 3])
    await at.prompt("read it")
    for count in (1, 2):
        updates = [i for i, event in enumerate(at.events) if is_update(event)]
        executing = max(i for i in updates if at.events[i].tool_call.status is ToolCallStatus.EXECUTING)
        cut = executing + 1
        if count == 1 and kept != "EXECUTING":
            cut = executing if kept == "PENDING" else min(updates)
        del at.events[cut:]
        assert (await at.segment()).state is TaskState.COMPLETED
        assert at.states("read_file")[-1] == ("SUCCEEDED" if count == 1 else "FAILED")
    assert "the content" not in at.told()
    assert "not run a third time" in at.told()


@pytest.mark.slow
async def test_a_read_that_is_taken_up_is_kept_as_executing_before_anything_of_it_is_done(
    harness: Any, workspace: Path
) -> None:
    at = harness([Reply.of(Call("read_file", {"file_path": "none.txt"})), *[Reply.of(Say("I see"))] * 2])
    await at.prompt("read it")
    del at.events[next(i for i, event in enumerate(at.events) if is_update(event)) :]
    assert (await at.segment()).state is TaskState.COMPLETED
    assert at.states("read_file") == ["PENDING", "PENDING", "EXECUTING", "FAILED"]


async def test_without_a_user_a_call_that_needs_permission_is_refused_by_the_flags_name(
    harness: Any, workspace: Path
) -> None:
    at = harness(
        [Reply.of(Call("write_file", {"file_path": "a.txt", "content": "x"})), Reply.of(Say("ok"))],
        policy=Policy(may_ask=False),
    )
    assert (await at.prompt("write")).state is TaskState.COMPLETED
    assert at.states("write_file") == ["PENDING", "FAILED"]
    assert "--approval-mode" in at.told()
    assert not (workspace / "a.txt").exists()


async def test_plan_mode_refuses_effects_and_says_so_in_the_system_prompt(harness: Any, workspace: Path) -> None:
    at = harness(
        [Reply.of(Call("run_shell_command", {"command": "touch x"})), Reply.of(Say("a plan"))],
        policy=Policy(ApprovalMode.PLAN),
    )
    assert (await at.prompt("do it")).state is TaskState.COMPLETED
    assert not (workspace / "x").exists()
    assert "plan mode" in json.dumps(at.body()["systemInstruction"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (Call("no_such_tool", {}), "There is no tool 'no_such_tool'. The tools are: "),
        (Call("read_file", {"file_path": 7}), "file_path"),
        (Call("read_file", {"file_path": "/etc/passwd"}), "/etc/passwd"),
        (Call("replace", {"file_path": "nowhere.txt", "old_string": "a", "new_string": "b"}), "nowhere.txt"),
    ],
)
async def test_a_call_that_cannot_be_made_is_a_result_and_the_model_goes_on(
    harness: Any, call: Call, message: str
) -> None:
    at = harness([Reply.of(call), Reply.of(Say("sorry"))])
    assert (await at.prompt("try")).state is TaskState.COMPLETED
    assert at.states(call.name) == ["PENDING", "FAILED"] or at.states(call.name) == ["PENDING", "EXECUTING", "FAILED"]
    assert message in (at.calls[0].error.message if at.calls[0].error else "")
    assert message.replace('"', "") in at.told().replace('\\"', "")


async def test_a_call_of_an_unknown_tool_is_answered_with_the_tools_that_were_offered(harness: Any) -> None:
    at = harness([Reply.of(Call("no_such_tool", {})), Reply.of(Say("sorry"))])
    await at.prompt("try")
    offered = [tool["name"] for entry in at.body()["tools"] for tool in entry["functionDeclarations"]]
    message = at.calls[0].error.message if at.calls[0].error else ""
    named = message.partition("The tools are: ")[2].partition(" and ")[0].rstrip(".").split(", ")
    assert set(named) <= set(offered)
    assert "google_web_search" not in named


async def test_a_call_that_fails_before_it_is_asked_still_says_what_it_was_to_do(harness: Any) -> None:
    edit = {"file_path": "nowhere.txt", "old_string": "a", "new_string": "b"}
    at = harness([Reply.of(Call("replace", edit), Call("read_file", {"file_path": 7})), Reply.of(Say("sorry"))])
    await at.prompt("try")
    assert [call.description for call in at.calls] == ["nowhere.txt: a => b", None]


async def test_the_turn_limit_fails_the_task_with_its_reason(harness: Any) -> None:
    at = harness([Reply.of(Call("list_directory", {"dir_path": "."}))] * 5, limit=3)
    end = await at.prompt("go on forever")
    assert (end.state, end.reason) == (TaskState.FAILED, "turn_limit")
    assert len(at.wire.model_requests) == 3


async def test_a_retry_is_told_as_an_event(harness: Any) -> None:
    at = harness([Failure(429, retry_after=0.01), Reply.of(Say("there"))])
    assert (await at.prompt("hi")).state is TaskState.COMPLETED
    (notice,) = [event for event in at.events if isinstance(event, RetryNotice)]
    assert (notice.attempt, notice.attempts) == (2, 10)
    assert "429" in notice.reason


async def test_a_model_that_refuses_fails_the_task_with_what_to_do(harness: Any) -> None:
    at = harness([Failure(401, kind="wrong_key")])
    end = await at.prompt("hi")
    assert (end.state, end.reason) == (TaskState.FAILED, "model_authentication")
    assert "test-key" not in (end.error or "")


@pytest.mark.slow
async def test_what_the_editor_shows_goes_with_the_prompt_once(harness: Any, workspace: Path) -> None:
    replies = [Reply.of(Call("list_directory", {"dir_path": "."})), Reply.of(Say("one")), Reply.of(Say("two"))]
    at = harness(replies, context="the editor shows a.txt")
    await at.prompt("first")
    assert at.told().count("the editor shows a.txt") == 1
    await at.prompt("second")
    assert at.told().count("the editor shows a.txt") == 2


def roles(contents: Sequence[dict[str, Any]]) -> list[str]:
    return [item["role"] for item in contents]


@pytest.mark.slow
async def test_a_prompt_after_a_cancelled_call_keeps_the_conversation_in_order(harness: Any, workspace: Path) -> None:
    path = workspace / "a.txt"
    path.write_text("one\n", encoding="utf-8")
    at = harness([Reply.of(edit(path, "one", "eins")), Reply.of(Say("fine"))])
    await at.prompt("translate")
    assert (await at.prompt("no, leave it")).state is TaskState.COMPLETED
    assert roles(at.body()["contents"]) == ["user", "model", "user"]
    assert at.calls[0].status is ToolCallStatus.CANCELLED
    last = at.body()["contents"][-1]["parts"]
    assert "functionResponse" in last[0]
    assert last[-1]["text"] == "no, leave it"
