"""Isthmus for Sublime Text 4: agent CLIs see your files and selection, and you review their edits in a tab.

Sublime Text loads this file of the package Packages/Isthmus/; `core` does the work. It starts `isthmus companion
--editor stdio` and speaks the protocol of docs/reference/editor-port.md with it. Python 3.8, Sublime's API and the
standard library only. No file is written.
"""

import sublime
import sublime_plugin

from .core.editor import SETTINGS, Editor
from .core.reviews import REVIEW

EDITOR = Editor()


def plugin_loaded():
    """Start the companion when Sublime Text loads the plugin, unless the settings say otherwise."""
    if sublime.load_settings(SETTINGS).get("start_with_sublime", True):
        EDITOR.start()


def plugin_unloaded():
    """Stop the companion."""
    EDITOR.stop()


class IsthmusStartCommand(sublime_plugin.ApplicationCommand):
    def run(self):
        EDITOR.start()


class IsthmusStopCommand(sublime_plugin.ApplicationCommand):
    def run(self):
        EDITOR.stop()


class IsthmusAcceptCommand(sublime_plugin.TextCommand):
    def run(self, edit):
        EDITOR.reviews.accept(self.view)

    def is_enabled(self):
        return bool(self.view.settings().get(REVIEW))


class IsthmusRejectCommand(sublime_plugin.TextCommand):
    def run(self, edit):
        EDITOR.reviews.reject(self.view)
        self.view.close()

    def is_enabled(self):
        return bool(self.view.settings().get(REVIEW))


class IsthmusAcceptHunkCommand(sublime_plugin.TextCommand):
    def run(self, edit):
        EDITOR.reviews.decide_hunks(self.view, edit, True)

    def is_enabled(self):
        return bool(self.view.settings().get(REVIEW))


class IsthmusRejectHunkCommand(sublime_plugin.TextCommand):
    def run(self, edit):
        EDITOR.reviews.decide_hunks(self.view, edit, False)

    def is_enabled(self):
        return bool(self.view.settings().get(REVIEW))


class IsthmusTakeOutCommand(sublime_plugin.TextCommand):
    """Take text out of a review again that was typed for another view."""

    def run(self, edit, start, end):
        self.view.erase(edit, sublime.Region(start, end))

    def is_visible(self):
        return False


class IsthmusMentionCommand(sublime_plugin.TextCommand):
    def run(self, edit):
        EDITOR.mention(self.view)

    def is_enabled(self):
        return bool(self.view.file_name())


class IsthmusListener(sublime_plugin.EventListener):
    def on_activated(self, view):
        EDITOR.activated(view)

    def on_pre_close(self, view):
        EDITOR.reviews.reject(view)  # while its text is there

    def on_close(self, view):
        EDITOR.closed(view)

    def on_text_command(self, view, name, args):
        EDITOR.pause.noted()
        before = None if name.startswith("isthmus") else EDITOR.reviews.gave_back(view)
        if before is not None:
            before.run_command(name, args)
            return ("noop", None)
        return None

    def on_window_command(self, window, name, args):
        EDITOR.pause.noted()
        if not name.startswith("isthmus"):
            EDITOR.reviews.gave_back(window.active_view())  # the command follows, in the window as it was

    def on_selection_modified(self, view):
        EDITOR.pause.noted()
        EDITOR.tell("editor/didChange")

    def on_post_save(self, view):
        EDITOR.saved(view)
        EDITOR.tell("editor/didChange")

    def on_load(self, view):
        EDITOR.tell("editor/didChange")

    def on_modified(self, view):
        EDITOR.pause.noted()
        EDITOR.reviews.modified(view)
        EDITOR.tell("editor/didChange")

    def on_load_project(self, window):
        EDITOR.tell("workspace/didChangeWorkspaceFolders")

    on_post_save_project = on_new_window = on_load_project
