from pathlib import Path

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.client import PromptMessage
from isthmus.development_tool import CommandExecutionStatus, ToolCallStatus
from isthmus.events import TaskState
from support.command_desk import CommandDesk, OpenDesk, command_desk
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio


async def test_init_lets_the_model_study_the_project_and_write_the_file(open_desk: OpenDesk) -> None:
    async with open_desk() as desk:
        path = desk.workspace / "GEMINI.md"
        desk.replies.append(Reply.of(Call("write_file", {"file_path": str(path), "content": "# About\n"})))
        ran = await desk.run("/init")
        assert ran.status is CommandExecutionStatus.STARTED
        assert ran.state is TaskState.INPUT_REQUIRED
        assert str(path) in desk.last_user_text()
        done = await desk.answer(ran)
        assert done.state is TaskState.COMPLETED
        assert path.read_text() == "# About\n"


async def test_init_asks_before_an_existing_file_is_written_anew(open_desk: OpenDesk) -> None:
    async with open_desk() as desk:
        path = desk.workspace / "GEMINI.md"
        path.write_text("Old.\n")
        ran = await desk.run("/init")
        assert ran.status is CommandExecutionStatus.AWAITING_ACTION_CONFIRMATION
        assert ran.state is TaskState.INPUT_REQUIRED
        assert desk.wire.model_requests == []
        refused = await desk.answer(ran, "cancel")
        assert refused.state is TaskState.CANCELED
        assert "stays as it is" in refused.text
        again = await desk.run("/init")
        done = await desk.answer(again)
        assert done.state is TaskState.COMPLETED
        assert "keep what is still true" in desk.last_user_text()
        assert path.read_text() == "Old.\n"


def write(path: Path, content: str = "# About\n") -> Call:
    return Call("write_file", {"file_path": str(path), "content": content})


async def test_without_a_user_auto_edit_lets_init_write_its_file_and_no_other_guarded_one(
    open_desk: OpenDesk,
) -> None:
    async with open_desk(policy=Policy(ApprovalMode.AUTO_EDIT, may_ask=False)) as desk:
        path, other = desk.workspace / "GEMINI.md", desk.workspace / "AGENTS.md"
        (desk.workspace / "sub").mkdir()
        below = desk.workspace / "sub" / "GEMINI.md"
        desk.replies += [Reply.of(write(path), write(other), write(below)), Reply.of(Say("done"))]
        ran = await desk.run("/init")
        assert ran.state is TaskState.COMPLETED
        assert [call.status for call in ran.calls] == [ToolCallStatus.SUCCEEDED, *[ToolCallStatus.FAILED] * 2]
        assert (path.read_text(), other.exists(), below.exists()) == ("# About\n", False, False)
        desk.replies += [Reply.of(write(path, "Again.")), Reply.of(Say("no"))]
        later = await desk.prompt("go on", ran.context_id)
        assert [call.status for call in later.calls] == [ToolCallStatus.FAILED], "it was asked for by the command alone"
        assert path.read_text() == "# About\n"


@pytest.mark.parametrize("name", [".envrc", ".mcp.json", ".gitmodules"])
async def test_init_writes_no_file_unasked_that_a_project_names_and_other_programs_run(
    open_desk: OpenDesk, name: str
) -> None:
    policy = Policy(ApprovalMode.AUTO_EDIT, may_ask=False)
    async with open_desk(policy=policy, context_files=(name,)) as desk:
        desk.replies += [Reply.of(write(desk.workspace / name)), Reply.of(Say("no"))]
        await desk.run("/init")
        assert not (desk.workspace / name).exists()


async def test_init_follows_no_link_unasked(open_desk: OpenDesk) -> None:
    async with open_desk(policy=Policy(ApprovalMode.AUTO_EDIT, may_ask=False)) as desk:
        target = desk.workspace / ".envrc"
        (desk.workspace / "GEMINI.md").symlink_to(target)
        desk.replies += [Reply.of(write(desk.workspace / "GEMINI.md")), Reply.of(Say("no"))]
        await desk.run("/init")
        assert not target.exists()


@pytest.mark.parametrize("mode", [ApprovalMode.DEFAULT, ApprovalMode.AUTO_EDIT])
async def test_init_says_what_lets_it_write_and_who_can_be_asked_sees_the_file_first(
    open_desk: OpenDesk, mode: ApprovalMode
) -> None:
    async with open_desk(policy=Policy(mode, may_ask=mode is not ApprovalMode.DEFAULT)) as desk:
        path = desk.workspace / "GEMINI.md"
        desk.replies += [Reply.of(write(path)), Reply.of(Say("no"))]
        ran = await desk.run("/init")
        assert not path.exists()
        if mode is ApprovalMode.AUTO_EDIT:
            assert ran.state is TaskState.INPUT_REQUIRED
        else:
            (call,) = ran.calls
            assert call.error is not None
            assert "Allow it with --approval-mode auto_edit or --allowed-tools 'write_file'" in call.error.message


async def test_compress_makes_the_next_request_smaller_and_keeps_the_last_turn(open_desk: OpenDesk) -> None:
    async with open_desk() as desk:
        first = await desk.prompt("the very first thing " + "x " * 20_000)
        await desk.prompt("the second thing " + "y " * 20_000, first.context_id)
        await desk.prompt("the last thing", first.context_id)
        before = len(desk.wire.model_requests[-1].body)
        ran = await desk.run("/compress", first.context_id)
        assert ran.state is TaskState.COMPLETED, ran.end
        assert "compressed from about" in ran.text
        await desk.prompt("and now", first.context_id)
        assert len(desk.wire.model_requests[-1].body) < before / 2
        assert "the last thing" in desk.said()
        assert "x x x x" not in desk.said()


async def test_compress_says_when_there_is_nothing_to_gain(open_desk: OpenDesk) -> None:
    async with open_desk() as desk:
        ran = await desk.run("/compress")
        assert (ran.state, ran.end.reason) == (TaskState.FAILED, "not_compacted")
        assert desk.wire.model_requests == []


async def test_restore_brings_the_files_bytes_and_the_conversation_back(open_desk: OpenDesk) -> None:
    async with open_desk(policy=Policy(ApprovalMode.AUTO_EDIT)) as desk:
        path = desk.workspace / "a.txt"
        path.write_bytes(b"one\r\n")
        first = await desk.prompt("remember the word plum")
        desk.replies.append(Reply.of(Call("write_file", {"file_path": str(path), "content": "two\n"})))
        await desk.prompt("change it", first.context_id)
        assert path.read_bytes() == b"two\r\n"
        listed = await desk.run("/restore", first.context_id)
        checkpoint = listed.text.split()[0]
        assert "a.txt" in listed.text
        ran = await desk.run(f"/restore {checkpoint}", first.context_id)
        assert ran.status is CommandExecutionStatus.AWAITING_ACTION_CONFIRMATION
        done = await desk.answer(ran)
        assert done.state is TaskState.COMPLETED
        assert path.read_bytes() == b"one\r\n"
        await desk.prompt("what now", first.context_id)
        assert "plum" in desk.said()
        assert "two" not in desk.said()
        unknown = await desk.run("/restore nosuch", first.context_id)
        assert (unknown.state, unknown.end.reason) == (TaskState.FAILED, "not_restored")
        assert checkpoint in (unknown.end.error or "")


async def test_a_restore_can_be_undone_and_then_done_again(open_desk: OpenDesk) -> None:
    async with open_desk(policy=Policy(ApprovalMode.AUTO_EDIT)) as desk:
        path = desk.workspace / "a.txt"
        path.write_text("one\n")
        desk.replies.append(Reply.of(Call("write_file", {"file_path": str(path), "content": "two\n"})))
        first = await desk.prompt("change the plum")
        context = first.context_id
        checkpoint = (await desk.run("/restore", context)).text.split()[0]
        path.write_text("by somebody else\n")

        async def restore(wanted: str) -> str:
            """The checkpoint that undoes it."""
            done = await desk.answer(await desk.run(f"/restore {wanted}", context))
            assert done.state is TaskState.COMPLETED
            listed = (await desk.run("/restore", context)).text.splitlines()
            assert f"before /restore {wanted}" in listed[0]
            return listed[0].split()[0]

        undo = await restore(checkpoint)
        assert path.read_text() == "one\n"
        redo = await restore(undo)
        assert path.read_text() == "by somebody else\n"
        await desk.prompt("and now", context)
        assert "two" in desk.said()
        await restore(redo)
        assert path.read_text() == "one\n"
        await desk.prompt("and at last", context)
        assert "two" not in desk.said()


async def test_an_id_that_is_mistyped_names_the_one_that_was_meant(open_desk: OpenDesk) -> None:
    async with open_desk(policy=Policy(ApprovalMode.AUTO_EDIT)) as desk:
        path = desk.workspace / "a.txt"
        desk.replies.append(Reply.of(Call("write_file", {"file_path": str(path), "content": "two\n"})))
        first = await desk.prompt("make it")
        checkpoint = (await desk.run("/restore", first.context_id)).text.split()[0]
        ran = await desk.run(f"/restore {checkpoint[:-1].upper()}", first.context_id)
        assert f"Did you mean {checkpoint}?" in (ran.end.error or "")


async def test_a_restore_leaves_what_another_user_changed_in_a_session_of_the_same_id(
    open_desk: OpenDesk,
) -> None:
    async with open_desk(policy=Policy(ApprovalMode.YOLO)) as desk:
        mine, others = desk.workspace / "mine.txt", desk.workspace / "others.txt"
        desk.replies.append(Reply.of(Call("write_file", {"file_path": str(mine), "content": "mine\n"})))
        await desk.prompt("make it", "same")
        desk.replies.append(Reply.of(Call("write_file", {"file_path": str(others), "content": "theirs\n"})))
        bob = desk.engine.for_user("bob")
        turn = await bob.prompt(PromptMessage("make mine", context_id="same"))
        async for _ in turn.deliveries:
            pass
        assert others.exists()
        listed = (await desk.run("/restore", "same")).text
        assert "others.txt" not in listed
        restored = await desk.run(f"/restore {listed.split()[0]}", "same")
        assert restored.state is TaskState.COMPLETED
        assert "others.txt" not in restored.text
        assert (mine.exists(), others.exists()) == (False, True)


async def test_a_refused_restore_changes_nothing(open_desk: OpenDesk) -> None:
    async with open_desk(policy=Policy(ApprovalMode.AUTO_EDIT)) as desk:
        path = desk.workspace / "a.txt"
        desk.replies.append(Reply.of(Call("write_file", {"file_path": str(path), "content": "two\n"})))
        first = await desk.prompt("make it")
        checkpoint = (await desk.run("/restore", first.context_id)).text.split()[0]
        ran = await desk.run(f"/restore {checkpoint}", first.context_id)
        done = await desk.answer(ran, "cancel")
        assert done.state is TaskState.CANCELED
        assert path.read_text() == "two\n"


async def test_a_command_that_waits_goes_on_in_another_process(tmp_path: Path) -> None:
    with GeminiWire(lambda _: Reply.of(Say("fine"))) as wire:
        async with command_desk(tmp_path, wire) as desk:
            _look(desk)
            ran = await desk.run("/look")
            assert ran.state is TaskState.INPUT_REQUIRED
        async with command_desk(tmp_path, wire) as desk:
            half = await desk.answer(ran, call=ran.calls[0])
            assert half.state is TaskState.INPUT_REQUIRED
        async with command_desk(tmp_path, wire) as desk:
            done = await desk.answer(ran, call=ran.calls[1])
            assert done.state is TaskState.COMPLETED
            assert desk.last_user_text() == "a b"
            assert (desk.workspace / "count").read_text() == "xx"
            whole = await desk.replay(ran)
        executing = [status for status in whole.statuses() if status is ToolCallStatus.EXECUTING]
        assert len(executing) == 2
        assert len(wire.model_requests) == 1


def _look(desk: CommandDesk) -> None:
    folder = desk.workspace / ".gemini" / "commands"
    folder.mkdir(parents=True)
    (folder / "look.toml").write_text("prompt = '''!{printf x >> count; echo a} !{printf x >> count; echo b}'''\n")


async def test_a_prompt_to_a_command_that_waits_gives_its_question_up(open_desk: OpenDesk) -> None:
    async with open_desk() as desk:
        _look(desk)
        ran = await desk.run("/look")
        turn = await desk.engine.prompt(PromptMessage("never mind", task_id=ran.task_id))
        seen = [delivery.event async for delivery in turn.deliveries]
        assert [getattr(event, "state", None) for event in seen][-1] is TaskState.COMPLETED
        assert not (desk.workspace / "count").exists()
        assert desk.last_user_text() == "never mind"


async def test_a_completed_command_can_be_continued_with_a_prompt(open_desk: OpenDesk) -> None:
    async with open_desk() as desk:
        ran = await desk.run("/about")
        turn = await desk.engine.prompt(PromptMessage("hello", task_id=ran.task_id))
        seen = [delivery.event async for delivery in turn.deliveries]
        assert [getattr(event, "state", None) for event in seen][-1] is TaskState.COMPLETED
        assert desk.last_user_text() == "hello"


async def test_a_command_that_waits_can_be_cancelled(open_desk: OpenDesk) -> None:
    async with open_desk() as desk:
        _look(desk)
        ran = await desk.run("/look")
        assert (await desk.engine.cancel(ran.task_id)).state is TaskState.CANCELED
        whole = await desk.replay(ran)
        assert {call.status for call in whole.calls} == {ToolCallStatus.CANCELLED}
        assert not (desk.workspace / "count").exists()


async def test_the_text_of_a_command_is_in_the_history_of_its_task(open_desk: OpenDesk) -> None:
    async with open_desk() as desk:
        ran = await desk.run("/about")
        snapshot = await desk.engine.get(ran.task_id)
        assert [(message.role, message.text) for message in snapshot.history][-1] == ("agent", ran.text)
