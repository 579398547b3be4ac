"""Isthmus for Sublime Text 4: agent CLIs see your files and selection, and you review their edits in a tab.

One file for Packages/Isthmus/. It starts `isthmus companion --editor stdio` and speaks docs/editor-port.md with it.
Python 3.8, Sublime's API and the standard library only. The companion does everything else, and writes no file.
"""

import json
import os
import subprocess
import threading
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import sublime
import sublime_plugin

SETTINGS = "Isthmus.sublime-settings"
REVIEW = "isthmus_review"
"""The setting of a view that shows a proposed text: the review's id."""
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
    "diagnostics": 'it has none of its own; add "--diagnostics", "ruff" to "command" in its settings',
}
FAILED, UNKNOWN = -32803, -32601
PAUSE = 1.0
"""Seconds without a key or a command after which a review or a question may take the focus."""
READING = 2.0
"""Seconds after that in which it decides nothing: what comes then was meant for what had the focus before."""


class Failure(Exception):
    """What the agent is told."""


class Companion:
    """The running companion: its process, and the frames to and from it. `take` gets every message, in its order.

    Both callbacks also get the companion itself: of one that was stopped the last words come when another one runs.
    """

    def __init__(self, command, folder, take, ended):
        self.process = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        self.take, self.ended = take, ended
        self.lock = threading.Lock()
        for work in (self.read, self.read_errors):
            threading.Thread(target=work, daemon=True).start()

    def send(self, **message):
        body = json.dumps(dict(message, jsonrpc="2.0")).encode("ascii")
        try:
            with self.lock:
                self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
                self.process.stdin.flush()
        except (OSError, ValueError):
            pass  # it has ended; read() tells

    def read(self):
        output = self.process.stdout
        while True:
            length = None
            for line in iter(output.readline, b""):
                if line == b"\r\n":
                    break
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            if length is None:
                return self.ended(self)
            self.take(self, json.loads(output.read(length).decode("utf-8")))

    def read_errors(self):
        for line in self.process.stderr:
            print("Isthmus:", line.decode("utf-8", "replace").rstrip())

    def stop(self):
        self.send(id="shutdown", method="shutdown")
        self.send(method="exit")
        try:
            self.process.stdin.close()
        except OSError:
            pass


class Editor:
    """What the companion asks of Sublime Text, and what it is told. Everything runs on Sublime's main thread."""

    def __init__(self):
        self.companion = None
        self.focused_at = {}
        self.last_active = None
        self.panels = {}
        self.typing = set()
        self.last_input = 0.0
        self.is_filling = False  # our own text goes into a view, which is no input
        self.fresh = None  # (review's view, view before it, until when), of a review that took the focus a moment ago
        self.former = {}  # what terminals had before the companion: name -> value, or None

    def start(self):
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
        companion, self.companion = self.companion, None
        if companion is not None:
            companion.stop()
        self.restore_terminal_environment()
        for view in self.reviews():
            view.settings().erase(REVIEW)
            view.close()

    def ended(self, companion):
        if companion is self.companion:
            self.companion = None
            self.restore_terminal_environment()
            sublime.status_message("Isthmus: the companion has ended; Isthmus: Start starts it again")

    def tell(self, method, **params):
        if self.companion is not None:
            self.companion.send(method=method, params=params)

    def take(self, companion, message):
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

    # What the companion asks.

    def ready(self, environment, discoveryFiles):
        sublime.status_message("Isthmus: agent CLIs in this project can find Sublime Text now")

    def workspace_folders(self):
        return [folder_of(path) for path in folders_of_all_windows()]

    def open_files(self):
        views = {view.file_name(): view for window in sublime.windows() for view in window.views() if view.file_name()}
        return [self.described(path, view) for path, view in views.items()]

    def described(self, path, view):
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
        window, path = sublime.active_window(), path_of(uri)
        before = window.active_view()
        view = window.open_file(path)
        if selection is not None:
            self.select(view, selection)
        if not takeFocus and before is not None:
            window.focus_view(before)
        return {"success": True}

    def select(self, view, selection, tries=100):
        if view.is_loading():
            if tries:
                sublime.set_timeout(lambda: self.select(view, selection, tries - 1), 50)
            return
        start, end = (view.text_point(selection[end]["line"], selection[end]["character"]) for end in ("start", "end"))
        view.sel().clear()
        view.sel().add(sublime.Region(start, end))
        view.show_at_center(start)

    def close_document(self, uri):
        view = view_of(path_of(uri))
        if view is not None and view.is_dirty():
            raise Failure("it has unsaved changes; save it first")
        if view is not None:
            view.close()

    def text(self, uri):
        view = view_of(path_of(uri))
        return None if view is None else view.substr(sublime.Region(0, view.size()))

    def save_document(self, uri):
        view = view_of(path_of(uri))
        if view is None:
            raise Failure("it is not open")
        view.run_command("save", {"async": False})
        if view.is_dirty():
            raise Failure("Sublime Text could not write it")

    def open_diff(self, id, uri, proposed, title, isNewFile):
        path, window = path_of(uri), sublime.active_window()
        before = window.active_view()
        view = window.new_file()
        view.set_scratch(True)
        view.set_name("{}: {}".format(title or "Proposed", os.path.basename(path)))
        self.is_filling = True
        view.run_command("append", {"characters": proposed.replace("\r\n", "\n"), "force": True})
        self.is_filling = False
        syntax = sublime.find_syntax_for_file(path)
        if syntax is not None:
            view.assign_syntax(syntax)
        view.set_reference_document(text_on_disk(path))  # the gutter shows what is different
        view.settings().set(REVIEW, id)
        view.set_status("isthmus", "Edit as you like. Isthmus: Accept takes it, closing this tab rejects it.")
        if before is None:
            self.came(view, before)
        else:
            window.focus_view(before)
            self.bring(view, window, before)

    def has_paused(self):
        return time.time() - self.last_input >= PAUSE

    def noted(self):
        """Note that the user pressed a key or ran a command."""
        if not self.is_filling:
            self.last_input = time.time()

    def bring(self, view, window, before, is_told=False):
        """Bring a review to the front as soon as the user has paused."""
        if not view.settings().get(REVIEW) or window.active_view() == view:
            return
        if not self.has_paused():
            if not is_told:
                sublime.status_message("Isthmus: a proposed edit waits in the tab {}".format(view.name()))
            sublime.set_timeout(lambda: self.bring(view, window, before, True), 200)
            return
        before = window.active_view() or before
        window.focus_view(view)
        self.came(view, before)

    def came(self, view, before):
        self.fresh = (view, before, time.time() + READING)
        view.set_read_only(True)
        sublime.set_timeout(lambda: view.set_read_only(False), int(READING * 1000))

    def is_fresh(self, view):
        return self.fresh is not None and self.fresh[0] == view and time.time() < self.fresh[2]

    def gave_back(self, view):
        """The view that had the focus before a review that took it a moment ago, which has it again; else None."""
        if view is None or not self.is_fresh(view):
            return None
        before, self.fresh = self.fresh[1], None
        view.set_read_only(False)
        if before is not None:
            sublime.active_window().focus_view(before)
            sublime.status_message("Isthmus: a proposed edit waits in the tab {}".format(view.name()))
        return before

    def close_diff(self, id):
        for view in self.reviews():
            if view.settings().get(REVIEW) == id:
                text = view.substr(sublime.Region(0, view.size()))
                view.settings().erase(REVIEW)
                view.close()
                return {"text": text}
        return None

    def show_message(self, message, type=3):
        sublime.status_message(message)
        print("Isthmus:", message)  # the status bar is short, and forgets

    def set_terminal_environment(self, variables):
        for name, value in variables.items():
            self.former.setdefault(name, os.environ.get(name))
            set_variable(name, value)

    def restore_terminal_environment(self):
        """No terminal shall lead to a companion that is gone: what it takes back itself comes too late, or never."""
        while self.former:
            set_variable(*self.former.popitem())

    def ask(self, number, message, actions, type=3):
        """Ask in a quick panel, which does not block; the answer comes when the person chooses."""
        companion, (question, _, details) = self.companion, message.partition("\n\n")
        titles = [action["title"] for action in actions]

        def chosen(index):
            if index >= 0 and time.time() < readable_at and number in self.panels:
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
        readable_at = 0.0

        def show():
            nonlocal readable_at
            if number not in self.panels:
                return
            if not self.has_paused():
                sublime.set_timeout(show, 200)
                return
            readable_at = time.time() + READING
            window.show_quick_panel(titles, chosen, placeholder=question)

        show()

    def cancel_request(self, id):
        window = self.panels.pop(id, None)
        if window is not None:
            self.companion.send(id=id, result=None)
            window.run_command("hide_overlay")  # which chooses nothing

    # What the person does.

    def reviews(self):
        views = [view for window in sublime.windows() for view in window.views()]
        return [view for view in views if view.settings().get(REVIEW)]

    def activated(self, view):
        path = view.file_name()
        if path:
            self.focused_at[path] = time.time()
            self.last_active = path
        self.tell("editor/didChange")

    def closed(self, view):
        self.reject(view)
        if view.file_name() == self.last_active:
            self.last_active = None
        self.tell("editor/didChange")

    def accept(self, view):
        review = view.settings().get(REVIEW)
        if review and self.is_fresh(view):
            sublime.status_message("Isthmus: this edit came up only now; read it, then accept it once more")
        elif review:
            text = view.substr(sublime.Region(0, view.size()))
            view.settings().erase(REVIEW)
            self.tell("editor/didAcceptDiff", id=review, text=text)
            view.close()

    def typed(self, view):
        """Tell the text of a review soon: if Sublime Text crashes, the companion keeps it for the person."""
        review = view.settings().get(REVIEW)
        if review and review not in self.typing:
            self.typing.add(review)
            sublime.set_timeout(lambda: self.tell_text(view, review), 1000)

    def tell_text(self, view, review):
        self.typing.discard(review)
        if view.settings().get(REVIEW) == review:
            self.tell("editor/didEditDiff", id=review, text=view.substr(sublime.Region(0, view.size())))

    def reject(self, view):
        review = view.settings().get(REVIEW)
        if review:
            text = view.substr(sublime.Region(0, view.size()))
            view.settings().erase(REVIEW)
            self.tell("editor/didRejectDiff", id=review, text=text)

    def mention(self, view):
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
    "editor/openDiff": Editor.open_diff,
    "editor/closeDiff": Editor.close_diff,
    "window/showMessage": Editor.show_message,
    "editor/setTerminalEnvironment": Editor.set_terminal_environment,
    "$/cancelRequest": Editor.cancel_request,
}
EDITOR = Editor()


def folders_of_all_windows():
    return list(dict.fromkeys(folder for window in sublime.windows() for folder in window.folders()))


def set_variable(name, value):
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


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


def plugin_loaded():
    if sublime.load_settings(SETTINGS).get("start_with_sublime", True):
        EDITOR.start()


def plugin_unloaded():
    EDITOR.stop()


class IsthmusStartCommand(sublime_plugin.ApplicationCommand):
    def run(self):
        EDITOR.start()


class IsthmusStopCommand(sublime_plugin.ApplicationCommand):
    def run(self):
        EDITOR.stop()


class IsthmusAcceptCommand(sublime_plugin.TextCommand):
    def run(self, edit):
        EDITOR.accept(self.view)

    def is_enabled(self):
        return bool(self.view.settings().get(REVIEW))


class IsthmusRejectCommand(sublime_plugin.TextCommand):
    def run(self, edit):
        EDITOR.reject(self.view)
        self.view.close()

    def is_enabled(self):
        return bool(self.view.settings().get(REVIEW))


class IsthmusMentionCommand(sublime_plugin.TextCommand):
    def run(self, edit):
        EDITOR.mention(self.view)

    def is_enabled(self):
        return bool(self.view.file_name())


class IsthmusListener(sublime_plugin.EventListener):
    def on_activated(self, view):
        EDITOR.activated(view)

    def on_pre_close(self, view):
        EDITOR.reject(view)  # while its text is there

    def on_close(self, view):
        EDITOR.closed(view)

    def on_text_command(self, view, name, args):
        EDITOR.noted()
        before = None if name.startswith("isthmus") else EDITOR.gave_back(view)
        if before is not None:
            before.run_command(name, args)
            return ("noop", None)
        return None

    def on_window_command(self, window, name, args):
        EDITOR.noted()
        if not name.startswith("isthmus"):
            EDITOR.gave_back(window.active_view())  # the command follows, in the window as it was

    def on_selection_modified(self, view):
        EDITOR.noted()
        EDITOR.tell("editor/didChange")

    def on_post_save(self, view):
        EDITOR.tell("editor/didChange")

    on_load = on_post_save

    def on_modified(self, view):
        EDITOR.noted()
        EDITOR.typed(view)
        EDITOR.tell("editor/didChange")

    def on_load_project(self, window):
        EDITOR.tell("workspace/didChangeWorkspaceFolders")

    on_post_save_project = on_new_window = on_load_project
