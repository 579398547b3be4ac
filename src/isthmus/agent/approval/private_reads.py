"""Reads of files that hold secrets: a question for each such file, once, in every mode but yolo.

Which files these are is in `isthmus.files.private_files`. Edits of such files have questions of their own.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from isthmus.agent.approval.command_paths import command_paths
from isthmus.agent.approval.permission_rules import paths_of
from isthmus.agent.approval.policy import CANCEL, PROCEED_ONCE, ApprovalRequired, Deny, Policy
from isthmus.agent.approval.policy_rules import NamedTool
from isthmus.agent.approval.shell_command import analyse
from isthmus.agent.calls.call_effect import effect_of
from isthmus.client import APPROVAL_REQUIRED
from isthmus.development_tool import ConfirmationOption, ToolCall
from isthmus.files.private_files import is_private
from isthmus.tools.base import ToolKind

PROCEED_ALWAYS_FILE = "proceed_always_file"
_READERS = frozenset({"grep_search", "read_file", "read_many_files"})


def private_reads(tool: str, kind: ToolKind, arguments: Mapping[str, Any], workspace: Path) -> tuple[str, ...]:
    """Return the absolute paths of files with secrets that a call of a built-in tool names in order to read them.

    Symbolic links are followed, which blocks for a moment.
    """
    effect = effect_of(tool, arguments, None, workspace)
    if tool in _READERS:
        named = paths_of(NamedTool(frozenset({tool}), tool), effect, workspace)
        return tuple(spellings[-1] for spellings in named if is_private(spellings))
    command = effect.get("command")
    if kind is not ToolKind.EXECUTE or not isinstance(command, str):
        return ()
    folder = effect.get("dir_path")
    place = workspace / folder if isinstance(folder, str) else workspace
    return tuple(path for path in command_paths(command, analyse(command), place).read if is_private((path,)))


def agreed_reads(answered: Iterable[tuple[ToolCall, str]], workspace: Path) -> frozenset[str]:
    """Return the files with secrets that the user allowed for the rest of the session."""
    return frozenset(
        path
        for call, option in answered
        if option == PROCEED_ALWAYS_FILE
        for path in private_reads(call.tool_name, ToolKind.READ, call.input_parameters, workspace)
    )


def decide_private(policy: Policy, tool: str, paths: Iterable[str]) -> ApprovalRequired | Deny:
    """Return the decision on a call that reads files with secrets which the user has not allowed."""
    names = ", ".join(paths)
    if not policy.may_ask:
        return Deny(
            f"{tool} would read {names}, which may hold secrets, and no user can be asked here, so it was not run."
            " Only --approval-mode yolo allows it.",
            APPROVAL_REQUIRED,
        )
    return ApprovalRequired(
        (
            ConfirmationOption(PROCEED_ONCE, "Allow once", f"May hold secrets, which the model would get: {names}"),
            ConfirmationOption(
                PROCEED_ALWAYS_FILE, "Always allow this file", "For the rest of this session, it is read without asking"
            ),
            ConfirmationOption(CANCEL, "Reject", "Do not read it and tell the agent"),
        )
    )
