"""Extension of a Jupyter server, enabled by the file that ``isthmus plugin jupyter`` names. Only Jupyter imports it.

It starts a companion with the server and ends it with the server. It also sets the variables for terminals that the
companion sends (``PUT /isthmus/terminal-environment``): a server's terminals get their environment from its process,
which no other process can change. JupyterLab and Notebook load a part of it in the browser, by which open documents
follow what agents write (:mod:`isthmus.editors.jupyter_documents`).

With ``c.Isthmus.companion = False`` in ``jupyter_server_config.py``, or ``--Isthmus.companion=False``, it starts no
companion; an ``isthmus companion --editor jupyter`` that is started by hand then uses the server. Isthmus has to be
installed in the environment of the server.
"""

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final, cast

from isthmus.editors.jupyter_documents import document_handlers, serve_front

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

END_SECONDS: Final = 5.0


def _jupyter_server_extension_points() -> list[dict[str, str]]:  # pyright: ignore[reportUnusedFunction]
    """Return the modules of the extension; Jupyter looks for this name."""
    return [{"module": __name__}]


def _link_jupyter_server_extension(app: "ServerApp") -> None:  # pyright: ignore[reportUnusedFunction]
    """Change the configuration of the extensions after this one, by their names; Jupyter looks for this name."""
    serve_front(cast(Any, app.config))  # pyright: ignore[reportUnknownMemberType]


def _load_jupyter_server_extension(app: "ServerApp") -> None:  # pyright: ignore[reportUnusedFunction]
    """Start with the server; Jupyter looks for this name."""
    from jupyter_server.utils import url_path_join

    path = url_path_join(str(app.base_url), "isthmus", "terminal-environment")
    application = cast(Any, app.web_app)  # pyright: ignore[reportUnknownMemberType]
    handlers = [(path, _handler(application.settings)), *document_handlers(url_path_join, str(app.base_url))]
    application.add_handlers(".*$", handlers)
    if starts_companion(app):
        # The file by which the companion finds the server is written right before its loop starts.
        cast(Any, app.io_loop).add_callback(_start_companion, app)  # pyright: ignore[reportUnknownMemberType]


def starts_companion(app: "ServerApp") -> bool:
    """Return the setting ``Isthmus.companion`` of a file or of the command line."""
    from traitlets import Bool
    from traitlets.config import Configurable

    class Isthmus(Configurable):
        """Section of Jupyter's configuration, whose trait turns the text of a command line into a bool."""

        companion: Any = Bool(True).tag(config=True)

    return bool(Isthmus(parent=app).companion)


def set_variables(manager: Any, variables: dict[str, str | None], ours: set[str]) -> None:
    """Set variables for the terminals that ``manager`` (terminado's) opens from now on.

    None removes a variable; one that was set here gets the server's own value back. ``ours`` holds the names that were
    set here, and is changed.
    """
    environment: dict[str, str | None] = dict(manager.extra_env or {})
    for name, value in variables.items():
        if value is not None:
            environment[name] = value
            ours.add(name)
        elif name in ours:
            environment.pop(name, None)
            ours.discard(name)
        else:
            environment[name] = None  # terminado removes it
    manager.extra_env = environment


def _handler(settings: dict[str, Any]) -> type:
    from jupyter_server.base.handlers import APIHandler
    from tornado import web

    ours: set[str] = set()

    class TerminalEnvironmentHandler(APIHandler):  # pyright: ignore[reportUntypedBaseClass]
        """Variables for terminals, for clients with the server's token."""

        auth_resource = "terminals"

        @web.authenticated
        def get(self) -> None:
            """Answer 200 if the server has terminals, else 404."""
            self._manager()
            self.finish({})

        @web.authenticated
        def put(self) -> None:
            """Set the variables in the body."""
            variables = _variables(self.request.body)
            if variables is None:
                raise web.HTTPError(400, "expected a JSON object of variables, each a string or null")
            set_variables(self._manager(), variables, ours)
            self.set_status(204)
            self.finish()

        def _manager(self) -> Any:
            manager = settings.get("terminal_manager")
            if manager is None:
                raise web.HTTPError(404, "this server has no terminals")
            return manager

    return TerminalEnvironmentHandler


def _variables(body: bytes) -> dict[str, str | None] | None:
    """Return the variables in a request; None if the body is anything else, or if no environment can hold them."""
    try:
        value: object = json.loads(body)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    variables: dict[str, str | None] = {}
    for name, text in cast("dict[str, object]", value).items():
        if not name or "=" in name or "\0" in name or not (text is None or isinstance(text, str)):
            return None
        if text is not None and "\0" in text:
            return None
        variables[name] = text
    return variables


def _start_companion(app: "ServerApp") -> None:
    import atexit

    # The address is the server's file, which holds the token: only this user can read it, but everyone a command line.
    arguments = [sys.executable, "-P", "-m", "isthmus", "companion", "--editor", "jupyter"]
    arguments += ["--address", str(app.info_file), "--until-exit-of", str(os.getpid())]
    try:
        companion = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=str(app.root_dir)
        )
    except OSError as error:
        app.log.warning("Isthmus: the companion could not be started: %s", error)
        return
    app.log.info("Isthmus: a companion runs for this server; see `isthmus ide status`")
    atexit.register(_end, companion)


def _end(companion: "subprocess.Popen[bytes]") -> None:
    companion.terminate()
    try:
        companion.wait(END_SECONDS)
    except subprocess.TimeoutExpired:
        companion.kill()
