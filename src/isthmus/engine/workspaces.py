"""The folder of a session: that of its AgentSettings, if this server allows it."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isthmus.client import InvalidRequest
from isthmus.encoding.codec import JsonObject

KEY = "workspace_path"


@dataclass(frozen=True, slots=True)
class WorkspaceRule:
    """``default`` is used by sessions that name none; ``roots``, when not empty, are the only places allowed."""

    default: Path | None = None
    roots: tuple[Path, ...] = ()

    @property
    def resolved_roots(self) -> Sequence[str]:
        """The places allowed, as the paths of tasks are kept; none when all are."""
        return [str(root.resolve()) for root in self.roots]

    def allows(self, workspace: str) -> bool:
        """Return whether a session may work, and be seen, in this absolute path."""
        path = Path(workspace)
        return not self.roots or any(path.is_relative_to(root.resolve()) for root in self.roots)

    def require_inside(self, workspace: str) -> None:
        """Make sure that the workspace of a session is still where it was allowed to be.

        Raises:
            InvalidRequest: a link leads out of the allowed places now.
        """
        if self.roots and not self.allows(os.path.realpath(workspace)):
            raise InvalidRequest(
                f"the workspace {workspace} of this session leads to another place now, which is not allowed on this"
                " server; start a new session"
            )

    def choose(self, settings: JsonObject | None, known: str | None, *, required: bool) -> str:
        """Return the absolute workspace path of a session; ``known`` is what the session has already.

        Raises:
            InvalidRequest: ``workspace_path`` is missing, relative, no folder, not allowed, or differs from ``known``.
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
        if not isinstance(named, str) or not os.path.isabs(named):  # noqa: PTH117 - each task comes here; pathlib is slow
            raise InvalidRequest(f"{KEY} is {named!r}; expected an absolute path")
        try:
            path = os.path.realpath(named)
        except (OSError, ValueError) as error:
            raise InvalidRequest(f"{KEY} {named!r} cannot be a folder ({error}); name one that exists") from error
        # First of all: what there is outside is nobody's business.
        if self.roots and not any(Path(path).is_relative_to(root.resolve()) for root in self.roots):
            allowed = ", ".join(str(root) for root in self.roots)
            raise InvalidRequest(f"{KEY} {named} is not allowed on this server; allowed are {allowed} and below")
        if not os.path.isdir(path):  # noqa: PTH112 - as above
            raise InvalidRequest(f"{KEY} {named} is not a folder on this machine; name one that exists")
        if known is not None and path != known:
            raise InvalidRequest(f"{KEY} {named} differs from this session's workspace {known}; start a new session")
        return path
