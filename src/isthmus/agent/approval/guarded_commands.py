"""Shell commands that change files on which other programs act by themselves.

A permission for the first words of a command does not cover them, as one for an edit does not cover such a file.
"""

from collections.abc import Iterable
from pathlib import Path

from isthmus.agent.approval.command_paths import command_paths
from isthmus.agent.approval.policy import is_guarded
from isthmus.agent.approval.shell_command import analyse


def changes_guarded_file(command: str, folder: Path, context_files: Iterable[str] = ()) -> bool:
    """Return whether a command that is understood names such a file in order to change it.

    ``folder`` is the absolute path of the folder in which it runs. Symbolic links are followed, which blocks for a
    moment.
    """
    analysis = analyse(command)
    if analysis is None:
        return False  # No permission for first words covers it.
    names = tuple(context_files)
    changed = [Path(path) for path in command_paths(command, analysis, folder).changed]
    # What is copied into a folder has its own name there.
    inside = [path / other.name for path in changed if path.is_dir() for other in changed]
    return any(is_guarded(path, names) for path in (*changed, *inside))
