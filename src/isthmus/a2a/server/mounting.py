"""Applications that are mounted below a path of another one: paths of requests as seen from there.

As ASGI has it, ``scope["path"]`` holds the whole path, and ``root_path`` is its beginning that belongs to the mount (or
to a proxy). Deliberately not here: the URL in the card, which needs that beginning again.
"""

from urllib.parse import quote

from starlette.types import Scope


def below_mount(scope: Scope) -> Scope:
    """Return the scope of a request with its paths below ``root_path``, which always begin with one slash.

    Servers that cut the beginning off themselves are served, too.
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
