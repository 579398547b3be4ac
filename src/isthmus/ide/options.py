"""What the user decides about a companion when they start it."""

from dataclasses import dataclass
from typing import Final

PROTOCOLS: Final = ("gemini", "claude")
"""What agents speak, by the names of their servers: Gemini CLI and its relatives, Claude Code."""


@dataclass(frozen=True, slots=True)
class CompanionOptions:
    """``folders`` take the place of the editor's workspace folders.

    ``is_trusted`` takes the place of what the editor says of it; None: what the editor says counts.
    ``fresh``: never take over port and token of a companion that ended a moment ago. ``watch`` is the id of a process
    with which the companion ends, unless other agents use it by then: it ends with the last of them.
    ``share_context`` False: agents are told of no open file, selection or mention; ``share_selection`` False: of no
    selected text. ``show_diffs`` False: no review is shown, agents ask in their terminals. ``linters`` are run for
    diagnostics ("ruff", "pyright"). ``protocols`` are those that are served, by the names of their servers:
    an IDE with an extension of its own needs only the others. ``tool_files`` are Python files with custom tools.
    """

    folders: tuple[str, ...] = ()
    is_trusted: bool | None = None
    fresh: bool = False
    allow_agent_accept: bool = False
    watch: int | None = None
    share_context: bool = True
    share_selection: bool = True
    show_diffs: bool = True
    linters: tuple[str, ...] = ()
    protocols: tuple[str, ...] = PROTOCOLS
    tool_files: tuple[str, ...] = ()
