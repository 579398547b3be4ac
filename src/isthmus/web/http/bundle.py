"""The files of the page, as ``make frontend`` builds them into this package. Read once; a path is a key, not a path.

Every file is served with headers that let the page load nothing from elsewhere and run no script but its own.
"""

import gzip
import hashlib
import html
import mimetypes
import re
from collections.abc import Mapping
from importlib import resources
from importlib.resources.abc import Traversable

from isthmus.errors import IsthmusError
from isthmus.record import record

ROOT = "/ui/"
"""Path below which the page is served."""
MISSING = (
    "the page of the workbench is not built: run `make frontend` in the checkout (it fetches Node by itself), or"
    " install a wheel, which has it"
)
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self';"
    " manifest-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
}
_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
    ".json": "application/json",
}
_ENTRY = re.compile(rb'<script type="module"[^>]* src="((?:/[^"/]+)*/ui/assets/[\w.-]+)"')
_LINK = re.compile(rb'(?<=(?: src|href)=")(?=/ui/)')
"""Place in the page before the path of one of its files."""
_HASHED = "assets/"
"""Folder of the files whose names contain a hash of their content."""


class BundleMissingError(IsthmusError):
    """Raised when the page is not built; the text says what to do."""


@record
class PageFile:
    """A file of the page. ``compressed`` is its content in gzip; ``is_fixed``: its name changes with its content."""

    content: bytes
    compressed: bytes
    media_type: str
    etag: str
    is_fixed: bool

    @property
    def headers(self) -> dict[str, str]:
        """All headers of a response with this file, but for the encoding."""
        lasting = "public, max-age=31536000, immutable" if self.is_fixed else "no-cache"
        return {**HEADERS, "Cache-Control": lasting, "ETag": self.etag, "Vary": "Accept-Encoding"}


_WITH_IDS = tuple(f"{ROOT}{kind}/" for kind in ("session", "task", "question", "diff", "written"))


@record
class Bundle:
    """The files of the page by their URL paths."""

    files: Mapping[str, PageFile]

    @property
    def entry(self) -> str:
        """URL path of the script that the page begins with, which changes with the bundle; empty if there is none."""
        page = self.files.get(f"{ROOT}index.html")
        found = _ENTRY.search(page.content) if page is not None else None
        return found[1].decode() if found is not None else ""

    def below(self, path: str) -> "Bundle":
        """Return the bundle of a server whose address has a path, such as ``/agent``: the page links to files below it.

        All other files find their place by their own address.
        """
        name = f"{ROOT}index.html"
        page = self.files.get(name)
        if page is None or not path:
            return self
        before = html.escape(path).encode()
        content = _LINK.sub(lambda _: before, page.content)
        return Bundle({**self.files, name: _page_file("index.html", content)})

    def find(self, path: str) -> PageFile | None:
        """Return the file at a URL path; the page itself for each of its own addresses.

        Only addresses with an id, such as ``/ui/session/ID``, may have a dot.
        """
        if (file := self.files.get(path)) is not None:
            return file
        is_address = path.startswith(_WITH_IDS) or (path.startswith(ROOT) and "." not in path and "//" not in path)
        return self.files.get(f"{ROOT}index.html") if is_address else None


def read_bundle(folder: Traversable | None = None) -> Bundle:
    """Return the page in a folder, by default the one in this package. Blocking.

    Raises:
        BundleMissingError: it is not built.
    """
    top = resources.files("isthmus.web") / "ui" if folder is None else folder
    if not (top / "index.html").is_file():
        raise BundleMissingError(MISSING)
    return Bundle({f"{ROOT}{name}": _page_file(name, data) for name, data in _files(top)})


def _files(folder: Traversable, above: str = "") -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir():
        name = f"{above}{entry.name}"
        if entry.is_dir():
            found += _files(entry, f"{name}/")
        elif entry.is_file():
            found.append((name, entry.read_bytes()))
    return found


def _page_file(name: str, data: bytes) -> PageFile:
    suffix = name[name.rfind(".") :] if "." in name else ""
    kind = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
    digest = hashlib.sha256(data).hexdigest()[:32]
    return PageFile(data, gzip.compress(data, 9, mtime=0), kind, f'"{digest}"', name.startswith(_HASHED))
