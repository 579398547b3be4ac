"""Requests for the errors of one file to TypeScript's own server, behind ``typescript-language-server``. No I/O.

It publishes diagnostics only while there are some, and some kinds before others. A request is answered once the whole
file was checked. https://github.com/typescript-language-server/typescript-language-server#typescripttsserverrequest
"""

from pathlib import Path
from typing import Final

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.ide.editor import Diagnostic, Position, Range, Severity

COMMAND: Final = "typescript.tsserverRequest"
"""Command of the language server that passes a request on."""
_KINDS: Final = ("syntacticDiagnosticsSync", "semanticDiagnosticsSync")
_SEVERITIES: Final = {"error": Severity.ERROR, "warning": Severity.WARNING, "suggestion": Severity.HINT}
MAXIMUM_DIAGNOSTICS: Final = 1000
"""Maximum number of diagnostics of one file and kind."""


def questions(path: Path) -> tuple[JsonObject, ...]:
    """Return the parameters of the requests for the diagnostics of a file (``workspace/executeCommand``)."""
    file = {"file": str(path), "includeLinePosition": True}
    return tuple({"command": COMMAND, "arguments": [kind, file]} for kind in _KINDS)


def answered(path: Path, result: object) -> tuple[Diagnostic, ...] | None:
    """Return the diagnostics in the answer to one of these requests; None if it has another form."""
    response = as_object(result)
    if response.get("success") is not True or not isinstance(response.get("body"), list):
        return None
    return tuple(_diagnostic(path, as_object(item)) for item in as_list(response["body"])[:MAXIMUM_DIAGNOSTICS])


def _diagnostic(path: Path, value: JsonObject) -> Diagnostic:
    code, category = value.get("code"), as_text(value.get("category"))
    found = Range(_position(value.get("startLocation")), _position(value.get("endLocation")))
    severity = _SEVERITIES.get(category, Severity.INFORMATION)
    return Diagnostic(
        str(path), found, severity, as_text(value.get("message")), "typescript", str(code) if code is not None else None
    )


def _position(value: object) -> Position:
    """Return a 0-based position; a server's lines and UTF-16 offsets begin at 1."""
    location = as_object(value)
    line, offset = location.get("line"), location.get("offset")
    return Position(*(max(0, number - 1) if isinstance(number, int) else 0 for number in (line, offset)))
