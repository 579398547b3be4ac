import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import replace

import pytest

from isthmus.client import (
    CommandMessage,
    CommandScope,
    Delivery,
    Execution,
    InvalidRequest,
    PromptMessage,
    TaskSnapshot,
    Turn,
)
from isthmus.development_tool import CommandExecutionStatus, SlashCommand, ToolCallConfirmation
from isthmus.errors import IsthmusError
from isthmus.events import StateChange, TaskState, TextContent
from isthmus.fronts.task_stream import FrontTimeouts
from isthmus.terminal.interactive.command_list import CommandList
from support.conversation import OPTIONS, Conversation
from support.front_program import WORKSPACE, edit_call
from support.memory_agent import Ask, MemoryAgent, Step, Wait
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio


@pytest.fixture
def conversation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Conversation]:
    made = Conversation(monkeypatch)
    yield made
    made.close()


def edits(_: PromptMessage) -> Sequence[Step]:
    return [Ask((edit_call(),)), TextContent("t", "All done.")]


class OvertakenAgent(MemoryAgent):
    """An agent to which another client is always a moment faster."""

    async def answer(
        self,
        task_id: str,
        confirmations: Sequence[ToolCallConfirmation],
        *,
        answered_by: str,
        context_id: str | None = None,
        message_id: str = "",
    ) -> Turn:
        faster = [ToolCallConfirmation(one.tool_call_id, "cancel") for one in confirmations]
        await super().answer(task_id, faster, answered_by="neovim")
        return await super().answer(task_id, confirmations, answered_by=answered_by, context_id=context_id)


async def test_an_answer_that_comes_too_late_gives_way_to_the_first(conversation: Conversation) -> None:
    assert await conversation.run(OvertakenAgent(edits), "do it", "1") == 0
    assert "Reject  answered in neovim" in conversation.text
    assert "All done." in conversation.text
    assert "already answered" not in conversation.text
    assert "\u203a Allow once\n" not in conversation.text


class PickyAgent(MemoryAgent):
    """An agent that refuses the first answer."""

    refused = False

    async def answer(
        self,
        task_id: str,
        confirmations: Sequence[ToolCallConfirmation],
        *,
        answered_by: str,
        context_id: str | None = None,
        message_id: str = "",
    ) -> Turn:
        if not self.refused:
            self.refused = True
            raise InvalidRequest("selected_option_id: not now")
        return await super().answer(task_id, confirmations, answered_by=answered_by, context_id=context_id)


async def test_an_answer_that_is_refused_is_said_and_the_question_asked_again(conversation: Conversation) -> None:
    assert await conversation.run(PickyAgent(edits), "do it", "2", "1") == 0
    assert "✗ selected_option_id: not now" in conversation.text
    assert conversation.text.count("? Change") == 2
    assert "All done." in conversation.text


class FlakyAgent(MemoryAgent):
    """An agent that is unreachable for the first prompt."""

    away = True

    async def prompt(self, message: PromptMessage) -> Turn:
        if self.away:
            self.away = False
            raise IsthmusError("nobody answers at http://127.0.0.1:1/")
        return await super().prompt(message)


async def test_a_prompt_that_cannot_be_sent_is_an_error_line_and_no_end(conversation: Conversation) -> None:
    agent = FlakyAgent(lambda message: [TextContent("t", f"You said: {message.text}")])
    assert await conversation.run(agent, "one", "two") == 0
    assert "✗ nobody answers at http://127.0.0.1:1/" in conversation.text
    assert "You said: two" in conversation.text


async def test_a_question_in_words_is_answered_by_the_next_prompt(conversation: Conversation) -> None:
    def script(message: PromptMessage) -> Sequence[Step]:
        if message.task_id is None:
            return [TextContent("t", "Which file?"), StateChange(TaskState.INPUT_REQUIRED), Wait(asyncio.Event())]
        return [TextContent("u", f"So {message.text}.")]

    agent = MemoryAgent(script)
    assert await conversation.run(agent, "delete it", "a.py") == 0
    assert "So a.py." in conversation.text
    assert [message.task_id is None for message in agent.prompts] == [True, False]
    await agent.aclose()


async def test_a_first_prompt_needs_no_typing(conversation: Conversation) -> None:
    agent = MemoryAgent(lambda message: [TextContent("t", f"You said: {message.text}")])
    assert await conversation.run(agent, options=replace(OPTIONS, first_prompt="hello")) == 0
    assert conversation.text.startswith("\u203a hello\n\nYou said: hello\n")


class BreakingAgent(MemoryAgent):
    """An agent whose streams are empty."""

    async def prompt(self, message: PromptMessage) -> Turn:
        return _silent(await super().prompt(message))

    async def follow(self, task_id: str, after: int | None = None) -> Turn:
        return _silent(await super().follow(task_id, after))


def _silent(turn: Turn) -> Turn:
    async def nothing() -> AsyncIterator[Delivery]:
        for delivery in ():
            yield delivery

    return replace(turn, deliveries=nothing())


async def test_a_lost_connection_is_said_with_the_way_back(conversation: Conversation) -> None:
    options = replace(OPTIONS, timeouts=FrontTimeouts(retry_seconds=0.001))
    assert await conversation.run(BreakingAgent(edits), "do it", options=options) == 0
    assert "✗ The connection to the task was lost; see it with isthmus --resume " in conversation.text


class SilentWatchAgent(MemoryAgent):
    """An agent that returns a task's state and replays nothing: a server without event ids."""

    async def follow(self, task_id: str, after: int | None = None) -> Turn:
        return _silent(await super().follow(task_id, after))


async def test_an_answer_elsewhere_is_noticed_where_no_events_can_be_replayed(conversation: Conversation) -> None:
    agent = SilentWatchAgent(edits)
    running = conversation.start(agent)
    conversation.type("do it")
    await conversation.wait_for("answer (1, 2, 3, e, t):")
    task = (await agent.tasks())[0]
    await agent.answer(task.task_id, [ToolCallConfirmation("edit-1", "proceed_once")], answered_by="neovim")
    await eventually_async(lambda: conversation.text.endswith("\u203a "), what="the next prompt")
    conversation.type("/quit")
    assert await running == 0
    assert conversation.text.count("? Change") == 1


class AwayAgent(MemoryAgent):
    """An agent that cannot be reached while ``away``; attempts in that time are counted."""

    away = False
    tried = 0

    def _reach(self) -> None:
        if self.away:
            self.tried += 1
            raise IsthmusError("nothing answers at http://127.0.0.1:1/")

    async def get(self, task_id: str, history_length: int | None = None) -> TaskSnapshot:
        self._reach()
        return await super().get(task_id, history_length)

    async def answer(
        self,
        task_id: str,
        confirmations: Sequence[ToolCallConfirmation],
        *,
        answered_by: str,
        context_id: str | None = None,
        message_id: str = "",
    ) -> Turn:
        if answered_by == "terminal":
            self._reach()
        return await super().answer(task_id, confirmations, answered_by=answered_by, context_id=context_id)


async def test_an_agent_that_is_away_at_the_answer_is_asked_again(conversation: Conversation) -> None:
    agent = AwayAgent(edits)
    running = conversation.start(agent)
    conversation.type("do it")
    await conversation.wait_for("answer (1, 2, 3, e, t):")
    agent.away = True
    conversation.type("1")
    await conversation.wait_for("answer (1, 2, 3, e, t):", 2)
    assert "✗ nothing answers at http://127.0.0.1:1/" in conversation.text
    agent.away = False
    conversation.type("1", "/quit")
    assert await running == 0
    assert "All done." in conversation.text


async def test_an_answer_elsewhere_is_noticed_after_the_agent_was_away(conversation: Conversation) -> None:
    agent = AwayAgent(edits)
    running = conversation.start(agent, replace(OPTIONS, timeouts=FrontTimeouts(return_seconds=0.01)))
    conversation.type("do it")
    await conversation.wait_for("answer (1, 2, 3, e, t):")
    agent.away = True
    await eventually_async(lambda: agent.tried >= 2, what="attempts to reach the agent")
    agent.away = False
    task = (await agent.tasks())[0]
    await agent.answer(task.task_id, [ToolCallConfirmation("edit-1", "proceed_once")], answered_by="neovim")
    await conversation.wait_for("answered in neovim")
    conversation.type("/quit")
    assert await running == 0


class StubbornAgent(MemoryAgent):
    """An agent that never confirms that it stopped."""

    async def cancel(self, task_id: str) -> TaskSnapshot:
        await asyncio.Event().wait()
        return await super().cancel(task_id)


@pytest.mark.parametrize("interrupts", [1, 2])
async def test_an_agent_that_does_not_stop_does_not_hold_the_user(conversation: Conversation, interrupts: int) -> None:
    agent = StubbornAgent(lambda _: [TextContent("t", "working"), Wait(asyncio.Event())])
    timeouts = FrontTimeouts(cancel_seconds=0.05 if interrupts == 1 else 60)
    running = conversation.start(agent, replace(OPTIONS, timeouts=timeouts))
    conversation.type("do it")
    await conversation.wait_for("working")
    pressing = asyncio.ensure_future(_press_ctrl_c(running, interrupts, lambda: "did not confirm" in conversation.text))
    await conversation.wait_for("did not confirm that it stopped; see it with isthmus --resume")
    await pressing
    conversation.type("/quit")
    assert await running == 0
    await agent.aclose()


async def _press_ctrl_c(running: "asyncio.Task[int]", times: int, is_done: Callable[[], bool]) -> None:
    for _ in range(times):
        if not is_done() and not running.done():
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(20):
                await asyncio.sleep(0)


async def test_ctrl_c_before_the_agent_has_answered_gives_the_prompt_back(conversation: Conversation) -> None:
    class SlowAgent(MemoryAgent):
        async def prompt(self, message: PromptMessage) -> Turn:
            waiting.set()
            await asyncio.Event().wait()
            return await super().prompt(message)

    waiting = asyncio.Event()
    running = conversation.start(SlowAgent(edits))
    conversation.type("do it")
    await asyncio.wait_for(waiting.wait(), 30)
    os.kill(os.getpid(), signal.SIGINT)
    await conversation.wait_for("Not sent.")
    conversation.type("/quit")
    assert await running == 0


async def test_the_end_of_the_input_leaves_an_open_question_open(conversation: Conversation) -> None:
    agent = MemoryAgent(edits)
    conversation.type("do it")
    conversation.end_input()
    assert await conversation.start(agent) == 0
    assert "The question stays open: isthmus --resume " in conversation.text
    assert (await agent.tasks())[0].state is TaskState.INPUT_REQUIRED


def speaking(message: PromptMessage) -> Sequence[Step]:
    return [TextContent("t", f"You said: {message.text}")]


async def test_a_command_of_the_agent_runs_in_the_session_and_shows_what_it_says(conversation: Conversation) -> None:
    agent = MemoryAgent(speaking)
    assert await conversation.run(agent, "/say good morning", "and you?") == 0
    assert "You said: good morning" in conversation.text
    assert "You said: and you?" in conversation.text
    first, second = agent.prompts
    assert first.settings == {"workspace_path": WORKSPACE}
    assert second.context_id == (await agent.tasks())[0].context_id
    assert second.settings is None


async def test_what_a_command_asks_is_asked(conversation: Conversation) -> None:
    assert await conversation.run(MemoryAgent(edits), "/say it", "1") == 0
    assert "? Change" in conversation.text
    assert "All done." in conversation.text


async def test_help_lists_the_commands_of_the_terminal_and_of_the_agent(conversation: Conversation) -> None:
    assert await conversation.run(MemoryAgent(speaking), "/help") == 0
    lines = [" ".join(line.split()) for line in conversation.text.splitlines()]
    assert "/clear a new session, on an empty screen" in lines
    assert "/say Say something" in lines


async def test_a_name_that_is_no_command_is_answered_with_the_nearest(conversation: Conversation) -> None:
    agent = MemoryAgent(speaking)
    assert await conversation.run(agent, "/sya hello", "/xyzzy", "/etc/hosts looks wrong") == 0
    assert "Unknown command /sya. Did you mean /say?" in conversation.text
    assert "Unknown command /xyzzy. /help lists all commands." in conversation.text
    assert [prompt.text for prompt in agent.prompts] == ["/etc/hosts looks wrong"]


class CommandlessAgent(MemoryAgent):
    """An agent without commands."""

    async def commands(self, scope: CommandScope) -> Sequence[SlashCommand]:
        raise IsthmusError("not today")


async def test_without_the_agents_commands_the_terminals_own_still_work(conversation: Conversation) -> None:
    assert await conversation.run(CommandlessAgent(speaking), "/help", "/say x", "hello") == 0
    assert "The agent's commands are not known: not today" in conversation.text
    assert "Unknown command /say." in conversation.text
    assert "You said: hello" in conversation.text


class RefusingAgent(MemoryAgent):
    """An agent that refuses to start commands."""

    async def execute(self, command: CommandMessage) -> Execution:
        return Execution(CommandExecutionStatus.FAILED_TO_START, "say needs a text")


async def test_a_command_that_does_not_start_says_why(conversation: Conversation) -> None:
    assert await conversation.run(RefusingAgent(speaking), "/say") == 0
    assert "✗ say needs a text" in conversation.text


async def test_own_and_foreign_commands_are_completed() -> None:
    commands = CommandList(MemoryAgent(speaking))
    commands.load(CommandScope())
    await commands.ready()
    assert [found.line for found in commands.complete("/s")] == ["/settings", "/sessions", "/say"]
    assert commands.complete("say") == ()
    await commands.aclose()
