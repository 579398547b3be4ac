"""Answers of Sublime Text to the companion's requests, and its notifications."""

import os
import time
from pathlib import Path

import sublime

from .companion import Companion
from .pause import Pause, is_readable, readable_at
from .reviews import Reviews
from .views import folder_of, folders_of_all_windows, path_of, place_of, text_of, text_on_disk, view_of

SETTINGS = "Isthmus.sublime-settings"
CAPABILITIES = {
    "diff": True,
    "open": True,
    "close": True,
    "text": True,
    "dirty": True,
    "selection": True,
    "save": True,
    "message": True,
    "confirm": True,
    "terminal": True,
    "execute": "it has no notebooks",
    "reload": True,
    "diagnostics": 'it has none of its own; add "--diagnostics", "ruff" to "command" in its settings',
}
FAILED, UNKNOWN = -32803, -32601


class Failure(Exception):
    """A failed request; the agent gets its text."""


class Editor:
    """Sublime Text as an editor of the companion. Everything runs on Sublime's main thread."""

    def __init__(self):
        self.companion = None
        self.focused_at = {}
        self.last_active = None
        self.panels = {}
        self.pause = Pause()
        self.reviews = Reviews(self.pause, self.tell)
        self.conflicts = set()  # paths of files with unsaved text whose change on disk the user was told
        self.former = {}  # values of the variables before the companion set them; None: not set

    def start(self):
        """Start the companion, unless it runs."""
        if self.companion is not None:
            return
        command = sublime.load_settings(SETTINGS).get("command", ["isthmus", "companion", "--editor", "stdio"])
        folders = folders_of_all_windows()
        try:
            self.companion = Companion(
                command,
                folders[0] if folders else None,
                lambda companion, message: sublime.set_timeout(lambda: self.take(companion, message), 0),
                lambda companion: sublime.set_timeout(lambda: self.ended(companion), 0),
            )
        except OSError as error:
            sublime.status_message("Isthmus: {} cannot be started: {}".format(command[0], error.strerror))
            return
        info = {"name": "sublime", "displayName": "Sublime Text", "version": sublime.version()}
        hello = {
            "protocolVersion": 1,
            "editorInfo": dict(info, processId=os.getppid()),
            "workspaceFolders": [folder_of(path) for path in folders],
            "capabilities": CAPABILITIES,
            "positionEncodings": ["utf-32"],
            "newlines": "lf",
        }
        self.companion.send(id="initialize", method="initialize", params=hello)

    def stop(self):
        """Stop the companion and close the reviews."""
        companion, self.companion = self.companion, None
        if companion is not None:
            companion.stop()
        self.restore_terminal_environment()
        self.reviews.drop()

    def ended(self, companion):
        """Clean up after a companion that ended by itself."""
        if companion is self.companion:
            self.companion = None
            self.restore_terminal_environment()
            sublime.status_message("Isthmus: the companion has ended; Isthmus: Start starts it again")

    def tell(self, method, **params):
        """Send a notification to the companion, if it runs."""
        if self.companion is not None:
            self.companion.send(method=method, params=params)

    def take(self, companion, message):
        """Handle a message of the companion."""
        method, number = message.get("method"), message.get("id")
        if companion is not self.companion:
            return
        if method is None:
            if number == "initialize" and "result" in message:
                self.tell("initialized")
            return
        params = message.get("params") or {}
        handler = HANDLERS.get(method)
        if number is None:
            if handler is not None:
                handler(self, **params)
            return
        if method == "window/showMessageRequest":
            self.ask(number, **params)
            return
        try:
            if handler is None:
                answer = {"error": {"code": UNKNOWN, "message": "Sublime Text has no " + method}}
            else:
                answer = {"result": handler(self, **params)}
        except Failure as failure:
            answer = {"error": {"code": FAILED, "message": str(failure)}}
        self.companion.send(id=number, **answer)

    # Requests of the companion.

    def ready(self, environment, discoveryFiles):
        """Tell the user that agents can find this editor."""
        sublime.status_message("Isthmus: agent CLIs in this project can find Sublime Text now")

    def workspace_folders(self):
        """Return the open folders."""
        return [folder_of(path) for path in folders_of_all_windows()]

    def open_files(self):
        """Return the open files."""
        views = {view.file_name(): view for window in sublime.windows() for view in window.views() if view.file_name()}
        return [self.described(path, view) for path, view in views.items()]

    def described(self, path, view):
        """Return an open file in the protocol's form."""
        region = view.sel()[0] if len(view.sel()) else sublime.Region(0, 0)
        return {
            "uri": Path(path).as_uri(),
            "isActive": path == self.last_active,
            "focusedAt": self.focused_at.get(path, 0),
            "selection": {"start": place_of(view, region.begin()), "end": place_of(view, region.end())},
            "cursor": place_of(view, region.b),
            "selectedText": view.substr(region),
            "isDirty": view.is_dirty(),
            "languageId": view.scope_name(0).split(" ")[0].partition(".")[2].partition(".")[0],
            "lineCount": view.rowcol(view.size())[0] + 1,
        }

    def show_document(self, uri, takeFocus=True, selection=None):
        """Show a file, with a selection if one is given."""
        window, path = sublime.active_window(), path_of(uri)
        before = window.active_view()
        view = window.open_file(path)
        if selection is not None:
            self.select(view, selection)
        if not takeFocus and before is not None:
            window.focus_view(before)
        return {"success": True}

    def select(self, view, selection, tries=100):
        """Select a range as soon as the view has loaded."""
        if view.is_loading():
            if tries:
                sublime.set_timeout(lambda: self.select(view, selection, tries - 1), 50)
            return
        start, end = (view.text_point(selection[end]["line"], selection[end]["character"]) for end in ("start", "end"))
        view.sel().clear()
        view.sel().add(sublime.Region(start, end))
        view.show_at_center(start)

    def close_document(self, uri):
        """Close a file without unsaved changes."""
        view = view_of(path_of(uri))
        if view is not None and view.is_dirty():
            raise Failure("it has unsaved changes; save it first")
        if view is not None:
            view.close()

    def text(self, uri):
        """Return the text of an open file, or None."""
        view = view_of(path_of(uri))
        return None if view is None else text_of(view)

    def save_document(self, uri):
        """Save an open file."""
        view = view_of(path_of(uri))
        if view is None:
            raise Failure("it is not open")
        view.run_command("save", {"async": False})
        if view.is_dirty():
            raise Failure("Sublime Text could not write it")

    def reload(self, uris):
        """Read changed files without unsaved text again, which Sublime Text itself does late or in front only."""
        for path in map(path_of, uris):
            view = view_of(path)
            if view is None or view.is_loading() or not view.settings().get("reload_file_on_change", True):
                continue
            if not view.is_dirty():
                self.conflicts.discard(path)
                self.read_again(view, path)
            elif path not in self.conflicts:
                self.conflicts.add(path)
                name = os.path.basename(path)
                self.show_message("{} has changed on disk; your unsaved text stays as it is".format(name))

    def read_again(self, view, path):
        """Read a file again, unless the view has its text already."""
        if os.path.isfile(path) and text_on_disk(path) != text_of(view):
            self.pause.is_filling = True
            view.run_command("revert")
            self.pause.is_filling = False

    def open_diff(self, id, uri, proposed, title, isNewFile):
        """Open a review."""
        self.reviews.open(id, path_of(uri), proposed, title)

    def close_diff(self, id):
        """Close a review without a decision, and return its text."""
        return self.reviews.close(id)

    def show_message(self, message, type=3):
        """Show a message in the status bar and in the console."""
        sublime.status_message(message)
        print("Isthmus:", message)  # the status bar is short, and forgets

    def set_terminal_environment(self, variables):
        """Set variables of Sublime Text itself, which its terminals inherit."""
        for name, value in variables.items():
            self.former.setdefault(name, os.environ.get(name))
            set_variable(name, value)

    def restore_terminal_environment(self):
        """Restore the variables, so that no terminal leads to a companion that has ended, even after a crash."""
        while self.former:
            set_variable(*self.former.popitem())

    def ask(self, number, message, actions, type=3):
        """Ask in a quick panel, which does not block; the answer comes when the user chooses."""
        companion, (question, _, details) = self.companion, message.partition("\n\n")
        titles = [action["title"] for action in actions]

        def chosen(index):
            if index >= 0 and not is_readable(decides_at) and number in self.panels:
                sublime.set_timeout(show, 0)  # chosen before it could be read
                return
            if self.panels.pop(number, None) is not None and companion is not None:
                companion.send(id=number, result=actions[index] if index >= 0 else None)

        window = sublime.active_window()
        self.panels[number] = window
        if details:
            panel = window.create_output_panel("isthmus")
            panel.run_command("append", {"characters": details})
            window.run_command("show_panel", {"panel": "output.isthmus"})
        decides_at = readable_at()

        def show():
            nonlocal decides_at
            if number not in self.panels:
                return
            if not self.pause.is_there():
                sublime.set_timeout(show, 200)
                return
            decides_at = readable_at()
            window.show_quick_panel(titles, chosen, placeholder=question)

        show()

    def cancel_request(self, id):
        """Close a question that the companion no longer asks."""
        window = self.panels.pop(id, None)
        if window is not None:
            self.companion.send(id=id, result=None)
            window.run_command("hide_overlay")  # without a choice

    # Actions of the user.

    def activated(self, view):
        """Note that a view got the focus."""
        path = view.file_name()
        if path:
            self.focused_at[path] = time.time()
            self.last_active = path
        self.tell("editor/didChange")

    def closed(self, view):
        """Note that a view was closed; that rejects a review."""
        self.reviews.reject(view)
        if view.file_name() == self.last_active:
            self.last_active = None
        self.tell("editor/didChange")

    def saved(self, view):
        """Tell that the user has saved the file of a view."""
        if view.file_name():
            self.tell("editor/didSave", uri=Path(view.file_name()).as_uri())

    def mention(self, view):
        """Point the agent to the file or the selected lines of a view."""
        region = view.sel()[0] if len(view.sel()) else None
        params = {"uri": Path(view.file_name()).as_uri()}
        if region is not None and not region.empty():
            params["range"] = {"start": place_of(view, region.begin()), "end": place_of(view, region.end())}
        self.tell("editor/didMention", **params)


HANDLERS = {
    "companion/ready": Editor.ready,
    "workspace/workspaceFolders": Editor.workspace_folders,
    "editor/openFiles": Editor.open_files,
    "window/showDocument": Editor.show_document,
    "editor/closeDocument": Editor.close_document,
    "editor/text": Editor.text,
    "editor/saveDocument": Editor.save_document,
    "editor/reload": Editor.reload,
    "editor/openDiff": Editor.open_diff,
    "editor/closeDiff": Editor.close_diff,
    "window/showMessage": Editor.show_message,
    "editor/setTerminalEnvironment": Editor.set_terminal_environment,
    "$/cancelRequest": Editor.cancel_request,
}


def set_variable(name, value):
    """Set or remove a variable of this process."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
