"""Paths of requests below the place where the server is reached: a mount, or the path of its address at a proxy.

A proxy may remove the path of the public address or leave it; both are served. Sans-I/O.
"""

from typing import Any
from urllib.parse import unquote, urlsplit

from starlette.types import Scope

_FIRST_SEGMENTS = frozenset({"tasks", "v1", "ui", ".well-known"})
"""First segments of own paths that have others below them."""


def public_path(public_url: str | None) -> str:
    """Return the path of the public address as it is sent, without the slash at its end; empty without one."""
    return "" if public_url is None else urlsplit(public_url).path.rstrip("/")


def served_path(public_url: str | None) -> str:
    """Return the path, not quoted, that may stand before every own path; empty if there is none.

    A public path such as ``/tasks/`` cannot: whether a proxy has removed it would not be known.
    """
    path = unquote(public_path(public_url))
    return "" if path[1:].partition("/")[0] in _FIRST_SEGMENTS else path


def below_mount(scope: Scope, before: str) -> Scope:
    """Return the scope of a request with its paths relative to ``root_path``, and without ``before`` if it is there.

    They begin with exactly one slash. In ASGI ``scope["path"]`` is the whole path, and ``root_path`` its beginning,
    which belongs to a mount or a proxy. Paths from which it has already been removed are accepted, too.
    """
    root: str = scope.get("root_path", "").rstrip("/")
    path: str = scope["path"]
    if not root and not before and not path.startswith("//"):
        return scope
    changed: dict[str, Any] = {**scope, "path": _below(_below(path, root), before)}
    raw: bytes | None = scope.get("raw_path")
    if raw is not None:
        text = raw.decode("latin-1").partition("?")[0]
        changed["raw_path"] = _below_quoted(_below_quoted(text, root), before).encode("latin-1")
    return changed


def _below_quoted(text: str, root: str) -> str:
    """Return a quoted path below ``root``, which is not quoted: there are several ways to quote it."""
    *segments, rest = (text + "/").split("/", root.count("/") + 1)
    is_below = unquote("/".join(segments)) == root
    return "/" + (rest.removesuffix("/") if is_below else text).lstrip("/")


def _below(path: str, root: str) -> str:
    if path == root or path.startswith(f"{root}/"):
        path = path[len(root) :]
    return "/" + path.lstrip("/")
