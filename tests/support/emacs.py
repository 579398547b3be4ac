"""A real Emacs in a terminal, without configuration, with the plugin of plugins/emacs; and the user in front of it.

The user sees and types through the terminal. What would take many keys, and what a test checks, is
evaluated in it as emacsclient does, over the socket of its server; that works while it waits at a prompt, too.
"""

import asyncio
import json
import os
import re
import shlex
import signal
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isthmus.editors.plugin import editor as stdio
from isthmus.editors.plugin.editor import StdioEditor
from isthmus.ide.editor import Range
from isthmus.ide.reviews.review import DiffReview
from support.editor_deadlines import PATIENT_PLUGIN
from support.programs import emacs, evil, loaded_emacs
from support.pty_program import PtyProgram, pty_program
from support.stdio_editor import offset
from support.waiting import eventually_async

PLUGIN = Path(__file__).resolve().parents[2] / "plugins" / "emacs" / "isthmus.el"
EARLY_INIT = """
(setq native-comp-deferred-compilation nil native-comp-jit-compilation nil)
(setq comp-enable-subr-trampolines nil native-comp-enable-subr-trampolines nil)
(setq inhibit-startup-screen t)
"""
"""Init file without native compilation: the compiling processes would outlive Emacs, and take seconds when a test
advises one of Emacs's own functions."""
AT_ONCE = "(setq isthmus-review-reading 0)"
"""Setting with which reviews take keys as soon as they are shown: for tests that do not check that pause."""
FLYMAKE = """(progn
  (require 'flymake)
  (setq-local flymake-no-changes-timeout nil)
  (setq-local flymake-diagnostic-functions
    (list (defun check-wrong-line (report &rest _)
      (let ((buffer (current-buffer)))
        (run-at-time 0.3 nil (lambda ()
          (with-current-buffer buffer
            (save-excursion
              (goto-char (point-min))
              ;; A report of a check that a newer one replaced is an error, whose message would cover others.
              (ignore-errors
                (funcall report
                  (when (re-search-forward "^wrong.*" nil t)
                    (list (flymake-make-diagnostic
                           buffer (match-beginning 0) (match-end 0) :error (match-string 0))))))))))))))
  (flymake-mode 1)
  (flymake-start)
  t)"""
"""Lisp that checks the current buffer by Flymake, which reports its first line that begins with "wrong" after 0.3 s."""
_RELAY = """#!/bin/sh
trap '' HUP
exec 3>{folder}/from-emacs
cat <{folder}/to-emacs &
exec cat >&3
"""
"""A stand-in for the program isthmus: the companion's side of its pipes is in this process.

Emacs that quits hangs up on it after two seconds, which may be too early on a busy machine to have passed on the end.
"""


@dataclass(slots=True)
class RunningEmacs:
    """A running Emacs: its terminal, and the socket of its server."""

    terminal: PtyProgram
    socket: Path

    async def evaluate(self, code: str) -> Any:
        """Evaluate Lisp in the buffer of the selected window; return the value in JSON's types.

        Raises:
            RuntimeError: it signals an error.
            ConnectionError: Emacs has quit.
        """
        reader, writer = await asyncio.open_unix_connection(str(self.socket), limit=64 * 1024 * 1024)
        try:
            # After an error that Emacs's own server reports, it waits for five seconds.
            expression = (
                "(condition-case problem (with-current-buffer (window-buffer (selected-window))"
                f" (json-encode (vector {code}))) (error (json-encode (error-message-string problem))))"
            )
            writer.write(f"-eval {_quoted(expression)} \n".encode())
            answer = (await asyncio.wait_for(reader.read(), 60)).decode()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        printed = ""
        for line in answer.splitlines():
            command, _, argument = line.partition(" ")
            if command == "-error":
                raise RuntimeError(_unquoted(argument))
            if command in ("-print", "-print-nonl"):
                printed += _unquoted(argument)
        if not printed:
            raise ConnectionResetError(f"Emacs has quit, or does not answer: {answer!r}")
        match json.loads(re.sub(r"\\(.)", r"\1", printed.strip()[1:-1], flags=re.DOTALL)):
            case [value]:
                return value
            case problem:
                raise RuntimeError(problem)

    async def shows(self, text: str) -> None:
        """Wait until this text is on the screen."""
        await eventually_async(lambda: self.terminal.screen_with(text), what=f"{text!r} on the screen")

    async def quits(self, shown: str) -> None:
        """Press C-g, and wait until the prompt with this text is gone from the screen.

        A C-g that comes while Emacs evaluates something for a program ends that instead of the prompt.
        """
        self.terminal.press("\x07")
        await eventually_async(lambda: shown not in self.terminal.screen, what=f"{shown!r} is gone")

    async def says(self, text: str) -> None:
        """Wait until Emacs has said this text in the echo area, though other messages may have replaced it."""
        search = f"(save-excursion (goto-char (point-min)) (search-forward {lisp_string(text)} nil t))"

        async def has_said() -> bool:
            return await self.evaluate(f'(and (with-current-buffer "*Messages*" {search}) t)') is True

        await eventually_async(has_said, what=f"{text!r} in *Messages*")

    async def reviews(self) -> list[str]:
        """Return the ids of the undecided reviews, the newest first."""
        return await self.evaluate("(mapcar #'isthmus-review-id isthmus--reviews)") or []

    async def buffers(self) -> list[str]:
        """Return the names of all buffers that concern a user."""
        return await self.evaluate(
            '(seq-remove (lambda (name) (string-prefix-p " " name)) (mapcar #\'buffer-name (buffer-list)))'
        )

    async def quit(self) -> None:
        """Quit Emacs without saving, and wait until it has ended."""
        with suppress(ConnectionError):
            await self.evaluate("(let ((confirm-kill-processes nil)) (kill-emacs))")
        await asyncio.to_thread(self.terminal.wait_for_exit, 60)


def _quoted(text: str) -> str:
    text = text.replace("&", "&&").replace("\n", "&n").replace(" ", "&_")
    return f"&{text}" if text.startswith("-") else text


def _unquoted(text: str) -> str:
    return re.sub("&(.)", lambda match: {"_": " ", "n": "\n"}.get(match[1], match[1]), text)


@asynccontextmanager
async def running_emacs(
    folder: Path, configuration: str = "", *, columns: int = 160, program: Path | None = None
) -> AsyncGenerator[RunningEmacs]:
    """Start Emacs with the plugin loaded and `folder` as its working directory; it is killed at the end.

    `configuration` is Lisp, the rest of the user's init file. `program` is another Emacs than `emacs()`.
    """
    scratch = Path(tempfile.mkdtemp(prefix="emacs-"))
    home = Path(os.environ["HOME"]) / ".emacs.d"
    home.mkdir(exist_ok=True)
    (home / "early-init.el").write_text(EARLY_INIT, encoding="utf-8")
    server = f'(require \'server) (setq server-socket-dir "{scratch}" server-name "socket") (server-start)'
    (home / "init.el").write_text(f'(load "{PLUGIN}" nil t)\n{configuration}\n{server}\n', encoding="utf-8")
    environment = {**os.environ, "TERM": "linux", "LC_ALL": "C.UTF-8"}
    command = [program or emacs(), "-nw", "--no-site-file", "--no-site-lisp"]
    with pty_program(command, folder=folder, environment=environment, columns=columns, rows=40) as terminal:
        running = RunningEmacs(terminal, scratch / "socket")

        async def answers() -> bool:
            assert terminal.process.poll() is None, terminal.screen
            with suppress(OSError):
                return await running.evaluate("(featurep 'isthmus)")
            return False

        try:
            await eventually_async(answers, what="Emacs answers")
            yield running
        finally:
            # On SIGTERM it runs Lisp within the signal's handler, and sometimes never ends.
            terminal.signal(signal.SIGKILL)


class EmacsDriver:
    """A user at the keyboard of a real Emacs; see EditorDriver in support.editor_driver."""

    def __init__(self, running: RunningEmacs, editor: StdioEditor) -> None:
        self.emacs = running
        self._editor = editor
        self._path = Path()

    @property
    def editor(self) -> StdioEditor:
        return self._editor

    async def open(self, path: Path) -> None:
        self._path = path
        await self.emacs.evaluate(f"(progn (find-file {lisp_string(str(path))}) t)")

    async def has_text(self, path: Path, text: str) -> bool:
        """Return whether the file's buffer holds this text."""
        return await self._editor.text(str(path)) == text

    async def select(self, at: Range) -> None:
        text = self._path.read_bytes().decode()
        start, end = offset(text, at.start) + 1, offset(text, at.end) + 1
        mark = "(deactivate-mark)" if start == end else f"(push-mark {start} t t)"
        await self.emacs.evaluate(f"(progn (goto-char {end}) {mark} t)")

    async def type_over(self, text: str) -> None:
        await self.emacs.evaluate(f"(progn (erase-buffer) (insert {lisp_string(text)}) t)")

    async def edit_review(self, review: DiffReview, text: str) -> None:
        await self._in_review(review, f"(progn (erase-buffer) (insert {lisp_string(text)}))")

    async def accept(self, review: DiffReview) -> None:
        await self._in_review(review, "(pop-to-buffer (current-buffer))")
        self.emacs.terminal.press("\x03\x03")

    async def reject(self, review: DiffReview) -> None:
        await self._in_review(review, "(kill-buffer)")

    async def has_message(self, text: str) -> bool:
        search = f"(save-excursion (goto-char (point-min)) (search-forward {lisp_string(text)} nil t))"
        return await self.emacs.evaluate(f'(and (with-current-buffer "*Messages*" {search}) t)') is True

    async def quit(self) -> None:
        await self.emacs.quit()

    async def _in_review(self, review: DiffReview, code: str) -> None:
        find = f"(seq-find (lambda (r) (equal (isthmus-review-id r) {lisp_string(review.id)})) isthmus--reviews)"
        await self.emacs.evaluate(f"(with-current-buffer (isthmus-review-proposal {find}) {code} t)")


def evil_layer() -> str:
    """Return Lisp for an init file that starts Evil, the vi layer."""
    return f"(add-to-list 'load-path {lisp_string(str(evil()))}) (require 'evil) (evil-mode 1)"


def lisp_string(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@asynccontextmanager
async def emacs_driver(
    folder: Path, *, reviews: str = AT_ONCE, program: Path | None = None
) -> AsyncGenerator[EmacsDriver]:
    """Yield a user in front of Emacs; the companion's side of the plugin's pipes is in this process.

    `reviews` is Lisp that sets when reviews take keys; an empty text keeps the default. `program` is another Emacs
    than `loaded_emacs()`.
    """
    scratch = Path(tempfile.mkdtemp(prefix="relay-"))
    os.mkfifo(scratch / "to-emacs")
    os.mkfifo(scratch / "from-emacs")
    relay = scratch / "isthmus"
    relay.write_text(_RELAY.format(folder=shlex.quote(str(scratch))), encoding="utf-8")
    relay.chmod(0o700)
    # Neither side waits for the other: a test that has to wait for Emacs must end with its deadline.
    incoming = os.open(scratch / "from-emacs", os.O_RDONLY | os.O_NONBLOCK)
    start = f"{reviews} (setq isthmus-program {lisp_string(str(relay))}) (isthmus-mode 1)"
    async with running_emacs(folder, start, program=program or loaded_emacs()) as running:

        def relay_reads() -> int:
            with suppress(OSError):
                return os.open(scratch / "to-emacs", os.O_WRONLY | os.O_NONBLOCK)
            return 0

        outgoing = await eventually_async(relay_reads, what="the plugin starts the relay")
        editor = await stdio.attach(incoming, outgoing, PATIENT_PLUGIN)
        try:
            yield EmacsDriver(running, editor)
        finally:
            await editor.aclose()
