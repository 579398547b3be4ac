"""Decoding of LSP's diagnostics, pushed or pulled, into the Editor port's. Positions stay in their encoding."""

from typing import Final

from isthmus.editors.plugin.lsp_shapes import LspRange, a_list, a_text, an_object, decode_path, decode_range, decoded
from isthmus.encoding.codec import JsonObject
from isthmus.ide.editor import Diagnostic, Severity
from isthmus.record import record

MAXIMUM_FILES: Final = 2000
MAXIMUM_DIAGNOSTICS: Final = 1000
"""Maximum number of diagnostics of one file."""
_SEVERITIES: Final = {1: Severity.ERROR, 2: Severity.WARNING, 3: Severity.INFORMATION, 4: Severity.HINT}


@record
class _Diagnostic:
    range: LspRange
    message: str
    severity: int = 1
    source: str | None = None


def decode_pushed(params: JsonObject) -> tuple[str, tuple[Diagnostic, ...]]:
    """Return the params of ``textDocument/publishDiagnostics``: a path and all of its diagnostics."""
    where = "textDocument/publishDiagnostics"
    path = decode_path(a_text(params.get("uri"), f"{where}.uri"), where)
    return path, _diagnostics(path, params.get("diagnostics"), f"{where}.diagnostics")


def decode_document_report(path: str, value: object) -> tuple[Diagnostic, ...]:
    """Return the result of ``textDocument/diagnostic``."""
    report = an_object(value, "textDocument/diagnostic")
    return _diagnostics(path, report.get("items", []), "textDocument/diagnostic.items")


def decode_workspace_report(value: object) -> tuple[Diagnostic, ...]:
    """Return the result of ``workspace/diagnostic``."""
    where = "workspace/diagnostic.items"
    items = an_object(value, "workspace/diagnostic").get("items", [])
    found: list[Diagnostic] = []
    for index, item in enumerate(a_list(items, where)[:MAXIMUM_FILES]):
        report = an_object(item, f"{where}[{index}]")
        path = decode_path(a_text(report.get("uri"), f"{where}[{index}].uri"), f"{where}[{index}]")
        found += _diagnostics(path, report.get("items", []), f"{where}[{index}].items")
    return tuple(found)


def _diagnostics(path: str, value: object, where: str) -> tuple[Diagnostic, ...]:
    items = a_list(value, where)[:MAXIMUM_DIAGNOSTICS]
    return tuple(_diagnostic(path, an_object(item, f"{where}[{i}]"), f"{where}[{i}]") for i, item in enumerate(items))


def _diagnostic(path: str, value: JsonObject, where: str) -> Diagnostic:
    found = decoded(_Diagnostic, value, where)
    code = value.get("code")
    severity = _SEVERITIES.get(found.severity, Severity.INFORMATION)
    is_code = isinstance(code, (str, int)) and not isinstance(code, bool)
    return Diagnostic(
        path, decode_range(found.range), severity, found.message, found.source, str(code) if is_code else None
    )
