"""The environment of a conversation as text for the model: date, system, programs, git, and the top of the workspace.

It is part of the first message, not of the system prompt, so that the latter stays the same and can be cached. Pure;
:mod:`isthmus.parts.session_environment` looks the facts up.
"""

from collections.abc import Sequence
from datetime import datetime

from isthmus.models.port.base import Message, Text
from isthmus.record import record

OPENING = "<environment>"
CLOSING = "</environment>"
MAXIMUM_ENTRIES = 60
"""Maximum number of names at the top of the workspace that are listed."""
MAXIMUM_CHANGES = 20
"""Maximum number of changed files that are listed."""
MAXIMUM_NAME_CHARACTERS = 120
"""Maximum length of a name or path; the end of a longer one is left out."""


@record
class GitState:
    """The state of a git repository: ``changes`` are lines of ``git status --short``, or None if it is not known."""

    branch: str
    changes: tuple[str, ...] | None = ()


@record
class Environment:
    """The facts about a session's surroundings.

    ``entries`` are the names at the top of the workspace, folders with a final slash; ``git`` is None without a
    repository.
    """

    now: datetime
    system: str
    shell: str
    programs: tuple[str, ...] = ()
    git: GitState | None = None
    entries: tuple[str, ...] = ()


def environment_text(environment: Environment) -> str:
    """Return the facts as text; everything that files or branches are named is marked as written by strangers."""
    lines = [
        OPENING,
        "As of the beginning of the conversation; look again where it matters.",
        f"Date: {environment.now:%A, %Y-%m-%d} (time zone {environment.now:%Z})",
        f"System: {environment.system}; commands run with {environment.shell}",
    ]
    if environment.programs:
        lines.append(f"Programs found: {', '.join(environment.programs)}")
    lines += ["<untrusted_context>", *_git_lines(environment.git)]
    lines += ["At the top of the workspace:", *_capped(environment.entries, MAXIMUM_ENTRIES)]
    if not environment.entries:
        lines.append("(nothing)")
    return "\n".join((*lines, "</untrusted_context>", CLOSING))


def is_environment(part: object) -> bool:
    """Return whether a part of a message is such a text."""
    return isinstance(part, Text) and part.text.startswith(f"{OPENING}\n") and part.text.endswith(f"\n{CLOSING}")


def has_environment(messages: Sequence[Message]) -> bool:
    """Return whether a conversation has such a text; it is lost when its beginning is summarised."""
    return any(is_environment(part) for message in messages if message.role == "user" for part in message.parts)


def _git_lines(git: GitState | None) -> list[str]:
    if git is None:
        return ["Git: the workspace is not in a git repository"]
    head = f"Git: {_shown(git.branch)}"
    if git.changes is None:
        return [f"{head} (its status could not be read in time)"]
    if not git.changes:
        return [f"{head}, no changes"]
    return [f"{head}, changes as in git status --short:", *_capped(git.changes, MAXIMUM_CHANGES)]


def _capped(names: Sequence[str], maximum: int) -> list[str]:
    shown = [_shown(name) for name in names[:maximum]]
    left = len(names) - len(shown)
    return [*shown, f"[{left} more]"] if left else shown


def _shown(name: str) -> str:
    # A name cannot end the block that marks it.
    plain = name.replace("<", "&lt;")
    return plain if len(plain) <= MAXIMUM_NAME_CHARACTERS else f"{plain[: MAXIMUM_NAME_CHARACTERS - 1]}…"
