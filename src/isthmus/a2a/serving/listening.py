"""The socket of a server, its certificate, and the end of its work at SIGTERM."""

import contextlib
from collections.abc import Callable, Generator
from functools import partial
from typing import TYPE_CHECKING

from isthmus.a2a.server.listen import A2AServer, Certificate, bind, is_loopback
from isthmus.a2a.serving.names import ServingError
from isthmus.listeners.limits import raise_descriptor_limit

if TYPE_CHECKING:
    import socket

    from isthmus.a2a.server.application import Application
    from isthmus.a2a.serving.options import ServingOptions
    from isthmus.engine import Engine


@contextlib.contextmanager
def listening(host: str, port: int, serving: "ServingOptions", public_url: str | None) -> "Generator[socket.socket]":
    """Listen as long as the context lasts, on any free port for 0.

    Raises:
        ListenError: the address or the certificate cannot be used.
        ServingError: tokens would cross a network unencrypted, and nobody has said that they may.
    """
    raise_descriptor_limit()
    if serving.certificate is not None:
        Certificate(*serving.certificate).check()
    listener = bind(host, port)
    try:
        _require_privacy(host, listener, serving, public_url)
        yield listener
    finally:
        listener.close()


def a2a_server(
    application: "Application",
    engine: "Engine",
    listener: "socket.socket",
    serving: "ServingOptions",
    on_ready: Callable[[], None],
) -> A2AServer:
    """Return the server; ``on_ready`` is called once it serves."""
    certificate = Certificate(*serving.certificate) if serving.certificate is not None else None
    drain = partial(engine.runner.drain, serving.drain_seconds) if serving.drain_seconds else None
    return A2AServer(application, listener, certificate=certificate, on_ready=on_ready, drain=drain)


def _require_privacy(host: str, listener: "socket.socket", serving: "ServingOptions", public_url: str | None) -> None:
    behind_proxy = public_url is not None and public_url.startswith("https://")
    if is_loopback(listener) or serving.certificate is not None or behind_proxy or serving.insecure_http:
        return
    names = serving.names
    raise ServingError(
        f"{names.host} {host} can be reached from other machines, and without TLS anyone on the network can read"
        f" tokens and code: give {names.certificate}, or {names.public_url} https://... of a proxy that encrypts, or"
        f" {names.insecure_http} if the network is yours alone"
    )
