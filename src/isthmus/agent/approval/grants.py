"""Permissions for the rest of a session: the grants of an answer or an allow-list, and the commands that they cover."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import join, normpath
from typing import Any, TypeAlias

from isthmus.agent.approval.shell_command import ShellAnalysis, SimpleCommand, analyse
from isthmus.development_tool import McpDetails
from isthmus.record import record
from isthmus.tools.port.base import ToolKind


@record
class ToolGrant:
    """Permission to run a tool without a question."""

    tool_name: str


@record
class PrefixGrant:
    """Permission to run shell commands that begin with these words without a question.

    It holds in ``folder``, an absolute path: in another one the same words may run another program. An empty path
    stands for all folders.
    """

    prefix: tuple[str, ...]
    folder: str = ""


@record
class CommandGrant:
    """Permission to run exactly this command line in a folder, an absolute path, without a question."""

    command: str
    folder: str


@record
class ServerGrant:
    """Permission to run every tool of an MCP server without a question."""

    server_name: str


@record
class ServerToolGrant:
    """Permission to run one tool of an MCP server without a question, whatever name the model knows it by.

    ``version`` identifies its description and parameters: when they change, the user is asked again.
    """

    server_name: str
    tool_name: str
    version: str = ""


Grant: TypeAlias = ToolGrant | PrefixGrant | CommandGrant | ServerGrant | ServerToolGrant

PROCEED_ONCE = "proceed_once"
PROCEED_ALWAYS_TOOL = "proceed_always_tool"
PROCEED_ALWAYS_SERVER = "proceed_always_server"
PROCEED_ALWAYS_AND_SAVE = "proceed_always_and_save"
PROCEED_ALWAYS_PREFIX = "proceed_always_prefix"
PROCEED_ALWAYS_COMMAND = "proceed_always_command"
CANCEL = "cancel"

SHELL_NAMES = ("run_shell_command", "ShellTool")
"""The name of the shell, and its name in older allow-lists of Gemini CLI."""


def grants_of(
    option_id: str,
    tool_name: str,
    kind: ToolKind,
    arguments: Mapping[str, Any],
    mcp: McpDetails | None = None,
    version: str = "",
    folder: str = "",
) -> frozenset[Grant]:
    """Return the grants of the answer ``option_id`` to a call's question; ``mcp`` names the server of the tool.

    ``version`` identifies the tool's definition at the time of the question. It is empty in old journals, and for a
    tool without versions. ``folder`` is the absolute path of the folder of a command; empty if it is not known, and
    then no command is granted.
    """
    if mcp is not None:
        # By the server's own name for the tool: the model's name may later belong to another server's tool.
        always: dict[str, Grant] = {
            PROCEED_ALWAYS_SERVER: ServerGrant(mcp.server_name),
            PROCEED_ALWAYS_TOOL: ServerToolGrant(mcp.server_name, mcp.tool_name, version),
            PROCEED_ALWAYS_AND_SAVE: ServerToolGrant(mcp.server_name, mcp.tool_name, version),
        }
        return frozenset({always[option_id]}) if option_id in always else frozenset()
    if option_id == PROCEED_ALWAYS_TOOL:
        return frozenset({ToolGrant(tool_name)})
    if option_id == PROCEED_ALWAYS_PREFIX and kind is ToolKind.EXECUTE:
        analysis = analyse(command_of(arguments))
        return frozenset() if analysis is None or not folder else frozenset(_prefix_grants(analysis, folder))
    if option_id == PROCEED_ALWAYS_COMMAND and kind is ToolKind.EXECUTE and folder:
        command = command_of(arguments)
        return frozenset({CommandGrant(command, folder)}) if command else frozenset()
    return frozenset()


def _prefix_grants(analysis: ShellAnalysis, folder: str) -> Iterator[PrefixGrant]:
    """Yield the grants of all prefixes that a line offers, each for the folders in which its command runs."""
    for command in analysis.commands if analysis.prefixes else ():
        if command.is_wrapper:
            continue
        if command.is_free_of_folder:
            yield PrefixGrant(command.prefix)
        else:
            yield from (PrefixGrant(command.prefix, place) for place in _places(command, folder) if place is not None)


def _places(command: SimpleCommand, folder: str) -> Iterator[str | None]:
    """Yield the absolute paths of the folders in which a command of a line may run; None for any."""
    for place in command.folders:
        yield None if place is None else normpath(join(folder, place))


def grants_from_settings(entries: Iterable[str]) -> frozenset[Grant]:
    """Return the grants of an allow-list such as ``["write_file", "run_shell_command(git status)"]``.

    An entry of any other form grants nothing.
    """
    grants: set[Grant] = set()
    for entry in entries:
        name, bracket, rest = entry.strip().partition("(")
        is_shell = name in SHELL_NAMES
        words = tuple(rest.removesuffix(")").split())
        if not bracket:
            grants.add(ToolGrant(SHELL_NAMES[0] if is_shell else name))
        elif is_shell and rest.endswith(")") and words:
            grants.add(PrefixGrant(words))
    return frozenset(grants)


def command_of(arguments: Mapping[str, Any]) -> str:
    """Return the command line in the arguments of a call of the shell; empty if there is none."""
    command = arguments.get("command")
    return command if isinstance(command, str) else ""


def all_granted(analysis: ShellAnalysis, grants: Iterable[Grant], folder: str) -> bool:
    """Return whether each command of a line may run without a question in ``folder``, an absolute path."""
    given = [grant for grant in grants if isinstance(grant, PrefixGrant)]
    return (
        bool(analysis.commands)
        and not analysis.writes_files
        and not analysis.asked
        and all(_is_granted(command, command.words, given, folder) for command in analysis.commands)
    )


def _is_granted(command: SimpleCommand, words: Sequence[str], given: Sequence[PrefixGrant], folder: str) -> bool:
    """Return whether words of a command are covered in each folder in which it may run."""
    if command.is_wrapper:
        return True
    covering = {grant.folder for grant in given if _begins(words, grant.prefix)}
    if "" in covering or (covering and command.is_free_of_folder):
        return True
    return bool(folder) and all(place in covering for place in _places(command, folder))


def missing_prefixes(
    analysis: ShellAnalysis | None, grants: Iterable[Grant], folder: str
) -> tuple[tuple[str, ...], ...]:
    """Return the prefixes that must be granted for a command to run; empty if no prefixes suffice."""
    if analysis is None or analysis.writes_files or not analysis.prefixes:
        return ()
    given = [grant for grant in grants if isinstance(grant, PrefixGrant)]
    missing = [each.prefix for each in analysis.commands if not _is_granted(each, each.prefix, given, folder)]
    return tuple(dict.fromkeys(missing))


def _begins(words: Sequence[str], prefix: Sequence[str]) -> bool:
    return tuple(words[: len(prefix)]) == tuple(prefix)
