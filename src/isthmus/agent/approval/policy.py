"""The approval policy: decides whether a tool call runs, needs a user's answer, or is refused.

A pure function of the call, the mode and earlier grants. Also contains the options that a question offers, and the
grants of each option for the rest of the session. Not here: asking and running, see `isthmus.agent.calls`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from posixpath import join, normpath
from typing import Any, TypeAlias

from isthmus.agent.approval.free_options import changes_files
from isthmus.agent.approval.shell_command import ShellAnalysis, SimpleCommand, analyse
from isthmus.development_tool import ConfirmationOption, McpDetails
from isthmus.questions import APPROVAL_REQUIRED
from isthmus.record import record
from isthmus.sandbox.guarded_paths import effect_of
from isthmus.tools.port.base import ToolKind


class ApprovalMode(StrEnum):
    """Approval mode, by its name in Gemini CLI."""

    DEFAULT = "default"
    """Reading is allowed; edits and commands need an answer."""
    AUTO_EDIT = "auto_edit"
    """Reading and edits are allowed."""
    PLAN = "plan"
    """Read-only: every call with an effect is refused."""
    YOLO = "yolo"
    """Everything is allowed."""


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


@record
class Policy:
    """The approval policy of a session. ``may_ask`` is False if no user can answer (headless).

    ``is_confined``: shell commands run in a sandbox.
    """

    mode: ApprovalMode = ApprovalMode.DEFAULT
    grants: frozenset[Grant] = frozenset()
    may_ask: bool = True
    is_confined: bool = False


@record
class Allow:
    """Decision that the call may run."""


@record
class ApprovalRequired:
    """Decision that a user must choose one of these options."""

    options: tuple[ConfirmationOption, ...]


DENIED = "permission_denied"
"""Category of a refusal by a rule, a hook or the approval mode."""


@record
class Deny:
    """Refusal of the call; ``reason`` tells the model and the user what would allow it."""

    reason: str
    category: str = DENIED


Decision: TypeAlias = Allow | ApprovalRequired | Deny

PROCEED_ONCE = "proceed_once"
PROCEED_ALWAYS_TOOL = "proceed_always_tool"
PROCEED_ALWAYS_SERVER = "proceed_always_server"
PROCEED_ALWAYS_AND_SAVE = "proceed_always_and_save"
PROCEED_ALWAYS_PREFIX = "proceed_always_prefix"
PROCEED_ALWAYS_COMMAND = "proceed_always_command"
CANCEL = "cancel"

_ONCE = ConfirmationOption(PROCEED_ONCE, "Allow once")
_REJECT = ConfirmationOption(CANCEL, "Reject", "Do not run it and tell the agent")

_COVERED_BY_PREFIX = (
    "For the rest of this session, commands that begin with these words run in this folder without asking; options that"
    " write files or run other programs, and output into files, are asked each time"
)
_COVERED_BY_COMMAND = "For the rest of this session, this command line runs in this folder without asking"

KEPT_APPROVALS_NAME = "mcp-approvals.json"
"""Name of the file that holds the approvals for all sessions, in any folder."""

SHELL_NAMES = ("run_shell_command", "ShellTool")
"""The name of the shell, and its name in older allow-lists of Gemini CLI."""


def decide(
    policy: Policy,
    tool_name: str,
    kind: ToolKind,
    arguments: Mapping[str, Any],
    *,
    is_guarded: bool = False,
    is_starting: bool = False,
    server: str | None = None,
    may_keep: bool = False,
    folder: str = "",
    allowed_as: str = "",
) -> Decision:
    """Return whether the call may run now.

    ``is_guarded`` is whether it edits a file on which other programs act, so that the user must be asked.
    ``is_starting`` is whether that file starts programs, which would then run outside of the sandbox. ``server`` is the
    MCP server of the tool, if any. ``may_keep`` is whether the tool may be allowed for all future sessions. ``folder``
    is the absolute path of the folder in which a command runs; empty if it is not known. ``allowed_as`` is the name of
    the tool in allow-lists, if it is another one.
    """
    leaves_sandbox = is_starting and policy.is_confined
    if kind is ToolKind.READ:
        return Allow()
    if policy.mode is ApprovalMode.PLAN:
        return Deny(f"{tool_name} changes things, and plan mode is read-only. Describe the change instead.")
    if policy.mode is ApprovalMode.YOLO and not leaves_sandbox:
        return Allow()
    if ToolGrant(tool_name) in policy.grants and not is_guarded:
        return Allow()
    if kind is ToolKind.EDIT and policy.mode is ApprovalMode.AUTO_EDIT and not is_guarded:
        return Allow()
    if server is not None and ServerGrant(server) in policy.grants and not is_guarded:
        return Allow()
    command = _command(arguments) if kind is ToolKind.EXECUTE else ""
    if command and folder and CommandGrant(command, folder) in policy.grants:
        return Allow()
    analysis = analyse(command) if kind is ToolKind.EXECUTE else None
    if analysis is not None and _all_granted(analysis, policy.grants, folder):
        return Allow()
    if not policy.may_ask:
        missing = _missing_prefixes(analysis, policy.grants, folder)
        advice = (
            f"{tool_name} would edit a file that starts programs outside of the sandbox. That needs the user's"
            " permission each time, in every mode, and no user can be asked here, so it was not run."
            if leaves_sandbox
            else _advice_to_allow(tool_name, kind, missing, allowed_as or tool_name, is_guarded=is_guarded)
        )
        return Deny(advice, APPROVAL_REQUIRED)
    may_repeat = bool(command.strip() and folder)
    options = _options(tool_name, kind, analysis, server, may_keep=may_keep, may_repeat=may_repeat)
    return ApprovalRequired(
        tuple(option for option in options if not (is_guarded and option.id == PROCEED_ALWAYS_TOOL))
    )


def is_always_refused(policy: Policy, tool_name: str, kind: ToolKind, server: str | None = None) -> bool:
    """Return whether every call of a tool is refused, with any arguments, because no user can be asked.

    ``server`` is the MCP server of the tool, if any; allow-lists name its tools in several ways, which all count here.
    """
    if policy.may_ask or kind is ToolKind.READ or policy.mode is ApprovalMode.YOLO:
        return False
    if policy.mode is ApprovalMode.PLAN:
        return True
    if kind is ToolKind.EDIT and policy.mode is ApprovalMode.AUTO_EDIT:
        return False
    return not any(_may_cover(grant, tool_name, kind, server) for grant in policy.grants)


def _may_cover(grant: Grant, tool_name: str, kind: ToolKind, server: str | None) -> bool:
    match grant:
        case ToolGrant(name):
            return name in (tool_name, server) or (
                server is not None and name.startswith((f"{server}.", f"{server}__"))
            )
        case PrefixGrant() | CommandGrant():
            return kind is ToolKind.EXECUTE
        case ServerGrant(name) | ServerToolGrant(name):
            return name == server


@record
class AskedEachTime:
    """Reason to ask a user about a call regardless of mode and earlier answers; ``remedy`` says how to change that."""

    reason: str
    remedy: str


def decide_each_time(policy: Policy, tool_name: str, asked: AskedEachTime, kind: ToolKind = ToolKind.OTHER) -> Decision:
    """Return whether a call may run about which a user must be asked each time."""
    if policy.mode is ApprovalMode.PLAN and kind is not ToolKind.READ:
        return Deny(f"{tool_name} changes things, and plan mode is read-only.")
    if not policy.may_ask:
        reason = f"{asked.reason}. No user can be asked here, so {tool_name} was not run. {asked.remedy}"
        return Deny(reason, APPROVAL_REQUIRED)
    return ApprovalRequired((replace(_ONCE, description=asked.reason), _REJECT))


NO_CHOICE = ConfirmationOption(
    CANCEL, "None of these", "The agent goes on without an answer; you can say more in your next message"
)


def decide_question(policy: Policy, choices: tuple[ConfirmationOption, ...]) -> Decision:
    """Return the decision on a call that is a question: it is asked in every mode, where a user can answer."""
    if not policy.may_ask:
        return Deny("No user can answer here. Decide yourself, and say what you assumed.")
    is_to_type = all(option.id == PROCEED_ONCE for option in choices)
    return ApprovalRequired((*choices, replace(NO_CHOICE, name="No answer") if is_to_type else NO_CHOICE))


def is_guarded(path: Path, context_files: Iterable[str] = ()) -> bool:
    """Return whether other programs (agents, editors, git, CI, shells) act on a file without being asked.

    ``context_files`` are additional names of files that instruct this agent.
    """
    return effect_of(path, (*context_files, KEPT_APPROVALS_NAME)) is not None


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
        analysis = analyse(_command(arguments))
        return frozenset() if analysis is None or not folder else frozenset(_prefix_grants(analysis, folder))
    if option_id == PROCEED_ALWAYS_COMMAND and kind is ToolKind.EXECUTE and folder and (command := _command(arguments)):
        return frozenset({CommandGrant(command, folder)})
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


def _command(arguments: Mapping[str, Any]) -> str:
    command = arguments.get("command")
    return command if isinstance(command, str) else ""


def _all_granted(analysis: ShellAnalysis, grants: Iterable[Grant], folder: str) -> bool:
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


def _missing_prefixes(
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


def _advice_to_allow(
    tool_name: str, kind: ToolKind, missing: Sequence[Sequence[str]], allowed_as: str, *, is_guarded: bool
) -> str:
    if is_guarded:
        return (
            f"{tool_name} would edit a file that agents, editors, git, CI or shells act on by themselves. That needs"
            " the user's permission each time, and no user can be asked here, so it was not run. Only --approval-mode"
            " yolo allows it."
        )
    entry = ",".join(f"{tool_name}({' '.join(prefix)})" for prefix in missing) or allowed_as
    mode = "--approval-mode auto_edit" if kind is ToolKind.EDIT else "--approval-mode yolo"
    return (
        f"{tool_name} needs a user's permission and no user can be asked here, so it was not run. "
        f"Allow it with {mode} or --allowed-tools '{entry}'."
    )


def _joined(prefixes: Iterable[Sequence[str]]) -> str:
    return ", ".join(" ".join(prefix) for prefix in prefixes)


def _options(
    tool_name: str,
    kind: ToolKind,
    analysis: ShellAnalysis | None,
    server: str | None,
    *,
    may_keep: bool,
    may_repeat: bool = False,
) -> tuple[ConfirmationOption, ...]:
    always: tuple[ConfirmationOption, ...] = ()
    if kind is ToolKind.EXECUTE:
        if analysis is not None and analysis.prefixes and not analysis.writes_files:
            prefixes = _joined(analysis.prefixes)
            changing = _joined(filter(changes_files, analysis.prefixes))
            purpose = f". These change files by purpose: {changing}" if changing else ""
            always = (
                ConfirmationOption(
                    PROCEED_ALWAYS_PREFIX,
                    f"Always allow {prefixes} …",
                    _COVERED_BY_PREFIX + purpose,
                ),
            )
        if may_repeat:
            name = "Always allow exactly this command in this folder"
            always += (ConfirmationOption(PROCEED_ALWAYS_COMMAND, name, _COVERED_BY_COMMAND),)
    else:
        always = (
            ConfirmationOption(
                PROCEED_ALWAYS_TOOL,
                f"Always allow {tool_name}",
                "For the rest of this session, this tool runs without asking",
            ),
        )
        if server is not None:
            always += (
                ConfirmationOption(
                    PROCEED_ALWAYS_SERVER,
                    f"Always allow all tools of {server}",
                    "For the rest of this session, all tools of this server run without asking",
                ),
            )
        if may_keep:
            always += (
                ConfirmationOption(
                    PROCEED_ALWAYS_AND_SAVE,
                    f"Always allow {tool_name}, in all future sessions",
                    "This tool runs without asking from now on, until its server changes its definition",
                ),
            )
    asked = analysis.asked if analysis is not None else ()
    once = replace(_ONCE, description=f"Asked each time: {', '.join(asked)}") if asked else _ONCE
    return (once, *always, _REJECT)
