"""An agent that speaks the Agent Client Protocol, with nothing but Python: it keeps notes, and asks before each.

Each message is a line of JSON-RPC on standard input or output. docs/how-to/add-an-acp-agent.md serves it over A2A.
"""

import json
import sys
from pathlib import Path
from typing import Any

OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
folders: dict[str, Path] = {}


def send(**message: Any) -> None:
    """Send a request, a notification or an answer."""
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def update(session: str, what: str, /, **members: Any) -> None:
    """Tell the client something about the turn that runs."""
    send(method="session/update", params={"sessionId": session, "update": {"sessionUpdate": what, **members}})


def is_allowed(session: str, call: dict[str, Any]) -> bool:
    """Ask the user about a call, and return whether it may run."""
    params = {"sessionId": session, "toolCall": call, "options": OPTIONS}
    send(id="question", method="session/request_permission", params=params)
    for line in sys.stdin:
        message = json.loads(line)
        if message.get("id") == "question":
            outcome = message["result"]["outcome"]
            return outcome["outcome"] == "selected" and outcome["optionId"] == "yes"
    return False


def take_note(session: str, text: str) -> str:
    """Carry out a prompt, and return why the turn ended."""
    call = {"toolCallId": "note", "title": f"Write {text!r} into notes.txt", "kind": "edit", "status": "pending"}
    update(session, "tool_call", **call)
    if not is_allowed(session, call):
        update(session, "tool_call_update", toolCallId="note", status="failed")
        return "cancelled"
    with (folders[session] / "notes.txt").open("a", encoding="utf-8") as notes:
        notes.write(text + "\n")
    update(session, "tool_call_update", toolCallId="note", status="completed")
    update(session, "agent_message_chunk", content={"type": "text", "text": f"Noted: {text}"})
    return "end_turn"


for line in sys.stdin:
    request = json.loads(line)
    params = request.get("params", {})
    match request.get("method"):
        case "initialize":
            send(id=request["id"], result={"protocolVersion": 1, "agentCapabilities": {}})
        case "session/new":
            folders[name := f"s{len(folders) + 1}"] = Path(params["cwd"])
            send(id=request["id"], result={"sessionId": name})
        case "session/prompt":
            prompt = "".join(block.get("text", "") for block in params["prompt"])
            send(id=request["id"], result={"stopReason": take_note(params["sessionId"], prompt)})
        case _ if "id" in request and "method" in request:
            send(id=request["id"], error={"code": -32601, "message": f"this agent has no {request['method']}"})
        case _:
            pass
