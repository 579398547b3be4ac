"""Runs a slash command inside its task, and returns the tree of commands of a user."""

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path

from isthmus.agent.calls.events import failed_calls
from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.agent.commands.custom.custom_files import CustomCommands, find_custom_commands
from isthmus.agent.commands.port.base import CommandNode, CompletionContext
from isthmus.agent.commands.port.context import (
    CommandContext,
    CommandError,
    CommandRefusedError,
    CommandSuspendedError,
    CommandTurn,
)
from isthmus.agent.commands.prompts import PromptNames
from isthmus.agent.commands.registry import BUILT_IN, YIELDING
from isthmus.agent.memory.memory import Memory
from isthmus.agent.options import AgentOptions
from isthmus.agent.resources import AgentResources
from isthmus.agent.session.session import ReadSession
from isthmus.agent.session.turn import AgentTurn
from isthmus.development_tool import SlashCommand
from isthmus.errors import IsthmusError
from isthmus.events import StateChange, TaskState
from isthmus.models.port.base import ModelError
from isthmus.slash_commands.tree import Completion, find, typed_command
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.tool_set import ToolScope, ToolSet

GENERAL = (*BUILT_IN, *YIELDING)
"""The commands of every folder, unless a custom command or a prompt takes the place of one."""
log = logging.getLogger(__name__)


class CommandRunner:
    """The commands of a coding agent."""

    def __init__(self, resources: AgentResources, memory: Memory, suspended: SuspendedCalls | None = None) -> None:
        self._resources = resources
        self._suspended = suspended if suspended is not None else SuspendedCalls()
        self._memory = memory
        self._logged_problems: set[str] = set()
        self._prompt_names = PromptNames()

    async def commands(self, scope: ToolScope, home: Path | None) -> Sequence[SlashCommand]:
        """Return the tree for a scope and a user's own folder: built-in and custom commands, prompts of MCP servers."""
        nodes, _ = await self._nodes(scope, home)
        return tuple(node.declare() for node in nodes)

    def general(self) -> Sequence[SlashCommand]:
        """Return the tree of the commands that are the same in every folder."""
        return tuple(node.declare() for node in GENERAL)

    def needs_folder(self, path: Sequence[str]) -> bool:
        """Return whether such a command can only be executed in a folder; unknown ones can."""
        node = find(path, GENERAL)
        return node is None or node.needs_folder

    async def complete(
        self, scope: ToolScope, home: Path | None, line: str, session: ReadSession
    ) -> Sequence[Completion]:
        """Return completions of the text after a command's name, if known; ``session`` reads the user's session."""
        typed = typed_command(line, BUILT_IN)  # which no other command hides
        if typed is None and " " in line:
            nodes, _ = await self._nodes(scope, home)
            typed = typed_command(line, nodes)
        if typed is None or typed.command.complete is None:
            return ()
        context = CompletionContext(self._resources, scope, session)
        found = await typed.command.complete(context, typed.args)
        return [Completion(typed.beginning + item.text, item.description, item.is_value) for item in found]

    async def run(
        self, turn: AgentTurn, tools: ToolSet, scope: ToolScope | None, options: AgentOptions
    ) -> StateChange | None:
        """Run the command of the session's task; return its end or its question, or None if the model continues.

        Without a scope the session has no folder yet: only the commands that need none run.
        """
        session = turn.session
        command = session.command
        nodes, problems = GENERAL, ()
        if scope is not None:
            nodes, problems = await self._nodes(scope, self._resources.home_of(session.user))
        node = find(command.path, nodes) if command is not None else None
        if command is None or node is None or node.body is None:
            name = "/" + " ".join(command.path if command is not None else ())
            gone = f"The command {name} no longer exists. If it was a prompt of an MCP server, see /mcp for its state."
            return await _fail(turn, gone, "unknown_command")
        context = CommandContext(
            turn=CommandTurn(session, turn.keep, spending=turn.spending),
            args=command.args,
            resources=self._resources,
            options=options,
            memory=self._memory,
            tools=tools,
            known_scope=scope,
            tree=tuple(item.declare() for item in nodes),
            suspended=self._suspended,
            problems=problems,
        )
        end = StateChange(TaskState.COMPLETED)
        try:
            await node.body(context)
        except CommandSuspendedError:
            return StateChange(TaskState.INPUT_REQUIRED)
        except CommandRefusedError:
            end = StateChange(TaskState.CANCELED)
        except CommandError as error:
            end = StateChange(TaskState.FAILED, str(error), error.reason)
        except ModelError as error:
            return await _fail(turn, str(error), f"model_{error.kind}")
        except IsthmusError as error:
            message = error.message_for(session.user) if isinstance(error, ToolFailure) else str(error)
            return await _fail(turn, message, getattr(error, "category", "command_failed"))
        if session.has_command_prompt:
            return None
        if session.state is TaskState.SUBMITTED:
            await turn.emit(StateChange(TaskState.WORKING))
        return end

    async def _nodes(self, scope: ToolScope, home: Path | None) -> tuple[tuple[CommandNode, ...], tuple[str, ...]]:
        found = await asyncio.to_thread(self._find_custom, home, scope.workspace)
        for problem in found.problems:
            if problem not in self._logged_problems:
                self._logged_problems.add(problem)
                log.warning("custom commands: %s", problem)
        nodes, contents = (*BUILT_IN, *found.nodes), self._resources.contents
        if contents is None:
            return _with_yielding(nodes), found.problems
        listed = await contents.prompts(scope)
        prompts, too_many = self._prompt_names.nodes(scope.workspace, listed, nodes)
        return _with_yielding((*nodes, *prompts)), (*found.problems, *too_many)

    def _find_custom(self, home: Path | None, workspace: Path) -> CustomCommands:
        offers = self._resources.has_commands
        is_offered = offers is None or offers(workspace)
        return find_custom_commands(home, workspace, BUILT_IN, of_project=is_offered)


def _with_yielding(nodes: tuple[CommandNode, ...]) -> tuple[CommandNode, ...]:
    names = {node.name for node in nodes}
    return (*BUILT_IN, *(node for node in YIELDING if node.name not in names), *nodes[len(BUILT_IN) :])


async def _fail(turn: AgentTurn, message: str, reason: str) -> StateChange:
    """Close the open calls of a command that cannot continue, and return its end."""
    await turn.emit(*failed_calls(turn.session, message))
    return StateChange(TaskState.FAILED, message, reason)
