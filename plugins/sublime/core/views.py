"""Views and folders of Sublime Text as docs/reference/editor-port.md has them, and back."""

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

import sublime


def text_of(view):
    return view.substr(sublime.Region(0, view.size()))


def folders_of_all_windows():
    return list(dict.fromkeys(folder for window in sublime.windows() for folder in window.folders()))


def folder_of(path):
    return {"uri": Path(path).as_uri(), "name": os.path.basename(path)}


def path_of(uri):
    return unquote(urlsplit(uri).path, errors="surrogateescape")


def view_of(path):
    found = (window.find_open_file(path) for window in sublime.windows())
    return next((view for view in found if view is not None), None)


def place_of(view, point):
    line, character = view.rowcol(point)
    return {"line": line, "character": character}


def text_on_disk(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
