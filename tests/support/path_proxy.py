"""A reverse proxy at one path of an address, as nginx and Caddy are: it removes the path, or passes it on."""

import re
import socket
import socketserver
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

_REQUEST_LINE = re.compile(rb"(\S+) (\S+) (HTTP/1\.1\r\n)")


@dataclass(slots=True)
class PathProxy:
    """The proxy of a server that listens on ``target``, a port of this machine, once that is known."""

    path: str
    removes_path: bool
    port: int
    target: int = 0

    @property
    def url(self) -> str:
        """Public URL of the server."""
        return f"http://127.0.0.1:{self.port}{self.path}/"

    def head(self, head: bytes) -> bytes | None:
        """Return the head for the server, which closes the connection; None for a path that is not the server's."""
        found = _REQUEST_LINE.match(head)
        path = self.path.encode()
        if found is None or not found[2].startswith(path + b"/"):
            return None
        place = found[2].removeprefix(path) if self.removes_path else found[2]
        rest = re.sub(rb"(?mi)^(connection|keep-alive):.*\r\n", b"", head[found.end() :])
        return b"%b %b %bConnection: close\r\nX-Forwarded-Proto: http\r\n%b" % (found[1], place, found[3], rest)


@contextmanager
def path_proxy(path: str, *, removes_path: bool) -> Generator[PathProxy]:
    """Run a proxy at ``path``, such as ``/team/agent``."""

    class Connection(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                _serve(self.connection, proxy)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True
        block_on_close = False

    with Server(("127.0.0.1", 0), Connection) as server:
        proxy = PathProxy(path, removes_path, int(server.server_address[1]))
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()


def _serve(client: socket.socket, proxy: PathProxy) -> None:
    received = b""
    while b"\r\n\r\n" not in received:
        data = client.recv(65536)
        if not data:
            return
        received += data
    head, _, body = received.partition(b"\r\n\r\n")
    changed = proxy.head(head + b"\r\n")
    if changed is None:
        client.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        return
    with socket.create_connection(("127.0.0.1", proxy.target)) as server:
        server.sendall(changed + b"\r\n" + body)
        there = threading.Thread(target=_pump, args=(client, server), daemon=True)
        there.start()
        _pump(server, client)


def _pump(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)
