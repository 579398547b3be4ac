"""Conversion of Sublime Text's views and folders to the forms of docs/reference/editor-port.md, and back."""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

import sublime


def text_of(view):
    """Return the text of a view."""
    return view.substr(sublime.Region(0, view.size()))


def folders_of_all_windows():
    """Return the paths of the open folders."""
    return list(dict.fromkeys(folder for window in sublime.windows() for folder in window.folders()))


def folder_of(path):
    """Return a folder in the protocol's form."""
    return {"uri": Path(path).as_uri(), "name": os.path.basename(path)}


def path_of(uri):
    """Return the path of a file URI."""
    return unquote(urlsplit(uri).path, errors="surrogateescape")


def view_of(path):
    """Return the view that shows a file, or None."""
    found = (window.find_open_file(path) for window in sublime.windows())
    return next((view for view in found if view is not None), None)


def place_of(view, point):
    """Return a position in a view in the protocol's form."""
    line, character = view.rowcol(point)
    return {"line": line, "character": character}


def text_on_disk(path):
    """Return the text of a file, as a view has it; empty if it cannot be read."""
    try:
        with open(path, encoding="utf-8-sig", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
