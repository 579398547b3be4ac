"""HTTP/1.1 answers read from plain sockets, whole or as server-sent events."""

import json
import socket
from collections.abc import Iterator

from support.rfc_events import Deviation


class HttpAnswer:
    """An HTTP/1.1 answer on a socket of its own; its body is read as it arrives."""

    def __init__(self, host: str, port: int, request: bytes, timeout: float) -> None:
        self._socket = socket.create_connection((host, port), timeout)
        self._file = self._socket.makefile("rb")
        try:
            self._socket.sendall(request)
            self._read_head()
        except BaseException:
            self.close()
            raise

    def _read_head(self) -> None:
        status_line = self._file.readline().decode("latin-1").split(" ", 2)
        if len(status_line) < 2 or not status_line[0].startswith("HTTP/1."):
            raise Deviation(f"a status line of HTTP/1.1 was expected, and came: {status_line}")
        self.status = int(status_line[1])
        self.headers: dict[str, str] = {}
        while line := self._file.readline().decode("latin-1").strip():
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()
        self.sort = self.headers.get("content-type", "").partition(";")[0].strip()

    def pieces(self) -> Iterator[bytes]:
        """Return the pieces of the body up to its end."""
        if self.headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int(self._exactly_a_line().partition(b";")[0], 16):
                yield self._exactly(size)
                self._exactly(2)
        elif "content-length" in self.headers:
            yield self._exactly(int(self.headers["content-length"]))
        else:
            while piece := self._file.read1(65536):
                yield piece

    def _exactly(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise Deviation("the connection broke off in the middle of the answer")
        return data

    def _exactly_a_line(self) -> bytes:
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise Deviation("the connection broke off in the middle of the answer")
        return line.strip()

    def json(self) -> object:
        """Return the whole body as JSON."""
        body = b"".join(self.pieces())
        self.close()
        if self.status != 200:
            raise Deviation(f"HTTP 200 was expected, and came {self.status}: {body[:500]!r}")
        return _from_json(body)

    def events(self) -> Iterator[object]:
        """Return the JSON of each server-sent event up to the end of the body."""
        rest, data = b"", list[bytes]()
        for piece in self.pieces():
            *lines, rest = (rest + piece).split(b"\n")
            for line in (each.removesuffix(b"\r") for each in lines):
                if line.startswith(b"data:"):
                    data.append(line.removeprefix(b"data:").removeprefix(b" "))
                elif not line and data:
                    yield _from_json(b"\n".join(data))
                    data.clear()
        self.close()
        if rest or data:
            raise Deviation(f"the stream broke off in the middle of an event: {b' '.join([*data, rest])!r}")

    def close(self) -> None:
        """Drop the connection."""
        self._file.close()
        self._socket.close()


def _from_json(text: bytes) -> object:
    try:
        return json.loads(text)
    except ValueError:
        raise Deviation(f"JSON was expected, and came: {text[:500]!r}") from None
