"""An Agent with slash commands, run by the real engine: one asks for a shell command, one for an action."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import (
    AgentSettings,
    AgentThought,
    ConfirmationOption,
    ConfirmationRequest,
    ExecuteDetails,
    GenericDetails,
    SlashCommand,
    SlashCommandArgument,
    ToolCall,
    ToolCallStatus,
)
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import StateChange, TaskState, TextContent, Thought, ToolCallUpdate
from support.journals import journal_at
from support.memory_agent import decided

COMMANDS = (
    SlashCommand("about", "Say what runs here."),
    SlashCommand(
        "memory",
        "What the agent is told in every session.",
        sub_commands=(
            SlashCommand("add", "Remember a fact.", (SlashCommandArgument("fact", "What to remember.", True),)),
            SlashCommand("show", "Show what is remembered."),
        ),
    ),
    SlashCommand("deploy", "Run the deployment script."),
    SlashCommand("init", "Write GEMINI.md."),
)
_OPTIONS = (ConfirmationOption("proceed_once", "Allow once"), ConfirmationOption("cancel", "Reject"))
_QUESTIONS = {
    "deploy": ConfirmationRequest(_OPTIONS, execute_details=ExecuteDetails("./deploy.sh")),
    "init": ConfirmationRequest(_OPTIONS, generic_details=GenericDetails("Overwrite GEMINI.md")),
}


class CommandingAgent:
    """Implementation of the engine's ports Agent and CommandAgent. A command replies its arguments; some ask first."""

    async def commands(self, workspace: Path, settings: AgentSettings | None, user: str = "") -> Sequence[SlashCommand]:
        """Return the same tree everywhere."""
        del workspace, settings, user
        return COMMANDS

    async def advance(self, turn: AgentTurn) -> StateChange:
        """Run a command, or answer a prompt with its length."""
        session = turn.session
        command = session.command
        name = command.path[-1] if command is not None else ""
        if session.state is TaskState.SUBMITTED and name not in _QUESTIONS:
            await turn.emit(StateChange(TaskState.WORKING))
        for item in session.calls.unsettled:
            if item.call is not None and item.confirmation is not None:
                for event in decided(item.call, item.confirmation):
                    await turn.emit(event)
                name = ""
        if name in _QUESTIONS:
            call = ToolCall("call-1", ToolCallStatus.PENDING, name, {}, confirmation_request=_QUESTIONS[name])
            await turn.emit(ToolCallUpdate(call))
            return StateChange(TaskState.INPUT_REQUIRED)
        await turn.emit(Thought(AgentThought("Commands", "This needs no model.")))
        said = f"{' '.join(command.path)}: {command.args}" if command is not None else "a prompt"
        await turn.emit(TextContent("text-1", said))
        return StateChange(TaskState.COMPLETED)


@asynccontextmanager
async def engine_with_commands(folder: Path, default: Path | None = None) -> AsyncGenerator[Engine]:
    """Start a real engine over a journal in ``folder``; the server that uses it closes it."""
    journal = await journal_at(folder / "journal.sqlite")
    engine = Engine(CommandingAgent(), journal, EngineOptions(WorkspaceRule(default)))
    await engine.start()
    yield engine
