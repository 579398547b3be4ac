"""Paths of requests to an application that is mounted in another one.

In ASGI ``scope["path"]`` is the whole path, and ``root_path`` is the beginning that belongs to the mount or a proxy.
"""

from urllib.parse import quote

from starlette.types import Scope


def below_mount(scope: Scope) -> Scope:
    """Return the scope of a request with its paths relative to ``root_path``; they begin with exactly one slash.

    Paths from which the server has already removed ``root_path`` are accepted, too.
    """
    root: str = scope.get("root_path", "").rstrip("/")
    path: str = scope["path"]
    if not root and not path.startswith("//"):
        return scope
    changed = {**scope, "path": _below(path, root)}
    raw: bytes | None = scope.get("raw_path")
    if raw is not None:
        text = raw.decode("latin-1").partition("?")[0]
        quoted = quote(root, safe="/:@!$&'()*+,;=~")
        changed["raw_path"] = _below(text, quoted if text.startswith(quoted) else root).encode("latin-1")
    return changed


def _below(path: str, root: str) -> str:
    if path == root or path.startswith(f"{root}/"):
        path = path[len(root) :]
    return "/" + path.lstrip("/")
