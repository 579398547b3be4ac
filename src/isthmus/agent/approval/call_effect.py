"""Arguments of a call as guards compare them: with the usual names of arguments, and whole paths. Pure.

A tool also takes a path by other names, and relative to the workspace, so that a rule on ``file_path`` would miss it.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isthmus.development_tool import ConfirmationDetails, FileDiff
from isthmus.files.path_rules import expand_home
from isthmus.forms.asked_question import ASK_USER

_FILE = ("file_path", "path", "absolute_path")
_FOLDER = ("dir_path", "path")
_PATHS: Mapping[str, tuple[str, ...]] = {
    "read_file": _FILE,
    "write_file": _FILE,
    "replace": _FILE,
    "glob": _FOLDER,
    "grep_search": _FOLDER,
    "list_directory": _FOLDER,
}
"""Arguments of a tool that are its path, the usual name first."""


def effect_of(
    tool: str, arguments: Mapping[str, Any], proposal: ConfirmationDetails | None, workspace: Path
) -> Mapping[str, Any]:
    """Return the arguments of a call by their usual names, with whole paths; of an edit also the new content."""
    effect = dict(arguments)
    names = _PATHS.get(tool, ())
    given = next((effect[name] for name in names if isinstance(effect.get(name), str)), None)
    if given is not None:
        for name in names:
            effect.pop(name, None)
        effect[names[0]] = os.path.normpath(workspace / expand_home(given))
    if isinstance(proposal, FileDiff) and tool != ASK_USER:  # whose document is not a file
        effect |= {"file_path": proposal.file_path, "content": proposal.new_content}
    return effect
