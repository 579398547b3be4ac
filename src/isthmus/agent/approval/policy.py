"""The approval policy: decides whether a tool call runs, needs a user's answer, or is refused.

A pure function of the call, the mode and earlier grants (:mod:`isthmus.agent.approval.grants`). Also contains the
options that a question offers. Not here: asking and running, see `isthmus.agent.calls`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeAlias

from isthmus.agent.approval.free_options import changes_files
from isthmus.agent.approval.grants import (
    CANCEL,
    PROCEED_ALWAYS_AND_SAVE,
    PROCEED_ALWAYS_COMMAND,
    PROCEED_ALWAYS_PREFIX,
    PROCEED_ALWAYS_SERVER,
    PROCEED_ALWAYS_TOOL,
    PROCEED_ONCE,
    CommandGrant,
    Grant,
    PrefixGrant,
    ServerGrant,
    ServerToolGrant,
    ToolGrant,
    all_granted,
    command_of,
    missing_prefixes,
)
from isthmus.agent.approval.shell_command import ShellAnalysis, analyse
from isthmus.development_tool import ConfirmationOption
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
class Policy:
    """The approval policy of a session. ``may_ask`` is False if no user can answer (headless).

    ``is_confined``: shell commands run in a sandbox; ``has_network``: they reach the network, in the sandbox or not.
    """

    mode: ApprovalMode = ApprovalMode.DEFAULT
    grants: frozenset[Grant] = frozenset()
    may_ask: bool = True
    is_confined: bool = False
    has_network: bool = True


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

_ONCE = ConfirmationOption(PROCEED_ONCE, "Allow once")
_REJECT = ConfirmationOption(CANCEL, "Reject", "Do not run it and tell the agent")

_COVERED_BY_PREFIX = (
    "For the rest of this session, commands that begin with these words run in this folder without asking; options that"
    " write files or run other programs, and output into files, are asked each time"
)
_COVERED_BY_COMMAND = "For the rest of this session, this command line runs in this folder without asking"

KEPT_APPROVALS_NAME = "mcp-approvals.json"
"""Name of the file that holds the approvals for all sessions, in any folder."""


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
    command = command_of(arguments) if kind is ToolKind.EXECUTE else ""
    if command and folder and CommandGrant(command, folder) in policy.grants:
        return Allow()
    analysis = analyse(command) if kind is ToolKind.EXECUTE else None
    if analysis is not None and all_granted(analysis, policy.grants, folder):
        return Allow()
    if not policy.may_ask:
        missing = missing_prefixes(analysis, policy.grants, folder)
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
                    covers=prefixes,
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
                covers=tool_name,
            ),
        )
        if server is not None:
            always += (
                ConfirmationOption(
                    PROCEED_ALWAYS_SERVER,
                    f"Always allow all tools of {server}",
                    "For the rest of this session, all tools of this server run without asking",
                    covers=server,
                ),
            )
        if may_keep:
            always += (
                ConfirmationOption(
                    PROCEED_ALWAYS_AND_SAVE,
                    f"Always allow {tool_name}, in all future sessions",
                    "This tool runs without asking from now on, until its server changes its definition",
                    covers=tool_name,
                ),
            )
    asked = analysis.asked if analysis is not None else ()
    once = replace(_ONCE, description=f"Asked each time: {', '.join(asked)}") if asked else _ONCE
    return (once, *always, _REJECT)
