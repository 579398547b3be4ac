"""Reads of files that hold secrets, or that git ignores: a question, in every mode but yolo.

The question is about each file with secrets, and about each folder with ignored files, once in a session. Which files
hold secrets is in `isthmus.files.private_files`, and which ignored folders are free in `isthmus.files.made_folders`.
Edits of these files have questions of their own.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from isthmus.agent.approval.call_effect import effect_of
from isthmus.agent.approval.command_paths import command_paths
from isthmus.agent.approval.grants import CANCEL, PROCEED_ONCE
from isthmus.agent.approval.outside_reads import PROCEED_ALWAYS_FOLDER
from isthmus.agent.approval.permission_rules import paths_of
from isthmus.agent.approval.policy import ApprovalRequired, Deny, Policy
from isthmus.agent.approval.policy_rules import NamedTool
from isthmus.agent.approval.shell_command import analyse
from isthmus.development_tool import ConfirmationOption, ToolCall
from isthmus.files.private_files import is_private
from isthmus.questions import APPROVAL_REQUIRED
from isthmus.record import record
from isthmus.tools.port.base import ToolKind
from isthmus.tools.port.workspace import Workspace

PROCEED_ALWAYS_FILE = "proceed_always_file"
_READERS = frozenset({"grep_search", "read_file", "read_many_files"})
_FILES = "For the rest of this session, read without asking: "
_FOLDERS = "For the rest of this session, read the ignored files there without asking: "


@record
class AskedReads:
    """Absolute paths of ``files`` with secrets, and of ``folders`` whose ignored files are read."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.files or self.folders)

    def besides(self, agreed: "AskedReads") -> "AskedReads":
        """Return the reads that the user has not agreed to."""
        return AskedReads(
            tuple(path for path in self.files if path not in agreed.files),
            tuple(path for path in self.folders if path not in agreed.folders),
        )


def asked_reads(tool: str, kind: ToolKind, arguments: Mapping[str, Any], workspace: Workspace) -> AskedReads:
    """Return the reads about which a user is asked of those that a call of a built-in tool names.

    Symbolic links are followed and ignore files are read, which blocks for a moment.
    """
    files: list[str] = []
    folders: list[str] = []
    for spellings in _named(tool, kind, arguments, workspace.root):
        path = Path(spellings[-1])
        if is_private(spellings):
            files.append(spellings[-1])
        elif os.path.lexists(path) and (folder := workspace.ignored_folder(path)) is not None:
            folders.append(str(folder))
    return AskedReads(tuple(dict.fromkeys(files)), tuple(dict.fromkeys(folders)))


def _named(tool: str, kind: ToolKind, arguments: Mapping[str, Any], workspace: Path) -> Iterable[tuple[str, ...]]:
    """Return the paths that a call names in order to read them, each with the one that it leads to as the last."""
    effect = effect_of(tool, arguments, None, workspace)
    if tool in _READERS:
        return paths_of(NamedTool(frozenset({tool}), tool), effect, workspace)
    command = effect.get("command")
    if kind is not ToolKind.EXECUTE or not isinstance(command, str):
        return ()
    folder = effect.get("dir_path")
    place = workspace / folder if isinstance(folder, str) else workspace
    return tuple((path,) for path in command_paths(command, analyse(command), place).read)


def agreed_reads(answered: Iterable[tuple[ToolCall, str]]) -> AskedReads:
    """Return the reads that the user allowed for the rest of the session, as the questions named them. Pure."""
    files: list[str] = []
    folders: list[str] = []
    for call, option in answered:
        if option == PROCEED_ALWAYS_FILE:
            files += _listed(call, option, _FILES)
        elif option == PROCEED_ALWAYS_FOLDER:
            folders += _listed(call, option, _FOLDERS)
    return AskedReads(tuple(files), tuple(folders))


def _listed(call: ToolCall, option: str, beginning: str) -> Iterator[str]:
    """Yield the paths that an option of a question names."""
    asked = call.confirmation_request
    for offered in asked.options if asked is not None else ():
        words = offered.description or ""
        if offered.id == option and words.startswith(beginning):
            yield from json.loads(f"[{words.removeprefix(beginning)}]")


def _list(paths: Iterable[str]) -> str:
    return ", ".join(json.dumps(path, ensure_ascii=False) for path in paths)


def decide_reads(policy: Policy, tool: str, reads: AskedReads) -> ApprovalRequired | Deny:
    """Return the decision on a call that reads what the user has not agreed to."""
    about = [f"{', '.join(reads.files)}, which may hold secrets"] if reads.files else []
    about += [f"files in {', '.join(reads.folders)} that git ignores"] if reads.folders else []
    if not policy.may_ask:
        return Deny(
            f"{tool} would read {' and '.join(about)}, and no user can be asked here, so it was not run."
            " Only --approval-mode yolo allows it.",
            APPROVAL_REQUIRED,
        )
    options = [
        ConfirmationOption(PROCEED_ONCE, "Allow once", f"The model would get {' and '.join(about)}"),
    ]
    if reads.files:
        options.append(ConfirmationOption(PROCEED_ALWAYS_FILE, "Always allow this file", _FILES + _list(reads.files)))
    else:
        words = _FOLDERS + _list(reads.folders)
        options.append(ConfirmationOption(PROCEED_ALWAYS_FOLDER, "Always allow this folder", words))
    return ApprovalRequired((*options, ConfirmationOption(CANCEL, "Reject", "Do not read it and tell the agent")))
