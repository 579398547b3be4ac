"""Two engines that find matching lines in given files: ripgrep, and our own for where there is none.

Both get the same files and give the same matches; what files there are, their order and all limits are decided
elsewhere, once. Expressions are Python's. Ripgrep gets only those that mean the same to it; the rest goes to the own
engine. Both run as processes, are read with a limit, and are killed at the deadline or when the task is cancelled.
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from isthmus.runtime.processes import end_process, start_process
from isthmus.tools import line_matcher
from isthmus.tools.failure import ToolFailure

MAXIMUM_OUTPUT_BYTES = 64 * 1024 * 1024
MAXIMUM_ARGUMENT_BYTES = 96 * 1024
"""Paths go to ripgrep as arguments, in portions of this many bytes."""

_ENVIRONMENT = frozenset({"PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"})


@dataclass(frozen=True, slots=True)
class LineQuery:
    """What to look for; ``maximum`` is the number of matching lines of one file that are wanted."""

    pattern: str
    is_fixed: bool = False
    is_case_sensitive: bool = False
    excluded: str = ""
    maximum: int = 100


@dataclass(frozen=True, slots=True)
class FileMatches:
    """The matching lines of one file, in order: 1-based numbers and texts without newlines."""

    path: Path
    lines: tuple[tuple[int, str], ...]


class SearchEngine(Protocol):
    """Finds lines."""

    def search(self, query: LineQuery, files: Sequence[Path]) -> AsyncGenerator[FileMatches, None]:
        """Return the matches in the order of `files`.

        Raises:
            ToolFailure: the output of the engine is too long, or it fails.
        """
        ...


class OwnEngine:
    """Runs :mod:`isthmus.tools.line_matcher`."""

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
        # -I -S: neither the environment nor site packages make the start slower or change what is imported.
        command = (sys.executable, "-I", "-S", "-X", "utf8", line_matcher.__file__)
        async with _process(command, json.dumps(request).encode() + b"\n" + paths) as process:
            async for line in _lines(process):
                index, found = cast("tuple[int, list[tuple[int, str]]]", json.loads(line))
                yield FileMatches(files[index], tuple((number, text) for number, text in found))
            if await process.wait() != 0:
                raise ToolFailure("grep_search: the search engine failed", "grep_execution_error")


@dataclass(frozen=True, slots=True)
class Ripgrep:
    """Runs the program `rg` at `program`; what it cannot do as Python does, `own` does."""

    program: str
    own: OwnEngine = field(default_factory=OwnEngine)

    async def search(self, query: LineQuery, files: Sequence[Path]) -> AsyncGenerator[FileMatches, None]:
        """Yield the matches in the order of `files`."""
        means_the_same = query.is_fixed or is_portable(query.pattern)
        # The two fold the case of letters beyond ASCII differently.
        folds_the_same = query.is_case_sensitive or query.pattern.isascii()
        if query.excluded or not (means_the_same and folds_the_same):
            async with contextlib.aclosing(self.own.search(query, files)) as results:
                async for matches in results:
                    yield matches
            return
        for portion in _portions(files):
            found = await self._search_portion(query, portion)
            if found is None:
                # Ripgrep refuses the expression, for instance as too big.
                async with contextlib.aclosing(self.own.search(query, portion)) as results:
                    async for matches in results:
                        yield matches
                continue
            for path in portion:
                if (lines := found.get(os.fsencode(path))) and not await asyncio.to_thread(_is_skipped, path):
                    yield FileMatches(path, tuple(lines))

    async def _search_portion(
        self, query: LineQuery, files: Sequence[Path]
    ) -> Mapping[bytes, list[tuple[int, str]]] | None:
        """Matching lines by path; None when ripgrep does not take the expression."""
        command = [
            *(self.program, "--json", "--no-config", "--no-messages", "--no-ignore", "--hidden", "--text", "--crlf"),
            f"--max-count={query.maximum}",
            "--case-sensitive" if query.is_case_sensitive else "--ignore-case",
            *(("--fixed-strings",) if query.is_fixed else ()),
            f"--regexp={query.pattern}",
            "--",
            *(os.fspath(path) for path in files),
        ]
        found: dict[bytes, list[tuple[int, str]]] = {}
        is_complete = False
        async with _process(command) as process:
            async for line in _lines(process):
                message = json.loads(line)
                if message["type"] == "match":
                    data = message["data"]
                    text = _bytes(data["lines"]).decode("utf-8", "surrogateescape")
                    text = text.removesuffix("\n").removesuffix("\r")
                    found.setdefault(_bytes(data["path"]), []).append(
                        (data["line_number"], line_matcher.printable(text))
                    )
                is_complete = is_complete or message["type"] == "summary"
        return found if is_complete else None


def available_engine() -> SearchEngine:
    """Ripgrep from PATH or from beside this Python, else the own engine."""
    for folders in (os.environ.get("PATH"), str(Path(sys.executable).parent)):
        program = shutil.which("rg", path=folders)
        # A relative entry of PATH could name a program of the workspace.
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
    )*+""",
    re.VERBOSE,
)


def is_portable(pattern: str) -> bool:
    r"""Return whether `pattern`, which Python accepts, means the same to ripgrep. In doubt it does not.

    `\B` does not: an empty line has one for ripgrep, and for Python from 3.14 on only.
    """
    return _PORTABLE.fullmatch(pattern) is not None and not re.search(r"&&|~~", pattern)


def _portions(files: Sequence[Path]) -> list[Sequence[Path]]:
    portions: list[Sequence[Path]] = []
    start = size = 0
    for index, path in enumerate(files):
        size += len(os.fsencode(path)) + 9
        if size > MAXIMUM_ARGUMENT_BYTES and index > start:
            portions.append(files[start:index])
            start, size = index, 0
    if start < len(files):
        portions.append(files[start:])
    return portions


def _is_skipped(path: Path) -> bool:
    """Return whether our own engine would skip a file in which ripgrep found something."""
    try:
        with path.open("rb") as file:
            return line_matcher.is_binary(file.read(line_matcher.SAMPLE_BYTES))
    except OSError:
        return True


def _bytes(value: Mapping[str, Any]) -> bytes:
    """Return a text in ripgrep's JSON: Base64 when it is not UTF-8."""
    return value["text"].encode() if "text" in value else base64.b64decode(value["bytes"])


@contextlib.asynccontextmanager
async def _process(command: Sequence[str], data: bytes | None = None) -> AsyncGenerator[Process, None]:
    """A process that is killed at the end at the latest; `data` goes to its standard input."""
    process = await start_process(
        *command,
        stdin=DEVNULL if data is None else PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        limit=MAXIMUM_OUTPUT_BYTES,
        # No keys or tokens of the agent: only what a program may need to start.
        env={name: value for name, value in os.environ.items() if name in _ENVIRONMENT},
    )
    feeding = asyncio.ensure_future(_feed(process, data)) if data is not None else None
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


async def _feed(process: Process, data: bytes) -> None:
    if process.stdin is None:
        return
    with contextlib.suppress(ConnectionError):
        process.stdin.write(data)
        await process.stdin.drain()
        process.stdin.close()


async def _lines(process: Process) -> AsyncIterator[bytes]:
    """Yield the lines of the process's output, as long as they stay within the limit."""
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
