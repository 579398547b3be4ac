"""Hints below the prompt, in a prompt that nobody sees."""

from collections.abc import Sequence

import pytest
from prompt_toolkit.formatted_text import fragment_list_to_text, to_formatted_text
from prompt_toolkit.input import DummyInput
from prompt_toolkit.layout import Window
from prompt_toolkit.layout.controls import FormattedTextControl
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.shortcuts import PromptSession

from isthmus.client import CommandScope
from isthmus.slash_commands.tree import Completion
from isthmus.terminal.interactive.command_list import CommandList
from isthmus.terminal.prompt import prompt_hints
from isthmus.terminal.prompt.prompt_completer import PromptCompleter
from isthmus.terminal.prompt.prompt_hints import PromptHints
from support.memory_agent import MemoryAgent
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


class Looking(MemoryAgent):
    """An agent that has found more each time that it is asked, and everything at the third."""

    asked = 0

    async def complete(self, scope: CommandScope, line: str) -> Sequence[Completion]:
        self.asked += 1
        found = [Completion(f"see @file{number}", "") for number in range(self.asked)]
        return [*found, Completion(line, "still looking")] if self.asked < 3 else found


def texts(prompt: PromptSession[str]) -> str:
    """Return the texts of all windows of a prompt."""
    windows = [window for window in prompt.layout.walk() if isinstance(window, Window)]
    controls = [window.content for window in windows if isinstance(window.content, FormattedTextControl)]
    return "\n".join(fragment_list_to_text(to_formatted_text(control.text)) for control in controls)


async def test_an_agent_that_still_looks_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_hints, "ASK_AGAIN_SECONDS", 0.01)
    agent = Looking(lambda _: ())
    commands = CommandList(agent)
    commands.load(CommandScope(context_id="c"))
    prompt: PromptSession[str] = PromptSession(input=DummyInput(), output=DummyOutput())
    hints = PromptHints(prompt, lambda: 80)
    hints.completer = PromptCompleter(commands.complete, commands.ask)
    prompt.default_buffer.insert_text("see @")
    await eventually_async(lambda: "@file2" in texts(prompt), what="all files are shown")
    assert "still looking" not in texts(prompt)
    assert agent.asked == 3
    await commands.aclose()
    await prompt.app.cancel_and_wait_for_background_tasks()
