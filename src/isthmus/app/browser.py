"""Shows a page to the user at this machine."""

import os
import sys


def open_browser(url: str) -> bool:
    """Show a page, where there are windows: a browser for terminals would take this one over. False: it was not."""
    if sys.platform == "darwin" or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        import webbrowser

        return webbrowser.open(url)
    return False
