"""A subagent at work: its own task, its tools and its questions, across ends of the process and other clients."""

from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.client import CommandMessage, CommandScope, PromptMessage
from isthmus.development_tool import ChangedLines, ToolCallStatus
from isthmus.events import StateChange, TaskState
from support.gemini_wire import GeminiWire
from support.scripted_wire import Call, Failure, Reply, Say, Script, WireUsage
from support.subagents import TwoModels, delegate, delegation, write
from support.turns import all_of

pytestmark = pytest.mark.anyio
DONE, WAITS = TaskState.COMPLETED, TaskState.INPUT_REQUIRED
WORK = (delegate(), Reply.of(Say("All done.")))
WRITES = (write("a.txt"), Reply.of(Say("I wrote a.txt.")))


@pytest.fixture
def models() -> TwoModels:
    return TwoModels()


@pytest.fixture
def wire(models: TwoModels) -> Generator[GeminiWire]:
    with GeminiWire(models) as server:
        yield server


def scripted(models: TwoModels, agent: Sequence[Script] = WORK, subagent: Sequence[Script] = WRITES) -> None:
    models.agent, models.subagent = list(agent), list(subagent)


async def test_a_subagent_works_in_a_task_of_its_own_and_its_last_message_is_the_result(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    search = Reply.of(Call("list_directory", {"dir_path": "."}), usage=WireUsage(100, 10))
    scripted(models, subagent=(search, Reply.of(Say("There is nothing."), usage=WireUsage(50, 5))))
    async with delegation(tmp_path, wire) as at:
        whole = await at.prompt()
        assert whole.state is DONE, whole.error
        child = await at.engine.get(at.child_id)
        assert (child.state, child.parent, child.title) == (DONE, at.task_id, "generalist: Write it.")
        assert child.context_id != whole.context_id
        view = await at.view(at.task_id)
        (call,) = view.calls.values()
        assert call.call.output is not None
        assert (call.call.status, call.call.output.text) == (ToolCallStatus.SUCCEEDED, "There is nothing.")
        (use,) = view.models.values()
        assert (use.requests, use.input_tokens) == (4, 10 + 10 + 150)
    told = models.asked[-1][1]["contents"]
    assert "There is nothing." in str(told)
    # The subagent sees nothing of the conversation, and has no tools that are the agent's alone.
    assert "Do it." not in str(models.asked[1][1]["contents"])
    assert models.tools_of("agent") >= {"invoke_agent", "ask_user", "write_file"}
    only_of_the_agent = {"invoke_agent", "ask_user", "save_memory", "call_tool"}
    assert models.tools_of("subagent") == models.tools_of("agent") - only_of_the_agent


async def test_an_investigator_has_only_tools_that_read(tmp_path: Path, wire: GeminiWire, models: TwoModels) -> None:
    agent = (delegate("codebase_investigator"), Reply.of(Say("Thanks.")))
    scripted(models, agent, (write("a.txt"), Reply.of(Say("I cannot write."))))
    async with delegation(tmp_path, wire, policy=Policy(ApprovalMode.YOLO)) as at:
        assert (await at.prompt()).state is DONE
        assert not (at.workspace / "a.txt").exists()
    read = {"list_directory", "glob", "grep_search", "read_file", "read_many_files"}
    assert models.tools_of("subagent") == read


async def test_the_question_of_a_subagent_is_answered_in_the_task_that_began_it(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    scripted(models)
    async with delegation(tmp_path, wire) as at:
        whole = await at.prompt()
        assert whole.state is WAITS
        (asked,) = whole.pending
        assert (asked.tool_name, asked.tool_call_id) == ("write_file", "call-1?write-a.txt")
        assert asked.confirmation_request is not None
        assert asked.confirmation_request.file_edit_details is not None
        assert (await at.engine.get(at.child_id)).state is WAITS
        await at.answer(at.task_id)
        assert (await at.at_rest(at.task_id, DONE)).state is DONE
        assert (at.workspace / "a.txt").read_text("utf-8") == "Hello.\n"
        view = await at.view(at.task_id)
        assert {call.call.status for call in view.calls.values()} == {ToolCallStatus.SUCCEEDED}
        changed = [call.call.changed_files for call in view.calls.values()]
        assert changed == [(ChangedLines(str(at.workspace / "a.txt"), added=1),), None]


async def test_the_question_of_a_subagent_is_answered_in_its_own_task(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    scripted(models)
    async with delegation(tmp_path, wire) as at:
        await at.prompt()
        await at.answer(at.child_id)
        assert (await at.at_rest(at.task_id, DONE)).state is DONE
        view = await at.view(at.task_id)
        states = {call_id: call.call.status for call_id, call in view.calls.items()}
        assert states == {"call-1": ToolCallStatus.SUCCEEDED, "call-1?write-a.txt": ToolCallStatus.CANCELLED}


async def test_a_rejection_reaches_the_subagent(tmp_path: Path, wire: GeminiWire, models: TwoModels) -> None:
    scripted(models, subagent=(write("a.txt"), Reply.of(Say("It was rejected."))))
    async with delegation(tmp_path, wire) as at:
        await at.prompt()
        await at.answer(at.task_id, "cancel")
        await at.at_rest(at.task_id, DONE)
        assert not (at.workspace / "a.txt").exists()


@pytest.mark.parametrize("answered", ["parent", "child"])
@pytest.mark.parametrize("takes_over", [True, False])
async def test_a_question_of_a_subagent_survives_the_end_of_the_process(
    tmp_path: Path, wire: GeminiWire, models: TwoModels, answered: str, takes_over: bool
) -> None:
    scripted(models)
    async with delegation(tmp_path, wire) as first:
        await first.prompt()
    async with delegation(tmp_path, wire, task_id=first.task_id, takes_over=takes_over) as at:
        assert (await at.engine.get(at.task_id)).pending[0].tool_call_id == "call-1?write-a.txt"
        await at.answer(at.task_id if answered == "parent" else at.child_id)
        await at.at_rest(at.task_id, DONE)
        assert (at.workspace / "a.txt").read_text("utf-8") == "Hello.\n"
        assert len(await at.engine.tasks()) == 2
    assert [whose for whose, _ in models.asked] == ["agent", "subagent", "subagent", "agent"]


async def test_two_questions_of_a_subagent_are_asked_at_once_and_answered_in_any_order(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    both = Reply.of(*write("a.txt").steps, *write("b.txt").steps)
    scripted(models, subagent=(both, Reply.of(Say("Both."))))
    async with delegation(tmp_path, wire) as at:
        whole = await at.prompt()
        assert [call.tool_call_id for call in whole.pending] == ["call-1?write-a.txt", "call-1?write-b.txt"]
        await at.answer(at.task_id, call_id="call-1?write-b.txt")
        left = await at.at_rest(at.task_id, WAITS)
        assert [call.tool_call_id for call in left.pending] == ["call-1?write-a.txt"]
        await at.answer(at.task_id)
        await at.at_rest(at.task_id, DONE)
        assert {path.name for path in at.workspace.iterdir()} == {"a.txt", "b.txt"}


@pytest.mark.parametrize("knows", [True, False])
async def test_cancelling_a_task_cancels_its_subagents(
    tmp_path: Path, wire: GeminiWire, models: TwoModels, knows: bool
) -> None:
    scripted(models)
    async with delegation(tmp_path, wire) as first:
        await first.prompt()
        if knows:
            await first.engine.cancel(first.task_id)
    async with delegation(tmp_path, wire, task_id=first.task_id, takes_over=False) as at:
        if not knows:
            await at.engine.cancel(at.task_id)
        assert (await at.engine.get(at.child_id)).state is TaskState.CANCELED
        assert (await at.view(at.task_id)).questions == ()


async def test_a_subagent_whose_parent_was_cancelled_ends_at_the_next_start(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    scripted(models)
    async with delegation(tmp_path, wire) as first:
        await first.prompt()
        row = await first.engine.journal.task(first.task_id)
        assert row is not None
        taken = await first.engine.journal.claim(row, [], "gone", 0.0)
        assert taken is not None
        await first.engine.journal.finish(taken.lease, [StateChange(TaskState.CANCELED)], [])
    async with delegation(tmp_path, wire, task_id=first.task_id) as at:
        await at.at_rest(at.child_id, TaskState.CANCELED)


async def test_a_message_in_place_of_an_answer_ends_the_subagent(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    scripted(models, (delegate(), write("b.txt"), Reply.of(Say("As you like."))))
    async with delegation(tmp_path, wire) as at:
        await at.prompt()
        await all_of(await at.engine.prompt(PromptMessage("Write b.txt yourself.", task_id=at.task_id)))
        assert (await at.engine.get(at.child_id)).state is TaskState.CANCELED
        (asked,) = (await at.engine.get(at.task_id)).pending
        assert asked.tool_call_id == "write-b.txt"


async def test_cancelling_a_subagent_leaves_the_task_at_work(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    scripted(models, (delegate(), Reply.of(Say("Then not."))))
    async with delegation(tmp_path, wire) as at:
        await at.prompt()
        await at.engine.cancel(at.child_id)
        await at.at_rest(at.task_id, DONE)
    assert "generalist did not finish" in str(models.asked[-1][1]["contents"])


async def test_an_answer_for_the_session_counts_in_the_subagents_that_begin_later(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    again = delegate(call_id="call-2")
    scripted(models, (delegate(), again, Reply.of(Say("Both done."))), (*WRITES, write("b.txt"), Reply.of(Say("b."))))
    async with delegation(tmp_path, wire) as at:
        whole = await at.prompt()
        request = whole.pending[0].confirmation_request
        assert request is not None
        always = next(option.id for option in request.options if "always" in option.id)
        await at.answer(at.task_id, always)
        await at.at_rest(at.task_id, DONE)
        assert (at.workspace / "b.txt").exists()


async def test_the_settings_of_a_session_hold_for_its_subagents(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    scripted(models)
    async with delegation(tmp_path, wire) as at:
        assert (await at.prompt(approval_mode="auto_edit")).state is DONE
        assert (at.workspace / "a.txt").exists()


async def test_a_subagent_that_is_refused_calls_for_want_of_a_user_says_so(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    run = Reply.of(Call("run_shell_command", {"command": "touch a"}))
    scripted(models, subagent=(run, Reply.of(Say("I could not."))))
    async with delegation(tmp_path, wire, policy=Policy(may_ask=False)) as at:
        await at.prompt()
        (call,) = (await at.view(at.task_id)).calls.values()
        assert call.call.error is not None
        assert call.call.error.type == "approval_required"
        assert "run_shell_command" in call.call.error.message


async def test_a_subagent_that_uses_up_its_messages_is_told_at_the_last_one(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    definition = "---\nname: short\ndescription: Short.\nmax_turns: 2\n---\nBe brief."
    (tmp_path / "home/.claude/agents").mkdir(parents=True)
    (tmp_path / "home/.claude/agents/short.md").write_text(definition, "utf-8")
    look = Reply.of(Call("list_directory", {"dir_path": "."}))
    scripted(models, (delegate("short"), Reply.of(Say("Good."))), (look, Reply.of(Say("Found."))))
    async with delegation(tmp_path, wire, home=tmp_path / "home") as at:
        assert (await at.prompt()).state is DONE
    prompts = [str(body) for whose, body in models.asked if whose == "subagent"]
    assert ["This is your last message" in prompt for prompt in prompts] == [False, True]
    assert "Be brief." in prompts[0]


async def test_a_failed_subagent_is_a_failed_call_and_the_task_goes_on(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    scripted(models, subagent=(Failure(400, "no such thing"),))
    async with delegation(tmp_path, wire) as at:
        assert (await at.prompt()).state is DONE
    assert "generalist did not finish" in str(models.asked[-1][1]["contents"])


async def test_a_task_begins_a_limited_number_of_subagents(tmp_path: Path, wire: GeminiWire, models: TwoModels) -> None:
    many = [delegate(call_id=f"call-{number}", prompt=f"Part {number}") for number in range(21)]
    done = [Reply.of(Say(f"Part {number} is done.")) for number in range(20)]
    scripted(models, (*many, Reply.of(Say("Enough."))), tuple(done))
    async with delegation(tmp_path, wire) as at:
        assert (await at.prompt()).state is DONE
        assert len(await at.engine.journal.children(at.task_id)) == 20
    assert "which is the maximum" in str(models.asked[-1][1]["contents"])


async def test_what_subagents_edited_is_shown_and_put_back_in_the_session(
    tmp_path: Path, wire: GeminiWire, models: TwoModels
) -> None:
    agent = (
        delegate("codebase_investigator"), delegate(call_id="call-2"), write("own.txt"), Reply.of(Say("All done.")),
    )  # fmt: skip
    scripted(models, agent, (Reply.of(Say("I looked.")), write("a.txt"), *WRITES[1:]))
    async with delegation(tmp_path, wire, policy=Policy(ApprovalMode.YOLO)) as at:
        whole = await at.prompt()
        assert whole.state is DONE, whole.error

        async def command(name: str, args: str = "") -> str:
            ran = await at.engine.execute(CommandMessage((name,), args, CommandScope(context_id=whole.context_id)))
            assert ran.turn is not None, ran.message
            await all_of(ran.turn)
            if (await at.engine.get(ran.turn.task_id)).state is WAITS:
                await at.answer(ran.turn.task_id)
            assert (await at.at_rest(ran.turn.task_id, DONE, TaskState.FAILED)).error is None
            return (await at.view(ran.turn.task_id)).final_text

        shown = await command("diff")
        assert "+++ b/a.txt" in shown
        assert "+++ b/own.txt" in shown
        own, of_subagent = (await command("restore")).splitlines()[:2]
        assert "  own.txt  " in own
        assert "  a.txt  " in of_subagent
        await command("restore", of_subagent.split()[0])
        assert list(at.workspace.iterdir()) == []
