"""Facts about what was changed in a copy, from the folder as it was before. Blocks."""

from collections.abc import Callable, Iterator

from isthmus.tools.port.workspace import Workspace
from isthmus.tools.shell.trials.copying import FolderCopy, FoundChanges, is_package
from isthmus.tools.shell.trials.effect import ChangeFacts


def facts_of(
    copy: FolderCopy, found: FoundChanges, workspace: Workspace, context_files: tuple[str, ...] = ()
) -> ChangeFacts:
    """Return the facts; ignore files count as they were before the command."""
    paths = [change.path for change in found.changes]
    visible = workspace.visibility(workspace.root, gemini=False)
    tracked = copy.tracked
    ignored = frozenset(
        path
        for path in paths
        if tracked is not None
        and str(copy.root / path) not in tracked
        and workspace.ignored_entry(copy.root / path / "x", visible) is not None
    )
    packages = frozenset(path for path in paths if any(map(_is_package(copy), _around(path))))
    return ChangeFacts(ignored, packages, found.links, context_files)


def _is_package(copy: FolderCopy) -> Callable[[str], bool]:
    return lambda path: is_package(copy.root / path) or is_package(copy.place / path)


def _around(path: str) -> Iterator[str]:
    """Yield a path and the folders around it."""
    parts = path.split("/")
    return ("/".join(parts[:count]) for count in range(1, len(parts) + 1))
