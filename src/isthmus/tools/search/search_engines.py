"""Two engines that find matching lines in given files: ripgrep, and our own if ripgrep is not installed.

Both return the same matches for the same files; the caller decides on the files, their order and the limits.
Expressions have Python's syntax. Ripgrep receives only those with the same meaning in its syntax, our own engine the
rest. Both run as processes whose output is limited, and are killed at the deadline or when the task is cancelled.
"""

import asyncio
import base64
import contextlib
import json
import os
import re
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import IO, Any, Protocol, cast

from isthmus.record import record
from isthmus.runtime.child_input import feed
from isthmus.runtime.processes import end_process, start_process
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.search import line_matcher

MAXIMUM_OUTPUT_BYTES = 64 * 1024 * 1024
MAXIMUM_UNREADABLE = 200
"""Maximum number of files that cannot be read that one run keeps."""

_ENVIRONMENT = frozenset({"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"})


@record
class LineQuery:
    """Query for matching lines; ``maximum`` is the maximum number of them per file."""

    pattern: str
    is_fixed: bool = False
    is_case_sensitive: bool = False
    excluded: str = ""
    maximum: int = 100


@record
class FileMatches:
    """The matching lines of one file, in order: 1-based numbers and texts without newlines.

    ``skipped`` is why the file was not searched: ``binary``, ``unreadable``, or ``large`` if its beginning alone was
    searched. Empty if it was searched.
    """

    path: Path
    lines: tuple[tuple[int, str], ...]
    skipped: str = ""


class SearchEngine(Protocol):
    """Finds matching lines in files."""

    def search(self, query: LineQuery, files: Sequence[Path]) -> AsyncGenerator[FileMatches, None]:
        """Return the matches in the order of `files`.

        Raises:
            ToolFailure: the output of the engine is too long, or the engine fails.
        """
        ...


class OwnEngine:
    """Runs :mod:`isthmus.tools.search.line_matcher`."""

    async def search(self, query: LineQuery, files: Sequence[Path]) -> AsyncGenerator[FileMatches, None]:
        """Yield the matches in the order of `files`."""
        request = {
            "pattern": query.pattern,
            "fixed_strings": query.is_fixed,
            "case_sensitive": query.is_case_sensitive,
            "exclude": query.excluded,
            "maximum": query.maximum,
        }
        paths = b"".join(os.fsencode(path) + b"\0" for path in files)
        # -I -S: neither the environment nor site packages slow down the start or change what is imported.
        command = (sys.executable, "-I", "-S", "-X", "utf8", line_matcher.__file__)
        async with _process(command, json.dumps(request).encode() + b"\n" + paths) as process:
            async for line in _lines(process):
                index, found, skipped = cast("tuple[int, list[tuple[int, str]], str]", json.loads(line))
                yield FileMatches(files[index], tuple((number, text) for number, text in found), skipped)
            if await process.wait() != 0:
                raise ToolFailure("grep_search: the search engine failed", "grep_execution_error")


@record
class Ripgrep:
    """Runs `rg` at the path `program`; expressions that it treats differently from Python go to `own`."""

    program: str
    own: OwnEngine = field(default_factory=OwnEngine)

    def can_search(self, query: LineQuery) -> bool:
        """Return whether ripgrep treats a query as Python does; False if in doubt."""
        means_the_same = query.is_fixed or is_portable(query.pattern)
        # The engines ignore case differently for non-ASCII letters.
        folds_the_same = query.is_case_sensitive or query.pattern.isascii()
        return not query.excluded and means_the_same and folds_the_same

    async def search(self, query: LineQuery, files: Sequence[Path]) -> AsyncGenerator[FileMatches, None]:
        """Yield the matches in the order of `files`, of which there are few."""
        found: Mapping[bytes, list[tuple[int, str]]] | None = None
        if self.can_search(query):
            found = await self._search_files(query, files)
        if found is None:
            async with contextlib.aclosing(self.own.search(query, files)) as results:
                async for matches in results:
                    yield matches
            return
        for path in files:
            skipped = await asyncio.to_thread(_why_skipped, path)
            lines = () if skipped else tuple(found.get(os.fsencode(path), ()))
            if skipped or lines:
                yield FileMatches(path, lines, skipped)

    async def _search_files(
        self, query: LineQuery, files: Sequence[Path]
    ) -> Mapping[bytes, list[tuple[int, str]]] | None:
        """Return matching lines by path; None if ripgrep rejects the expression."""
        command = [*self._command(query), "--no-messages", "--", *(os.fspath(path) for path in files)]
        found: dict[bytes, list[tuple[int, str]]] = {}
        is_complete = False
        async with _process(command) as process:
            async for line in _lines(process):
                message = json.loads(line)
                if message["type"] == "match":
                    found.setdefault(_bytes(message["data"]["path"]), []).append(_matching_line(message["data"]))
                is_complete = is_complete or message["type"] == "summary"
        return found if is_complete else None

    def run_below(
        self, query: LineQuery, folder: Path, told: IO[bytes], options: Sequence[str] = (), below: str = ""
    ) -> "TreeRun":
        """Return a run that searches all below a folder but what the ignore file `told` names.

        Args:
            query: one that ripgrep :meth:`can_search`.
            folder: the absolute folder that paths of the ignore file, and of the results, are relative to.
            told: the ignore file, which no other run reads meanwhile.
            options: further options of ripgrep.
            below: the folder in it to search, relative to it; empty for all.
        """
        command = (*self._command(query), "--ignore-file=/dev/stdin", *options, "--", f"./{below}")
        return TreeRun(command, folder, told)

    def _command(self, query: LineQuery) -> Sequence[str]:
        return (
            *(self.program, "--json", "--no-config", "--no-ignore", "--hidden", "--text", "--crlf"),
            f"--max-count={query.maximum}",
            "--case-sensitive" if query.is_case_sensitive else "--ignore-case",
            *(("--fixed-strings",) if query.is_fixed else ()),
            f"--regexp={query.pattern}",
        )


class TreeRun:
    """A run of ripgrep in a tree. ``is_complete``, ``received`` and ``unreadable`` are of what was read so far."""

    def __init__(self, command: Sequence[str], folder: Path, told: IO[bytes]) -> None:
        self.is_complete = False
        """Whether ripgrep has understood the expression and come to its end."""
        self.received = 0
        """Size of the output in bytes."""
        self.unreadable: list[str] = []
        """Files and folders that could not be read, relative to the folder; MAXIMUM_UNREADABLE at most."""
        self._command = command
        self._folder = folder
        self._told = told

    async def files(self) -> AsyncGenerator[tuple[str, list[tuple[int, str]]], None]:
        """Yield the files with matches, by their paths relative to the folder, and the matching lines.

        Raises:
            ToolFailure: a line is too long.
        """
        self._told.seek(0)
        lines: list[tuple[int, str]] = []
        async with _process(self._command, stdin=self._told, stderr=PIPE, cwd=self._folder) as process:
            errors = asyncio.ensure_future(self._read_errors(process))
            try:
                while process.stdout is not None and (line := await _line(process.stdout)):
                    self.received += len(line)
                    message = json.loads(line)
                    match message["type"]:
                        case "match":
                            lines.append(_matching_line(message["data"]))
                        case "end":
                            if lines:
                                path = _bytes(message["data"]["path"])
                                yield os.fsdecode(path.removeprefix(b"./")), lines
                            lines = []
                        case "summary":
                            self.is_complete = True
                        case _:
                            pass
                await errors
            finally:
                errors.cancel()

    async def _read_errors(self, process: Process) -> None:
        while process.stderr is not None and (line := await process.stderr.readline()):
            text = os.fsdecode(line).rstrip("\n").removeprefix("rg: ")
            path, _, reason = text.rpartition(": ")
            is_named = path.startswith("./") and reason.startswith("Permission denied")
            if is_named and len(self.unreadable) < MAXIMUM_UNREADABLE:
                self.unreadable.append(path.removeprefix("./"))


def _matching_line(data: Mapping[str, Any]) -> tuple[int, str]:
    text = _bytes(data["lines"]).decode("utf-8", "surrogateescape").removesuffix("\n").removesuffix("\r")
    return data["line_number"], line_matcher.printable(text)


def available_engine() -> SearchEngine:
    """Return ripgrep from PATH or from the folder of this Python, else our own engine."""
    for folders in (os.environ.get("PATH"), str(Path(sys.executable).parent)):
        program = shutil.which("rg", path=folders)
        # A relative entry of PATH could lead to a program in the workspace.
        if program is not None and Path(program).is_absolute():
            return Ripgrep(program)
    return OwnEngine()


_PORTABLE = re.compile(
    r"""(?:
        [^\\\[\](){}*+?|.^$#&~-]                                # a character that stands for itself
        | [#&~-]
        | \\[dDwWsSbtnfv] | \\[.*+?()|\[\]{}^$\\/"'`:;,=!%@~#&-]      # classes and escaped punctuation
        | \[\^?(?:[^\[\]\\&~^-]|\\[dDwWsS]|\\[.*+?()|\[\]{}^$\\/"'-]|(?<=[^\[^-])-(?=[^\]\\-]))+-?\]
        | \((?:\?:|(?!\?)) | \) | \| | \. | \^ | \$
        | (?:[*+?]|\{\d{1,3}(?:,\d{0,3})?\})\??(?![*+?{])
    )""",
    re.VERBOSE,
)


def is_portable(pattern: str) -> bool:
    r"""Return whether `pattern`, which is valid in Python, means the same to ripgrep; False if in doubt.

    `\B` does not: it matches an empty line in ripgrep, but in Python only since 3.14.
    """
    position = 0
    # Not one expression: possessive groups match wrongly before Python 3.11.5.
    while (found := _PORTABLE.match(pattern, position)) is not None:
        position = found.end()
    return position == len(pattern) and not re.search(r"&&|~~", pattern)


def _why_skipped(path: Path) -> str:
    """Return why our own engine would not search a file; empty if it would."""
    try:
        with path.open("rb") as file:
            return "binary" if line_matcher.is_binary(file.read(line_matcher.SAMPLE_BYTES)) else ""
    except OSError:
        return "unreadable"


def _bytes(value: Mapping[str, Any]) -> bytes:
    """Return the bytes of a text in ripgrep's JSON, which is Base64 if it is not UTF-8."""
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


@contextlib.asynccontextmanager
async def _process(
    command: Sequence[str],
    data: bytes | None = None,
    *,
    stdin: IO[bytes] | int = DEVNULL,
    stderr: int = DEVNULL,
    cwd: Path | None = None,
) -> AsyncGenerator[Process, None]:
    """Start a process and end it at the end at the latest; `data` goes to its standard input."""
    process = await start_process(
        *command,
        stdin=stdin if data is None else PIPE,
        stdout=PIPE,
        stderr=stderr,
        cwd=cwd,
        limit=MAXIMUM_OUTPUT_BYTES,
        # Only what a program needs to start: no keys or tokens of the agent.
        env={name: value for name, value in os.environ.items() if name in _ENVIRONMENT},
    )
    feeding = asyncio.ensure_future(feed(process.stdin, data)) if data is not None else None
    is_read_to_the_end = False
    try:
        yield process
        is_read_to_the_end = True
    finally:
        if feeding is not None:
            feeding.cancel()
        if is_read_to_the_end:
            await process.wait()
        else:
            await end_process(process)


async def _lines(process: Process) -> AsyncIterator[bytes]:
    """Yield the lines of the process's output; raises ToolFailure if it exceeds the limit."""
    if process.stdout is None:
        return
    received = 0
    while line := await _line(process.stdout):
        received += len(line)
        if received > MAXIMUM_OUTPUT_BYTES:
            raise _too_much()
        yield line


async def _line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError as error:
        raise _too_much() from error


def _too_much() -> ToolFailure:
    return ToolFailure(
        f"grep_search: the matching lines have more than {MAXIMUM_OUTPUT_BYTES} bytes; use a narrower pattern",
        "grep_execution_error",
    )
