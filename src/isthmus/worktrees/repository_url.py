"""Repositories as operators name them: ``git+URL[#ref]``. Pure."""

import hashlib
import re
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from isthmus.record import record
from isthmus.worktrees.errors import WorktreeError
from isthmus.worktrees.names import slug

PREFIX = "git+"
_SCHEMES = ("https", "http", "ssh", "file")
_SHORT_SSH = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:(?![/:]{2})[^:]\S*")
_HOST = re.compile(r"[A-Za-z0-9\[][A-Za-z0-9.:\]_-]*")
_UNFIT_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|/\.|\.lock(?:/|$)")
MAXIMUM_LENGTH = 2000


@record
class RepositoryUrl:
    """A repository and the branch, tag or commit at which sessions begin; None for its default branch."""

    url: str
    ref: str | None = None

    @property
    def folder_name(self) -> str:
        """Name of its folder on this machine: readable, and different for each URL."""
        last = PurePosixPath(unquote(re.split(r"[/:]", self.url.rstrip("/"))[-1])).name.removesuffix(".git")
        return f"{slug(last) or 'repository'}-{hashlib.sha256(self.url.encode()).hexdigest()[:12]}"

    @property
    def uses_ssh(self) -> bool:
        """Whether git reaches it by ssh."""
        return not self.url.startswith(("https://", "http://", "file://"))


def parse_repository(text: str) -> RepositoryUrl:
    """Read ``git+https://host/path.git#ref``, ``git+ssh://...``, ``git+user@host:path``, ``git+file:///path``.

    Raises:
        WorktreeError: it is not one of these, or contains a password.
    """
    shown = repr(text[:200])
    if not text.startswith(PREFIX) or len(text) > MAXIMUM_LENGTH or not text.isprintable() or " " in text:
        raise _unfit(shown)
    url, mark, ref = text.removeprefix(PREFIX).partition("#")
    if mark:
        check_ref(ref)
    if url.startswith("/"):
        url = f"file://{url}"
    scheme, separator, _ = url.partition("://")
    if not separator:
        if not _SHORT_SSH.fullmatch(url):
            raise _unfit(shown)
    elif scheme not in _SCHEMES:
        raise _unfit(shown)
    else:
        _check_parts(url, scheme, shown)
    return RepositoryUrl(url, ref if mark else None)


def check_ref(ref: str) -> None:
    """Check the name of a branch, tag or commit by git's rules for names.

    Raises:
        WorktreeError: git would not take it, or would take it for an option.
    """
    if ref in ("", "@") or ref.startswith(("-", "/", ".")) or ref.endswith(("/", ".")) or _UNFIT_IN_REF.search(ref):
        raise WorktreeError(f"{ref[:100]!r} behind # is not the name of a branch, tag or commit")


def _check_parts(url: str, scheme: str, shown: str) -> None:
    try:
        parts = urlsplit(url)
        host, password = parts.hostname or "", parts.password
        _ = parts.port
    except ValueError as error:
        raise _unfit(shown) from error
    if password is not None:
        raise WorktreeError(
            "the URL of a repository contains a password, which its users would see: leave it out, and give git the"
            " password by a credential helper (git help credentials) or a key of ssh"
        )
    is_file = scheme == "file"
    named = parts.path.strip("/")
    if not named or (is_file and host) or (not is_file and not _HOST.fullmatch(host)) or parts.query:
        raise _unfit(shown)
    if (parts.username or "").startswith("-"):
        raise _unfit(shown)


def _unfit(shown: str) -> WorktreeError:
    return WorktreeError(
        f"{shown} is not a repository: expected git+https://HOST/PATH, git+ssh://USER@HOST/PATH, git+USER@HOST:PATH"
        " or git+file:///PATH, and #REF behind it for a branch, tag or commit"
    )
