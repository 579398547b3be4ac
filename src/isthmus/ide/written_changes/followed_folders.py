"""The workspace folders that are followed: their real paths, and the paths of their files as the user knows them."""

import os
from collections.abc import Sequence
from pathlib import Path

from isthmus.record import record


@record
class FollowedFolders:
    """Workspace folders as the user named them (``shown``), their real paths, and those that are followed."""

    shown: tuple[str, ...] = ()
    real: tuple[str, ...] = ()
    followed: tuple[str, ...] = ()

    @classmethod
    def of(cls, folders: Sequence[str]) -> "FollowedFolders":
        """Resolve workspace folders. The home folder and those above it are too large to be followed."""
        home = os.path.realpath(Path.home()) + "/"
        real = tuple(os.path.realpath(folder) for folder in folders)
        followed = tuple(folder for folder in real if not home.startswith(folder.rstrip("/") + "/"))
        return cls(tuple(folders), real, tuple(dict.fromkeys(followed)))

    def shown_path(self, path: str) -> str:
        """Return the path of a file as the user knows it."""
        for real, shown in zip(self.real, self.shown, strict=True):
            if path.startswith(real.rstrip("/") + "/"):
                return shown.rstrip("/") + "/" + path[len(real.rstrip("/")) + 1 :]
        return path
