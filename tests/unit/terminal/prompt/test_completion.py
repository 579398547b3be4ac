"""Requests of the terminal to an agent when a user presses Tab."""

import asyncio
from collections.abc import Sequence

import pytest

from isthmus.client import CommandScope, InvalidRequest
from isthmus.development_tool import SlashCommand
from isthmus.slash_commands.tree import Completion
from isthmus.terminal.interactive.command_list import CommandList
from isthmus.terminal.prompt.prompt_completer import MAXIMUM_HINTS, PromptCompleter
from support.memory_agent import MemoryAgent

pytestmark = pytest.mark.anyio


class Completing(MemoryAgent):
    """An agent that answers, refuses, or does not answer, as the line says."""

    async def complete(self, scope: CommandScope, line: str) -> Sequence[Completion]:
        if line == "refuse":
            raise InvalidRequest("no")
        if line == "hang":
            await asyncio.Event().wait()
        return [Completion(f"{line}!", str(scope.context_id))]


async def test_the_agent_is_asked_for_the_session_that_is_open() -> None:
    commands = CommandList(Completing(lambda _: ()))
    commands.load(CommandScope(context_id="c"))
    assert await commands.ask("/x y") == [Completion("/x y!", "c")]
    await commands.aclose()


async def test_an_agent_that_refuses_hangs_or_cannot_completes_nothing() -> None:
    commands = CommandList(Completing(lambda _: ()), ask_seconds=0.05)
    async with asyncio.timeout(60):
        assert not await commands.ask("refuse")
        assert not await commands.ask("hang")
    assert not await CommandList(MemoryAgent(lambda _: ())).ask("x")


def test_commands_are_shown_in_order_with_their_descriptions_while_one_is_typed() -> None:
    commands = CommandList(MemoryAgent(lambda _: ()))
    completer = PromptCompleter(commands.complete, commands.ask)
    assert completer.hints("/m") == ["/mode  the approval modes; /mode NAME changes it: default, auto_edit, plan, yolo"]
    everything = completer.hints("/")
    assert len(everything) <= MAXIMUM_HINTS
    assert [line.split()[0] for line in everything] == sorted(line.split()[0] for line in everything)
    assert completer.hints("/nothing") == []
    commands.tree = tuple(SlashCommand(f"extra{number}", "more\nlines") for number in range(20))
    many = completer.hints("/ex")
    assert len(many) == MAXIMUM_HINTS
    assert (many[0], many[-1]) == ("/extra0   more lines", "and 13 more; go on typing")


async def test_values_of_an_argument_are_shown_while_it_is_typed() -> None:
    commands = CommandList(Completing(lambda _: ()))
    commands.load(CommandScope(context_id="c"))
    completer = PromptCompleter(lambda _: (), commands.ask)
    assert completer.has_to_ask("/restore a")
    await completer.ask("/restore a")
    assert completer.hints("/restore a") == ["/restore a!  c"]
    await commands.aclose()


class Looking(MemoryAgent):
    """An agent that still looks for files, and has found some."""

    async def complete(self, scope: CommandScope, line: str) -> Sequence[Completion]:
        found = [Completion(f"see @{number}", "") for number in range(20)] if line != "see @x" else []
        return [*found, Completion(line, "still looking")]


async def test_an_agent_that_still_looks_says_so_below_what_it_has_found() -> None:
    commands = CommandList(Looking(lambda _: ()))
    commands.load(CommandScope(context_id="c"))
    completer = PromptCompleter(commands.complete, commands.ask)
    await completer.ask("see @")
    assert completer.is_partial("see @")
    assert completer.hints("see @")[-2:] == ("@6", "still looking")
    assert len(completer.hints("see @")) == MAXIMUM_HINTS
    await completer.ask("see @x")
    assert completer.hints("see @x") == ("still looking",)
    # Tab must not replace the line by itself, or by the note.
    assert completer.best_other("see @x") is None
    assert not completer.is_partial("see @")
    await commands.aclose()
