import asyncio
from pathlib import Path

import pytest

from isthmus.client import CommandMessage, CommandScope, PromptMessage
from isthmus.development_tool import CommandExecutionStatus, ToolCallStatus
from isthmus.events import TaskState
from isthmus.slash_commands.tree import find
from support.command_harness import OpenHarness

pytestmark = pytest.mark.anyio


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


async def test_memory_show_prints_exactly_what_the_model_gets(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        write(harness.home / "GEMINI.md", "I like short answers.\n")
        write(harness.workspace / "GEMINI.md", "Use tabs.\n\n@./docs/style.md\n")
        write(harness.workspace / "docs/style.md", "No globals.")
        write(harness.workspace / "AGENTS.md", "Run make test.")
        write(harness.workspace / "part/GEMINI.md", "This part is old.")
        shown = await harness.run("/memory show")
        await harness.prompt("hello")
        assert shown.text in harness.system()
        for text in ("I like short answers.", "Use tabs.", "No globals.", "Run make test.", "This part is old."):
            assert text in shown.text
        for heading in ("home/.gemini/GEMINI.md", " GEMINI.md", " AGENTS.md", " part/GEMINI.md"):
            assert f"Context from:{heading if heading[0] == ' ' else ''}" in shown.text
            assert heading.strip() in shown.text


async def test_a_changed_file_is_in_the_next_request(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        path = write(harness.workspace / "GEMINI.md", "Use tabs.")
        first = await harness.prompt("hello")
        path.write_text("Use spaces.")
        await harness.prompt("again", first.context_id)
        assert "Use tabs." in harness.system(0)
        assert harness.system(1) == harness.system(0)
        assert "Use spaces." in harness.said(1)


async def test_memory_list_names_the_files_and_their_imports(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        own = write(harness.home / "GEMINI.md", "own")
        project = write(harness.workspace / "GEMINI.md", "@style.md")
        style = write(harness.workspace / "style.md", "style")
        ran = await harness.run("/memory list")
        assert ran.text.splitlines() == [str(own), str(project), f"  @{style}"]


async def test_memory_add_is_in_the_users_file_and_the_next_request(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        own = write(harness.home / "GEMINI.md", "")
        own.write_bytes(b"# Mine\r\n\r\nBe brief.\r\n")
        first = await harness.prompt("hello")
        ran = await harness.run("/memory add I prefer pnpm", first.context_id)
        assert ran.status is CommandExecutionStatus.STARTED
        assert ran.state is TaskState.COMPLETED
        assert ran.statuses() == [ToolCallStatus.PENDING, ToolCallStatus.EXECUTING, ToolCallStatus.SUCCEEDED]
        assert own.read_bytes() == (b"# Mine\r\n\r\nBe brief.\r\n\r\n## Gemini Added Memories\r\n- I prefer pnpm\r\n")
        await harness.prompt("again", first.context_id)
        assert "I prefer pnpm" not in harness.system(1)
        assert "- I prefer pnpm" in harness.said(1)


@pytest.mark.parametrize("name", ["settings.json", "mcp-oauth-tokens.json", ".env"])
async def test_settings_and_tokens_are_no_instructions_whatever_a_project_calls_them(
    open_harness: OpenHarness, name: str
) -> None:
    async with open_harness(context_files=(name, "RULES.md")) as harness:
        kept = write(harness.home / name, '{"token": "SECRET"}')
        write(harness.home / "RULES.md", "Be kind.")
        shown = await harness.run("/memory show", context_files=[name, "RULES.md"])
        assert "Be kind." in shown.text
        assert "only Markdown" in shown.text
        await harness.run("/memory add a fact")
        await harness.prompt("hello")
        assert "SECRET" not in shown.text + harness.system()
        assert kept.read_text() == '{"token": "SECRET"}'
        assert "- a fact" in (harness.home / "RULES.md").read_text()


async def test_characters_that_no_text_has_are_left_out_of_a_fact(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        await harness.run("/memory add I like\0 \x1b[31mred\x07\u2028 and \x85green")
        assert (harness.home / "GEMINI.md").read_text().endswith("\n- I like [31mred and green\n")
        assert "[31mred and green" in (await harness.run("/memory show")).text
        nothing = await harness.run("/memory add \0\x1b")
        assert (nothing.state, nothing.end.reason) == (TaskState.FAILED, "memory_write_failure")


async def test_facts_that_are_added_at_once_are_all_kept(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        ran = await asyncio.gather(*(harness.run(f"/memory add fact {number}.") for number in range(20)))
        assert {each.state for each in ran} == {TaskState.COMPLETED}
        text = (harness.home / "GEMINI.md").read_text()
        assert sorted(line for line in text.splitlines()[1:]) == sorted(f"- fact {number}." for number in range(20))


async def test_memory_add_works_without_a_file_and_in_plan_mode(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        for fact in ("one", "two"):
            ran = await harness.run(f"/memory add {fact}", approval_mode="plan")
            assert ran.state is TaskState.COMPLETED
        assert (harness.home / "GEMINI.md").read_text() == "## Gemini Added Memories\n- one\n- two\n"


async def test_a_file_that_cannot_be_added_to_fails_the_command(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        (harness.home / "GEMINI.md").mkdir()
        ran = await harness.run("/memory add one")
        assert (ran.state, ran.end.reason) == (TaskState.FAILED, "memory_write_failure")
        assert "cannot be added to" in (ran.end.error or "")


async def test_memory_refresh_says_what_changed(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        write(harness.workspace / "GEMINI.md", "one")
        gone = write(harness.workspace / "AGENTS.md", "two")
        await harness.run("/memory show")
        assert "Nothing changed." in (await harness.run("/memory refresh")).text
        write(harness.workspace / "GEMINI.md", "one, changed")
        gone.unlink()
        write(harness.workspace / "part/AGENTS.md", "three")
        lines = (await harness.run("/memory refresh")).text.splitlines()
        assert lines[1:] == ["+ part/AGENTS.md", "~ GEMINI.md", "- AGENTS.md"]


async def test_names_of_files_come_from_the_settings_and_from_the_session(open_harness: OpenHarness) -> None:
    async with open_harness(context_files=("RULES.md",)) as harness:
        write(harness.workspace / "RULES.md", "the rules")
        write(harness.workspace / "GEMINI.md", "not this")
        write(harness.workspace / "HINTS.md", "the hints")
        await harness.prompt("hello")
        assert "the rules" in harness.system()
        assert "not this" not in harness.system()
        await harness.prompt("hello", context_files=["HINTS.md"])
        assert "the hints" in harness.system()
        assert "the rules" not in harness.system()
        await harness.run("/memory add x")
        assert (harness.home / "RULES.md").exists()


async def test_without_any_instructions_memory_show_says_how_to_come_to_some(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        ran = await harness.run("/memory show")
        assert "/init" in ran.text
        await harness.prompt("hello")
        assert "Context from" not in harness.system()


async def test_other_users_neither_see_nor_change_what_is_the_users_own(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        own = write(harness.home / "GEMINI.md", "My secret habit.")
        write(harness.workspace / "GEMINI.md", "Of the project.")
        write(harness.home / "commands/mine.toml", "prompt = 'Mine.'")
        alice = harness.engine.for_user("alice")
        assert find(("mine",), await alice.commands(CommandScope())) is None
        assert find(("mine",), await harness.engine.commands(CommandScope())) is not None
        shown = await alice.execute(CommandMessage(("memory", "show")))
        added = await alice.execute(CommandMessage(("memory", "add"), "I am Alice"))
        assert shown.turn is not None
        assert added.turn is not None
        said = "".join([getattr(item.event, "text", "") async for item in shown.turn.deliveries])
        assert "Of the project." in said
        assert "secret" not in said
        last = [item.event async for item in added.turn.deliveries][-1]
        assert (getattr(last, "state", None), getattr(last, "reason", None)) == (TaskState.FAILED, "no_memory")
        assert own.read_text() == "My secret habit."
        turn = await alice.prompt(PromptMessage("hello"))
        assert [item async for item in turn.deliveries]
        assert "secret" not in harness.system()
        assert "Of the project." in harness.system()


@pytest.mark.slow
@pytest.mark.parametrize("is_trusted", [True, False])
async def test_a_projects_files_speak_for_the_user_only_in_a_folder_that_they_trust(
    open_harness: OpenHarness, is_trusted: bool
) -> None:
    def trusts(folder: Path) -> bool:
        return is_trusted and folder.name == "workspace"

    async with open_harness(trusts=trusts) as harness:
        write(harness.workspace / "GEMINI.md", "Use tabs.")
        await harness.prompt("hello")
        assert ("speak for them" in harness.system()) is is_trusted
        assert ("not the user's words" in harness.system()) is not is_trusted
        turn = await harness.engine.for_user("alice").prompt(PromptMessage("hello"))
        assert [item async for item in turn.deliveries]
        assert "speak for them" not in harness.system()
