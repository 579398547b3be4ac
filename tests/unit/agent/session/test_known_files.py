"""Edits that no user looks at: they replace only text that the model knows, and keep changes that others made."""

import json
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.session.known_files import CHANGED_SINCE_READ, NOT_READ, KnownFiles
from isthmus.development_tool import FileDiff, ToolCall, ToolCallStatus
from isthmus.events import StateChange, TaskState
from isthmus.internal_events import FilesSeen, Restored
from isthmus.models.port.base import Message, ModelToolResult, Text
from isthmus.tools.port.base import Overwriting
from isthmus.tools.port.seen_text import whole_text
from support.agent_harness import AgentHarness
from support.scripted_wire import Call, Reply, Say
from support.wire_server import WireRequest

pytestmark = pytest.mark.anyio

OpenHarness = Callable[..., AgentHarness]
TEXT = "one\ntwo\nthree\nfour\n"
THEIRS = "one\ntwo\nof the user\nthree\nfour\n"
CODEX = "gpt-test"


def notebook(*sources: str, outputs: tuple[str, ...] = ()) -> str:
    cells: list[dict[str, Any]] = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "metadata": {},
            "execution_count": None,
            "outputs": [{"output_type": "stream", "name": "stdout", "text": [text]} for text in outputs],
            "source": [source],
        }
        for number, source in enumerate(sources)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


OVERWRITES: Mapping[str, tuple[str, str, str, dict[str, Any]]] = {
    "write_file": ("a.txt", TEXT, THEIRS, {"file_path": "a.txt", "content": "one\n2\nthree\nfour\n"}),
    "apply_patch": (
        "a.txt",
        TEXT,
        THEIRS,
        {"input": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"},
    ),
    "notebook_edit": (
        "a.ipynb",
        notebook("a = 1", "b = 2"),
        notebook("a = 1  # of the user", "b = 2"),
        {"notebook_path": "a.ipynb", "cell_id": "c0", "new_source": "a = 3"},
    ),
}
"""Each tool that may replace text which it does not name: a file, its text, that after a user's change, and a call."""
NAMING: Mapping[str, tuple[str, str, dict[str, Any]]] = {
    "replace": ("a.txt", TEXT, {"file_path": "a.txt", "old_string": "two", "new_string": "2"}),
    "apply_patch": (
        "a.txt",
        TEXT,
        {"input": "*** Begin Patch\n*** Update File: a.txt\n@@\n one\n-two\n+2\n three\n*** End Patch"},
    ),
    "notebook_edit": (
        "a.ipynb",
        notebook("a = 1"),
        {"notebook_path": "a.ipynb", "edit_mode": "insert", "cell_type": "code", "new_source": "b"},
    ),
}


def opened(harness: OpenHarness, *steps: "Call | Callable[[], object]", **options: Any) -> AgentHarness:
    """Return an agent whose model makes these calls, one in each message; between two of them others may act."""
    left = iter(steps)

    def reply(_: WireRequest) -> Reply:
        for step in left:
            if isinstance(step, Call):
                return Reply.of(step)
            step()
        return Reply.of(Say("Done."))

    return harness(reply, policy=Policy(options.pop("mode", ApprovalMode.YOLO)), **options)


def read(name: str, **arguments: Any) -> Call:
    return Call("read_file", {"file_path": name, **arguments})


def overwrite(tool: str) -> Call:
    return Call(tool, OVERWRITES[tool][3])


async def outcome(agent: AgentHarness, tool: str) -> ToolCall:
    """Run the script and return the last call of a tool."""
    end: StateChange = await agent.prompt("go")
    assert end.state is TaskState.COMPLETED, end
    return [call for call in agent.calls if call.tool_name == tool][-1]


def category(call: ToolCall) -> str | None:
    return call.error.type if call.error is not None else None


@pytest.mark.parametrize("mode", [ApprovalMode.YOLO, ApprovalMode.AUTO_EDIT])
@pytest.mark.parametrize("tool", OVERWRITES)
async def test_a_file_that_was_not_read_is_not_overwritten(
    harness: OpenHarness, workspace: Path, tool: str, mode: ApprovalMode
) -> None:
    name, text, _, _ = OVERWRITES[tool]
    (workspace / name).write_text(text)
    agent = opened(harness, overwrite(tool), mode=mode)
    call = await outcome(agent, tool)
    assert (category(call), (workspace / name).read_text()) == (NOT_READ, text)
    assert "Read it" in agent.told()


@pytest.mark.parametrize("tool", OVERWRITES)
async def test_a_file_that_was_read_is_overwritten(harness: OpenHarness, workspace: Path, tool: str) -> None:
    name, text, _, _ = OVERWRITES[tool]
    (workspace / name).write_text(text)
    call = await outcome(opened(harness, read(name), overwrite(tool)), tool)
    assert call.status is ToolCallStatus.SUCCEEDED, call.error
    assert not (workspace / name).exists() or (workspace / name).read_text() != text


@pytest.mark.parametrize("tool", OVERWRITES)
async def test_a_change_by_others_is_shown_and_not_overwritten(
    harness: OpenHarness, workspace: Path, tool: str
) -> None:
    name, text, theirs, _ = OVERWRITES[tool]
    (workspace / name).write_text(text)
    agent = opened(harness, read(name), lambda: (workspace / name).write_text(theirs), overwrite(tool))
    call = await outcome(agent, tool)
    assert (category(call), (workspace / name).read_text()) == (CHANGED_SINCE_READ, theirs)
    assert tool == "notebook_edit" or "+of the user" in agent.told()


async def test_with_the_change_shown_the_model_may_repeat_the_call(harness: OpenHarness, workspace: Path) -> None:
    (workspace / "a.txt").write_text(TEXT)
    merged = Call("write_file", {"file_path": "a.txt", "content": THEIRS.replace("two", "2")})
    agent = opened(
        harness, read("a.txt"), lambda: (workspace / "a.txt").write_text(THEIRS), overwrite("write_file"), merged
    )
    call = await outcome(agent, "write_file")
    assert call.status is ToolCallStatus.SUCCEEDED
    assert (workspace / "a.txt").read_text() == "one\n2\nof the user\nthree\nfour\n"


@pytest.mark.parametrize("tool", OVERWRITES)
async def test_a_file_as_it_was_before_the_last_reading_counts_as_changed(
    harness: OpenHarness, workspace: Path, tool: str
) -> None:
    name, text, theirs, _ = OVERWRITES[tool]
    (workspace / name).write_text(theirs)
    agent = opened(
        harness,
        read(name),
        lambda: (workspace / name).write_text(text),
        read(name),
        lambda: (workspace / name).write_text(theirs),
        overwrite(tool),
    )
    call = await outcome(agent, tool)
    assert (category(call), (workspace / name).read_text()) == (CHANGED_SINCE_READ, theirs)


async def test_a_file_as_it_was_before_an_edit_of_the_model_counts_as_changed(
    harness: OpenHarness, workspace: Path
) -> None:
    (workspace / "a.txt").write_text(TEXT)
    agent = opened(
        harness,
        read("a.txt"),
        Call("replace", NAMING["replace"][2]),
        lambda: (workspace / "a.txt").write_text(TEXT),
        Call("write_file", {"file_path": "a.txt", "content": "mine\n"}),
    )
    call = await outcome(agent, "write_file")
    assert (category(call), (workspace / "a.txt").read_text()) == (CHANGED_SINCE_READ, TEXT)
    assert "+two" in agent.told()


@pytest.mark.parametrize("tool", OVERWRITES)
@pytest.mark.parametrize("command", ["printf 'a new line\\n' >> a.txt; sed -i 's/a = 1/a = 4/' a.ipynb", "false"])
async def test_what_a_command_of_the_agent_changed_is_its_own(
    harness: OpenHarness, workspace: Path, tool: str, command: str
) -> None:
    name, text, _, _ = OVERWRITES[tool]
    for each in ("a.txt", "a.ipynb"):
        (workspace / each).write_text(OVERWRITES["notebook_edit"][1] if each == "a.ipynb" else text)
    agent = opened(harness, read(name), Call("run_shell_command", {"command": command}), overwrite(tool))
    call = await outcome(agent, tool)
    assert call.status is ToolCallStatus.SUCCEEDED, call.error


async def test_a_command_does_not_make_changes_by_others_before_it_its_own(
    harness: OpenHarness, workspace: Path
) -> None:
    (workspace / "a.txt").write_text(TEXT)
    agent = opened(
        harness,
        read("a.txt"),
        lambda: (workspace / "a.txt").write_text(THEIRS),
        Call("run_shell_command", {"command": "sed -i 's/four/4/' a.txt"}),
        overwrite("write_file"),
    )
    call = await outcome(agent, "write_file")
    assert category(call) == CHANGED_SINCE_READ
    assert "of the user" in (workspace / "a.txt").read_text()


@pytest.mark.parametrize(
    "steps",
    [
        (Call("run_shell_command", {"command": "cat a.txt"}),),
        (Call("read_many_files", {"include": ["*.txt"]}),),
        (read("a.txt", end_line=2), read("a.txt", start_line=3)),
        (read("a.txt", start_line=3), read("a.txt", end_line=2)),
        (Call("replace", NAMING["replace"][2]), read("a.txt")),
    ],
    ids=["cat", "many", "two parts", "two parts in reverse", "after an edit"],
)
async def test_each_way_to_see_the_whole_text_counts(
    harness: OpenHarness, workspace: Path, steps: tuple[Call, ...]
) -> None:
    (workspace / "a.txt").write_text(TEXT)
    call = await outcome(
        opened(harness, *steps, Call("write_file", {"file_path": "a.txt", "content": "mine\n"})), "write_file"
    )
    assert call.status is ToolCallStatus.SUCCEEDED, call.error


@pytest.mark.parametrize(
    "steps",
    [
        (read("a.txt", end_line=2),),
        (read("a.txt", end_line=1), read("a.txt", start_line=3)),
        (Call("replace", NAMING["replace"][2]),),
        (Call("grep_search", {"pattern": "two"}),),
    ],
    ids=["beginning", "without the middle", "an edit", "a search"],
)
async def test_a_part_of_a_file_is_not_enough_to_replace_all_of_it(
    harness: OpenHarness, workspace: Path, steps: tuple[Call, ...]
) -> None:
    (workspace / "a.txt").write_text(TEXT)
    agent = opened(harness, *steps, Call("write_file", {"file_path": "a.txt", "content": "mine\n"}))
    assert category(await outcome(agent, "write_file")) == NOT_READ
    assert "four" in (workspace / "a.txt").read_text()


async def test_a_line_that_was_cut_was_not_read(harness: OpenHarness, workspace: Path) -> None:
    (workspace / "a.txt").write_text("x" * 3000 + "\n")
    agent = opened(harness, read("a.txt"), Call("write_file", {"file_path": "a.txt", "content": "mine\n"}))
    assert category(await outcome(agent, "write_file")) == NOT_READ


async def test_what_the_model_wrote_itself_it_may_write_again(harness: OpenHarness, workspace: Path) -> None:
    writes = [Call("write_file", {"file_path": "new.txt", "content": f"{number}\nand more\n"}) for number in range(3)]
    edit = Call("replace", {"file_path": "new.txt", "old_string": "and", "new_string": "und"})
    agent = opened(harness, writes[0], writes[1], edit, writes[2])
    call = await outcome(agent, "write_file")
    assert call.status is ToolCallStatus.SUCCEEDED, call.error
    assert (workspace / "new.txt").read_text() == "2\nand more\n"


async def test_other_line_ends_are_no_change(harness: OpenHarness, workspace: Path) -> None:
    (workspace / "a.txt").write_text(TEXT)
    agent = opened(
        harness,
        read("a.txt"),
        lambda: (workspace / "a.txt").write_bytes(TEXT.replace("\n", "\r\n").encode()),
        overwrite("write_file"),
    )
    assert (await outcome(agent, "write_file")).status is ToolCallStatus.SUCCEEDED


async def test_outputs_of_a_notebook_are_no_change_of_its_cells(harness: OpenHarness, workspace: Path) -> None:
    path = workspace / "a.ipynb"
    path.write_text(notebook("a = 1", "b = 2"))
    agent = opened(
        harness,
        read("a.ipynb"),
        lambda: path.write_text(notebook("a = 1", "b = 2", outputs=("7\n",))),
        overwrite("notebook_edit"),
    )
    assert (await outcome(agent, "notebook_edit")).status is ToolCallStatus.SUCCEEDED


@pytest.mark.parametrize("tool", NAMING)
async def test_edits_that_name_what_they_replace_need_no_reading(
    harness: OpenHarness, workspace: Path, tool: str
) -> None:
    name, text, arguments = NAMING[tool]
    (workspace / name).write_text(text)
    call = await outcome(opened(harness, Call(tool, arguments)), tool)
    assert call.status is ToolCallStatus.SUCCEEDED, call.error


async def test_an_edit_that_the_user_looked_at_is_made(harness: OpenHarness, workspace: Path) -> None:
    (workspace / "a.txt").write_text(TEXT)
    agent = opened(harness, overwrite("write_file"), mode=ApprovalMode.DEFAULT)
    await agent.prompt("go")
    await agent.answer(agent.calls[0])
    assert (workspace / "a.txt").read_text() == "one\n2\nthree\nfour\n"


async def test_a_new_file_needs_no_reading_and_an_empty_one_has_nothing_to_lose(
    harness: OpenHarness, workspace: Path
) -> None:
    (workspace / "a.txt").write_text("\n")
    assert (await outcome(opened(harness, overwrite("write_file")), "write_file")).status is ToolCallStatus.SUCCEEDED


def changed(old: str | None, new: str) -> FileDiff:
    return FileDiff("a.txt", "/w/a.txt", new_content=new, old_content=old)


ONE, TWO = "one\nis a text of three\nlines\n", "two\nis a text of three\nlines\n"
PATH = Path("/w/a.txt")


def refused(files: KnownFiles, now: str, *messages: Message) -> str | None:
    found = files.refusal(changed(now, "mine"), "a.txt", Overwriting.WHOLE, messages)
    return found and found.category


def read_before(text: str, messages: int) -> KnownFiles:
    files = KnownFiles()
    files.take(FilesSeen((whole_text(PATH, text),)), messages)
    files.model_spoke(messages)
    return files


def test_a_restored_conversation_knows_what_it_knew_then() -> None:
    files = KnownFiles()
    empty = files.snapshot()
    files.take(FilesSeen((whole_text(PATH, ONE),)), 1)
    files.model_spoke(1)
    before = files.snapshot()
    files.take_edit(changed(ONE, TWO), 3)
    files.cut(2)
    after = files.snapshot()
    assert (refused(files, TWO), refused(files, ONE)) == (None, CHANGED_SINCE_READ)
    files.restore(before)
    assert (refused(files, TWO), refused(files, ONE)) == (CHANGED_SINCE_READ, None)
    files.restore(empty)
    assert refused(files, ONE) == NOT_READ
    files.take(FilesSeen((whole_text(Path("/w/other"), ONE),)), 1)
    files.restore(after)
    assert (refused(files, TWO), refused(files, ONE)) == (None, CHANGED_SINCE_READ)


def test_another_conversation_knows_only_what_it_says() -> None:
    files = read_before(ONE, 1)
    files.clear()
    assert refused(files, ONE) == NOT_READ
    assert refused(files, ONE, Message("user", (Text(f"Here:\n{ONE}"),))) is None
    assert refused(files, ONE, Message("assistant", (Text(f"Here:\n{ONE}"),))) == NOT_READ


@pytest.mark.parametrize(
    ("file", "said"),
    [("18\n", "It is 2018."), (ONE, f"also {ONE}"), (ONE, f"{ONE.rstrip()} and more"), (f" {ONE}", ONE)],
    ids=["short", "in a line", "longer", "indented"],
)
def test_a_text_that_occurs_by_chance_was_not_read(file: str, said: str) -> None:
    assert refused(KnownFiles(), file, Message("user", (Text(said),))) == NOT_READ


def test_only_later_parts_of_the_conversation_show_a_changed_file() -> None:
    files = read_before(TWO, 1)
    shown = Message("user", (ModelToolResult("1", "cat", f"Output: {ONE}"),))
    said = Message("assistant", (Text("I see."),))
    assert refused(files, ONE, shown, said, shown) is None
    assert refused(files, ONE, shown, shown, said) == CHANGED_SINCE_READ
    files.cut(3)
    assert refused(files, ONE, shown, said, shown) == CHANGED_SINCE_READ


def several(harness: OpenHarness, *calls: Call) -> AgentHarness:
    """Return an agent whose model makes all these calls in one message."""
    return harness([Reply.of(*calls), Reply.of(Say("Done."))], policy=Policy(ApprovalMode.YOLO))


async def test_a_reading_counts_from_the_next_message_on(harness: OpenHarness, workspace: Path) -> None:
    (workspace / "a.txt").write_text(TEXT)
    agent = several(harness, read("a.txt"), overwrite("write_file"))
    assert category(await outcome(agent, "write_file")) == NOT_READ
    assert (workspace / "a.txt").read_text() == TEXT


async def test_a_refusal_does_not_make_way_for_the_next_call_of_the_same_message(
    harness: OpenHarness, workspace: Path
) -> None:
    path = workspace / "a.txt"
    path.write_text(TEXT)
    numbers = count(1)

    def reply(_: WireRequest) -> Reply:
        match next(numbers):
            case 1:
                return Reply.of(read("a.txt"))
            case 2:
                path.write_text(THEIRS)
                return Reply.of(overwrite("write_file"), overwrite("write_file"))
            case _:
                return Reply.of(Say("Done."))

    agent = harness(reply, policy=Policy(ApprovalMode.YOLO))
    assert category(await outcome(agent, "write_file")) == CHANGED_SINCE_READ
    assert path.read_text() == THEIRS


async def test_edits_of_several_cells_in_one_message_are_made(harness: OpenHarness, workspace: Path) -> None:
    (workspace / "a.ipynb").write_text(notebook("a = 1", "b = 2"))
    edits = [
        Call("notebook_edit", {"notebook_path": "a.ipynb", "cell_id": cell, "new_source": "c"}) for cell in ("c0", "c1")
    ]
    agent = harness(
        [Reply.of(read("a.ipynb")), Reply.of(*edits), Reply.of(Say("Done."))], policy=Policy(ApprovalMode.YOLO)
    )
    await agent.prompt("go")
    assert [call.status for call in agent.calls] == [ToolCallStatus.SUCCEEDED] * 3


async def test_a_part_of_a_notebook_is_not_enough_to_replace_a_cell(harness: OpenHarness, workspace: Path) -> None:
    (workspace / "a.ipynb").write_text(notebook("a = 1", "b = 2"))
    agent = opened(harness, read("a.ipynb", end_line=1), overwrite("notebook_edit"))
    assert category(await outcome(agent, "notebook_edit")) == NOT_READ


async def test_outputs_count_where_all_of_a_notebook_is_replaced(harness: OpenHarness, workspace: Path) -> None:
    path = workspace / "a.ipynb"
    path.write_text(notebook("a = 1"))
    agent = opened(
        harness,
        read("a.ipynb"),
        lambda: path.write_text(notebook("a = 1", outputs=("hours of computing\n",))),
        Call("write_file", {"file_path": "a.ipynb", "content": notebook("a = 2")}),
    )
    assert category(await outcome(agent, "write_file")) == CHANGED_SINCE_READ
    assert "hours of computing" in path.read_text()


async def test_always_allow_for_one_file_does_not_overwrite_another_that_was_not_read(
    harness: OpenHarness, workspace: Path
) -> None:
    for name in ("a.txt", "b.txt"):
        (workspace / name).write_text(TEXT)
    writes = [Call("write_file", {"file_path": name, "content": "mine\n"}) for name in ("a.txt", "b.txt")]
    agent = harness([Reply.of(*writes), Reply.of(Say("Done."))])
    await agent.prompt("go")
    await agent.answer(agent.calls[0], "proceed_always_tool")
    assert [category(call) for call in agent.calls] == [None, NOT_READ]
    assert ((workspace / "a.txt").read_text(), (workspace / "b.txt").read_text()) == ("mine\n", TEXT)


async def test_a_file_that_was_read_and_moved_by_the_agent_is_known(harness: OpenHarness, workspace: Path) -> None:
    (workspace / "a.txt").write_text(TEXT)
    agent = opened(
        harness,
        read("a.txt"),
        Call("run_shell_command", {"command": "mv a.txt b.txt"}),
        Call("write_file", {"file_path": "b.txt", "content": "mine\n"}),
    )
    assert (await outcome(agent, "write_file")).status is ToolCallStatus.SUCCEEDED


async def test_a_file_that_was_edited_unread_stays_unread_after_a_command(
    harness: OpenHarness, workspace: Path
) -> None:
    (workspace / "a.txt").write_text(TEXT)
    agent = opened(
        harness,
        Call("replace", NAMING["replace"][2]),
        Call("run_shell_command", {"command": "sed -i 's/four/4/' a.txt"}),
        Call("write_file", {"file_path": "a.txt", "content": "mine\n"}),
    )
    assert category(await outcome(agent, "write_file")) == NOT_READ


async def test_after_a_restore_the_restored_text_may_be_overwritten(harness: OpenHarness, workspace: Path) -> None:
    numbers = count(1)

    class Checkpoints:
        """Checkpoints that the test itself restores."""

        async def take(self, *_: object) -> str:
            return f"k{next(numbers)}"

        async def edited(self, *_: object) -> None:
            pass

    path = workspace / "a.txt"
    path.write_text(TEXT)
    agent = harness(
        [
            Reply.of(read("a.txt")),
            Reply.of(Say("I see.")),
            Reply.of(overwrite("write_file")),
            Reply.of(Say("Done.")),
            Reply.of(overwrite("write_file")),
            Reply.of(Say("Done.")),
        ],
        policy=Policy(ApprovalMode.YOLO),
        checkpoints=Checkpoints(),
    )
    await agent.prompt("look")
    await agent.prompt("write")
    path.write_text(TEXT)
    agent.events.append(Restored("k1"))
    await agent.prompt("write again")
    assert [call.status for call in agent.calls] == [ToolCallStatus.SUCCEEDED] * 3
