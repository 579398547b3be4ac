"""/rewind: conversation and files, or one of both, go back to before a message of the user's."""

from collections.abc import Sequence

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.session.rewinding import RewindPoints
from isthmus.client import CommandScope, LineCompleter
from isthmus.events import TaskState
from isthmus.models.port.base import Message, Text
from support.command_harness import CommandHarness, OpenHarness, Ran
from support.scripted_wire import Call, Reply

pytestmark = pytest.mark.anyio

AUTO_EDIT = Policy(ApprovalMode.AUTO_EDIT)


async def write(harness: CommandHarness, content: str, context_id: str | None = None) -> Ran:
    call = Call("write_file", {"file_path": str(harness.workspace / "a.txt"), "content": content})
    harness.replies.append(Reply.of(call))
    return await harness.prompt(f"write {content}", context_id)


async def three_messages(harness: CommandHarness) -> str:
    """Send three messages, of which the last two edit a file, and return the id of the session."""
    first = await harness.prompt("remember the plum")
    for content in ("one", "two"):
        await write(harness, content, first.context_id)
    return first.context_id


async def offered(harness: CommandHarness, line: str, context_id: str) -> Sequence[tuple[str, str]]:
    assert isinstance(harness.engine, LineCompleter)
    found = await harness.engine.complete(CommandScope(context_id=context_id), line)
    return [(item.line, item.description) for item in found]


async def test_the_users_messages_are_listed_and_offered_with_the_files_edited_since(open_harness: OpenHarness) -> None:
    async with open_harness(policy=AUTO_EDIT) as harness:
        assert (await harness.run("/rewind")).text.startswith("There is no message to go back to yet.")
        context = await three_messages(harness)
        assert (await harness.run("/rewind", context)).text.split("\n")[:3] == [
            "1  remember the plum  (1 file edited since)",
            "2  write one  (1 file edited since)",
            "3  write two  (1 file edited since)",
        ]
        assert await offered(harness, "/rewind ", context) == [
            ("/rewind 3", "write two  (1 file edited since)"),
            ("/rewind 2", "write one  (1 file edited since)"),
            ("/rewind 1", "remember the plum  (1 file edited since)"),
        ]
        assert [line for line, _ in await offered(harness, "/rewind 2 ", context)] == [
            "/rewind 2 both",
            "/rewind 2 conversation",
            "/rewind 2 files",
        ]


async def test_both_put_files_and_conversation_back_after_the_question(open_harness: OpenHarness) -> None:
    async with open_harness(policy=AUTO_EDIT) as harness:
        context = await three_messages(harness)
        done = await harness.answer(await harness.run("/rewind 2", context))
        assert done.state is TaskState.COMPLETED
        assert not (harness.workspace / "a.txt").exists()
        await harness.prompt("what now", context)
        assert "plum" in harness.said()
        assert "write one" not in harness.said()
        listed = (await harness.run("/rewind", context)).text.split("\n")[:2]
        assert listed == ["1  remember the plum  (1 file edited since)", "4  what now"]


async def test_the_conversation_alone_leaves_the_files(open_harness: OpenHarness) -> None:
    async with open_harness(policy=AUTO_EDIT) as harness:
        context = await three_messages(harness)
        ran = await harness.run("/rewind 3 conversation", context)
        assert ran.state is TaskState.COMPLETED
        assert (harness.workspace / "a.txt").read_text() == "two"
        await harness.prompt("what now", context)
        assert "write one" in harness.said()
        assert "write two" not in harness.said()
        # What came after it is not lost.
        fork = ran.text.partition("/chat fork ")[2].split()[0]
        await harness.run(f"/chat fork {fork} before", context)
        await harness.run("/chat resume before", context)
        await harness.prompt("and now", context)
        assert "write two" in harness.said()


async def test_the_files_alone_leave_the_conversation_and_tell_the_model(open_harness: OpenHarness) -> None:
    async with open_harness(policy=AUTO_EDIT) as harness:
        context = await three_messages(harness)
        done = await harness.answer(await harness.run("/rewind 3 files", context))
        assert done.state is TaskState.COMPLETED
        assert (harness.workspace / "a.txt").read_text() == "one"
        await harness.prompt("what now", context)
        assert "write two" in harness.said()
        assert "the user put files back to before an earlier message" in harness.said()
        assert len((await harness.run("/rewind", context)).text.split("\n")) == 6


async def test_a_refusal_rewinds_nothing(open_harness: OpenHarness) -> None:
    async with open_harness(policy=AUTO_EDIT) as harness:
        context = await three_messages(harness)
        done = await harness.answer(await harness.run("/rewind 2 both", context), "cancel")
        assert done.state is TaskState.CANCELED
        assert (harness.workspace / "a.txt").read_text() == "two"
        await harness.prompt("what now", context)
        assert "write two" in harness.said()


@pytest.mark.parametrize(
    ("line", "reason"),
    [("/rewind 9", "unknown_message"), ("/rewind x", "unknown_message"), ("/rewind 1 all", "unknown_part")],
)
async def test_what_does_not_exist_is_refused_by_name(open_harness: OpenHarness, line: str, reason: str) -> None:
    async with open_harness() as harness:
        ran = await harness.prompt("remember the plum")
        refused = await harness.run(line, ran.context_id)
        assert (refused.state, refused.end.reason) == (TaskState.FAILED, reason)
        assert "expected" in (refused.end.error or "").lower() or "messages 1;" in (refused.end.error or "")


async def test_after_a_restore_the_messages_of_the_restored_conversation_are_listed(open_harness: OpenHarness) -> None:
    async with open_harness(policy=AUTO_EDIT) as harness:
        context = await three_messages(harness)
        checkpoints = [line.split()[0] for line in (await harness.run("/restore", context)).text.split("\n")[:2]]
        await harness.answer(await harness.run(f"/restore {checkpoints[1]}", context))
        assert (await harness.run("/rewind", context)).text.split("\n")[1] == "2  write one  (1 file edited since)"
        assert "write two" not in (await harness.run("/rewind", context)).text


def test_points_are_never_numbered_twice_and_return_with_a_checkpoint() -> None:
    points, messages = RewindPoints(), [Message("user", (Text("x"),))]
    for text in ("a", "b"):
        points.take(text, messages, {}, 0)
    points.note_checkpoint("k")
    assert points.rewind(7) is None
    found = points.rewind(1)
    assert found is not None
    assert (found.text, found.length, points.points) == ("a", 1, ())
    points.take("c", messages, {}, 1)
    points.refuse(5)
    assert points.points == ()
    points.restore("k")
    points.take("d", messages, {}, 1)
    assert [point.number for point in points.points] == [1, 2, 4]
