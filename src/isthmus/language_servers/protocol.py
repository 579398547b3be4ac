"""One client of a language server: what it sends and what it has received, for the diagnostics of files. No I/O.

Servers report in two ways: they publish diagnostics when they like, or answer requests for a file's diagnostics. The
latter is used where a server offers it, also as a command, since its answer is about the text that was sent last.
https://microsoft.github.io/language-server-protocol/specifications/lsp/3.17/specification
"""

import os
from collections.abc import Sequence
from pathlib import Path

from isthmus.editors.plugin.lsp_diagnostics import decode_document_report, decode_pushed
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.errors import DecodeError, IsthmusError
from isthmus.ide.editor import Diagnostic
from isthmus.language_servers import tsserver
from isthmus.language_servers.servers import LanguageServer
from isthmus.record import record
from isthmus.rpc import messages as rpc

MAXIMUM_OPEN_FILES = 50
"""Maximum number of files that a server has open; the one that was opened first is closed."""
_EMPTY_ANSWERS = frozenset(
    {
        "client/registerCapability",
        "client/unregisterCapability",
        "window/workDoneProgress/create",
        "window/showMessageRequest",
        "workspace/diagnostic/refresh",
        "workspace/inlayHint/refresh",
        "workspace/semanticTokens/refresh",
        "workspace/codeLens/refresh",
    }
)
"""Requests of servers that are answered with nothing."""


@record
class Sent:
    """A notification to be sent."""

    method: str
    params: JsonObject


@record
class DiagnosticRequest:
    """A request of diagnostics to be sent."""

    method: str
    params: JsonObject


@record
class _Published:
    """Diagnostics that were published of a file, of ``version`` if the server says so."""

    diagnostics: tuple[Diagnostic, ...]
    version: int | None


class ServerProtocol:
    """State of one language server, and of the files that are open in it."""

    def __init__(self, server: LanguageServer, workspace: Path, settings: JsonObject | None = None) -> None:
        """Prepare to speak to a server; ``settings`` is what it asks for by section, in place of its usual settings."""
        self._server = server
        self._settings = server.settings if settings is None else settings
        self._workspace = workspace
        self._versions: dict[str, int] = {}
        self._published: dict[str, _Published] = {}
        self._answers_for_files = False
        self._asks_tsserver = False
        self.has_loaded = not server.says_status
        """Whether the server has loaded the project, as far as it says so."""

    def initialize(self) -> JsonObject:
        """Return the parameters of the first request."""
        root = self._workspace.as_uri()
        return {
            "processId": os.getpid(),
            "clientInfo": {"name": "isthmus"},
            "rootUri": root,
            "workspaceFolders": [{"uri": root, "name": self._workspace.name or "root"}],
            "initializationOptions": dict(self._server.options),
            "capabilities": {
                "general": {"positionEncodings": ["utf-16"]},
                "textDocument": {
                    "synchronization": {"didSave": True},
                    "publishDiagnostics": {"versionSupport": True},
                    "diagnostic": {"dynamicRegistration": False, "relatedDocumentSupport": False},
                },
                "workspace": {"configuration": True, "workspaceFolders": True},
                "experimental": {"serverStatusNotification": True},
            },
        }

    def initialized(self, result: object) -> None:
        """Take the result of the first request."""
        capabilities = as_object(as_object(result).get("capabilities"))
        self._answers_for_files = capabilities.get("diagnosticProvider") not in (None, False)
        commands = as_list(as_object(capabilities.get("executeCommandProvider")).get("commands"))
        self._asks_tsserver = tsserver.COMMAND in commands

    def change(self, path: Path, text: str) -> list[Sent]:
        """Return the notifications that make this the text of a file, whether or not it is open."""
        uri = path.as_uri()
        version = self._versions.pop(uri, 0) + 1
        sent: list[Sent] = []
        if version == 1:
            while len(self._versions) >= MAXIMUM_OPEN_FILES:
                oldest = next(iter(self._versions))
                del self._versions[oldest]
                self._published.pop(oldest, None)
                sent.append(Sent("textDocument/didClose", {"textDocument": {"uri": oldest}}))
            language = self._server.languages[path.suffix.lower()]
            document = {"uri": uri, "languageId": language, "version": version, "text": text}
            sent.append(Sent("textDocument/didOpen", {"textDocument": document}))
        else:
            changed = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
            sent.append(Sent("textDocument/didChange", changed))
        self._versions[uri] = version
        self._published.pop(uri, None)
        return sent

    def saved(self, path: Path) -> Sent:
        """Return the notification that a file is on disk as it was sent."""
        return Sent("textDocument/didSave", {"textDocument": {"uri": path.as_uri()}})

    def questions(self, path: Path) -> tuple[DiagnosticRequest, ...]:
        """Return the requests for the diagnostics of a file; none if the server only publishes them."""
        if self._answers_for_files:
            return (DiagnosticRequest("textDocument/diagnostic", {"textDocument": {"uri": path.as_uri()}}),)
        if self._asks_tsserver:
            return tuple(DiagnosticRequest("workspace/executeCommand", params) for params in tsserver.questions(path))
        return ()

    def answered(self, path: Path, results: Sequence[object]) -> tuple[Diagnostic, ...] | None:
        """Return the diagnostics in the answers to those requests; None if one has another form."""
        found: list[Diagnostic] = []
        for result in results:
            each = _report(path, result) if self._answers_for_files else tsserver.answered(path, result)
            if each is None:
                return None
            found += each
        return tuple(found)

    def notified(self, method: str, params: JsonObject) -> bool:
        """Take a notification of the server, and return whether it says something new of a file or of the project."""
        if method == "experimental/serverStatus":
            self.has_loaded = self.has_loaded or params.get("quiescent") is True
            return self.has_loaded
        if method != "textDocument/publishDiagnostics":
            return False
        try:
            _, diagnostics = decode_pushed(params)
        except (DecodeError, IsthmusError):
            return False
        uri, version = as_text(params.get("uri")), params.get("version")
        known = next((known for known in self._versions if _is_same(known, uri)), None)
        if known is None or (isinstance(version, int) and version < self._versions[known]):
            return False
        self._published[known] = _Published(diagnostics, version if isinstance(version, int) else None)
        return True

    def published(self, path: Path) -> tuple[Diagnostic, ...] | None:
        """Return what was published of a file since its text was sent last; None if nothing was."""
        found = self._published.get(path.as_uri())
        return None if found is None else found.diagnostics

    def asked(self, method: str, params: JsonObject) -> object:
        """Return the answer to a request of the server.

        Raises:
            RpcError: the method is unknown; nothing of the project is changed for a server.
        """
        if method == "workspace/configuration":
            return [self._setting(as_text(as_object(item).get("section"))) for item in as_list(params.get("items"))]
        if method == "workspace/workspaceFolders":
            return [{"uri": self._workspace.as_uri(), "name": self._workspace.name or "root"}]
        if method in _EMPTY_ANSWERS:
            return None
        raise rpc.RpcError(rpc.METHOD_NOT_FOUND, f"{method[:100]} is not supported")

    def _setting(self, section: str) -> object:
        found: object = self._settings
        for name in section.split(".") if section else ():
            found = as_object(found).get(name)
        return found


def _report(path: Path, result: object) -> tuple[Diagnostic, ...] | None:
    try:
        return decode_document_report(str(path), result)
    except (DecodeError, IsthmusError):
        return None


def _is_same(known: str, uri: str) -> bool:
    """Return whether two URIs name one file: some servers escape more characters than others."""
    from urllib.parse import unquote

    return known == uri or unquote(known) == unquote(uri)
