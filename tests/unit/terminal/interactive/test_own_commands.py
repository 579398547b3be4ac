"""``/theme``, ``/settings`` and ``/editor`` on plain lines."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from isthmus.client import CommandMessage, CommandScope, Execution, PromptMessage
from isthmus.development_tool import SlashCommand
from isthmus.errors import IsthmusError
from isthmus.events import TextContent
from isthmus.terminal.screen.themes import ColourTheme
from support.conversation import OPTIONS, Conversation
from support.memory_agent import MemoryAgent, Step

pytestmark = pytest.mark.anyio


@pytest.fixture
def conversation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Conversation]:
    made = Conversation(monkeypatch)
    yield made
    made.close()


def echo(message: PromptMessage) -> Sequence[Step]:
    return [TextContent("t", f"You said: {message.text}")]


@pytest.mark.parametrize("typed", [("/theme dark",), ("/theme", "3"), ("/theme", "dark")])
async def test_a_theme_is_chosen_by_name_or_number_and_kept(conversation: Conversation, typed: Sequence[str]) -> None:
    kept: list[ColourTheme] = []

    def keep(theme: ColourTheme) -> str:
        kept.append(theme)
        return "Kept in a file."

    assert await conversation.run(MemoryAgent(echo), *typed, options=replace(OPTIONS, keep_theme=keep)) == 0
    assert kept == [ColourTheme.DARK]
    assert "+ added  - removed" in conversation.text
    assert "Theme: dark, for a dark ground: blue adds, orange removes." in conversation.text
    assert "Kept in a file." in conversation.text


async def test_the_themes_are_listed_with_the_present_one_and_enter_keeps_it(conversation: Conversation) -> None:
    options = replace(OPTIONS, theme=ColourTheme.LIGHT)
    assert await conversation.run(MemoryAgent(echo), "/theme", "", options=options) == 0
    assert "1    auto   the terminal's own colours" in conversation.text
    assert "2  * light" in conversation.text
    assert "Theme: " not in conversation.text


async def test_an_unknown_theme_changes_nothing(conversation: Conversation) -> None:
    assert await conversation.run(MemoryAgent(echo), "/theme dracula", "/theme", "9") == 0
    assert "Unknown theme dracula; expected one of auto, light, dark, none." in conversation.text
    assert "Unknown theme 9;" in conversation.text


async def test_a_theme_that_cannot_be_kept_holds_for_this_run(conversation: Conversation) -> None:
    def keep(_: ColourTheme) -> str:
        raise IsthmusError("settings.json cannot be written: Read-only file system")

    assert await conversation.run(MemoryAgent(echo), "/theme none", options=replace(OPTIONS, keep_theme=keep)) == 0
    assert "Theme: none" in conversation.text
    assert "It holds for this run only: settings.json cannot be written" in conversation.text


async def test_the_settings_are_shown_and_a_problem_is_said(conversation: Conversation) -> None:
    answers = iter((("one = \x1b[31m1", "two = 2"), IsthmusError("not JSON")))

    def lines() -> Sequence[str]:
        answer = next(answers)
        if isinstance(answer, IsthmusError):
            raise answer
        return answer

    options = replace(OPTIONS, settings_lines=lines)
    assert await conversation.run(MemoryAgent(echo), "/settings", "/settings", options=options) == 0
    assert "two = 2" in conversation.text
    assert "\x1b" not in conversation.text
    assert "not JSON" in conversation.text


async def test_the_settings_of_a_remote_agent_are_not_known(conversation: Conversation) -> None:
    assert await conversation.run(MemoryAgent(echo), "/settings") == 0
    assert "its settings are not known here" in conversation.text


async def test_the_editor_is_named_with_its_variable(
    conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "no-such-editor --wait")
    assert await conversation.run(MemoryAgent(echo), "/editor") == 0
    assert "no-such-editor --wait ($EDITOR; it is not found)" in conversation.text


class NamedAgent(MemoryAgent):
    """An agent with commands of these names, and of the editor of its session."""

    async def commands(self, scope: CommandScope) -> Sequence[SlashCommand]:
        return [SlashCommand(name, "its own") for name in ("theme", "settings", "ide")]

    async def execute(self, command: CommandMessage) -> Execution:
        return await super().execute(replace(command, path=("say",), args=f"{command.path[0]} of the agent"))


@pytest.mark.parametrize("name", ["theme", "settings"])
async def test_a_command_of_the_agent_with_the_name_takes_precedence(conversation: Conversation, name: str) -> None:
    assert await conversation.run(NamedAgent(echo), "hello", f"/{name} x") == 0
    assert f"You said: {name} of the agent" in conversation.text


async def test_the_editor_of_the_session_is_shown_by_the_agent(conversation: Conversation) -> None:
    assert await conversation.run(NamedAgent(echo), "/editor") == 0
    _, _, after = conversation.text.partition("Text editor, for Ctrl-X Ctrl-E")
    assert "You said: ide of the agent" in after
