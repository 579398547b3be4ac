"""An MCP server on stdio whose calls leave traces: ``python -S mcp_server.py PREFIX FOLDER``.

It has no SDK, to start at once. Its tools are ``PREFIXmark`` (leaves a trace and takes its time), ``PREFIXask``
(leaves one, asks a form, and leaves one of the answer) and ``PREFIXlook`` (only reads). It writes its process id to
FOLDER/pids and ends with its input.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

PREFIX, FOLDER = sys.argv[1], Path(sys.argv[2])
ARGUMENTS = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}
FORM = {
    "type": "object",
    "properties": {"name": {"type": "string", "default": "Ada"}, "sure": {"type": "boolean", "default": True}},
}
TOOLS = [
    {"name": f"{PREFIX}mark", "description": "Leave a trace.", "inputSchema": ARGUMENTS},
    {"name": f"{PREFIX}ask", "description": "Ask.", "inputSchema": ARGUMENTS},
    {
        "name": f"{PREFIX}look",
        "description": "Look.",
        "inputSchema": ARGUMENTS,
        "annotations": {"readOnlyHint": True},
    },
]
NOTE = {"uri": "note://one", "name": "one", "mimeType": "text/plain"}

writing = threading.Lock()
answers: dict[str, Any] = {}
answered = threading.Condition()


def leave(file: str, line: str) -> None:
    """Append a line to a file at once."""
    with (FOLDER / file).open("a", encoding="utf-8") as lines:
        lines.write(f"{line}\n")


def send(message: Any) -> None:
    with writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def elicit(name: str) -> str:
    params = {"message": f"May I, {name}?", "requestedSchema": FORM}
    send({"id": name, "method": "elicitation/create", "params": params})
    with answered:
        answered.wait_for(lambda: name in answers)
    return str(answers[name].get("result", {}).get("action"))


def call(tool: str, n: str) -> str:
    match tool.removeprefix(PREFIX):
        case "mark":
            leave("traces", n)
            time.sleep(0.05)  # delay: the tool takes a moment, in which a kill may come
        case "ask":
            leave("traces", f"{n}-asked")
            action = elicit(n)
            leave("traces", f"{n}-{action}")
            return action
        case _:
            leave("looks", n)
    return f"{tool} {n}"


def result_of(method: str, params: Any) -> Any:
    match method:
        case "initialize":
            return {
                "protocolVersion": params["protocolVersion"],
                "capabilities": {"tools": {}, "resources": {}},
                "serverInfo": {"name": PREFIX, "version": "1"},
            }
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            text = call(params["name"], params["arguments"]["n"])
            return {"content": [{"type": "text", "text": text}]}
        case "resources/list":
            return {"resources": [NOTE]}
        case "resources/templates/list":
            return {"resourceTemplates": []}
        case "resources/read":
            leave("looks", params["uri"])
            return {"contents": [{**NOTE, "text": "what is noted"}]}
        case _:
            return {}


def handle(request: Any) -> None:
    send({"id": request["id"], "result": result_of(request["method"], request.get("params") or {})})


leave("pids", str(os.getpid()))
for received in sys.stdin:
    said = json.loads(received)
    if "method" not in said:
        with answered:
            answers[said["id"]] = said
            answered.notify_all()
    elif "id" in said:
        threading.Thread(target=handle, args=(said,), daemon=True).start()
os._exit(0)
