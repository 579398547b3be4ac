"""A language server on standard input and output that reports each line with the word "wrong".

As common servers do, it empties the diagnostics of a file that is closed, and reports those of a text some time later:
after the seconds in argv[1], by default 0.2.
"""

import json
import sys
import threading
from typing import Any

_LOCK = threading.Lock()
_DEFAULT_SECONDS = 0.2


def main() -> None:
    """Serve until the input ends."""
    while (message := _read()) is not None:
        _handle(message)


def _handle(message: dict[str, Any]) -> None:
    params: dict[str, Any] = message.get("params") or {}
    match message.get("method"):
        case "initialize":
            capabilities = {"textDocumentSync": {"openClose": True, "change": 1}}
            _send(id=message["id"], result={"capabilities": capabilities})
        case "shutdown":
            _send(id=message["id"], result=None)
        case "exit":
            sys.exit()
        case "textDocument/didOpen":
            _check(params["textDocument"]["uri"], params["textDocument"]["text"])
        case "textDocument/didChange":
            _check(params["textDocument"]["uri"], params["contentChanges"][-1]["text"])
        case "textDocument/didClose":
            _publish(params["textDocument"]["uri"], [])
        case _:
            pass


def _check(uri: str, text: str) -> None:
    found = [_diagnostic(row, line) for row, line in enumerate(text.split("\n")) if "wrong" in line]
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else _DEFAULT_SECONDS
    threading.Timer(seconds, _publish, (uri, found)).start()


def _diagnostic(row: int, line: str) -> dict[str, Any]:
    at = {"start": {"line": row, "character": 0}, "end": {"line": row, "character": len(line)}}
    return {"range": at, "severity": 1, "source": "small", "message": f"{line} is wrong"}


def _publish(uri: str, found: list[dict[str, Any]]) -> None:
    _send(method="textDocument/publishDiagnostics", params={"uri": uri, "diagnostics": found})


def _send(**message: object) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with _LOCK:
        sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        sys.stdout.buffer.flush()


def _read() -> dict[str, Any] | None:
    length = 0
    while line := sys.stdin.buffer.readline().strip():
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return json.loads(sys.stdin.buffer.read(length)) if length else None


if __name__ == "__main__":
    main()
