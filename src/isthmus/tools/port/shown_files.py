"""Decides by the present ignore files and rules whether single files below a folder are shown.

A search or an index that is older than the rules asks here before it shows a name.
"""

import os
from pathlib import Path

from isthmus.tools.port.workspace import Visibility, Workspace, ignore_names


class ShownFiles:
    """The rules below `folder`, a resolved path, as :meth:`Workspace.walk` applies them; for one call. Blocking."""

    def __init__(self, workspace: Workspace, folder: Path, *, git: bool = True, for_contents: bool = False) -> None:
        self._folder = folder
        self._prefix = workspace.relative_in_its_folder(folder)
        around = workspace.visibility(folder, git=git, for_contents=for_contents)
        self._inside: dict[str, Visibility | None] = {
            "": around.inside(folder, self._prefix, ignore_names(folder)),
        }

    def shows(self, path: str, *, is_folder: bool = False) -> bool:
        """Return whether an entry is shown; `path` is relative to the folder, without a slash at its end."""
        above, _, name = path.rpartition("/")
        visible = self._rules_in(above)
        slash = "/" if is_folder else ""
        return visible is not None and not visible.hides(f"{self._prefix}{path}{slash}", name + slash)

    def _rules_in(self, key: str) -> Visibility | None:
        """Return the rules inside a folder; None if it is hidden or a link."""
        if key in self._inside:
            return self._inside[key]
        missing = [key]
        while (above := missing[-1].rpartition("/")[0]) not in self._inside:
            missing.append(above)
        visible = self._inside[above]
        for inner in reversed(missing):
            name = inner.rpartition("/")[2]
            path = self._folder / inner
            if visible is not None:
                relative = f"{self._prefix}{inner}/"
                is_hidden = visible.hides(relative, f"{name}/") or os.path.islink(path)  # noqa: PTH114 - pathlib is slow
                visible = None if is_hidden else visible.inside(path, relative, ignore_names(path))
            self._inside[inner] = visible
        return visible
