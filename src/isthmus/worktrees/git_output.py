"""Reads what git prints. Pure."""

import re
from collections.abc import Iterable

from isthmus.record import record

_OBJECT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


def is_object_id(text: str) -> bool:
    """Return whether a text is the whole id of an object: 40 or 64 hexadecimal digits."""
    return _OBJECT.fullmatch(text) is not None


def is_version_at_least(said: str, wanted: tuple[int, int]) -> bool:
    """Return whether the output of ``git version`` states this version or a later one."""
    found = re.search(r"(\d{1,4})\.(\d{1,4})", said)
    return found is not None and (int(found[1]), int(found[2])) >= wanted


def read_remote_refs(listed: str) -> dict[str, str]:
    """Read the objects of refs in the output of ``git ls-remote``, by ref."""
    lines = (line.partition("\t") for line in listed.splitlines())
    return {name: value for value, _, name in lines if is_object_id(value)}


@record
class RefusedRef:
    """A ref that was not pushed, and the reason."""

    ref: str
    reason: str


def read_refused(printed: str) -> tuple[RefusedRef, ...]:
    """Read the refused refs in the output of ``git push --porcelain``."""
    found: list[RefusedRef] = []
    for line in printed.splitlines():
        flag, _, rest = line.partition("\t")
        if flag == "!" and "\t" in rest:
            names, _, reason = rest.partition("\t")
            found.append(RefusedRef(names.rpartition(":")[2], reason))
    return tuple(found)


@record
class LinkedWorktree:
    """A worktree in the list of a repository. ``branch`` is the full name of its branch; None if it is on none."""

    path: str
    branch: str | None
    is_bare: bool = False


def read_worktrees(listed: str) -> tuple[LinkedWorktree, ...]:
    """Read the output of ``git worktree list --porcelain -z``; the first one is the repository's own."""
    found: list[LinkedWorktree] = []
    for entry in listed.split("\0\0"):
        fields = _fields(entry.split("\0"), " ")
        if "worktree" in fields:
            found.append(LinkedWorktree(fields["worktree"], fields.get("branch"), "bare" in fields))
    return tuple(found)


REF_FORMAT = "%(refname)%00%(objectname)%00%(tree)%00%(contents)%00%00"
"""Format of ``git for-each-ref`` that :func:`read_commits` reads."""


@record
class KnownCommit:
    """A commit that a ref of the mirror names."""

    commit: str
    tree: str
    message: str


def read_commits(listed: str) -> dict[str, KnownCommit]:
    """Read the commits of refs, by ref."""
    found: dict[str, KnownCommit] = {}
    for entry in listed.split("\0\0"):
        fields = entry.lstrip("\n").split("\0", 3)
        if len(fields) == 4:
            found[fields[0]] = KnownCommit(*fields[1:])
    return found


BASE = "Isthmus-Base"
HEAD = "Isthmus-Head"


@record
class CheckpointNote:
    """Note in the message of a checkpoint: the commit in which the session began, and the last one made in it."""

    base: str
    head: str

    def message(self, about: str) -> str:
        """Return the message of the checkpoint's commit."""
        subject = " ".join(about.split())[:72] or "Checkpoint of a session"
        return f"{subject}\n\n{BASE}: {self.base}\n{HEAD}: {self.head}\n"


def read_checkpoint_note(message: str) -> CheckpointNote | None:
    """Read the note in a commit's message; None if it is not a checkpoint's."""
    lines = _fields(message.splitlines(), ": ")
    base, head = lines.get(BASE, ""), lines.get(HEAD, "")
    return CheckpointNote(base, head) if is_object_id(base) and is_object_id(head) else None


def _fields(lines: Iterable[str], separator: str) -> dict[str, str]:
    parts = (line.partition(separator) for line in lines)
    return {name: value for name, _, value in parts if name}
