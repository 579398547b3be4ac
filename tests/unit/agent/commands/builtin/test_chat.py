import asyncio
import dataclasses
from datetime import UTC, datetime

import pytest
from markdown_it import MarkdownIt

from isthmus.agent.commands.builtin.chat_transcript import transcript
from isthmus.agent.environment import Environment, environment_text
from isthmus.agent.session.session import Session
from isthmus.client import CommandScope
from isthmus.development_tool import CommandExecutionStatus
from isthmus.events import Prompt, TaskState
from isthmus.internal_events import ChatResumed, ToolsLoaded
from isthmus.models.port.base import Message, ModelThought, ModelToolResult, Text, ToolRequest
from isthmus.models.port.message import message_to_json
from support.command_harness import CommandHarness, OpenHarness, Ran
from support.scripted_wire import Call, Reply, Say

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 1, tzinfo=UTC)


async def talked(harness: CommandHarness, prompt: str, answer: str, context_id: str | None = None) -> Ran:
    harness.replies.append(Reply.of(Say(answer)))
    return await harness.prompt(prompt, context_id)


async def test_a_saved_chat_goes_on_in_another_session_in_place_of_what_was_said_there(
    open_harness: OpenHarness,
) -> None:
    async with open_harness() as harness:
        first = await talked(harness, "Call it Zephyr", "Zephyr it is")
        saved = await harness.run("/chat save the name", first.context_id)
        assert (saved.state, saved.text) == (
            TaskState.COMPLETED,
            "Saved the conversation (2 messages). To go on from it: /chat resume the name",
        )
        await talked(harness, "Call it Boreas instead", "Boreas then", first.context_id)
        other = await talked(harness, "Something else", "Else")
    # Another process: what was saved is on the disk.
    async with open_harness() as harness:
        resumed = await harness.run("/chat resume the name", other.context_id)
        assert resumed.text.endswith("Files are unchanged.\n\n> Call it Zephyr\n\nZephyr it is")
        await talked(harness, "Which name?", "Zephyr", other.context_id)
        said = harness.said()
        assert "Call it Zephyr" in said
        assert "Zephyr it is" in said
        assert "Boreas" not in said
        assert "Something else" not in said


async def test_a_fork_has_the_conversation_up_to_the_end_of_an_earlier_task(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        first = await talked(harness, "Call it Zephyr", "Zephyr it is")
        await harness.run("/about", first.context_id)
        await talked(harness, "Call it Boreas instead", "Boreas then", first.context_id)
        forked = await harness.run(f"/chat fork {first.task_id[:8]} a branch", first.context_id)
        assert forked.text.startswith("Saved the conversation (2 messages).")
        resumed = await harness.run("/chat resume a branch")
        await talked(harness, "Which name?", "Zephyr", resumed.context_id)
        said = harness.said()
        assert "Call it Zephyr" in said
        assert "Boreas" not in said
        unknown = await harness.run("/chat fork \x1bnothing x", first.context_id)
        assert unknown.end.reason == "unknown_task"
        assert "\x1b" not in (unknown.end.error or "")
        nameless = await harness.run(f"/chat fork {first.task_id}", first.context_id)
        assert nameless.end.reason == "unusable_name"


async def test_chats_are_listed_newest_first_and_deleted_by_name(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        assert "no saved chats" in (await harness.run("/chat list")).text
        ran = await talked(harness, "first prompt", "fine")
        for name in ("one", "two"):
            await harness.run(f"/chat save {name}", ran.context_id)
        lines = (await harness.run("/chat list")).text.splitlines()
        assert [line.split()[0] for line in lines[1:]] == ["two", "one"]
        assert lines[1].endswith("2 messages  first prompt")
        assert [item.line for item in await harness.engine.complete(CommandScope(), "/chat resume t")] == [
            "/chat resume two"
        ]
        assert (await harness.run("/chat delete two")).text == "Deleted the chat 'two'."
        gone = await harness.run("/chat resume two")
        assert (gone.end.reason, gone.end.error) == (
            "unknown_chat",
            "There is no chat named 'two'. Saved chats: one.",
        )
        assert (await harness.run("/chat delete two")).end.reason == "unknown_chat"


async def test_a_name_is_not_taken_twice_and_has_to_be_printable(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        assert (await harness.run("/chat save early")).end.reason == "no_conversation"
        ran = await talked(harness, "hello", "fine")
        await harness.run("/chat save ../../etc/x", ran.context_id)
        again = await harness.run("/chat save ../../etc/x", ran.context_id)
        assert again.end.reason == "chat_exists"
        assert "/chat delete ../../etc/x" in (again.end.error or "")
        assert (await harness.execute("/chat save")).status is CommandExecutionStatus.FAILED_TO_START
        for name in ("a\x1b[2Jb", "a\u202eb", "a\nb", "x" * 101):
            refused = await harness.run(f"/chat save {name}", ran.context_id)
            assert refused.end.reason == "unusable_name", name
            assert "\x1b" not in (refused.end.error or "")
        assert not list(harness.workspace.parent.rglob("x"))


async def test_each_user_and_folder_has_chats_of_its_own(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        ran = await talked(harness, "mine", "fine")
        await harness.run("/chat save shared name", ran.context_id)
        alice = harness.of("alice")
        assert (await alice.run("/chat resume shared name")).end.reason == "unknown_chat"
        theirs = await talked(alice, "of alice", "fine")
        assert (await alice.run("/chat save shared name", theirs.context_id)).state is TaskState.COMPLETED
        assert "> of alice" in (await alice.run("/chat resume shared name")).text
        assert "> mine" in (await harness.run("/chat resume shared name")).text
        (harness.workspace / "below").mkdir()
        below = str(harness.workspace / "below")
        assert (await harness.run("/chat resume shared name", workspace_path=below)).end.reason == "unknown_chat"


async def test_a_chat_outlives_the_task_it_was_saved_from(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        ran = await talked(harness, "Remember Zephyr", "fine")
        saved = await harness.run("/chat save kept", ran.context_id)
        removal = harness.journal.removal
        for task_id in await removal.mark([ran.task_id, saved.task_id]):
            while not await removal.remove(task_id, 100):
                pass
        assert "> Remember Zephyr" in (await harness.run("/chat resume kept")).text


async def test_tool_calls_of_a_resumed_chat_are_whole_and_their_ids_are_taken(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        (harness.workspace / "a.txt").write_text("content of a")
        harness.replies += [Reply.of(Call("read_file", {"file_path": "a.txt"})), Reply.of(Say("read"))]
        ran = await harness.prompt("read a.txt")
        await harness.run("/chat save calls", ran.context_id)
        resumed = await harness.run("/chat resume calls")
        harness.replies += [Reply.of(Call("read_file", {"file_path": "a.txt"})), Reply.of(Say("read again"))]
        again = await harness.prompt("once more", resumed.context_id)
        assert again.state is TaskState.COMPLETED
        assert harness.said().count("content of a") == 2
        assert harness.said().count("functionResponse") == 2


async def test_a_conversation_is_written_into_a_file_after_a_question(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        assert (await harness.run("/chat share")).end.reason == "no_conversation"
        ran = await talked(harness, "What is it?", "It is a test.")
        asked = await harness.run("/chat share talk.md", ran.context_id)
        assert asked.state is TaskState.INPUT_REQUIRED
        done = await harness.answer(asked)
        assert done.state is TaskState.COMPLETED
        assert (harness.workspace / "talk.md").read_text() == (
            "# Conversation\n\n## User\n\nWhat is it?\n\n## Agent\n\nIt is a test.\n"
        )
        refused = await harness.run("/chat share again.md", ran.context_id)
        assert (await harness.answer(refused, "cancel")).state is TaskState.CANCELED
        assert not (harness.workspace / "again.md").exists()
        outside = await harness.run("/chat share ../talk.md", ran.context_id)
        assert outside.state is TaskState.FAILED
        assert not (harness.workspace.parent / "talk.md").exists()


async def test_a_deletion_and_a_save_that_run_again_after_a_crash_do_not_fail(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        ran = await talked(harness, "hello", "fine")
        saved = await harness.run("/chat save x", ran.context_id)
        place = harness.chats_here
        (chat,) = await harness.journal.chats.chats(place)
        assert chat.task_id == saved.task_id
        assert await harness.journal.chats.save(place, chat, [{}]) is None
        other = dataclasses.replace(chat, task_id="another")
        assert await harness.journal.chats.save(place, other, [{}]) == chat
        assert len(await harness.journal.chats.messages(place, "x") or ()) == 2
        await asyncio.gather(*(harness.run("/chat delete x") for _ in range(3)))
        assert await harness.journal.chats.chats(place) == []


def test_a_document_cannot_be_broken_out_of_and_hides_nothing() -> None:
    hostile = "```\n# Not a heading\n````\n<script>alert(1)</script>\x1b[2J\u202e"
    messages = [
        Message("user", (Text("Look"), Text(environment_text(Environment(NOW, "Linux", "bash"))))),
        Message("assistant", (ModelThought("secret thought"), ToolRequest("1", "read_file", {"file_path": "```"}))),
        Message("user", (ModelToolResult("1", "read_file", hostile, False),)),
        Message("assistant", (Text("Done"),)),
    ]
    text = transcript(messages)
    tokens = MarkdownIt().parse(text)
    headings = [tokens[at + 1].content for at, token in enumerate(tokens) if token.type == "heading_open"]
    assert headings == ["Conversation", "User", "Agent", "Results", "Agent"]
    assert [token.type for token in tokens].count("fence") == 2
    assert not any(token.type == "html_block" for token in tokens)
    assert not {"\x1b", "\u202e"} & set(text)
    assert "secret thought" not in text
    assert "<environment>" not in text


def test_a_resumed_chat_loads_the_tools_that_it_called_and_takes_their_ids() -> None:
    session = Session("c")
    session.apply(Prompt("m", "before"), "t")
    session.apply(ToolsLoaded(()))
    saved = (Message("user", (Text("old"),)), Message("assistant", (ToolRequest("id-1", "server__tool", {}),)))
    session.apply(ChatResumed("x", tuple(message_to_json(message) for message in saved)))
    assert session.messages == list(saved)
    assert session.choices.loaded_tools == ("server__tool",)
    assert "id-1" in session.call_ids
    assert session.conversation.measured_messages == 0
