"""An editor's plugin for tests, a program of its own: it speaks docs/reference/editor-port.md on its standard streams.

It is an editor that keeps its buffers in memory and counts in code points (utf-32); it does not import Isthmus. The
user acts by lines of JSON on the file descriptor in argv[1] (``{"do": NAME, ...}``), each answered by a line on the
one in argv[2]. argv[3] is a JSON object with members of ``initialize`` to change.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

CAPABILITIES = (
    *("diff", "open", "close", "text", "dirty", "selection", "save", "message", "confirm", "diagnostics"),
    "reload",
)
FAILED = -32803
Object: TypeAlias = dict[str, Any]


class FailureError(Exception):
    """An error whose text the agent gets."""


class Buffer:
    """An open file: its text, the text on disk, and the selection as two offsets."""

    def __init__(self, path: str) -> None:
        self.text = self.saved = Path(path).read_bytes().decode("utf-8", "replace")
        self.at: tuple[int, int] = (0, 0)
        self.focused_at = time.time()


class Plugin:
    """The editor. Both threads hold its lock while they use it."""

    def __init__(self, changes: Object) -> None:
        self.changes = changes
        self.lock = threading.RLock()
        self.input = sys.stdin.buffer
        self.output = sys.stdout.buffer
        self.buffers: dict[str, Buffer] = {}
        self.active = ""
        self.views: dict[str, str] = {}
        self.diagnostics: dict[str, list[Object]] = {}
        self.heard: list[Object] = []
        self.warnings: list[str] = []
        self.answers: Object = {}
        self.silent: set[str] = set()
        self.has_companion = True

    # The wire.

    def send(self, **message: object) -> None:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    def write(self, data: bytes) -> None:
        self.output.write(data)
        self.output.flush()

    def tell(self, method: str, **params: object) -> None:
        self.send(method=method, params=params)

    def read(self) -> Object | None:
        length = 0
        while (line := self.input.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(self.input.read(length)) if line else None

    def run(self) -> None:
        """Initialize, then answer requests until the companion ends."""
        self.send(id="start", method="initialize", params=self.initialize())
        while (message := self.read()) is not None:
            with self.lock:
                self.take(message)

    def initialize(self) -> Object:
        folder = Path.cwd()
        info = {"name": "test-editor", "displayName": "Test Editor", "version": "1", "processId": os.getpid()}
        return {
            "editorInfo": info,
            "workspaceFolders": [{"uri": folder.as_uri(), "name": folder.name}],
            "capabilities": dict.fromkeys(CAPABILITIES, True) | {"execute": "it has no notebooks"},
            "positionEncodings": ["utf-32"],
        } | self.changes

    def take(self, message: Object) -> None:
        self.heard.append(message)
        if message.get("id") == "start" and "result" in message:
            self.tell("initialized")
        if "method" not in message or "id" not in message or message["method"] in self.silent:
            return
        try:
            result = getattr(self, "on_" + message["method"].replace("/", "_"))(**message.get("params") or {})
        except FailureError as failure:
            self.send(id=message["id"], error={"code": FAILED, "message": str(failure)})
        else:
            self.send(id=message["id"], result=result)

    # Requests of the companion.

    def on_workspace_workspaceFolders(self) -> list[Object]:
        return self.answers.get("folders") or self.changes.get("workspaceFolders", [{"uri": Path.cwd().as_uri()}])

    def on_editor_openFiles(self) -> list[Object]:
        return [self.shown(path, buffer) for path, buffer in self.buffers.items()]

    def shown(self, path: str, buffer: Buffer) -> Object:
        start, end = buffer.at
        return {
            "uri": Path(path).as_uri(),
            "isActive": path == self.active,
            "focusedAt": buffer.focused_at,
            "selection": {"start": place_of(buffer.text, start), "end": place_of(buffer.text, end)},
            "selectedText": buffer.text[start:end],
            "isDirty": buffer.text != buffer.saved,
            "languageId": "python",
            "lineCount": buffer.text.count("\n") + 1,
        }

    def on_window_showDocument(self, uri: str, takeFocus: bool, selection: Object | None = None) -> Object:
        path = path_of(uri)
        self.open(path, focus=takeFocus)
        if selection is not None:
            text = self.buffers[path].text
            self.buffers[path].at = (offset_of(text, selection["start"]), offset_of(text, selection["end"]))
        return {"success": True}

    def open(self, path: str, *, focus: bool = True) -> None:
        buffer = self.buffers.setdefault(path, Buffer(path))
        if focus or not self.active:
            buffer.focused_at, self.active = time.time(), path
        self.tell("editor/didChange")

    def on_editor_closeDocument(self, uri: str) -> None:
        path = path_of(uri)
        if path in self.buffers and self.buffers[path].text != self.buffers[path].saved:
            raise FailureError("unsaved changes")
        self.buffers.pop(path, None)
        self.active = "" if self.active == path else self.active
        self.tell("editor/didChange")

    def on_editor_text(self, uri: str) -> str | None:
        buffer = self.buffers.get(path_of(uri))
        return buffer.text if buffer else None

    def on_editor_saveDocument(self, uri: str) -> None:
        path = path_of(uri)
        if path not in self.buffers:
            raise FailureError("not open")
        buffer = self.buffers[path]
        Path(path).write_bytes(buffer.text.encode())
        buffer.saved = buffer.text
        self.tell("editor/didChange")

    def on_editor_reload(self, uris: list[str]) -> Object:
        checked: list[str] = []
        for uri in uris:
            path = path_of(uri)
            if (buffer := self.buffers.get(path)) is None:
                continue
            if buffer.text != buffer.saved:
                self.warnings.append(f"{path} has changed on disk")
                continue
            buffer.text = buffer.saved = Path(path).read_bytes().decode("utf-8", "replace")
            checked += [uri] if uri in self.diagnostics else []
            self.tell("editor/didChange")
        return {"checked": checked}

    def on_editor_openDiff(self, id: str, proposed: str, **more: object) -> None:  # noqa: A002
        self.views[id] = proposed

    def on_editor_closeDiff(self, id: str) -> Object | None:  # noqa: A002
        return {"text": self.views.pop(id)} if id in self.views else None

    def on_textDocument_diagnostic(self, textDocument: Object) -> Object:
        return {"kind": "full", "items": self.diagnostics.get(textDocument["uri"], [])}

    def on_workspace_diagnostic(self, **_: object) -> Object:
        return {"items": [{"uri": uri, "kind": "full", "items": found} for uri, found in self.diagnostics.items()]}

    def on_window_showMessageRequest(self, **_: object) -> object:
        return self.answers.get("question")

    def on_editor_executeCode(self, **_: object) -> object:
        return self.answers["execution"]

    def on_editor_setTerminalEnvironment(self, variables: Object) -> None:
        self.answers["terminals"] = variables

    # Actions of the user.

    def do(self, do: str, **how: object) -> object:
        """Run one command; the methods `do_...` are the commands."""
        return getattr(self, "do_" + do)(**how)

    def do_open(self, path: str) -> None:
        self.open(path)

    def do_select(self, start: int, end: int) -> None:
        self.buffers[self.active].at = (start, end)
        self.tell("editor/didChange")

    def do_type_over(self, text: str) -> None:
        self.buffers[self.active].text = text
        self.tell("editor/didChange")

    def do_edit_review(self, review: str, text: str) -> None:
        self.views[review] = text
        self.tell("editor/didEditDiff", id=review, text=text)

    def do_accept(self, review: str) -> None:
        shown = self.views.pop(review)
        self.tell("editor/didAcceptDiff", id=review, text=shown)

    def do_reject(self, review: str) -> None:
        del self.views[review]
        self.tell("editor/didRejectDiff", id=review)

    def do_quit(self) -> None:
        self.send(id="end", method="shutdown")
        self.tell("exit")

    def do_tell(self, method: str, params: Object) -> None:
        self.tell(method, **params)

    def do_ask(self, method: str, id: str, params: Object) -> None:  # noqa: A002
        self.send(id=id, method=method, params=params)

    def do_write(self, text: str, times: int = 1) -> None:
        for _ in range(times):
            self.write(text.encode("latin-1"))

    def do_set_diagnostics(self, uri: str, found: list[Object]) -> None:
        self.diagnostics[uri] = found

    def do_answer(self, name: str, value: object) -> None:
        self.answers[name] = value

    def do_be_silent(self, *, method: str, on: bool) -> None:
        (self.silent.add if on else self.silent.discard)(method)

    def do_heard(self) -> list[Object]:
        return self.heard

    def do_warnings(self) -> list[str]:
        return self.warnings

    def do_has_companion(self) -> bool:
        return self.has_companion

    def do_views(self) -> Object:
        return self.views

    def do_crash(self) -> None:
        os._exit(70)


def path_of(uri: str) -> str:
    return unquote(urlsplit(uri).path, errors="surrogateescape")


def place_of(text: str, offset: int) -> Object:
    before = text[:offset]
    return {"line": before.count("\n"), "character": offset - (before.rfind("\n") + 1)}


def offset_of(text: str, place: Object) -> int:
    lines = text.split("\n")[: place["line"]]
    return sum(len(line) + 1 for line in lines) + place["character"]


def user(plugin: Plugin, commands: int, answers: int) -> None:
    """Run the user's commands, line by line."""
    with os.fdopen(commands, encoding="utf-8") as source, os.fdopen(answers, "w", encoding="utf-8") as sink:
        for line in source:
            with plugin.lock:
                value = plugin.do(**json.loads(line))
            print(json.dumps(value), file=sink, flush=True)


def main() -> None:
    plugin = Plugin(json.loads(sys.argv[3]))
    hands = threading.Thread(target=user, args=(plugin, int(sys.argv[1]), int(sys.argv[2])), daemon=True)
    hands.start()
    plugin.run()
    plugin.has_companion = False
    hands.join()  # an editor does not end with its companion


if __name__ == "__main__":
    main()
