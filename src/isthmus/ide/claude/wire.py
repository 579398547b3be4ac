"""Wire format shared by the tools of the Claude IDE protocol: schemas, arguments, JSON results, languages. No I/O.

Positions are 0-based and characters UTF-16 units, as in the Editor port. Arguments are checked against the schema of
the tool. ``uri`` and ``filePath`` are interchangeable (dialects of other editors), and null means that an argument is
absent. The companion's notifications are in :mod:`notifications`; each tool has a file in :mod:`tools`.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.compact_json import compact_encoder
from isthmus.errors import IsthmusError
from isthmus.ide.claude.notifications import range_json
from isthmus.ide.editor import Diagnostic, Severity
from isthmus.ide.file_uri import file_uri, is_file_name, path_of_uri
from isthmus.ide.mcp.mcp_peer import CallToolResult, ToolDefinition
from isthmus.ide.mcp.tool_names import CLOSE_ALL_DIFF_TABS, CLOSE_TAB, GET_DIAGNOSTICS, OPEN_DIFF
from isthmus.record import record

CALLED_BY_CLI: Final = frozenset({OPEN_DIFF, CLOSE_TAB, CLOSE_ALL_DIFF_TABS, GET_DIAGNOSTICS})
"""Tools that real CLIs call: unknown arguments, which newer CLIs may add, are ignored. Elsewhere they are errors."""


class ArgumentError(IsthmusError):
    """Arguments of a tool call that do not match its schema; the text states what was expected."""


def string(description: str) -> JsonObject:
    """Return the schema of a string."""
    return {"type": "string", "description": description}


def flag(description: str, *, default: bool) -> JsonObject:
    """Return the schema of a boolean."""
    return {"type": "boolean", "description": description, "default": default}


def line_number(description: str) -> JsonObject:
    """Return the schema of a 1-based line number."""
    return {"type": "integer", "description": description, "minimum": 1}


def schema(properties: Mapping[str, JsonObject] | None = None, required: Iterable[str] = ()) -> JsonObject:
    """Return the input schema of a tool, in the form of VS Code's own extension."""
    names = list(required)
    return {
        "type": "object",
        "properties": dict(properties or {}),
        **({"required": names} if names else {}),
        "additionalProperties": False,
        "$schema": "http://json-schema.org/draft-07/schema#",
    }


@record
class Arguments:
    """Checked arguments of one call. Arguments with the value null are absent.

    ``answered_by`` is as in :class:`~isthmus.ide.mcp.mcp_peer.CallTool`.
    """

    tool: str
    values: Mapping[str, Any]
    answered_by: str = ""

    def text(self, name: str) -> str | None:
        """Return a string, or None if absent."""
        return self.values.get(name)

    def required_text(self, name: str) -> str:
        """Return a string that the schema requires."""
        return str(self.values[name])

    def flag(self, name: str, *, default: bool) -> bool:
        """Return a boolean, or ``default`` if absent."""
        return bool(self.values.get(name, default))

    def number(self, name: str) -> int | None:
        """Return a whole number, or None if absent."""
        return self.values.get(name)

    def path(self, name: str) -> str | None:
        """Return a path, given as a path or a ``file:`` URI; None if absent.

        Raises:
            ArgumentError: the path is empty or impossible, or the URI does not name a file.
        """
        given = self.text(name)
        if given is None:
            return None
        path = path_of_uri(given) if "://" in given or given.startswith("untitled:") else given
        if not path or not is_file_name(path):
            raise ArgumentError(f"{self.tool}: expected {name} as the path of a file, received {given[:200]!r}")
        return path

    def required_path(self, name: str) -> str:
        """Return a path that the schema requires."""
        path = self.path(name)
        if path is None:
            raise ArgumentError(f"{self.tool}: expected {name} as the path of a file, received nothing")
        return path


_TYPES: Final[Mapping[str, tuple[type, str]]] = MappingProxyType(
    {"string": (str, "a string"), "boolean": (bool, "a boolean"), "integer": (int, "a whole number")}
)
_OTHER_NAMES: Final = MappingProxyType({"filePath": "uri", "uri": "filePath"})


def checked(tool: ToolDefinition, arguments: JsonObject) -> Arguments:
    """Return the arguments of a call, checked against the tool's schema.

    Raises:
        ArgumentError: an argument is missing, unknown or of a wrong type.
    """
    required = tool.input_schema.get("required", ())
    if not arguments and not required:
        return Arguments(tool.name, {})
    properties: Mapping[str, JsonObject] = tool.input_schema["properties"]
    values = {name: value for name, value in arguments.items() if value is not None}
    for name, other in _OTHER_NAMES.items():
        if name in properties and name not in values and other not in properties and other in values:
            values[name] = values.pop(other)
    for name in required:
        if name not in values:
            raise ArgumentError(f"{tool.name}: expected {name}, received nothing")
    for name, value in values.items():
        if name in properties:
            _require_type(tool.name, name, value, properties[name])
        elif tool.name not in CALLED_BY_CLI:
            known = ", ".join(properties) or "none"
            raise ArgumentError(f"{tool.name}: unknown argument {name[:100]!r}; its arguments are: {known}")
    return Arguments(tool.name, {name: value for name, value in values.items() if name in properties})


def _require_type(tool: str, name: str, value: object, expected: JsonObject) -> None:
    kind, words = _TYPES[expected["type"]]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        received = json.dumps(value)[:100]
        raise ArgumentError(f"{tool}: expected {name} as {words}, received {received}")
    minimum = expected.get("minimum")
    if minimum is not None and value < minimum:  # type: ignore[operator]  # a whole number: its type was checked above
        raise ArgumentError(f"{tool}: expected {name} from {minimum} on, received {value}")


_ENCODE: Final = compact_encoder()


def json_result(value: object) -> CallToolResult:
    """Return a result whose text is JSON."""
    return CallToolResult.text(_ENCODE(value))


def failure_result(message: str) -> CallToolResult:
    """Return ``{"success": false, "message"}``, for a valid request whose object was not found."""
    return json_result({"success": False, "message": message})


_SEVERITIES: Final = MappingProxyType(
    {
        Severity.ERROR: "Error",
        Severity.WARNING: "Warning",
        Severity.INFORMATION: "Info",
        Severity.HINT: "Hint",
    }
)


def diagnostics_json(found: Iterable[Diagnostic], uris: Mapping[str, str] | None = None) -> list[JsonObject]:
    """Return ``[{"uri", "diagnostics"}]``, one entry per file, in the order given.

    ``uris`` maps paths to the client's own URIs; these files are listed even without diagnostics.
    """
    known = dict(uris or {})
    files: dict[str, list[JsonObject]] = {path: [] for path in known}
    for diagnostic in found:
        files.setdefault(diagnostic.path, []).append(_diagnostic_json(diagnostic))
    return [{"uri": known.get(path) or file_uri(path), "diagnostics": entries} for path, entries in files.items()]


def _diagnostic_json(diagnostic: Diagnostic) -> JsonObject:
    optional = {"source": diagnostic.source, "code": diagnostic.code}
    return {
        "message": diagnostic.message,
        "severity": _SEVERITIES[diagnostic.severity],
        "range": range_json(diagnostic.range),
        **{name: value for name, value in optional.items() if value is not None},
    }


_LANGUAGES: Final = MappingProxyType(
    {
        ".bash": "shellscript",
        ".c": "c",
        ".cc": "cpp",
        ".cpp": "cpp",
        ".cs": "csharp",
        ".css": "css",
        ".cxx": "cpp",
        ".el": "elisp",
        ".go": "go",
        ".h": "c",
        ".hpp": "cpp",
        ".html": "html",
        ".ini": "ini",
        ".ipynb": "jupyter",
        ".java": "java",
        ".js": "javascript",
        ".json": "json",
        ".jsonc": "jsonc",
        ".jsx": "javascriptreact",
        ".kt": "kotlin",
        ".less": "less",
        ".lua": "lua",
        ".md": "markdown",
        ".mjs": "javascript",
        ".php": "php",
        ".pl": "perl",
        ".ps1": "powershell",
        ".py": "python",
        ".pyi": "python",
        ".r": "r",
        ".rb": "ruby",
        ".rs": "rust",
        ".rst": "restructuredtext",
        ".scala": "scala",
        ".scss": "scss",
        ".sh": "shellscript",
        ".sql": "sql",
        ".swift": "swift",
        ".tex": "latex",
        ".toml": "toml",
        ".ts": "typescript",
        ".tsx": "typescriptreact",
        ".vue": "vue",
        ".xml": "xml",
        ".yaml": "yaml",
        ".yml": "yaml",
        ".zsh": "shellscript",
    }
)
_LANGUAGES_BY_NAME: Final = MappingProxyType({"dockerfile": "dockerfile", "makefile": "makefile"})


def language_id(path: str) -> str:
    """Return LSP's language id for a file name; ``plaintext`` if unknown."""
    name = PurePath(path)
    return _LANGUAGES_BY_NAME.get(name.name.lower()) or _LANGUAGES.get(name.suffix.lower(), "plaintext")
