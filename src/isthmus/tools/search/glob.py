"""glob: find files by a pattern of their paths, newest first."""

from collections.abc import Iterator, Mapping
from typing import Any

from isthmus.development_tool import ConfirmationDetails, ToolOutput
from isthmus.text.visible import printable
from isthmus.tools.port.arguments import CheckedArguments, check_arguments, path_parameter, pattern_parameter
from isthmus.tools.port.base import Arguments, CallContext, ToolContext, ToolKind, ToolResult, ToolSucceeded
from isthmus.tools.port.content import is_file
from isthmus.tools.port.failure import ToolFailure
from isthmus.tools.port.workspace import FoundFile
from isthmus.tools.search.glob_pattern import GlobPattern, has_glob_syntax
from isthmus.tools.search.walking import Walk, search_folder

MAXIMUM_RESULTS = 1_000

PARAMETERS: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "pattern": pattern_parameter(
            "The pattern of the path below dir_path, such as '**/*.py', 'src/*.{ts,tsx}' or 'docs/**'."
        ),
        "dir_path": path_parameter("The folder to search; the workspace when left out."),
        "case_sensitive": {"type": "boolean", "description": "Tell capitals from small letters; not the default."},
        "respect_git_ignore": {"type": "boolean", "description": "Leave out what .gitignore names; the default."},
        "respect_gemini_ignore": {"type": "boolean", "description": "Leave out what .geminiignore names; the default."},
    },
    "required": ["pattern"],
}


class Glob:
    """Finds files by their paths."""

    name = "glob"
    description = (
        "Finds files by a glob pattern and returns their absolute paths, the last modified first. ** stands for any "
        f"number of folders. At most {MAXIMUM_RESULTS} files. Ignored files and the .git folder are left out."
    )
    parameters = PARAMETERS
    kind = ToolKind.READ

    def describe(self, arguments: Arguments) -> str:
        """Return the pattern and the folder."""
        checked = self._check(arguments)
        where = f" in {checked.string('dir_path')}" if "dir_path" in checked else ""
        return f"Find {checked.string('pattern')}{where}"

    async def propose(self, arguments: Arguments, context: ToolContext) -> ConfirmationDetails | None:
        """Check the arguments; there is nothing to confirm."""
        context.workspace.open_path(self._check(arguments).string("dir_path", "."))
        return None

    async def run(self, arguments: Arguments, context: CallContext) -> ToolResult:
        """Return the paths of the matching files."""
        checked = self._check(arguments)
        workspace = context.workspace
        folder = search_folder(workspace, checked.string("dir_path", "."))
        if not folder.is_dir():
            raise ToolFailure(f"{checked.string('dir_path')} is a file, not a folder", "path_is_not_a_directory")
        text = checked.string("pattern")
        if text.startswith("/"):
            # An absolute pattern works if it names the folder that is searched.
            text = text.removeprefix(folder.as_posix() + "/")
        literal = text.rstrip("/")
        pattern = GlobPattern(literal, is_case_sensitive=checked.boolean("case_sensitive"))
        start = "" if folder == workspace.root else workspace.relative(folder) + "/"
        # A name such as app/[id]/page.tsx is taken literally if such a file exists.
        is_file_name = has_glob_syntax(literal) and is_file(folder / literal)

        def collect(files: Iterator[FoundFile]) -> list[FoundFile]:
            return [
                file
                for file in files
                if (file.path == start + literal if is_file_name else pattern.matches(file.path[len(start) :]))
            ]

        walk = Walk(workspace, folder, git=checked.boolean("respect_git_ignore", default=True))
        found = newest_first(await walk.run(collect))
        if not found:
            message = f'No files found matching pattern "{text}" within {printable(str(folder))}.'
            return ToolSucceeded(ToolOutput(text=message), walk.note + message)
        paths = [printable(str(workspace.root / file.path)) for file in found[:MAXIMUM_RESULTS]]
        if len(found) > MAXIMUM_RESULTS:
            paths.append(f"[{len(found) - MAXIMUM_RESULTS} more files are not shown; use a narrower pattern]")
        head = f'Found {len(found)} file(s) matching "{text}" within {printable(str(folder))}, newest first:\n'
        return ToolSucceeded(ToolOutput(text=walk.note + head + "\n".join(paths)), walk.note + head + "\n".join(paths))

    def _check(self, arguments: Arguments) -> CheckedArguments:
        return check_arguments(self.name, PARAMETERS, arguments, {"path": "dir_path"})


def newest_first(files: list[FoundFile]) -> list[FoundFile]:
    """Return the files, last modified first, then by path; files that were removed meanwhile are left out."""
    dated: list[tuple[int, str, FoundFile]] = []
    for file in files:
        try:
            dated.append((-file.entry.stat(follow_symlinks=False).st_mtime_ns, file.path, file))
        except OSError:
            continue
    return [file for _, _, file in sorted(dated, key=lambda item: item[:2])]
