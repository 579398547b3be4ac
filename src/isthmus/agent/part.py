"""Parts of a coding agent: what accompanies its model and its tools in each session.

A part exists to:

- bring tools, and instructions for the system prompt;
- tell the model something after a prompt, or before any of its messages;
- learn which files are about to be edited, and which tasks have ended;
- close at the end what it holds.

The agent knows none of its parts by name. Not here: hooks, checkpoints, and what a user sees.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Protocol

from isthmus.internal_events import ContextNote
from isthmus.record import record
from isthmus.tools.port.base import Tool
from isthmus.tools.port.tool_set import ToolScope


@record
class PartTurn:
    """Work on one task for which parts are asked. ``session`` is the key of its session."""

    scope: ToolScope
    session: str
    is_of_subagent: bool = False


@record
class PartTools:
    """Tools that a part brings to a session, which the user's rules and approvals govern as they do all others.

    ``always_asked`` maps the names of tools to the reason why a user is asked about each call. ``readable_folders``
    are absolute paths of folders outside the workspace that the model may read.
    """

    tools: tuple[Tool, ...] = ()
    always_asked: Mapping[str, str] = field(default_factory=dict[str, str])
    readable_folders: tuple[Path, ...] = ()


class Part(Protocol):
    """Part of an agent, for all of its sessions. Its methods are bounded in time, and do not raise."""

    @property
    def name(self) -> str:
        """Name of the part, which is the source of its notes: one or more words, such as ``editor``."""
        ...

    async def tools(self, scope: ToolScope) -> PartTools:
        """Return the tools for a turn. A tool whose name another one has already is not offered."""
        ...

    async def instructions(self, scope: ToolScope) -> str:
        """Return text for the system prompt; empty for none.

        A session keeps the text of its first request. A text that changes later is told behind the conversation.
        """
        ...

    async def at_prompt(self, turn: PartTurn) -> str | None:
        """Return a note for the model between a prompt and its first message; None for no note.

        After an interruption it is asked again, unless its note is stored.
        """
        ...

    async def before_model(self, turn: PartTurn) -> str | None:
        """Return a note for the model before any of its messages; None for no note. Each note is told once."""
        ...

    async def before_edit(self, turn: PartTurn, path: Path) -> None:
        """Take note of a file that a call of the agent is about to edit. ``path`` is absolute."""
        ...

    def task_ended(self, task_id: str) -> None:
        """Take note that a task has ended."""
        ...

    async def aclose(self) -> None:
        """Close what the part holds. The agent's parts are closed in reverse order."""
        ...


class PartBase:
    """Part that does nothing, to be subclassed. ``name`` is to be set."""

    name: str

    async def tools(self, scope: ToolScope) -> PartTools:
        """Return no tools."""
        del scope
        return PartTools()

    async def instructions(self, scope: ToolScope) -> str:
        """Return no text."""
        del scope
        return ""

    async def at_prompt(self, turn: PartTurn) -> str | None:
        """Return no note."""
        del turn
        return None

    async def before_model(self, turn: PartTurn) -> str | None:
        """Return no note."""
        del turn
        return None

    async def before_edit(self, turn: PartTurn, path: Path) -> None:
        """Do nothing."""
        del turn, path

    def task_ended(self, task_id: str) -> None:
        """Do nothing."""
        del task_id

    async def aclose(self) -> None:
        """Do nothing."""


@record
class AgentParts:
    """The parts of one agent, in the order in which they are asked."""

    parts: tuple[Part, ...] = ()

    async def tools(self, scope: ToolScope) -> Sequence[PartTools]:
        """Return the tools of each part."""
        return [await part.tools(scope) for part in self.parts]

    async def instructions(self, scope: ToolScope) -> Sequence[tuple[str, str]]:
        """Return the name of each part that has a text for the system prompt, and that text, in lines of its own."""
        texts = [(part.name, (await part.instructions(scope)).strip("\n")) for part in self.parts]
        return [(name, f"\n{text}\n") for name, text in texts if text]

    async def notes_at_prompt(self, turn: PartTurn, known: Collection[str]) -> Sequence[ContextNote]:
        """Return the notes after a prompt, but for the sources in ``known``, whose notes it has."""
        asked = [part for part in self.parts if part.name not in known]
        return _notes([(part.name, await part.at_prompt(turn)) for part in asked])

    async def notes_before_model(self, turn: PartTurn) -> Sequence[ContextNote]:
        """Return the notes before a message of the model."""
        return _notes([(part.name, await part.before_model(turn)) for part in self.parts])

    async def before_edit(self, turn: PartTurn, path: Path) -> None:
        """Tell each part of a file that is about to be edited."""
        for part in self.parts:
            await part.before_edit(turn, path)

    def task_ended(self, task_id: str) -> None:
        """Tell each part that a task has ended."""
        for part in self.parts:
            part.task_ended(task_id)

    async def aclose(self) -> None:
        """Close the parts, the last one first."""
        for part in reversed(self.parts):
            await part.aclose()


def _notes(found: Sequence[tuple[str, str | None]]) -> Sequence[ContextNote]:
    return [ContextNote(source, text) for source, text in found if text is not None]
