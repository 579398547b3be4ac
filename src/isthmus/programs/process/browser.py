"""Opens a page in the local user's browser.

The browser gets the path of a file that leads on: whatever other users of the machine read in the list of processes is
not the link, which may let one browser in, or belong to a login.
"""

import atexit
import html
import os
import secrets
import sys
import time
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from isthmus.files.atomic import write_atomic
from isthmus.files.locations import make_private_directory, require_own_directory, runtime_directory

KEPT_SECONDS = 600.0
"""Time in seconds after which a file is removed when the next page is opened; others are removed at the end."""
_FOLDER = "pages"


def open_browser(url: str) -> bool:
    """Open a page if there is a desktop (a text browser would take over this terminal); return whether it opened.

    Only URLs of http and https are opened.
    """
    if sys.platform != "darwin" and not os.environ.get("DISPLAY") and not os.environ.get("WAYLAND_DISPLAY"):
        return False
    if urlsplit(url).scheme.lower() not in ("http", "https"):
        return False
    import webbrowser

    try:
        page = _leading_to(url)
    except OSError:
        return False
    return webbrowser.open(page.as_uri())


def _leading_to(url: str) -> Path:
    """Write a page that leads to a URL, readable by this user alone; return its path.

    Raises:
        OSError: it cannot be written, or its folder belongs to another user.
    """
    runtime = runtime_directory()
    make_private_directory(runtime / _FOLDER)
    require_own_directory(runtime)
    _remove_old(runtime / _FOLDER)
    page = runtime / _FOLDER / f"{secrets.token_hex(8)}.html"
    shown = html.escape(url, quote=True)
    text = (
        '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
        f'<meta http-equiv="refresh" content="0;url={shown}"><title>Isthmus</title><p><a href="{shown}">Go on</a></p>\n'
    )
    write_atomic(page, text.encode(), mode=0o600, through_links=False)
    atexit.register(page.unlink, missing_ok=True)
    return page


def _remove_old(folder: Path) -> None:
    for page in folder.glob("*.html"):
        with suppress(OSError):
            if page.stat().st_mtime < time.time() - KEPT_SECONDS:
                page.unlink()
