"""A complete plugin for Isthmus (docs/reference/editor-port.md), with a terminal for an editor.

Run ``python minimal_editor.py src/*.py`` in a project: these files are open, and you review diffs on the terminal.
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
FILES = [Path(name).resolve() for name in sys.argv[1:]]
INFO = {"name": "minimal", "displayName": "Minimal Editor"}
COMMAND = [sys.executable, "-m", "isthmus", "companion", "--editor", "stdio"]
companion = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
to_companion, from_companion = cast("tuple[BinaryIO, BinaryIO]", (companion.stdin, companion.stdout))
one_at_a_time = threading.Lock()
signal.signal(signal.SIGINT, signal.SIG_DFL)  # Ctrl-C ends both, each in its own way
reviews: dict[str, dict[str, Any]] = {}


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


def review(params: dict[str, Any]) -> None:
    """Show a proposed edit as a diff, and send the user's decision."""
    path = Path(unquote(urlsplit(str(params["uri"])).path))
    old = "" if params["isNewFile"] else path.read_text(encoding="utf-8")
    diff = difflib.unified_diff(old.splitlines(), params["proposed"].splitlines(), "now", "proposed", lineterm="")
    print(f"{params['title'] or 'An agent'} proposes for {path}:", *diff, "Accept? [y/n]", sep="\n", flush=True)
    if sys.stdin.isatty():
        termios.tcflush(sys.stdin, termios.TCIFLUSH)  # text that was typed before is not an answer
    answer = "Accept" if sys.stdin.readline().strip() == "y" else "Reject"
    reviews.pop(params["id"], None)
    send(method=f"editor/did{answer}Diff", params={"id": params["id"]})


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a request of the companion, or an error."""
    match method:
        case "workspace/workspaceFolders":
            return {"result": FOLDERS}
        case "editor/openFiles":
            return {"result": [{"uri": file.as_uri(), "isActive": file == FILES[-1]} for file in FILES]}
        case "editor/openDiff":
            reviews[params["id"]] = {}  # the result of closeDiff: the text is as proposed
            threading.Thread(target=review, args=[params], daemon=True).start()
            return {"result": None}
        case "editor/closeDiff":  # the user answered elsewhere; None: there is no such view any more
            return {"result": reviews.pop(params["id"], None)}
        case _:
            return {"error": {"code": -32601, "message": f"a terminal has no {method}"}}


send(
    id=1, method="initialize", params={"editorInfo": INFO, "capabilities": {"diff": True}, "workspaceFolders": FOLDERS}
)
while message := read():
    method = message.get("method")
    if method is None:  # the answer to initialize
        send(method="initialized")
    elif method == "companion/ready":
        print("Agents in this folder can find you now.", flush=True)
    elif "id" in message:
        send(id=message["id"], **answer(method, message.get("params") or {}))
