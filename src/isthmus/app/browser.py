"""Opens a page in the local user's browser."""

import os
import sys


def open_browser(url: str) -> bool:
    """Open a page if there is a desktop (a text browser would take over this terminal); return whether it opened."""
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        import webbrowser

        return webbrowser.open(url)
    return False
