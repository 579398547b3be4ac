"""The difference of two commits as text that ``git apply`` takes, whatever the files contain."""

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from isthmus.worktrees.errors import GitOutputTooLargeError
from isthmus.worktrees.git_program import Git
from isthmus.worktrees.mirror import Mirror

MAXIMUM_PATCH_BYTES = 1024 * 1024
"""Maximum size of a patch in bytes, unless another is given."""
_DIFF = (
    *("diff", "--binary", "--full-index", "--no-color", "--no-ext-diff", "--no-textconv", "--no-renames"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--ignore-submodules=none"),
)


async def patch_between(mirror: Mirror, git: Git, base: str, commit: str, maximum: int) -> str | None:
    """Return the patch from one commit to another; None if it is larger than ``maximum`` bytes.

    Files that are not UTF-8 are in the binary form, so that the patch is text.

    Raises:
        WorktreeError: git failed.
    """
    try:
        patch = await git.output(
            f"--git-dir={mirror.path}", *_DIFF, base, commit, folder=mirror.folder, maximum=maximum
        )
        try:
            return patch.decode("utf-8")
        except UnicodeDecodeError:
            return await _binary_patch(mirror, git, base, commit, maximum)
    except GitOutputTooLargeError:
        return None


async def _binary_patch(mirror: Mirror, git: Git, base: str, commit: str, maximum: int) -> str:
    """Return a patch in which every file is in the binary form: by a repository with an attribute that says so."""
    with TemporaryDirectory(prefix="patch-", dir=mirror.folder) as made:
        place = Path(made) / "git"
        await git.text("init", "--bare", "--quiet", "--template=", str(place), folder=mirror.folder)
        await asyncio.to_thread(_borrow, place, mirror.path)
        patch = await git.output(f"--git-dir={place}", *_DIFF, base, commit, folder=mirror.folder, maximum=maximum)
        return patch.decode("utf-8", "backslashreplace")


def _borrow(place: Path, mirror: Path) -> None:
    (place / "info").mkdir(exist_ok=True)
    (place / "info" / "attributes").write_text("* -diff\n", "utf-8")
    (place / "objects" / "info").mkdir(exist_ok=True)
    (place / "objects" / "info" / "alternates").write_text(f"{mirror / 'objects'}\n", "utf-8")
