"""The numbered list of a command's values, and a conversation in which a user chooses from it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from isthmus.client import CommandMessage, CommandScope, Execution, PromptMessage
from isthmus.development_tool import CommandExecutionStatus, SlashCommand, SlashCommandArgument
from isthmus.slash_commands.tree import Completion
from isthmus.terminal.interactive.value_list import MAXIMUM_VALUES, ValueList
from support.conversation import Conversation
from support.memory_agent import MemoryAgent, conversation

pytestmark = pytest.mark.anyio


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[Conversation]:
    made = Conversation(monkeypatch)
    yield made
    made.close()


def values(*descriptions: str) -> tuple[Completion, ...]:
    return tuple(Completion(f"/x y{number}", text, True) for number, text in enumerate(descriptions, 1))


def test_values_are_numbered_in_the_order_of_the_agent_beside_their_descriptions() -> None:
    found = (Completion("/x later", "second", True), Completion("/x a", "first", True))
    assert ValueList("/x", found).lines(24) == [" 1  later  second", " 2  a      first"]


def test_a_hostile_title_neither_controls_the_terminal_nor_hides_its_text() -> None:
    (line,) = ValueList("/x", (Completion("/x a\x1b[2J", "two\nlines\u202e\x9b31m", True),)).lines(24)
    assert line.isprintable()
    assert line == " 1  a\u241b[2J  two\u240alines\\u202e\\x9b31m"


def test_a_list_leaves_room_for_the_prompt_and_says_how_many_it_does_not_show() -> None:
    found = ValueList("/x", values(*["about"] * 100))
    assert len(found.lines(1000)) == MAXIMUM_VALUES + 1
    lines = found.lines(10)
    assert (len(lines), lines[-1]) == (7, "and 94 more, whose names can be typed")
    assert found.line_of("6", 10) == "/x y6"
    assert found.line_of("7", 10) == "/x 7"
    assert len(found.lines(0)) == 2


@pytest.mark.parametrize(
    ("descriptions", "is_required", "line"), [(["about"], False, None), ([""], True, None), ([""], False, "/x")]
)
def test_no_choice_runs_only_a_command_that_shows_more_than_the_list(
    descriptions: list[str], is_required: bool, line: str | None
) -> None:
    found = ValueList("/x", values(*descriptions), is_required)
    assert found.line_of(" ", 24) == line
    assert ("Enter for none" in found.prompt) is (line is None)


@pytest.mark.parametrize("typed", ["0", "2", "-1", "9" * 5000, "\u00b2", "other"])
def test_what_is_not_a_number_of_the_list_is_a_value(typed: str) -> None:
    assert ValueList("/x", values("about")).line_of(f" {typed} ", 24) == f"/x {typed}"


class Offering(MemoryAgent):
    """An agent with commands whose arguments have these values; it notes the scopes of the questions for them."""

    def __init__(self, *found: Completion, is_required: bool = False) -> None:
        super().__init__(conversation)
        self.found, self.is_required = found, is_required
        self.scopes: list[str | None] = []

    async def commands(self, scope: CommandScope) -> Sequence[SlashCommand]:
        name = SlashCommandArgument("name", "A name", self.is_required)
        grouped = (SlashCommand("pick", "Picks.", (name,)),)
        group = SlashCommandArgument("subcommand", "one of pick", True)
        two = (name, SlashCommandArgument("other", "Another"))
        return (
            SlashCommand("say", "Says.", (name,)),
            SlashCommand("group", "Groups.", (group,), grouped),
            SlashCommand("both", "Two arguments.", two),
        )

    async def complete(self, scope: CommandScope, line: str) -> Sequence[Completion]:
        self.scopes.append(scope.context_id)
        return [Completion(f"{line}{item.line}", item.description, item.is_value) for item in self.found]

    async def execute(self, command: CommandMessage) -> Execution:
        said = f"/{' '.join(command.path)} with {command.args or 'nothing'}"
        turn = await self.prompt(PromptMessage(said, settings=command.scope.settings))
        whole = await self.follow(turn.task_id, 0)
        return Execution(CommandExecutionStatus.STARTED, turn=replace(whole, is_new=True))


ONE, TWO = Completion("one", "about one", True), Completion("two words", "about two", True)


@pytest.mark.parametrize("typed", ["/say", "/group pick"])
async def test_a_command_typed_alone_shows_its_values_and_runs_with_the_chosen_one(
    terminal: Conversation, typed: str
) -> None:
    assert await terminal.run(Offering(ONE, TWO), typed, "2") == 0
    assert "   1  one        about one\n   2  two words  about two\n" in terminal.text
    assert f"{typed[1:]} (a number, or Enter for none): " in terminal.text
    assert f"You said: {typed} with two words" in terminal.text


async def test_enter_chooses_nothing_and_runs_nothing(terminal: Conversation) -> None:
    agent = Offering(ONE, is_required=True)
    assert await terminal.run(agent, "/say", "", "/group pick", "\t") == 0
    assert not agent.prompts


async def test_values_without_descriptions_leave_it_to_the_command_to_show_more(terminal: Conversation) -> None:
    assert await terminal.run(Offering(Completion("low", "", True)), "/say", "") == 0
    assert "say, or a number: " in terminal.text
    assert "You said: /say with nothing" in terminal.text


@pytest.mark.parametrize("typed", ["/say given", "/both"])
async def test_an_argument_that_is_given_and_one_of_several_are_not_asked_for(
    terminal: Conversation, typed: str
) -> None:
    agent = Offering(ONE)
    assert await terminal.run(agent, typed) == 0
    assert agent.scopes == []
    assert f"You said: {typed.split()[0]} with" in terminal.text


async def test_the_beginning_of_a_value_is_not_offered(terminal: Conversation) -> None:
    assert await terminal.run(Offering(Completion("--name=", "", False)), "/say") == 0
    assert "a number" not in terminal.text
    assert "You said: /say with nothing" in terminal.text


async def test_long_and_wide_descriptions_are_cut_to_the_width(terminal: Conversation) -> None:
    assert await terminal.run(Offering(Completion("one", "\u6f22" * 500, True)), "/say", "") == 0
    (line,) = [line for line in terminal.text.splitlines() if line.startswith("   1  one  ")]
    characters = line.count("\u6f22")
    assert line.endswith("\u2026")
    assert 70 < len(line) + characters < 80


async def test_the_values_are_those_of_the_session_that_is_open(terminal: Conversation) -> None:
    agent = Offering(ONE)
    terminal.type("hello")
    running = terminal.start(agent)
    await terminal.wait_for("You said: hello")
    (task,) = await agent.tasks()
    terminal.type("/say", "", "/clear", "/say", "", f"/resume {task.context_id}", "/say", "", "/quit")
    assert await running == 0
    assert agent.scopes == [task.context_id, None, task.context_id]
