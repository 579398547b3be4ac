"""Sublime Text's plugin host for tests: the part of its API that plugins/sublime uses, over buffers in memory.

Names and behaviour are those of https://www.sublimetext.com/docs/api_reference.html: points count code points, texts
have only ``\\n``, commands and callbacks of ``set_timeout`` run on one main thread. :func:`loaded_plugin` loads the
plugin with it; nothing of Sublime itself is here.
"""

import importlib
import os
import queue
import sys
import threading
import types
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from unittest.mock import patch

if TYPE_CHECKING:
    import subprocess

PACKAGE = Path(__file__).resolve().parents[2] / "plugins" / "sublime"
"""The package's folder."""
NAME = "Isthmus"
"""Module name under which Sublime Text imports it."""


class Region:
    def __init__(self, a: int, b: int) -> None:
        self.a, self.b = a, b

    def begin(self) -> int:
        return min(self.a, self.b)

    def end(self) -> int:
        return max(self.a, self.b)

    def empty(self) -> bool:
        return self.a == self.b


class Selection(list[Region]):
    def add(self, region: Region) -> None:
        self.append(region)


class Settings(dict[str, Any]):
    def set(self, name: str, value: Any) -> None:
        self[name] = value

    def erase(self, name: str) -> None:
        self.pop(name, None)


class View:
    def __init__(self, window: "Window", path: str | None) -> None:
        self._window, self._path, self._settings = window, path, Settings()
        self._bytes, self.text, self.saved = "", "", ""
        self._read()
        self.reverts = 0
        self.selection = Selection([Region(0, 0)])
        self.title, self.reference = "", ""
        self.is_locked = False

    def _read(self) -> None:
        self._bytes = Path(self._path).read_bytes().decode() if self._path else ""
        self.text = self.saved = self._bytes.removeprefix("\ufeff").replace("\r\n", "\n")

    def file_name(self) -> str | None:
        return self._path

    def settings(self) -> Settings:
        return self._settings

    def sel(self) -> Selection:
        return self.selection

    def size(self) -> int:
        return len(self.text)

    def substr(self, region: Region) -> str:
        return self.text[region.begin() : region.end()]

    def rowcol(self, point: int) -> tuple[int, int]:
        before = self.text[:point]
        return before.count("\n"), point - (before.rfind("\n") + 1)

    def text_point(self, row: int, col: int) -> int:
        return sum(len(line) + 1 for line in self.text.split("\n")[:row]) + col

    def is_dirty(self) -> bool:
        return self._path is not None and self.text != self.saved

    def is_loading(self) -> bool:
        return False

    def scope_name(self, point: int) -> str:
        return "source.python meta.statement.python "

    def set_scratch(self, value: bool) -> None: ...

    def set_read_only(self, value: bool) -> None:
        self.is_locked = value

    def is_read_only(self) -> bool:
        return self.is_locked

    def is_valid(self) -> bool:
        return self in self._window.shown

    def erase(self, edit: object, region: Region) -> None:
        self.text = self.text[: region.begin()] + self.text[region.end() :]

    def replace(self, edit: object, region: Region, text: str) -> None:
        self.text = self.text[: region.begin()] + text + self.text[region.end() :]

    def set_name(self, name: str) -> None:
        self.title = name

    def name(self) -> str:
        return self.title

    def set_status(self, key: str, value: str) -> None: ...

    def assign_syntax(self, syntax: object) -> None: ...

    def show_at_center(self, point: int) -> None: ...

    def set_reference_document(self, text: str) -> None:
        self.reference = text

    def run_command(self, name: str, args: dict[str, Any] | None = None) -> None:
        if name == "append":
            self.text += (args or {})["characters"]
        elif name == "insert":
            at = self.selection[0].begin()
            self.text = self.text[:at] + (args or {})["characters"] + self.text[at:]
            end = at + len((args or {})["characters"])
            self.selection[:] = [Region(end, end)]
            self._window.host.listener.on_modified(self)
        elif name == "save" and self._path:
            ends = "\r\n" if "\r\n" in self._bytes else "\n"
            Path(self._path).write_bytes(self.text.replace("\n", ends).encode())
            self.saved = self.text
        elif name == "revert" and self._path:
            self._read()
            self.reverts += 1
            self._window.host.listener.on_modified(self)
        else:
            self._window.host.commands[name](self).run(None, **(args or {}))

    def press(self, name: str) -> None:
        """Run a command as a key does."""
        if self._window.host.listener.on_text_command(self, name, {}) is None:
            self.run_command(name)

    def type(self, text: str) -> None:
        """Type text as keys that are bound to no command; then send the events to plugins."""
        if not self.is_locked:
            self.run_command("insert", {"characters": text})

    def close(self) -> bool:
        self._window.host.listener.on_pre_close(self)
        self._window.shown.remove(self)
        self._window.host.listener.on_close(self)
        return True


class Window:
    def __init__(self, host: "SublimeHost", folder: str) -> None:
        self.host, self._folders = host, [folder]
        self.shown: list[View] = []
        self.active: View | None = None
        self.panel: tuple[list[str], Callable[[int], None], str] | None = None

    def folders(self) -> list[str]:
        return self._folders

    def views(self) -> list[View]:
        return list(self.shown)

    def active_view(self) -> View | None:
        return self.active

    def focus_view(self, view: View) -> None:
        self.active = view
        self.host.listener.on_activated(view)

    def find_open_file(self, path: str) -> View | None:
        return next((view for view in self.shown if view.file_name() == path), None)

    def open_file(self, path: str) -> View:
        view = self.find_open_file(path) or View(self, path)
        if view not in self.shown:
            self.shown.append(view)
        self.focus_view(view)
        return view

    def new_file(self) -> View:
        view = View(self, None)
        self.shown.append(view)
        self.focus_view(view)
        return view

    def create_output_panel(self, name: str) -> View:
        return View(self, None)

    def show_quick_panel(self, items: list[str], on_select: Callable[[int], None], placeholder: str = "") -> None:
        self.panel = (items, on_select, placeholder)

    def run_command(self, name: str, args: dict[str, Any] | None = None) -> None:
        if name == "hide_overlay" and self.panel is not None:
            self.choose(-1)

    def choose(self, index: int) -> None:
        """Choose an item in the open panel; -1 closes it."""
        assert self.panel is not None
        (_, on_select, _), self.panel = self.panel, None
        on_select(index)


class _Command:
    def __init__(self, view: View) -> None:
        self.view = view


class SublimeHost:
    """Sublime with one window on a folder. `do` runs a function on the main thread, as Sublime does."""

    def __init__(self, folder: Path, command: list[str]) -> None:
        self.settings = Settings(command=command)
        self.messages: list[str] = []
        self.window = Window(self, str(folder))
        self.commands: dict[str, Any] = {}
        self.listener: Any = None
        self.companions: list[subprocess.Popen[bytes]] = []
        self.editor: Any = None
        """The plugin's own object."""
        self.pause: Any = None
        """The plugin's module of pauses, with the clock; reviews decide at once, unless a test sets its READING."""
        self._work: queue.Queue[Callable[[], object] | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()

    def do(self, work: Callable[[], Any]) -> Any:
        """Run `work` on the main thread and return its result."""
        future: Future[Any] = Future()

        def run() -> None:
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)

        self._work.put(run)
        return future.result(60)

    @property
    def companion(self) -> "subprocess.Popen[bytes] | None":
        """Return the process of the newest companion."""
        return self.companions[-1] if self.companions else None

    def start(self) -> None:
        """Start the plugin's companion; call this and :meth:`stop` on the main thread."""
        self.editor.start()
        self.companions.append(self.editor.companion.process)

    def stop(self) -> None:
        """Stop the companion."""
        self.editor.stop()

    def crash(self) -> None:
        """Leave the companion behind without a message."""
        assert self.companion is not None
        assert self.companion.stdin is not None
        self.companion.stdin.close()

    def end(self) -> None:
        """End the main thread."""
        self._work.put(None)
        self._thread.join()

    def module(self) -> types.ModuleType:
        """Return the module `sublime`."""
        module = types.ModuleType("sublime")
        module.__dict__.update(
            Region=Region,
            version=lambda: "4200",
            windows=lambda: [self.window],
            active_window=lambda: self.window,
            load_settings=lambda _name: self.settings,  # pyright: ignore[reportUnknownLambdaType]
            status_message=self.messages.append,
            find_syntax_for_file=lambda _path: None,  # pyright: ignore[reportUnknownLambdaType]
            set_timeout=lambda work, _milliseconds: self._work.put(work),  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        )
        return module

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


@contextmanager
def loaded_plugin(folder: Path) -> Generator[SublimeHost]:
    """Yield a host that has loaded the plugin; unload it afterwards."""
    command = [sys.executable, "-m", "isthmus", "companion", "--editor", "stdio"]
    base = types.ModuleType("sublime_plugin")
    base.__dict__.update(TextCommand=_Command, ApplicationCommand=object, EventListener=object)
    # The plugin sets the variables of Sublime's terminals in its own process, which here is that of the tests.
    with patch.dict(os.environ), SublimeHost(folder, command) as host:
        package = types.ModuleType(NAME)
        package.__path__ = [str(PACKAGE)]
        modules = {"sublime": host.module(), "sublime_plugin": base, NAME: package}
        # No bytecode in the folder that is delivered; each host has modules of its own.
        with patch.dict(sys.modules, modules), patch.object(sys, "dont_write_bytecode", True):
            plugin: Any = importlib.import_module(f"{NAME}.Isthmus")
            host.listener = plugin.IsthmusListener()
            host.commands = {
                f"isthmus_{name}": getattr(plugin, f"Isthmus{name.title().replace('_', '')}Command")
                for name in ("accept", "reject", "accept_hunk", "reject_hunk", "mention", "take_out")
            }
            host.editor, host.pause = plugin.EDITOR, importlib.import_module(f"{NAME}.core.pause")
            host.pause.READING = 0.0
            host.do(plugin.plugin_loaded)
            host.companions.append(plugin.EDITOR.companion.process)
            try:
                yield host
            finally:
                host.do(plugin.plugin_unloaded)
                for process in host.companions:
                    process.wait(30)
                    for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
                        stream.close()
