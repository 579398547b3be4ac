"""Session with an editor's plugin (docs/reference/editor-port.md), without I/O.

It turns the plugin's requests and notifications into answers and events of the port.
:mod:`isthmus.editors.plugin.editor` sends requests to the plugin.
"""

import logging
from typing import TYPE_CHECKING, Final

from isthmus import __version__
from isthmus.editors.plugin import wire
from isthmus.editors.plugin.lsp_diagnostics import MAXIMUM_FILES, decode_pushed
from isthmus.encoding.codec import JsonObject
from isthmus.errors import DecodeError
from isthmus.ide.editor import (
    ContextChanged,
    Diagnostic,
    DiagnosticsChanged,
    DiffAccepted,
    DiffEdited,
    DiffRejected,
    EditorEvent,
    FileSaved,
    WorkspaceChanged,
)
from isthmus.ide.reviews.review import DiffReview
from isthmus.rpc.lsp import SERVER_NOT_INITIALIZED
from isthmus.rpc.messages import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError

if TYPE_CHECKING:
    from isthmus.ide.written_changes.front import ChangesQuestion

MAXIMUM_LOGGED: Final = 100
"""Maximum number of warnings about one plugin's mistakes, so that they do not flood the log."""

_log = logging.getLogger(__name__)


class PluginSession:
    """State of one plugin.

    ``attached`` is None before ``initialize``; ``is_ready`` is set by ``initialized``, ``has_left`` by ``shutdown`` or
    ``exit``. ``folders_changed``: ``folders`` has to be asked for again. ``pushed`` holds the diagnostics that the
    plugin sent by itself, by path.
    """

    def __init__(self) -> None:
        self.attached: wire.Attached | None = None
        self.is_ready = False
        self.has_left = False
        self.folders: tuple[str, ...] = ()
        self.folders_changed = False
        self.is_trusted: bool | None = None
        self.reviews: dict[str, DiffReview] = {}
        self.pushed: dict[str, tuple[Diagnostic, ...]] = {}
        self.ask: ChangesQuestion | None = None
        """Function that answers ``companion/written``."""
        self.shows_changes = False
        """Whether the plugin has sent that request, and is told of changes from then on."""
        self._logged = 0

    @property
    def knows_only_lf(self) -> bool:
        """Whether the plugin's texts have only LF, whatever the file has."""
        return self.attached is not None and self.attached.knows_only_lf

    @property
    def pushes_diagnostics(self) -> bool:
        """Whether the plugin sends diagnostics by itself; they are in ``pushed``."""
        return self.attached is not None and self.attached.pushes_diagnostics

    def requested(self, method: str, params: JsonObject) -> object:
        """Return the result of a request of the plugin.

        Raises:
            RpcError: the request is refused.
        """
        if self.has_left:
            raise RpcError(INVALID_REQUEST, f"{method}: the plugin has said shutdown")
        if method == "initialize":
            return self._initialize(params)
        if self.attached is None:
            raise RpcError(SERVER_NOT_INITIALIZED, f"{method[:200]}: send initialize first")
        if method == "companion/written":
            return self._written(params)
        if method == "shutdown":
            self.has_left = True
            return None
        raise RpcError(METHOD_NOT_FOUND, f"{method[:200]}: there is no such request; see docs/reference/editor-port.md")

    def _written(self, params: JsonObject) -> object:
        """Return the work of a request about what agents wrote."""
        if self.ask is None:
            raise RpcError(INVALID_REQUEST, "companion/written: the companion is not ready yet")
        try:
            asked = wire.decode_written(params)
        except DecodeError as error:
            raise RpcError(INVALID_PARAMS, str(error)) from error
        self.shows_changes = True
        return self.ask(asked.command, asked.params)

    def notified(self, method: str, params: JsonObject) -> EditorEvent | None:
        """Take a notification of the plugin, and return the event that it means, if any."""
        if method == "exit":
            self.has_left = True
        if self.attached is None or self.has_left:
            return None
        try:
            return self._event(method, params)
        except DecodeError as error:
            self.note(f"the plugin sent an invalid notification: {error}")
            return None

    def note(self, problem: str) -> None:
        """Log a mistake of the plugin, for its author."""
        if self._logged < MAXIMUM_LOGGED:
            self._logged += 1
            _log.warning("%s", problem)

    def final_text(self, review: DiffReview, text: str | None) -> str:
        """Return the text of a view with the proposal's newlines; ``text`` None: the proposal itself."""
        if text is None:
            return review.proposed
        return wire.with_form_of(review.proposed, text) if self.knows_only_lf else text

    def _initialize(self, params: JsonObject) -> JsonObject:
        if self.attached is not None:
            raise RpcError(INVALID_REQUEST, "initialize: it was sent before")
        try:
            attached = wire.decode_initialize(params)
        except DecodeError as error:
            raise RpcError(INVALID_PARAMS, str(error)) from error
        self.attached, self.folders, self.is_trusted = attached, attached.folders, attached.is_trusted
        return wire.encode_initialized(attached, __version__)

    def _event(self, method: str, params: JsonObject) -> EditorEvent | None:
        match method:
            case "initialized":
                self.is_ready = True
            case "editor/didChange":
                return ContextChanged()
            case "editor/didSave":
                return FileSaved(wire.decode_saved(params))
            case "workspace/didChangeWorkspaceFolders":
                self.folders_changed = True
                return WorkspaceChanged()
            case "editor/didChangeTrust":
                self.is_trusted = wire.decode_trust(params)
                return WorkspaceChanged()
            case "editor/didMention":
                return wire.decode_mention(params)
            case "editor/didAcceptDiff" | "editor/didRejectDiff" | "editor/didEditDiff":
                return self._decision(method, params)
            case "textDocument/publishDiagnostics":
                return self._publish(params)
            case "editor/didChangeDiagnostics":
                return DiagnosticsChanged((wire.decode_diagnostics_changed(params),))
            case _ if not method.startswith("$/"):
                self.note(f"the plugin sent {method[:200]}, which is not a notification of this protocol")
            case _:
                pass
        return None

    def _decision(self, method: str, params: JsonObject) -> EditorEvent | None:
        review_id, text = wire.decode_decision(params, method)
        review = self.reviews.get(review_id)
        if review is None:
            return None
        if method == "editor/didEditDiff":
            return DiffEdited(review_id, self.final_text(review, text))
        del self.reviews[review_id]
        if method == "editor/didRejectDiff":
            return DiffRejected(review_id, None if text is None else self.final_text(review, text))
        return DiffAccepted(review_id, self.final_text(review, text))

    def _publish(self, params: JsonObject) -> EditorEvent | None:
        path, found = decode_pushed(params)
        self.pushed.pop(path, None)
        if found and len(self.pushed) < MAXIMUM_FILES:
            self.pushed[path] = found
        return DiagnosticsChanged((path,))
