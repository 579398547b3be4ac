"""A complete plugin for Isthmus (docs/reference/editor-port.md), with a terminal for an editor.

Run ``python minimal_editor.py src/*.py`` in a project: these files are open, and the name of another one opens it. You
review diffs on the terminal, one after the other.
"""

import difflib
import json
import signal
import subprocess
import sys
import termios
import threading
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import unquote, urlsplit

FOLDERS = [{"uri": Path.cwd().as_uri(), "name": Path.cwd().name}]
INFO = {"name": "minimal", "displayName": "Minimal Editor"}
COMMAND = [sys.executable, "-m", "isthmus", "companion", "--editor", "stdio"]
companion = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
to_companion, from_companion = cast("tuple[BinaryIO, BinaryIO]", (companion.stdin, companion.stdout))
one_at_a_time = threading.RLock()
signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends both, each in its own way
files = [Path(name).resolve() for name in sys.argv[1:]]
reviews: dict[str, dict[str, Any]] = {}  # by their ids; the first one is on the terminal


def send(**message: Any) -> None:
    """Send a request, a notification or an answer."""
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with one_at_a_time:
        to_companion.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        to_companion.flush()


def read() -> dict[str, Any] | None:
    """Return the next message of the companion; None when it has ended."""
    length = 0
    while (line := from_companion.readline()).strip():  # headers, up to the empty line
        name, _, value = line.partition(b":")
        length = int(value) if name.lower() == b"content-length" else length
    return json.loads(from_companion.read(length)) if length else None


def show() -> None:
    """Show the first proposed edit as a diff."""
    for params in list(reviews.values())[:1]:
        path = Path(unquote(urlsplit(str(params["uri"])).path))
        old = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
        diff = difflib.unified_diff(old.splitlines(), params["proposed"].splitlines(), "now", "proposed", lineterm="")
        print(f"{params['title'] or 'An agent'} proposes for {path}:", *diff, "Accept? [y/n]", sep="\n", flush=True)
        if sys.stdin.isatty():
            termios.tcflush(sys.stdin, termios.TCIFLUSH)  # text that was typed before is not an answer


def close(review: str) -> dict[str, Any] | None:
    """Close a proposed edit; return its text, which is as proposed, or None if its view was closed before."""
    is_shown = review in list(reviews)[:1]
    text = None if reviews.pop(review, None) is None else dict[str, Any]()
    if is_shown:
        show()
    return text


def listen() -> None:
    """Take the user's lines: the answer to the proposed edit, or the name of a file to open."""
    for line in sys.stdin:
        with one_at_a_time:
            if reviews:
                review = next(iter(reviews))
                send(method=f"editor/did{'Accept' if line.strip() == 'y' else 'Reject'}Diff", params={"id": review})
                close(review)
            elif (path := Path(line.strip()).resolve()).is_file():
                files[:] = [*(file for file in files if file != path), path]
                send(method="editor/didChange", params={})


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request of the companion, or an error."""
    match method:
        case "workspace/workspaceFolders":
            return {"result": FOLDERS}
        case "editor/openFiles":
            return {"result": [{"uri": file.as_uri(), "isActive": file == files[-1]} for file in files]}
        case "editor/openDiff":
            reviews[params["id"]] = params
            if len(reviews) == 1:
                show()
            return {"result": None}
        case "editor/closeDiff":  # the user answered elsewhere
            return {"result": close(params["id"])}
        case _:
            return {"error": {"code": -32601, "message": f"a terminal has no {method}"}}


CAPABILITIES = {"diff": True, "message": True}
send(id=1, method="initialize", params={"editorInfo": INFO, "capabilities": CAPABILITIES, "workspaceFolders": FOLDERS})
threading.Thread(target=listen, daemon=True).start()
while message := read():
    method, params = message.get("method"), cast("dict[str, Any]", message.get("params") or {})
    if method is None:  # the answer to initialize
        send(method="initialized")
    elif method == "companion/ready":
        print("Agents in this folder can find you now.", flush=True)
    elif method == "window/showMessage":
        print(params["message"], flush=True)
    elif "id" in message:
        with one_at_a_time:
            send(id=message["id"], **answer(method, params))
