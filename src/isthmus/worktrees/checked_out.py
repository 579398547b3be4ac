"""The branch that is checked out in a folder, from the files of git alone: nothing is run."""

from pathlib import Path

LONGEST_GIT_FILE = 4096
"""Maximum number of bytes that are read of a file."""


def branch_of(folder: Path) -> str:
    """Return the git branch that is checked out in a folder, or the beginning of a commit; empty without one."""
    for place in (folder, *folder.parents):
        git = place / ".git"
        try:
            if git.is_file():
                pointer = _beginning(git).removeprefix("gitdir:").strip()
                git = place / pointer
            head = _beginning(git / "HEAD").strip()
        except (OSError, ValueError):
            continue
        return head.removeprefix("ref: refs/heads/") if head.startswith("ref: ") else head[:7]
    return ""


def _beginning(path: Path) -> str:
    if not path.is_file():  # reading a pipe would not end
        raise FileNotFoundError(path)
    with path.open("rb") as file:
        return file.read(LONGEST_GIT_FILE).decode("utf-8", "replace")
