"""A reader who does what a tutorial says: types in real shells in terminals, and looks for what the page shows."""

import os
import re
import termios
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar, assert_never

from support.isthmus_program import process_ends
from support.programs import require
from support.pty_program import PtyProgram, pty_program
from support.tutorial_page import (
    AnswerLine,
    AnyStep,
    ChangeFile,
    EndProgram,
    InTerminal,
    PressKeys,
    Quote,
    RunCommands,
    See,
    TypeText,
)
from support.waiting import eventually

T = TypeVar("T")
SECONDS = 60
"""Maximum seconds for any step on a slow machine."""
COLUMNS, ROWS = 120, 120
"""A terminal that shows all that a tutorial prints there."""
PROMPTS = "PS1='[$?] \\\\$ ' PS2='> '\n"
"""Prompts by which the reader knows that a shell is ready, and with which status the last command ended."""
_PROMPT = re.compile(r"(?:\[(?P<status>\d+)\] [$#]|>) $")
SIGNAL_KEYS = ("\x03", "\x1a", "\x1c")
_ID = "[0-9a-f]{8}[0-9a-f-]*"


class TutorialError(AssertionError):
    """Something is not as the page says; the text begins with its name and line."""


class TutorialReader:
    """Follows steps. ``names`` maps what pages write to what it is here, such as a port."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], names: Mapping[str, str], columns: int = COLUMNS
    ) -> None:
        self._folder = folder
        self._columns = columns
        self._environment = environment
        self._names = dict(names)
        self._open = ExitStack()
        self._terminals: dict[int, PtyProgram] = {}
        self._at = 1
        self._before: dict[int, Sequence[str]] = {}
        self._unseen: set[int] = set()
        """Terminals whose last command must succeed: the page has not shown what came of it."""

    @contextmanager
    def reading(self) -> "Generator[TutorialReader]":
        """Open the first terminal; hang up all terminals afterwards, which ends what runs in them."""
        with self._open:
            self._go_to(1)
            try:
                yield self
            finally:
                for terminal in self._terminals.values():
                    _hang_up(terminal)

    def follow(self, steps: Sequence[AnyStep]) -> None:
        """Do and see everything in order.

        Raises:
            TutorialError: something is not as the page says.
        """
        for step in steps:
            try:
                self._follow(step)
            except AssertionError as error:
                raise TutorialError(f"{step.place}: {error}") from error
        self._settle()

    def _settle(self) -> None:
        """Wait until all commands whose output the page has not shown have ended well."""
        at = self._at
        for number in sorted(self._unseen):
            self._at = number
            self._await_prompt()
        self._at = at

    def _follow(self, step: AnyStep) -> None:
        match step:
            case InTerminal(number=number):
                self._go_to(number)
            case RunCommands(lines=lines):
                for line in filter(None, lines):
                    self._run(self._here(line))
            case TypeText(text=text):
                self._type(text + "\r")
            case AnswerLine(text=text):
                self._wait("a program that reads lines", lambda: not _is_at_shell(self._terminal))
                self._look()
                self._terminal.press(text + "\r")
            case PressKeys(keys=keys):
                self._type(keys)
            case EndProgram(keys=all_keys):
                for keys in all_keys:
                    self._type(keys)
                self._wait("a shell's prompt", lambda: _PROMPT.search(self._terminal.before_cursor[1]))
            case See(lines=lines):
                self._see(lines)
            case Quote(lines=lines):
                check_quotation(lines, self._folder)
            case ChangeFile():
                self._settle()
                change_file(step, self._folder)
            case _:
                assert_never(step)

    @property
    def _terminal(self) -> PtyProgram:
        return self._terminals[self._at]

    def _go_to(self, number: int) -> None:
        self._at = number
        if number not in self._terminals:
            shell = pty_program(
                [require("bash"), "-i"],
                folder=self._folder,
                environment=self._environment,
                columns=self._columns,
                rows=ROWS,
            )
            self._terminals[number] = self._open.enter_context(shell)

    def _run(self, line: str) -> None:
        """Type a line at the shell's prompt, and Enter; the command before must have succeeded or been shown."""
        terminal = self._terminal
        self._await_prompt()
        self._look()
        terminal.press(line)
        tail = line[-20:].rstrip()
        self._wait(tail, lambda: terminal.before_cursor[1].rstrip().endswith(tail))
        row = terminal.before_cursor[0]
        terminal.press("\r")
        self._wait("a new line", lambda: terminal.before_cursor[0] != row)
        self._unseen.add(self._at)

    def _await_prompt(self) -> None:
        """Wait until a shell takes a command, and check the last one."""
        terminal = self._terminal
        prompt = self._wait("a shell's prompt", lambda: _PROMPT.search(terminal.before_cursor[1]))
        status: str | None = prompt["status"]
        assert self._at not in self._unseen or status in (None, "0"), f"status {status}:\n{terminal.screen}"

    def _type(self, keys: str) -> None:
        """Press keys in the program that runs, once it reads keys."""
        terminal = self._terminal
        self._wait("a program that takes these keys", lambda: _takes(terminal, keys))
        self._look()
        terminal.press(keys)

    def _wait(self, what: str, condition: Callable[[], T | None]) -> T:
        """Wait for a condition in the terminal, and return its value."""

        def met() -> T:
            value = condition()
            assert value, f"expected {what} in terminal {self._at}:\n{self._terminal.screen}"
            return value

        return eventually(met, SECONDS)

    def _look(self) -> None:
        """Remember what the terminals show before something is done."""
        self._before = {number: terminal.screen.split("\n") for number, terminal in self._terminals.items()}

    def _see(self, lines: Sequence[str]) -> None:
        pattern = re.compile("".join(self._patterns(lines)), re.MULTILINE)
        before, terminal = self._before.get(self._at, ()), self._terminal

        def found() -> re.Match[str]:
            screen = terminal.screen + "\n"
            shown = screen.split("\n")
            for match in pattern.finditer(screen):
                last = screen.count("\n", 0, match.end()) - 1
                if last >= len(before) or shown[last] != before[last]:
                    return match
            expected = "\n".join(lines)
            raise AssertionError(f"expected what was not there before:\n{expected}\nin terminal {self._at}:\n{screen}")

        match = eventually(found, SECONDS)
        if (shown := match.groupdict().get("id")) is not None:
            self._names["TASK_ID"] = shown
        self._unseen.discard(self._at)

    def _patterns(self, lines: Sequence[str]) -> Iterator[str]:
        has_id = False
        while lines and lines[-1] == "...":
            lines = lines[:-1]
        for line in lines:
            if line == "...":
                yield r"(?:.*\n)*?"
                continue
            pattern = ".*".join(re.escape(self._here(part)) for part in line.split("..."))
            if re.search(r"\bTASK_ID\b", line) and not has_id:
                pattern, has_id = re.sub(r"\bTASK_ID\b", f"(?P<id>{_ID})", pattern, count=1), True
            yield rf"^{pattern}\n"

    def _here(self, text: str) -> str:
        names = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in self._names)
        return re.sub(names, lambda found: self._names[found[0]], text)


def change_file(step: ChangeFile, folder: Path) -> None:
    """Change a file below ``folder``, or of the home folder if its path begins with ``~``, as an editor does."""
    path = folder / Path(step.path).expanduser()
    text = path.read_text("utf-8") if path.exists() else ""
    for change in step.changes:
        count = text.count(change.old) if change.old else 1
        assert count == 1, f"{step.path}: expected these lines once, found them {count} times:\n{change.old}"
        assert change.old or not text, f"{step.path}: expected a new file"
        text = text.replace(change.old, change.new) if change.old else change.new
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")


def check_quotation(lines: Sequence[str], folder: Path) -> None:
    """Check that these lines stand in a file of the examples below ``folder``, perhaps further to the right."""
    parts = [r"(?:.*\n)*?" if line == "..." else f"{'(?P=margin)' * bool(line)}{re.escape(line)}\\n" for line in lines]
    pattern = re.compile("^" + "".join(parts).replace("(?P=margin)", "(?P<margin> *)", 1), re.MULTILINE)
    kinds = {".py", ".toml", ".json"}
    files = [path for path in (folder / "examples").rglob("*") if path.suffix in kinds]
    assert any(pattern.search(path.read_text("utf-8")) for path in files), "quoted is what stands in no example"


def _hang_up(terminal: PtyProgram) -> None:
    """Close a terminal, and wait for the end of its shell and of the program that runs in it."""
    group = os.tcgetpgrp(terminal.terminal)
    terminal.hang_up()
    terminal.wait_for_exit(SECONDS)
    process_ends(group)


def _takes(terminal: PtyProgram, keys: str) -> bool:
    """Return whether a program, not the shell, has the terminal, and takes single keys or those of signals from it."""
    if _is_at_shell(terminal):
        return False
    return keys in SIGNAL_KEYS or not termios.tcgetattr(terminal.terminal)[3] & termios.ICANON


def _is_at_shell(terminal: PtyProgram) -> bool:
    """Return whether the shell has the terminal, and no program that it started."""
    return os.tcgetpgrp(terminal.terminal) == terminal.process.pid
