"""Agents that the engine can run: the port, and what an agent may offer besides."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.agent.session.session import ReadSession, Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import AgentSettings, SlashCommand
from isthmus.events import StateChange
from isthmus.session_status import SessionStatus
from isthmus.slash_commands.tree import Completion


class Agent(Protocol):
    """An agent that the engine can run."""

    async def advance(self, turn: AgentTurn) -> StateChange:
        """Work on the task of the turn's session, emit what happens, and return the state that ends the stream.

        That is a terminal state, or INPUT_REQUIRED if the session has questions for the user.
        """
        ...


@runtime_checkable
class CommandAgent(Agent, Protocol):
    """An agent with slash commands: ``advance`` also receives sessions whose task is a Command.

    It emits WORKING first, unless the command waits for a user before it does anything.
    """

    async def commands(self, workspace: Path, settings: AgentSettings | None, user: str = "") -> Sequence[SlashCommand]:
        """Return the tree of commands that a user can execute in a workspace; an empty ``user`` is the local user."""
        ...


@runtime_checkable
class GeneralCommandAgent(CommandAgent, Protocol):
    """An agent with commands that are the same in every folder, some of which need none.

    ``advance`` receives them in sessions whose ``workspace`` is empty.
    """

    def general_commands(self) -> Sequence[SlashCommand]:
        """Return the tree of these commands."""
        ...

    def needs_folder(self, path: Sequence[str]) -> bool:
        """Return whether one of them can only be executed in a folder."""
        ...


@runtime_checkable
class ObservableAgent(Agent, Protocol):
    """An agent that tells the state of a session."""

    async def status(self, session: Session) -> SessionStatus:
        """Return the state of a session, whose workspace is set, also if it has no events yet."""
        ...


@runtime_checkable
class SuspendingAgent(Agent, Protocol):
    """An agent whose calls may wait for a user in the middle of their work."""

    @property
    def suspended(self) -> SuspendedCalls:
        """Calls that are waiting for an answer in the middle of their work."""
        ...


@runtime_checkable
class CompletingAgent(Agent, Protocol):
    """An agent that completes the command line that a user types."""

    async def complete(
        self, session: ReadSession, workspace: Path, settings: AgentSettings | None, line: str, user: str = ""
    ) -> Sequence[Completion]:
        """Return the completions of a line, as whole lines; ``session`` reads the session in which it is typed."""
        ...


@runtime_checkable
class PlacingAgent(Agent, Protocol):
    """An agent that has a folder of its own for each session in some workspaces."""

    def place(self, workspace: Path, context_id: str | None, user: str) -> Path:
        """Return the folder on this machine in which a user's session works, None: one that has not begun."""
        ...
