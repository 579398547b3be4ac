"""Documents that are open in the browsers of a Jupyter server: which they are, and reading them again from disk.

The part of our extension in the browser (``jupyter_front/isthmus/documents.js``) connects to
``/isthmus/documents/browser``. The companion asks for the documents, and has them read again, at
``/isthmus/documents``. Paths are relative to the server's root, with slashes. Only Jupyter imports this module.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

FRONT: Final = Path(__file__).with_name("jupyter_front")
"""Folder of extensions for the browser, as JupyterLab looks for them."""
MAXIMUM_DOCUMENTS: Final = 500
"""Maximum number of open documents that one browser may report."""


class OpenDocuments:
    """The open documents of each browser, with the times at which they had the focus last (Unix time; 0: never)."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._focused: dict[object, dict[str, float]] = {}
        self._current: dict[object, str | None] = {}

    def report(self, browser: object, message: str | bytes) -> None:
        """Take a browser's message; ignore one that is not an object with ``documents`` and ``current``."""
        try:
            value: object = json.loads(message)
        except ValueError:
            return
        if not isinstance(value, dict):
            return
        fields = cast("dict[str, object]", value)
        documents, current = fields.get("documents"), fields.get("current")
        if not isinstance(documents, list):
            return
        paths = [path for path in cast("list[object]", documents) if isinstance(path, str)][:MAXIMUM_DOCUMENTS]
        before = self._focused.get(browser, {})
        self._focused[browser] = {path: before.get(path, 0.0) for path in paths}
        if current in paths and current != self._current.get(browser):
            self._focused[browser][cast(str, current)] = self._clock()
        self._current[browser] = current if isinstance(current, str) else None

    def closed(self, browser: object) -> None:
        """Forget the documents of a browser that has gone."""
        self._focused.pop(browser, None)
        self._current.pop(browser, None)

    def all(self) -> dict[str, float]:
        """Return the open documents with the latest time of their focus."""
        found: dict[str, float] = {}
        for documents in self._focused.values():
            for path, focused in documents.items():
                found[path] = max(focused, found.get(path, 0.0))
        return found


def serve_front(config: Any) -> None:
    """Have JupyterLab and Notebook serve the part in the browser; ``config`` is the server's."""
    config.LabServerApp.extra_labextensions_path.append(str(FRONT))


def document_handlers(join: Callable[..., str], base_url: str) -> list[tuple[str, type]]:
    """Return the handlers for companions and for browsers; ``join`` joins the parts of a URL's path."""
    documents, browsers = OpenDocuments(), set[Any]()
    path = join(base_url, "isthmus", "documents")
    return [
        (path, _companions_handler(documents, browsers)),
        (f"{path}/browser", _browsers_handler(documents, browsers)),
    ]


def _companions_handler(documents: OpenDocuments, browsers: set[Any]) -> type:
    from jupyter_server.base.handlers import APIHandler
    from tornado import web

    class DocumentsHandler(APIHandler):  # pyright: ignore[reportUntypedBaseClass]
        """Open documents, for clients with the server's token."""

        auth_resource = "contents"

        @web.authenticated
        def get(self) -> None:
            """Answer with the open documents."""
            found = [{"path": path, "focusedAt": focused} for path, focused in documents.all().items()]
            self.finish({"documents": found})

        @web.authenticated
        def put(self) -> None:
            """Have the browsers read the documents in the body again."""
            paths = paths_in(self.request.body)
            if paths is None:
                raise web.HTTPError(400, "expected a JSON object whose reload is a list of paths")
            for browser in tuple(browsers):
                browser.send(json.dumps({"reload": paths}))
            self.set_status(204)
            self.finish()

    return DocumentsHandler


def _browsers_handler(documents: OpenDocuments, browsers: set[Any]) -> type:
    from jupyter_server.auth.decorator import ws_authenticated
    from jupyter_server.base.handlers import JupyterHandler
    from jupyter_server.base.websocket import WebSocketMixin
    from tornado.websocket import WebSocketClosedError, WebSocketHandler

    class BrowserHandler(  # pyright: ignore[reportUntypedBaseClass, reportIncompatibleMethodOverride]
        WebSocketMixin, WebSocketHandler, JupyterHandler
    ):
        """Connection of one browser."""

        auth_resource = "contents"

        get = ws_authenticated(WebSocketHandler.get)
        """Accept a user of the server."""

        def open(self, *args: str, **kwargs: str) -> None:
            """Send messages to this browser from now on."""
            super().open(*args, **kwargs)  # pyright: ignore[reportUnknownMemberType]
            browsers.add(self)

        def on_message(self, message: str | bytes) -> None:
            """Take the open documents."""
            documents.report(self, message)

        def on_close(self) -> None:
            """Forget this browser."""
            super().on_close()
            browsers.discard(self)
            documents.closed(self)

        def send(self, message: str) -> None:
            """Send a message, unless the browser has just gone."""
            try:
                self.write_message(message)
            except WebSocketClosedError:
                browsers.discard(self)

    return BrowserHandler


def paths_in(body: bytes) -> list[str] | None:
    """Return the paths in a request; None if the body is anything else."""
    try:
        value: object = json.loads(body)
    except ValueError:
        return None
    paths = cast("dict[str, object]", value).get("reload") if isinstance(value, dict) else None
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in cast("list[object]", paths)):
        return None
    return cast("list[str]", paths)
