"""Names of sessions' folders, refs and branches, from ids and titles that anybody may have chosen. Pure."""

import hashlib
import re
from collections.abc import Mapping

from isthmus.worktrees.errors import WorktreeError

_PLAIN_ID = re.compile(r"[0-9a-z][0-9a-z-]{7,47}")
_HASHED = re.compile(r".*-[0-9a-f]{16}")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?")
SLUG_LENGTH = 40
BRANCHES = "isthmus/"
"""Beginning of the names of all branches that are made here."""


def session_name(user: str, context_id: str) -> str:
    """Return the name of a session's folder and refs; different for each user and id, also where case is ignored."""
    if not user and _PLAIN_ID.fullmatch(context_id) and not _HASHED.fullmatch(context_id):
        return context_id
    whole = f"{len(user)}:{user}{context_id}".encode("utf-8", "surrogatepass")
    return f"{slug(context_id)[:16].strip('-') or 'session'}-{hashlib.sha256(whole).hexdigest()[:16]}"


def slug(text: str) -> str:
    """Return a text as words of lower-case ASCII letters and digits with dashes; empty if nothing of it is left."""
    words = re.findall(r"[a-z0-9]+", text[:1000].lower())
    short = ""
    for word in words:
        longer = f"{short}-{word}" if short else word[:SLUG_LENGTH]
        if len(longer) > SLUG_LENGTH:
            break
        short = longer
    return short


def session_ref(session: str) -> str:
    """Return the hidden ref of a session's last checkpoint, here and in the remote repository."""
    return f"refs/isthmus/sessions/{session}"


def result_ref(session: str) -> str:
    """Return the hidden ref of the last commit that was put on the session's branch."""
    return f"refs/isthmus/results/{session}"


def result_branch(session: str, title: str) -> str:
    """Return the name of the branch with the work of a session: its title and the beginning of its id."""
    return f"{BRANCHES}{'-'.join(part for part in (slug(title), _short(session)) if part)}"


def result_branches(session: str) -> str:
    """Return the pattern of the refs of all branches that :func:`result_branch` names for a session, by any title."""
    return f"refs/heads/{BRANCHES}*{_short(session)}"


def branch_at(refs: Mapping[str, str], commit: str) -> str | None:
    """Return the first branch among these refs that is at a commit; None if there is none."""
    found = (name for name, value in refs.items() if value == commit and name.startswith("refs/heads/"))
    return next((name.removeprefix("refs/heads/") for name in found), None)


def _short(session: str) -> str:
    return session[-8:] if _HASHED.fullmatch(session) else session[:8].rstrip("-")


def check_worktree_name(name: str) -> str:
    """Return the name that a user gave to a worktree.

    Raises:
        WorktreeError: it cannot be the name of a folder and of a branch.
    """
    if not _NAME.fullmatch(name) or ".." in name or name.endswith(".lock"):
        raise WorktreeError(
            f"{name[:80]!r} cannot be the name of a worktree: expected up to 64 letters, digits, dashes, underscores"
            " and dots, as in fix-login. A prompt comes before --worktree, or with -p"
        )
    return name
