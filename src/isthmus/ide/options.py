"""Options of a companion, set by the user at its start."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompanionOptions:
    """Options of a companion. ``folders`` replace the editor's workspace folders.

    ``is_trusted`` replaces what the editor reports, unless it is None. ``fresh``: never take over port and token of a
    companion that ended a moment ago. ``watch`` is the id of a process with which the companion ends; if other agents
    use it by then, it ends with the last of them. Without ``share_context`` agents get no open file, selection or
    mention; without ``share_selection`` no selected text. Without ``show_diffs`` no review is shown: agents ask in
    their terminals. ``linters`` are run for diagnostics ("ruff", "pyright"). ``protocols`` are the names of the
    protocols to serve, empty for all: an IDE with an extension of its own needs only the others. ``tool_files`` are
    Python files with custom tools.
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
    protocols: tuple[str, ...] = ()
    tool_files: tuple[str, ...] = ()
