"""grep_search: find the lines of files that match a regular expression."""

import asyncio
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.files.atomic import read_regular
from isthmus.record import record
from isthmus.runtime.brief_work import briefly
from isthmus.text.visible import printable
from isthmus.tools.port.arguments import (
    INVALID_ARGUMENTS,
    CheckedArguments,
    check_arguments,
    path_parameter,
    pattern_parameter,
)
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.content import MAXIMUM_FILE_BYTES
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.file_index import is_binary_name
from isthmus.tools.port.shown_files import ShownFiles
from isthmus.tools.port.workspace import Workspace
from isthmus.tools.search import line_matcher
from isthmus.tools.search.glob_pattern import FileFilter
from isthmus.tools.search.listing import DEADLINE_SECONDS, list_files, search_folder, with_sizes
from isthmus.tools.search.ripgrep_tree import SearchedTree, binary_names, large_files, search_tree
from isthmus.tools.search.search_engines import FileMatches, LineQuery, Ripgrep, SearchEngine, available_engine
from isthmus.tools.search.skipped_files import SkippedFiles

DEFAULT_MATCHES = 100
MAXIMUM_MATCHES = 5_000
MAXIMUM_CONTEXT_LINES = 50
MAXIMUM_OWN_FILES = 200_000
"""Maximum number of files that are searched without ripgrep."""
SIZES_SECONDS = 0.3
"""Maximum time for finding the large files before a search: enough for 100,000 files."""
LISTING_SECONDS = 20.0
"""Maximum time for finding the files; after it those that were found are searched."""
MAXIMUM_CHARACTERS = 40_000
"""Maximum number of characters that one call gives to the model: about 10,000 tokens."""

_COUNT: Mapping[str, Any] = {"type": "integer", "minimum": 1}
_LINES: Mapping[str, Any] = {"type": "integer", "minimum": 0}
PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "pattern": pattern_parameter(
            "The regular expression to find within a line, such as 'def \\w+_test' or 'TODO|FIXME'."
        ),
        "dir_path": path_parameter("The folder or file to search; the workspace when left out."),
        "include_pattern": pattern_parameter("A glob pattern of the files to search: '*.py', '*.{ts,tsx}', 'src/**'."),
        "exclude_pattern": pattern_parameter("Lines that match this expression as well are left out."),
        "names_only": {"type": "boolean", "description": "Return the paths of the files only."},
        "case_sensitive": {
            "type": "boolean",
            "description": "Tell capitals from small letters. By default only a pattern that has capitals does.",
        },
        "fixed_strings": {"type": "boolean", "description": "Take the pattern as plain text."},
        "context": {**_LINES, "description": "Lines to show around each match."},
        "before": {**_LINES, "description": "Lines to show before each match."},
        "after": {**_LINES, "description": "Lines to show after each match."},
        "no_ignore": {"type": "boolean", "description": "Search what .gitignore names, too."},
        "max_matches_per_file": {**_COUNT, "description": "The most matches to return from one file."},
        "total_max_matches": {**_COUNT, "description": f"The most matches to return; {DEFAULT_MATCHES} by default."},
    },
    "required": ["pattern"],
}
_ESCAPED = re.compile(r"\\(?:[NpP]\{[^}]*\}|[xuU][0-9A-Fa-f]+|.)|\(\?P[<=>]\w*")
"""An escape sequence, or the name of a group."""
_ALIASES = {"path": "dir_path", "include": "include_pattern"}


@record
class _Result:
    files: tuple[FileMatches, ...]
    has_more: bool

    @property
    def count(self) -> int:
        return sum(len(file.lines) for file in self.files)


class GrepSearch:
    """Searches the contents of files. `engine` None: the best available one."""

    name = "grep_search"
    description = (
        "Searches the text files of the workspace for a regular expression (Python syntax), line by line, and "
        "returns the matching lines with their numbers, file by file. A pattern without capitals matches them, too; "
        "one with capitals matches exactly. Ignored files, binary files, files of more than "
        "10 MiB and the .git folder are left out."
    )
    parameters = PARAMETERS
    kind = ToolKind.READ

    def __init__(self, engine: SearchEngine | None = None, deadline: float = DEADLINE_SECONDS) -> None:
        self._engine = engine
        self._deadline = deadline

    def describe(self, arguments: Arguments) -> str:
        """Return the expression, the folder and the filter of files."""
        checked = self._check(arguments)
        where = f" in {checked.string('dir_path')}" if "dir_path" in checked else ""
        which = f" ({checked.string('include_pattern')})" if "include_pattern" in checked else ""
        return f"Search '{checked.string('pattern')}'{where}{which}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the arguments and the expressions; there is nothing to confirm."""
        checked = self._check(arguments)
        _query(checked)
        context.workspace.open_path(checked.string("dir_path", "."))
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the matches, in the order of the paths."""
        checked = self._check(arguments)
        query = _query(checked)
        where = search_folder(context.workspace, checked.string("dir_path", "."))
        wanted = min(checked.integer("total_max_matches", DEFAULT_MATCHES), MAXIMUM_MATCHES)
        skipped, note = SkippedFiles(), ""
        ends = time.monotonic() + self._deadline
        try:
            async with asyncio.timeout(self._deadline):
                if where.is_file():
                    relative = context.workspace.relative
                    files = await _search(self._engine or available_engine(), query, [where], wanted, skipped, relative)
                else:
                    git = not checked.boolean("no_ignore")
                    seconds = min(LISTING_SECONDS, self._deadline / 2)
                    options = {"git": git, "for_contents": True}
                    listing = await list_files(context.workspace, where, **options, seconds=seconds)
                    listing = await with_sizes(listing, SIZES_SECONDS)
                    shown = await briefly(partial(ShownFiles, context.workspace, where, **options))
                    include = checked.string("include_pattern")
                    tree = SearchedTree(context.workspace, listing, shown, include)
                    files = await self._search_below(query, tree, wanted, skipped, ends)
                    note = listing.note
        except TimeoutError as error:
            message = (
                f"grep_search: the search took more than {self._deadline:g} s and was stopped; "
                "use a simpler pattern, or a folder or include_pattern with fewer files"
            )
            raise ToolFailure(message, "grep_execution_error") from error
        result = _first(files, wanted)
        place = "in the workspace" if where == context.workspace.root else f'in "{printable(str(where))}"'
        filtered = f' (filter: "{checked.string("include_pattern")}")' if "include_pattern" in checked else ""
        title = f'pattern "{query.pattern}" {place}{filtered}'
        left_out = skipped.note(has_matches=bool(result.files))
        if not result.files:
            exact = query.is_case_sensitive and "case_sensitive" not in checked
            hint = " Its capitals matched exactly; case_sensitive: false ignores them." if exact else ""
            text = "\n".join(filter(None, (f"{note}No matches found for {title}.{hint}", left_out)))
        else:
            found = await asyncio.to_thread(_formatted, context.workspace, result, checked, title)
            text = note + "\n".join(filter(None, (left_out, found)))
        return ToolSucceeded(ToolOutput(text=text), text)

    async def _search_below(
        self, query: LineQuery, tree: SearchedTree, wanted: int, skipped: SkippedFiles, ends: float
    ) -> Sequence[FileMatches]:
        engine = self._engine or available_engine()
        found: Sequence[FileMatches] | None = None
        if isinstance(engine, Ripgrep):
            found = await search_tree(engine, query, tree, wanted, skipped)
        if found is not None:
            await _look_at_listing(tree, skipped, 0.0 if found else _most_of(ends))
            return found
        own = engine.own if isinstance(engine, Ripgrep) else engine
        files = await asyncio.to_thread(_files_to_search, tree)
        names = tree.workspace.relative
        matches = await _search(own, query, files, wanted, skipped, names)
        await _look_at_listing(tree, skipped, 0.0 if matches else _most_of(ends))
        return matches

    def _check(self, arguments: Arguments) -> CheckedArguments:
        return check_arguments(self.name, PARAMETERS, arguments, _ALIASES)


def _query(checked: CheckedArguments) -> LineQuery:
    """Return the query with checked expressions.

    Raises:
        ToolFailure: an expression is invalid.
    """
    is_fixed = checked.boolean("fixed_strings")
    if any(character in checked.string("pattern") for character in "\n\r\0"):
        message = "grep_search: pattern: expected text of one line, received text with a newline or NUL character"
        raise ToolFailure(message, INVALID_ARGUMENTS)
    for name in ("exclude_pattern",) if is_fixed else ("pattern", "exclude_pattern"):
        _require_expression(name, checked.string(name))
    per_file = min(checked.integer("max_matches_per_file", MAXIMUM_MATCHES), MAXIMUM_MATCHES)
    wanted = min(checked.integer("total_max_matches", DEFAULT_MATCHES), MAXIMUM_MATCHES)
    return LineQuery(
        checked.string("pattern"),
        is_fixed,
        checked.boolean("case_sensitive") if "case_sensitive" in checked else _has_capitals(checked.string("pattern")),
        checked.string("exclude_pattern"),
        # One more than shown, to find out whether there are more.
        1 if checked.boolean("names_only") else min(per_file, wanted + 1),
    )


def _has_capitals(pattern: str) -> bool:
    r"""Return whether a pattern has capital letters of its own, such as ``\W`` has not: it is meant exactly then."""
    return any(character.isupper() for character in _ESCAPED.sub("", pattern))


def _require_expression(name: str, pattern: str) -> None:
    try:
        with warnings.catch_warnings():
            # Python warns of syntax whose meaning will change, such as nested sets.
            warnings.simplefilter("ignore")
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        received = repr(pattern[:200])
        message = f"grep_search: {name}: expected a regular expression in Python's syntax, received {received}: {error}"
        raise ToolFailure(f"{message}; set fixed_strings to search for plain text", INVALID_ARGUMENTS) from error


def _files_to_search(tree: SearchedTree) -> list[Path]:
    """Return the files of a tree that our own engine searches, in the order of their paths."""
    chosen = FileFilter(tree.include) if tree.include else None
    place = tree.listing.place
    left_out = {path for _, path in large_files(tree.listing, "")}
    paths = (
        place / path
        for path in tree.listing.paths()
        if not is_binary_name(path) and (chosen is None or chosen.matches(path)) and tree.shown.shows(path)
    )
    shown = (path for path in paths if path not in left_out and tree.workspace.shows(path))
    return list(islice(shown, MAXIMUM_OWN_FILES))


def _most_of(ends: float) -> float:
    """Return most of the time in seconds until then; the rest is for the answer."""
    return max(0.0, 0.8 * (ends - time.monotonic()))


async def _look_at_listing(tree: SearchedTree, skipped: SkippedFiles, seconds: float) -> None:
    """Note the files of a tree that no engine searches; so many seconds are worth it to know the large ones."""
    if seconds:
        tree = replace(tree, listing=await with_sizes(tree.listing, seconds))
    elif tree.listing.is_whole and not tree.listing.knows_large:
        kept = tree.workspace.kept_index(tree.listing.place)
        if kept.index is tree.listing.index:
            kept.find_large_soon()
    await asyncio.to_thread(_note_left_out, tree, skipped)


def _note_left_out(tree: SearchedTree, skipped: SkippedFiles) -> None:
    """Note the files of a tree that no engine searches: the large ones, and those with names of binary files."""
    root = tree.listing.place
    for shown, path in large_files(tree.listing, tree.include):
        is_there = path.is_file() and path.stat().st_size > line_matcher.MAXIMUM_FILE_BYTES
        if is_there and tree.shown.shows(path.relative_to(root).as_posix()) and tree.workspace.shows(path):
            skipped.too_large.add(shown)
    skipped.are_large_unknown = not tree.listing.knows_large
    skipped.binary_names = binary_names(tree.listing, tree.include)


async def _search(
    engine: SearchEngine,
    query: LineQuery,
    files: Sequence[Path],
    wanted: int,
    skipped: SkippedFiles,
    shown: Callable[[Path], str],
) -> Sequence[FileMatches]:
    """Return the first files with matches in the order of `files`, with one line more than `wanted` if there are more.

    `shown` is how a path is shown.
    """
    found: list[FileMatches] = []
    lines = 0
    async with aclosing(engine.search(query, files)) as results:
        async for matches in results:
            if matches.skipped:
                skipped.of_kind(matches.skipped).add(shown(matches.path))
            if not matches.lines:
                continue
            found.append(matches)
            lines += len(matches.lines)
            if lines > wanted:
                break
    return found


def _first(files: Sequence[FileMatches], wanted: int) -> _Result:
    """Return the first `wanted` matches."""
    found: list[FileMatches] = []
    room = wanted
    for matches in files:
        if len(matches.lines) > room:
            if room:
                found.append(FileMatches(matches.path, matches.lines[:room]))
            return _Result(tuple(found), has_more=True)
        found.append(matches)
        room -= len(matches.lines)
    return _Result(tuple(found), has_more=False)


def _formatted(workspace: Workspace, result: _Result, checked: CheckedArguments, title: str) -> str:
    limited = f" (only the first {result.count} are shown; there are more)" if result.has_more else ""
    if checked.boolean("names_only"):
        names = [printable(workspace.relative(file.path)) for file in result.files]
        return f"Found {len(names)} files with matches for {title}{limited}:\n" + "\n".join(names)
    term = "match" if result.count == 1 else "matches"
    pieces = [f"Found {result.count} {term} for {title}{limited}:\n---\n"]
    size = 0
    around = checked.integer("context", 0)
    before = min(checked.integer("before", around), MAXIMUM_CONTEXT_LINES)
    after = min(checked.integer("after", around), MAXIMUM_CONTEXT_LINES)
    for file in result.files:
        pieces.append(f"File: {printable(workspace.relative(file.path))}\n")
        for number, mark, line in _with_context(file, before, after):
            shown = line.rstrip()
            if len(shown) > line_matcher.MAXIMUM_LINE_CHARACTERS:
                shown = shown[: line_matcher.MAXIMUM_LINE_CHARACTERS] + "... [line cut]"
            pieces.append(f"L{number}{mark} {shown}\n")
            size += len(pieces[-1])
            if size > MAXIMUM_CHARACTERS:
                pieces.append(f"[The result is cut after {MAXIMUM_CHARACTERS} characters; use a narrower pattern.]\n")
                return "".join(pieces).rstrip()
        pieces.append("---\n")
    return "".join(pieces).rstrip()


def _with_context(file: FileMatches, before: int, after: int) -> Iterator[tuple[int, str, str]]:
    """Yield the number of each line to show, ``:`` for a match or ``-`` for a line around it, and its text."""
    matches = dict(file.lines)
    if not (before or after):
        yield from ((number, ":", line) for number, line in file.lines)
        return
    try:
        lines = line_matcher.lines_of(read_regular(file.path, MAXIMUM_FILE_BYTES, through_links=False))
    except OSError:
        lines = []
    shown = {near for number in matches for near in range(number - before, number + after + 1)}
    for number in sorted(number for number in shown if 1 <= number <= len(lines) or number in matches):
        if number in matches:
            yield number, ":", matches[number]
        elif lines[number - 1 :] != [""]:
            yield number, "-", line_matcher.printable(lines[number - 1].removesuffix("\r"))
