"""The values of /restore, /chat resume and /chat delete that a user chooses from: which, in which order, described."""

import re
from collections.abc import Sequence

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.client import CommandScope, LineCompleter
from isthmus.slash_commands.tree import Completion
from support.command_harness import CommandHarness, OpenHarness, Ran
from support.scripted_wire import Call, Reply

pytestmark = pytest.mark.anyio

AUTO_EDIT = Policy(ApprovalMode.AUTO_EDIT)
TAKEN = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  "


async def written(harness: CommandHarness, name: str, context_id: str | None = None) -> Ran:
    call = Call("write_file", {"file_path": str(harness.workspace / name), "content": name})
    harness.replies.append(Reply.of(call))
    return await harness.prompt(f"write {name}", context_id)


async def completed(harness: CommandHarness, line: str, context_id: str | None = None) -> Sequence[Completion]:
    assert isinstance(harness.engine, LineCompleter)
    return await harness.engine.complete(CommandScope(context_id=context_id), line)


async def test_the_checkpoints_of_a_session_are_offered_newest_first_with_what_they_undo(
    open_harness: OpenHarness,
) -> None:
    async with open_harness(policy=AUTO_EDIT) as harness:
        ran = await written(harness, "one.txt")
        await written(harness, "two.txt", ran.context_id)
        await written(harness, "elsewhere.txt")
        found = await completed(harness, "/restore ", ran.context_id)
        assert [re.sub(TAKEN, "", item.description) for item in found] == [
            "two.txt  write two.txt",
            "one.txt  write one.txt",
        ]
        assert all(item.is_value for item in found)
        listed = (await harness.run("/restore", ran.context_id)).text.splitlines()[:2]
        assert [item.line.removeprefix("/restore ") for item in found] == [line.split()[0] for line in listed]
        begun = found[1].line[:-4]
        assert await completed(harness, begun, ran.context_id) == [found[1]]
        aliases = [await completed(harness, f"/{alias} ", ran.context_id) for alias in ("undo",)]
        assert [item.line.split()[1] for items in aliases for item in items] == [item.line.split()[1] for item in found]


async def test_a_session_without_edits_and_another_users_have_no_checkpoints_to_offer(
    open_harness: OpenHarness,
) -> None:
    async with open_harness(policy=AUTO_EDIT) as harness:
        ran = await written(harness, "one.txt")
        assert not await completed(harness, "/restore ")
        assert not await completed(harness.of("alice"), "/restore ", ran.context_id)
        assert await completed(harness, "/restore ", ran.context_id)


async def test_the_state_before_a_restore_is_offered_first(open_harness: OpenHarness) -> None:
    async with open_harness(policy=AUTO_EDIT) as harness:
        ran = await written(harness, "one.txt")
        (only,) = await completed(harness, "/restore ", ran.context_id)
        await harness.answer(await harness.run(only.line, ran.context_id))
        undo, before = await completed(harness, "/restore ", ran.context_id)
        assert (undo.description.endswith(f"one.txt  before {only.line}"), before) == (True, only)


@pytest.mark.parametrize("command", ["/chat resume", "/chat load", "/chat delete"])
async def test_saved_chats_are_offered_newest_first_with_date_size_and_title(
    open_harness: OpenHarness, command: str
) -> None:
    async with open_harness() as harness:
        assert not await completed(harness, f"{command} ")
        ran = await harness.prompt("first prompt")
        for name in ("one", "number two"):
            await harness.run(f"/chat save {name}", ran.context_id)
        found = await completed(harness, f"{command} ")
        assert [item.line for item in found] == [f"{command} number two", f"{command} one"]
        assert [re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d  ", "", item.description) for item in found] == [
            "2 messages  first prompt"
        ] * 2
        assert all(item.is_value for item in found)
        assert [item.line for item in await completed(harness, f"{command} TWO")] == [f"{command} number two"]
        assert not await completed(harness, "/chat save ")
        assert not await completed(harness.of("alice"), f"{command} ")
