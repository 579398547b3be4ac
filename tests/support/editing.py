"""Files and reviews that tests of editors use."""

from pathlib import Path

from isthmus.ide.editor import Editor, OpenFile
from isthmus.ide.reviews.review import DiffReview


def make_file(folder: Path, name: str, content: str | bytes = "one\ntwo\nthree\n") -> str:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def delete(path: str) -> None:
    """Remove a file."""
    Path(path).unlink()


def modified_at(path: str) -> int:
    """Return the modification time in ns."""
    return Path(path).stat().st_mtime_ns


def names(folder: Path) -> list[str]:
    """Return the names in a folder."""
    return sorted(each.name for each in folder.iterdir())


def content(path: str) -> bytes:
    """Return the bytes of a file."""
    return Path(path).read_bytes()


def review(path: str, proposed: str, number: int = 1) -> DiffReview:
    """Return a review by Gemini CLI, `review-NUMBER`."""
    return DiffReview(f"review-{number}", path, proposed, "client", "Gemini CLI")


async def active(editor: Editor) -> OpenFile:
    """Return the active file; there must be one."""
    return next(file for file in await editor.open_files() if file.is_active)
