"""Our part inside a Jupyter server, for those who enable it: ``isthmus plugin jupyter`` is the file that does.

It starts a companion with the server and ends it with the server, and takes the variables for terminals that the
companion sends (``PUT /isthmus/terminal-environment``): a server's terminals get their environment from its process,
which nobody outside can change. ``c.Isthmus.companion = False`` in ``jupyter_server_config.py``, or
``--Isthmus.companion=False``, keeps it from starting one; an ``isthmus companion --editor jupyter`` that is started by
hand then uses the server. Isthmus has to be installed in the environment of the server. Imported by Jupyter alone.
"""

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

END_SECONDS: Final = 5.0


def _jupyter_server_extension_points() -> list[dict[str, str]]:  # pyright: ignore[reportUnusedFunction]
    """Jupyter asks for this name."""
    return [{"module": __name__}]


def _load_jupyter_server_extension(app: "ServerApp") -> None:  # pyright: ignore[reportUnusedFunction]
    """Jupyter calls this name when the server starts."""
    from jupyter_server.utils import url_path_join

    path = url_path_join(str(app.base_url), "isthmus", "terminal-environment")
    application = cast(Any, app.web_app)  # pyright: ignore[reportUnknownMemberType]
    application.add_handlers(".*$", [(path, _handler(application.settings))])
    if starts_companion(app):
        # The file by which the companion finds the server is written right before its loop starts.
        cast(Any, app.io_loop).add_callback(_start_companion, app)  # pyright: ignore[reportUnknownMemberType]


def starts_companion(app: "ServerApp") -> bool:
    """Return whether a companion starts with the server: ``Isthmus.companion``, of a file or of the command line."""
    from traitlets import Bool
    from traitlets.config import Configurable

    class Isthmus(Configurable):
        """The section of Jupyter's configuration. What the command line says is a text until a trait reads it."""

        companion: Any = Bool(True).tag(config=True)

    return bool(Isthmus(parent=app).companion)


def set_variables(manager: Any, variables: dict[str, str | None], ours: set[str]) -> None:
    """Have the terminals that `manager` (terminado's) opens from now on get these variables.

    None takes one away; one that we had set shows again what the server itself has. ``ours`` are those that we set.
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
            environment[name] = None  # terminado takes it away
    manager.extra_env = environment


def _handler(settings: dict[str, Any]) -> type:
    from jupyter_server.base.handlers import APIHandler
    from tornado import web

    ours: set[str] = set()

    class TerminalEnvironmentHandler(APIHandler):  # pyright: ignore[reportUntypedBaseClass]
        """Only for who has the server's token, as everything under it."""

        auth_resource = "terminals"

        @web.authenticated
        def get(self) -> None:
            """Whether terminals can be given variables: 404 where the server has none."""
            self._manager()
            self.finish({})

        @web.authenticated
        def put(self) -> None:
            """Take variables."""
            variables = _variables(self.request.body)
            if variables is None:
                raise web.HTTPError(400, "expected a JSON object of names, each with a text or null")
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
    """Return the variables in a request; None: it is something else, or nothing that an environment can hold."""
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

    # The token is in the server's file, which only this user can read; a command line everybody can.
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
