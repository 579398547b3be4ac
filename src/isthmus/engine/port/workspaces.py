"""The workspace of a session: the folder that its AgentSettings name, if this server allows it."""

import os
from collections.abc import Sequence
from pathlib import Path

from isthmus.client import InvalidRequest
from isthmus.development_tool import ADDITIONAL_DIRECTORIES
from isthmus.encoding.codec import JsonObject
from isthmus.record import record

KEY = "workspace_path"
REPOSITORY = "/git:"
"""Beginning of the workspace of sessions that work in a repository of the server; its name follows."""
NO_FOLDER = ""
"""Workspace of a session in which only commands were executed that need no folder; its first prompt brings one."""


@record
class WorkspaceRule:
    """The allowed workspaces: ``roots`` and below, or any if empty. ``default`` is for sessions that name none.

    Those in and below ``elsewhere`` need not be on this machine. ``repositories`` are names of workspaces without
    a folder, :data:`REPOSITORY` with a name: the agent makes a folder for each session.
    """

    default: Path | None = None
    roots: tuple[Path, ...] = ()
    elsewhere: tuple[Path, ...] = ()
    repositories: tuple[str, ...] = ()

    @property
    def resolved_roots(self) -> Sequence[str]:
        """The allowed roots, resolved like the workspace paths of tasks; empty if every folder is allowed."""
        return [*(str(root.resolve()) for root in self.roots), *(self.repositories if self.roots else ())]

    def allows(self, workspace: str) -> bool:
        """Return whether a session may work, and be seen, in the folder of this absolute path."""
        if workspace == NO_FOLDER or workspace in self.repositories:
            return True
        path = Path(workspace)
        return not self.roots or any(path.is_relative_to(root.resolve()) for root in self.roots)

    def require_inside(self, workspace: str) -> None:
        """Check that the workspace of a session is still inside the allowed folders.

        Raises:
            InvalidRequest: a link now leads out of the allowed folders.
        """
        if workspace == NO_FOLDER or workspace in self.repositories or not self.roots:
            return
        if not self.allows(os.path.realpath(workspace)):
            raise InvalidRequest(
                f"the workspace {workspace} of this session now leads to a folder that is not allowed on this server;"
                " start a new session"
            )

    @property
    def _known_repositories(self) -> str:
        return f"it has {', '.join(self.repositories)}" if self.repositories else "it has none (serve --repository)"

    def check_further(self, folders: Sequence[str], workspace: str) -> None:
        """Check the further folders of a session in ``workspace``: the same holds for them as for a workspace.

        Raises:
            InvalidRequest: one is relative, not a folder, or not allowed.
        """
        if folders and workspace in self.repositories:
            raise InvalidRequest(
                f"{ADDITIONAL_DIRECTORIES}: a session in a repository works in its own folder alone; leave it out"
            )
        for folder in folders:
            self._place_of(ADDITIONAL_DIRECTORIES, folder)

    def choose(self, settings: JsonObject | None, known: str | None, *, required: bool) -> str:
        """Return the absolute workspace path of a session; ``known`` is the path that the session already has.

        Raises:
            InvalidRequest: ``workspace_path`` is missing, relative, not a folder, not allowed, or not ``known``.
        """
        named = None if settings is None else settings.get(KEY, settings.get("workspacePath"))
        if named is None:
            if known is not None:
                self.require_inside(known)
                return known
            if self.default is None or required:
                raise InvalidRequest(
                    f"{KEY} is missing: the first message of a session carries AgentSettings with the absolute path"
                    " of its workspace in the message's metadata"
                )
            return str(self.default)
        if isinstance(named, str) and named in self.repositories:
            if known is not None and named != known:
                raise InvalidRequest(
                    f"{KEY} {named} differs from this session's workspace {known}; start a new session"
                )
            return named
        path = self._place_of(KEY, named)
        if known is not None and path != known:
            raise InvalidRequest(f"{KEY} {named} differs from this session's workspace {known}; start a new session")
        return path

    def _place_of(self, key: str, named: object) -> str:
        """Return a folder that AgentSettings name under ``key``, without links."""
        if not isinstance(named, str) or not os.path.isabs(named):  # noqa: PTH117 - each task comes here; pathlib is slow
            raise InvalidRequest(f"{key} is {named!r}; expected an absolute path")
        if named.startswith(REPOSITORY):
            raise InvalidRequest(
                f"{key} {named[:100]} does not name a repository of this server; {self._known_repositories}"
            )
        try:
            path = os.path.realpath(named)
        except (OSError, ValueError) as error:
            raise InvalidRequest(f"{key} {named!r} cannot be a folder ({error}); name one that exists") from error
        # Checked first, so as not to reveal which folders exist outside.
        place = Path(path)
        # A root that a path without links begins with has no links either.
        if self.roots and not any(
            place.is_relative_to(root) or place.is_relative_to(root.resolve()) for root in self.roots
        ):
            allowed = ", ".join(str(root) for root in self.roots)
            besides = f", and the repositories {', '.join(self.repositories)}" if self.repositories else ""
            raise InvalidRequest(
                f"{key} {named} is not allowed on this server; allowed are {allowed} and below{besides}"
            )
        is_elsewhere = any(Path(path).is_relative_to(folder) for folder in self.elsewhere)
        if not is_elsewhere and not os.path.isdir(path):  # noqa: PTH112 - as above
            raise InvalidRequest(f"{key} {named} is not a folder on this machine; name one that exists")
        return path
