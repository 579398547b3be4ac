"""Judges what a command changed in a throw-away copy of its folder: applied unasked, shown in a question, or refused.

Pure. Refused means that the changes are thrown away, and that the user is asked about the command itself. All that is
not certain is refused, or shown.
"""

import posixpath
import re
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import PurePosixPath

from isthmus.files.made_folders import MADE_FOLDERS
from isthmus.files.private_files import is_private
from isthmus.record import record
from isthmus.sandbox.guarded_paths import effect_of

MAXIMUM_DEPTH = 40
"""Maximum number of names in a changed path."""
MAXIMUM_CHANGES = 2_000
"""Maximum number of changed paths."""
PACKAGES = frozenset(
    {
        *("node_modules", "bower_components", "vendor", "Pods", "site-packages", ".venv", "venv", ".direnv", ".tox"),
        *(".nox", ".yarn", ".pnpm-store", ".terraform", ".bundle", "elm-stuff", ".eggs"),
    }
)
"""Names of folders with programs that later runs load: nothing in them is applied unasked."""
MOUNTED = PACKAGES - {"vendor", "Pods", ".bundle", "elm-stuff", ".eggs"}
"""Names of folders of packages that are large, so that their originals are mounted and not copied."""
_CACHES = frozenset(
    {
        *(
            ".pytest_cache",
            ".mypy_cache",
            ".ruff_cache",
            ".hypothesis",
            ".cache",
            "htmlcov",
            ".gradle",
            ".next",
            ".nuxt",
        ),
        *(".svelte-kit", ".parcel-cache", ".turbo", ".angular", ".vite", ".dart_tool", "CMakeFiles", ".stack-work"),
    }
)
"""Names of folders that programs keep for themselves, also where no ignore file names them."""
BUILD_FOLDERS = MADE_FOLDERS - PACKAGES - {"bin"}
"""Names of folders whose files count as build outputs where git ignores them."""
_BUILD_FILES = re.compile(
    r"\.coverage(?:\..+)?|coverage\.xml|junit[\w.-]*\.xml|\.eslintcache|\.stylelintcache|.+\.tsbuildinfo|.+\.(?:log|o|obj|d)"
)
"""Names of files that count as build outputs anywhere if git ignores them."""
_BYTECODE = re.compile(r".+\.py[co]")
_SPECIAL_BITS = 0o7000
_PLAIN_NAME = re.compile(r"[^\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]+")


class Kind(StrEnum):
    """Kind of an entry of a folder."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"
    """A device, a pipe or a socket."""


@record
class EntryState:
    """An entry of a folder: ``mode`` are its bits, ``content`` is the digest of a file, or the target of a link."""

    kind: Kind
    mode: int = 0o644
    content: str = ""
    size: int = 0


@record
class TriedChange:
    """A changed entry; ``path`` is relative to the workspace, with forward slashes. None: there was, or is, nothing."""

    path: str
    before: EntryState | None
    after: EntryState | None


@record
class ChangeFacts:
    """Facts about changed paths, from the folder as it was before the command.

    Attributes:
        ignored: the paths that git ignores and does not track.
        packages: the paths in environments and other folders of packages, whatever their names are.
        links: all symbolic links after the command.
        context_files: names of further files that instruct the agent.
    """

    ignored: frozenset[str] = frozenset()
    packages: frozenset[str] = frozenset()
    links: frozenset[str] = frozenset()
    context_files: tuple[str, ...] = ()


@record
class Judgement:
    """Changes by what becomes of them; those that are neither are thrown away. ``refusal`` says why nothing counts."""

    shown: tuple[TriedChange, ...] = ()
    built: tuple[TriedChange, ...] = ()
    refusal: str = ""

    @property
    def applied(self) -> tuple[TriedChange, ...]:
        """The changes that are applied once nothing is asked, or the user has agreed."""
        return () if self.refusal else (*self.shown, *self.built)


def judge(changes: Iterable[TriedChange], facts: ChangeFacts) -> Judgement:
    """Return what becomes of the changes of a command."""
    listed = sorted(changes, key=lambda change: change.path)
    if len(listed) > MAXIMUM_CHANGES:
        return Judgement(refusal=f"it would change {len(listed)} files and folders")
    for change in listed:
        if reason := _refusal(change, facts):
            return Judgement(refusal=f"{reason}: {_visible(change.path)}")
    kept = [change for change in listed if not _is_dropped(change)]
    built = tuple(change for change in kept if _is_built(change, facts))
    shown = tuple(change for change in kept if change not in built)
    return Judgement(shown, built)


def _refusal(change: TriedChange, facts: ChangeFacts) -> str:
    """Return why a change is never applied from a copy; empty if it may be."""
    path, before, after = change.path, change.before, change.after
    if not path or path.startswith("/") or posixpath.normpath(path) != path or ".." in path.split("/"):
        return "it would change a path outside of the folder"
    if len(path.split("/")) > MAXIMUM_DEPTH or not _PLAIN_NAME.fullmatch(path):
        return "it would change a path that cannot be shown well"
    if is_closed(path, facts.context_files):
        return "it would change a file that is asked about each time"
    if Kind.OTHER in {state.kind for state in (before, after) if state is not None}:
        return "it would make a device, a pipe or a socket"
    if before is not None and after is not None and before.kind is not after.kind:
        return "it would replace a file, folder or link by another kind of it"
    if after is not None and after.mode & _SPECIAL_BITS:
        return "it would set the user, the group or the sticky bit"
    if after is not None and after.kind is Kind.LINK and not _stays_inside(path, after.content, facts):
        return "it would make a link that may lead out of the folder"
    parts = path.split("/")
    if any("/".join(parts[:count]) in facts.links for count in range(1, len(parts))):
        return "it would write through a link"
    return ""


def is_closed(path: str, context_files: Sequence[str] = ()) -> bool:
    """Return whether programs act on a file by themselves, or it may hold secrets; ``path`` is relative."""
    pure = PurePosixPath(path)
    if effect_of(pure, context_files) is not None or is_private((f"/{path}",)):
        return True
    return any(part.casefold() in (".git", ".isthmus", ".gemini") for part in pure.parts)


def _stays_inside(path: str, target: str, facts: ChangeFacts) -> bool:
    """Return whether a link leads to a plain path in the folder, through no other link."""
    if not target or target.startswith("/") or not _PLAIN_NAME.fullmatch(target):
        return False
    place = posixpath.dirname(path)
    current = [part for part in place.split("/") if part]
    for part in target.split("/"):
        if part in ("", "."):
            continue
        if part == "..":
            if not current:
                return False
            current.pop()
            continue
        current.append(part)
        if "/".join(current) in facts.links:
            return False
    return bool(current) and not is_closed("/".join(current), facts.context_files)


def _is_dropped(change: TriedChange) -> bool:
    """Return whether a change is bytecode, which could do anything, and which Python makes again."""
    if change.after is None:
        return False
    parts = change.path.split("/")
    return "__pycache__" in parts or _BYTECODE.fullmatch(parts[-1]) is not None


def _is_built(change: TriedChange, facts: ChangeFacts) -> bool:
    parts = change.path.split("/")
    if change.path in facts.packages or not PACKAGES.isdisjoint(parts):
        return False
    if change.path not in facts.ignored and not _CACHES.intersection(parts):
        return False
    if _CACHES.intersection(parts):
        return True
    is_folder = (change.after or change.before or EntryState(Kind.OTHER)).kind is Kind.FOLDER
    folders = parts if is_folder else parts[:-1]
    if any(part in BUILD_FOLDERS or part.endswith((".egg-info", ".dist-info")) for part in folders):
        return True
    after = change.after
    return not is_folder and not (after and after.mode & 0o111) and _BUILD_FILES.fullmatch(parts[-1]) is not None


def _visible(path: str) -> str:
    return "".join(character if _PLAIN_NAME.fullmatch(character) else "\ufffd" for character in path)[:200]


def stale_paths(changes: Iterable[TriedChange], now: "dict[str, EntryState | None]") -> tuple[str, ...]:
    """Return the changed paths that are no longer as they were when the command was tried."""
    return tuple(change.path for change in changes if _comparable(now.get(change.path)) != _comparable(change.before))


def _comparable(state: EntryState | None) -> object:
    if state is None:
        return None
    if state.kind is Kind.FOLDER:
        return state.kind
    return state.kind, state.mode if state.kind is Kind.FILE else 0, state.content


def in_order(changes: Iterable[TriedChange]) -> tuple[TriedChange, ...]:
    """Return changes in an order in which they can be applied: what is made first, outer folders before inner ones."""
    listed = sorted(changes, key=lambda change: change.path)
    made = [change for change in listed if change.after is not None]
    gone = [change for change in reversed(listed) if change.after is None]
    return (*made, *gone)
