from pathlib import Path

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.client import PromptMessage
from isthmus.development_tool import CommandExecutionStatus, ToolCallStatus
from isthmus.events import TaskState
from support.command_harness import CommandHarness, OpenHarness, command_harness
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio


def one_to_two(path: Path) -> Call:
    return Call("replace", {"file_path": str(path), "old_string": "one", "new_string": "two"})


async def test_init_lets_the_model_study_the_project_and_write_the_file(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        path = harness.workspace / "GEMINI.md"
        harness.replies.append(Reply.of(Call("write_file", {"file_path": str(path), "content": "# About\n"})))
        ran = await harness.run("/init")
        assert ran.status is CommandExecutionStatus.STARTED
        assert ran.state is TaskState.INPUT_REQUIRED
        assert str(path) in harness.last_user_text()
        done = await harness.answer(ran)
        assert done.state is TaskState.COMPLETED
        assert path.read_text() == "# About\n"


async def test_init_asks_before_an_existing_file_is_written_anew(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        path = harness.workspace / "GEMINI.md"
        path.write_text("Old.\n")
        ran = await harness.run("/init")
        assert ran.status is CommandExecutionStatus.AWAITING_ACTION_CONFIRMATION
        assert ran.state is TaskState.INPUT_REQUIRED
        assert harness.wire.model_requests == []
        refused = await harness.answer(ran, "cancel")
        assert refused.state is TaskState.CANCELED
        assert "stays as it is" in refused.text
        again = await harness.run("/init")
        done = await harness.answer(again)
        assert done.state is TaskState.COMPLETED
        assert "keep what is still true" in harness.last_user_text()
        assert path.read_text() == "Old.\n"


def write(path: Path, content: str = "# About\n") -> Call:
    return Call("write_file", {"file_path": str(path), "content": content})


async def test_without_a_user_auto_edit_lets_init_write_its_file_and_no_other_guarded_one(
    open_harness: OpenHarness,
) -> None:
    async with open_harness(policy=Policy(ApprovalMode.AUTO_EDIT, may_ask=False)) as harness:
        path, other = harness.workspace / "GEMINI.md", harness.workspace / "AGENTS.md"
        (harness.workspace / "sub").mkdir()
        below = harness.workspace / "sub" / "GEMINI.md"
        harness.replies += [Reply.of(write(path), write(other), write(below)), Reply.of(Say("done"))]
        ran = await harness.run("/init")
        assert ran.state is TaskState.COMPLETED
        assert [call.status for call in ran.calls] == [ToolCallStatus.SUCCEEDED, *[ToolCallStatus.FAILED] * 2]
        assert (path.read_text(), other.exists(), below.exists()) == ("# About\n", False, False)
        harness.replies += [Reply.of(write(path, "Again.")), Reply.of(Say("no"))]
        later = await harness.prompt("go on", ran.context_id)
        assert [call.status for call in later.calls] == [ToolCallStatus.FAILED], "it was asked for by the command alone"
        assert path.read_text() == "# About\n"


@pytest.mark.parametrize("name", [".envrc", ".mcp.json", ".gitmodules"])
async def test_init_writes_no_file_unasked_that_a_project_names_and_other_programs_run(
    open_harness: OpenHarness, name: str
) -> None:
    policy = Policy(ApprovalMode.AUTO_EDIT, may_ask=False)
    async with open_harness(policy=policy, context_files=(name,)) as harness:
        harness.replies += [Reply.of(write(harness.workspace / name)), Reply.of(Say("no"))]
        await harness.run("/init")
        assert not (harness.workspace / name).exists()


async def test_init_follows_no_link_unasked(open_harness: OpenHarness) -> None:
    async with open_harness(policy=Policy(ApprovalMode.AUTO_EDIT, may_ask=False)) as harness:
        target = harness.workspace / ".envrc"
        (harness.workspace / "GEMINI.md").symlink_to(target)
        harness.replies += [Reply.of(write(harness.workspace / "GEMINI.md")), Reply.of(Say("no"))]
        await harness.run("/init")
        assert not target.exists()


@pytest.mark.parametrize("mode", [ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT])
async def test_init_says_what_lets_it_write_and_who_can_be_asked_sees_the_file_first(
    open_harness: OpenHarness, mode: ApprovalMode
) -> None:
    async with open_harness(policy=Policy(mode, may_ask=mode is not ApprovalMode.DEFAULT)) as harness:
        path = harness.workspace / "GEMINI.md"
        harness.replies += [Reply.of(write(path)), Reply.of(Say("no"))]
        ran = await harness.run("/init")
        assert not path.exists()
        if mode is ApprovalMode.AUTO_EDIT:
            assert ran.state is TaskState.INPUT_REQUIRED
        else:
            (call,) = ran.calls
            assert call.error is not None
            assert "Allow it with --approval-mode auto_edit or --allowed-tools 'write_file'" in call.error.message


async def test_compress_makes_the_next_request_smaller_and_keeps_the_last_turn(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        first = await harness.prompt("the very first thing " + "x " * 20_000)
        await harness.prompt("the second thing " + "y " * 20_000, first.context_id)
        await harness.prompt("the last thing", first.context_id)
        before = len(harness.wire.model_requests[-1].body)
        ran = await harness.run("/compress", first.context_id)
        assert ran.state is TaskState.COMPLETED, ran.end
        assert "compressed from about" in ran.text
        await harness.prompt("and now", first.context_id)
        assert len(harness.wire.model_requests[-1].body) < before / 2
        assert "the last thing" in harness.said()
        assert "x x x x" not in harness.said()


async def test_compress_says_when_there_is_nothing_to_gain(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        ran = await harness.run("/compress")
        assert (ran.state, ran.end.reason) == (TaskState.FAILED, "not_compacted")
        assert harness.wire.model_requests == []


async def test_restore_brings_the_files_bytes_and_the_conversation_back(open_harness: OpenHarness) -> None:
    async with open_harness(policy=Policy(ApprovalMode.AUTO_EDIT)) as harness:
        path = harness.workspace / "a.txt"
        path.write_bytes(b"one\r\n")
        first = await harness.prompt("remember the word plum")
        harness.replies.append(Reply.of(one_to_two(path)))
        await harness.prompt("change it", first.context_id)
        assert path.read_bytes() == b"two\r\n"
        listed = await harness.run("/restore", first.context_id)
        checkpoint = listed.text.split()[0]
        assert "a.txt" in listed.text
        ran = await harness.run(f"/restore {checkpoint}", first.context_id)
        assert ran.status is CommandExecutionStatus.AWAITING_ACTION_CONFIRMATION
        done = await harness.answer(ran)
        assert done.state is TaskState.COMPLETED
        assert path.read_bytes() == b"one\r\n"
        await harness.prompt("what now", first.context_id)
        assert "plum" in harness.said()
        assert "two" not in harness.said()
        unknown = await harness.run("/restore nosuch", first.context_id)
        assert (unknown.state, unknown.end.reason) == (TaskState.FAILED, "not_restored")
        assert checkpoint in (unknown.end.error or "")


@pytest.mark.slow
async def test_a_restore_can_be_undone_and_then_done_again(open_harness: OpenHarness) -> None:
    async with open_harness(policy=Policy(ApprovalMode.AUTO_EDIT)) as harness:
        path = harness.workspace / "a.txt"
        path.write_text("one\n")
        harness.replies.append(Reply.of(one_to_two(path)))
        first = await harness.prompt("change the plum")
        context = first.context_id
        checkpoint = (await harness.run("/restore", context)).text.split()[0]
        path.write_text("by somebody else\n")

        async def restore(wanted: str) -> str:
            """Return the checkpoint that undoes it."""
            done = await harness.answer(await harness.run(f"/restore {wanted}", context))
            assert done.state is TaskState.COMPLETED
            listed = (await harness.run("/restore", context)).text.splitlines()
            assert f"before /restore {wanted}" in listed[0]
            return listed[0].split()[0]

        undo = await restore(checkpoint)
        assert path.read_text() == "one\n"
        redo = await restore(undo)
        assert path.read_text() == "by somebody else\n"
        await harness.prompt("and now", context)
        assert "two" in harness.said()
        await restore(redo)
        assert path.read_text() == "one\n"
        await harness.prompt("and at last", context)
        assert "two" not in harness.said()


async def test_an_id_that_is_mistyped_names_the_one_that_was_meant(open_harness: OpenHarness) -> None:
    async with open_harness(policy=Policy(ApprovalMode.AUTO_EDIT)) as harness:
        path = harness.workspace / "a.txt"
        harness.replies.append(Reply.of(Call("write_file", {"file_path": str(path), "content": "two\n"})))
        first = await harness.prompt("make it")
        checkpoint = (await harness.run("/restore", first.context_id)).text.split()[0]
        ran = await harness.run(f"/restore {checkpoint[:-1].upper()}", first.context_id)
        assert f"Did you mean {checkpoint}?" in (ran.end.error or "")


@pytest.mark.slow
async def test_a_restore_leaves_what_another_user_changed_in_a_session_of_the_same_id(
    open_harness: OpenHarness,
) -> None:
    async with open_harness(policy=Policy(ApprovalMode.YOLO)) as harness:
        mine, others = harness.workspace / "mine.txt", harness.workspace / "others.txt"
        harness.replies.append(Reply.of(Call("write_file", {"file_path": str(mine), "content": "mine\n"})))
        await harness.prompt("make it", "same")
        harness.replies.append(Reply.of(Call("write_file", {"file_path": str(others), "content": "theirs\n"})))
        bob = harness.engine.for_user("bob")
        turn = await bob.prompt(PromptMessage("make mine", context_id="same"))
        async for _ in turn.deliveries:
            pass
        assert others.exists()
        listed = (await harness.run("/restore", "same")).text
        assert "others.txt" not in listed
        restored = await harness.run(f"/restore {listed.split()[0]}", "same")
        assert restored.state is TaskState.COMPLETED
        assert "others.txt" not in restored.text
        assert (mine.exists(), others.exists()) == (False, True)


async def test_a_refused_restore_changes_nothing(open_harness: OpenHarness) -> None:
    async with open_harness(policy=Policy(ApprovalMode.AUTO_EDIT)) as harness:
        path = harness.workspace / "a.txt"
        harness.replies.append(Reply.of(Call("write_file", {"file_path": str(path), "content": "two\n"})))
        first = await harness.prompt("make it")
        checkpoint = (await harness.run("/restore", first.context_id)).text.split()[0]
        ran = await harness.run(f"/restore {checkpoint}", first.context_id)
        done = await harness.answer(ran, "cancel")
        assert done.state is TaskState.CANCELED
        assert path.read_text() == "two\n"


@pytest.mark.slow
async def test_a_command_that_waits_goes_on_in_another_process(tmp_path: Path) -> None:
    with GeminiWire(lambda _: Reply.of(Say("fine"))) as wire:
        async with command_harness(tmp_path, wire) as harness:
            _look(harness)
            ran = await harness.run("/look")
            assert ran.state is TaskState.INPUT_REQUIRED
        async with command_harness(tmp_path, wire) as harness:
            half = await harness.answer(ran, call=ran.calls[0])
            assert half.state is TaskState.INPUT_REQUIRED
        async with command_harness(tmp_path, wire) as harness:
            done = await harness.answer(ran, call=ran.calls[1])
            assert done.state is TaskState.COMPLETED
            assert harness.last_user_text() == "a b"
            assert (harness.workspace / "count").read_text() == "xx"
            whole = await harness.replay(ran)
        executing = [status for status in whole.statuses() if status is ToolCallStatus.EXECUTING]
        assert len(executing) == 2
        assert len(wire.model_requests) == 1


def _look(harness: CommandHarness) -> None:
    folder = harness.workspace / ".gemini" / "commands"
    folder.mkdir(parents=True)
    (folder / "look.toml").write_text("prompt = '''!{printf x >> count; echo a} !{printf x >> count; echo b}'''\n")


async def test_a_prompt_to_a_command_that_waits_gives_its_question_up(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        _look(harness)
        ran = await harness.run("/look")
        turn = await harness.engine.prompt(PromptMessage("never mind", task_id=ran.task_id))
        seen = [delivery.event async for delivery in turn.deliveries]
        assert [getattr(event, "state", None) for event in seen][-1] is TaskState.COMPLETED
        assert not (harness.workspace / "count").exists()
        assert harness.last_user_text() == "never mind"


async def test_a_completed_command_can_be_continued_with_a_prompt(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        ran = await harness.run("/about")
        turn = await harness.engine.prompt(PromptMessage("hello", task_id=ran.task_id))
        seen = [delivery.event async for delivery in turn.deliveries]
        assert [getattr(event, "state", None) for event in seen][-1] is TaskState.COMPLETED
        assert harness.last_user_text() == "hello"


async def test_a_command_that_waits_can_be_cancelled(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        _look(harness)
        ran = await harness.run("/look")
        assert (await harness.engine.cancel(ran.task_id)).state is TaskState.CANCELED
        whole = await harness.replay(ran)
        assert {call.status for call in whole.calls} == {ToolCallStatus.CANCELLED}
        assert not (harness.workspace / "count").exists()


async def test_the_text_of_a_command_is_in_the_history_of_its_task(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        ran = await harness.run("/about")
        snapshot = await harness.engine.get(ran.task_id)
        assert [(message.role, message.text) for message in snapshot.history][-1] == ("agent", ran.text)


@pytest.mark.parametrize(
    ("command", "words"), [("/review", "git diff HEAD"), ("/review topic", "git diff HEAD...topic")]
)
async def test_review_tells_the_model_how_to_see_the_changes(
    open_harness: OpenHarness, command: str, words: str
) -> None:
    async with open_harness() as harness:
        assert (await harness.run(command)).state is TaskState.COMPLETED
        assert words in harness.last_user_text()
