"""Client of the REST API of a Jupyter server: its sessions, the variables of its terminals, and open documents.

A session is a notebook, console or file together with its kernel (jupyter-server.readthedocs.io, "REST API"). Our
requests do not count as activity, so that a server that is set to end when it is not used still ends.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_object
from isthmus.ide.editor import EditorError, EditorGoneError
from isthmus.record import record

if TYPE_CHECKING:
    import httpx2

REQUEST_SECONDS: Final = 10.0
MAXIMUM_SESSIONS: Final = 500
EXTENSION: Final = "isthmus.editors.jupyter_extension"
"""Module of our extension in the server (docs/how-to/jupyter.md)."""


@record
class ServerAddress:
    """Address of a server. ``url`` ends with a slash; ``root`` is the absolute path of the folder that it serves.

    ``pid`` is the server's process on this machine, if known.
    """

    url: str
    token: str = field(repr=False)
    root: str
    pid: int | None = None


@record
class JupyterSession:
    """An open document and its kernel. ``path`` is relative to the server's root, with slashes; times are Unix time."""

    id: str
    path: str
    type: str
    kernel_id: str
    last_activity: float


class JupyterUnreachableError(EditorGoneError):
    """No server answers at the address."""


class JupyterServer:
    """A client of one server."""

    def __init__(self, address: ServerAddress) -> None:
        import httpx2

        from isthmus.network.client_tls import client_tls
        from isthmus.network.handshakes import close_cancelled_handshake

        self.address = address
        self._http = httpx2.AsyncClient(
            base_url=address.url,
            headers={"authorization": f"token {address.token}"} if address.token else {},
            timeout=REQUEST_SECONDS,
            trust_env=False,  # no proxy between two processes of one machine
            verify=client_tls(),
            event_hooks={"request": [close_cancelled_handshake]},
        )

    async def sessions(self) -> tuple[JupyterSession, ...]:
        """Return the sessions in the server's order, at most the first 500.

        Raises:
            JupyterUnreachableError: no server answers.
            EditorError: the server refused, or answered something else.
        """
        found = await self._request("GET", "api/sessions")
        if not isinstance(found, list):
            raise EditorError(f"{self.address.url} does not answer as a Jupyter server: expected a list of sessions")
        sessions = (_session(item) for item in cast("list[object]", found)[:MAXIMUM_SESSIONS])
        return tuple(session for session in sessions if session is not None)

    async def interrupt(self, kernel_id: str) -> None:
        """Interrupt a kernel, as the button in a notebook does."""
        await self._request("POST", f"api/kernels/{quote(kernel_id, safe='')}/interrupt")

    async def set_terminal_environment(self, variables: Mapping[str, str | None]) -> None:
        """Set variables for terminals that are opened in the server from now on.

        Raises:
            JupyterNotFoundError: our extension is not enabled in the server.
        """
        await self._request("PUT", "isthmus/terminal-environment", dict(variables))

    async def has_extension(self) -> bool:
        """Return whether our extension is enabled in the server."""
        try:
            await self._request("GET", "isthmus/terminal-environment")
        except JupyterNotFoundError:
            return False
        return True

    async def documents(self) -> Mapping[str, float] | None:
        """Return the paths of the documents that are open in browsers, with the times of their focus (0: never).

        Paths are relative to the server's root; times are Unix time. None: our extension is not enabled, or has no
        part in the browser yet.
        """
        try:
            answer = as_object(await self._request("GET", "isthmus/documents"))
        except JupyterNotFoundError:
            return None
        found = answer.get("documents")
        documents = [as_object(item) for item in cast("list[object]", found)] if isinstance(found, list) else []
        return {
            path: float(focused)
            for document in documents[:MAXIMUM_SESSIONS]
            if isinstance(path := document.get("path"), str)
            and isinstance(focused := document.get("focusedAt"), (int, float))
        }

    async def reload_documents(self, paths: Sequence[str]) -> None:
        """Have the browsers read documents again; those with unsaved text stay as they are.

        Raises:
            JupyterNotFoundError: our extension is not enabled in the server.
        """
        await self._request("PUT", "isthmus/documents", {"reload": list(paths)})

    def websocket_url(self, kernel_id: str, session: str) -> str:
        """Return the URL of a kernel's websocket."""
        base = "ws" + self.address.url.removeprefix("http")
        return f"{base}api/kernels/{quote(kernel_id, safe='')}/channels?session_id={session}"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _request(self, method: str, path: str, body: JsonObject | None = None) -> object:
        import httpx2

        try:
            response = await self._http.request(method, path, json=body, params={"no_track_activity": "1"})
        except httpx2.TimeoutException as error:
            raise EditorError(f"the Jupyter server gave no answer within {REQUEST_SECONDS:.0f} s ({path})") from error
        except httpx2.TransportError as error:
            raise JupyterUnreachableError(f"no Jupyter server answers at {self.address.url}: {error}") from error
        _require_success(response, path)
        try:
            return response.json() if response.content else None
        except ValueError as error:
            raise EditorError(f"{self.address.url} does not answer as a Jupyter server: {path} is not JSON") from error


class JupyterNotFoundError(EditorError):
    """The server has no such kernel, session or path."""


def _require_success(response: "httpx2.Response", path: str) -> None:
    if response.is_success:
        return
    if response.status_code in (401, 403) or response.is_redirect:  # to its login page
        raise EditorError(
            "the Jupyter server refused the token; expected the one that `jupyter server list` shows, as ?token=... in "
            "--address or in $JUPYTER_TOKEN (a server with a password alone cannot be used: give it a token)"
        )
    if response.status_code == 404:
        raise JupyterNotFoundError(f"the Jupyter server has no {path}")
    raise EditorError(f"the Jupyter server answered {response.status_code} to {path}: {_message(response)}")


def _message(response: "httpx2.Response") -> str:
    try:
        value: object = response.json()
    except ValueError:
        return response.reason_phrase
    return str(as_object(value).get("message", response.reason_phrase))


def _session(item: object) -> JupyterSession | None:
    fields = as_object(item)
    kernel = as_object(fields.get("kernel"))
    path = fields.get("path") or as_object(fields.get("notebook")).get("path")
    if not isinstance(path, str) or not path or not isinstance(kernel.get("id"), str):
        return None
    return JupyterSession(
        str(fields.get("id", "")),
        path,
        str(fields.get("type", "notebook")),
        str(kernel["id"]),
        _seconds(kernel.get("last_activity")),
    )


def _seconds(value: object) -> float:
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        return 0.0
