"""An MCP server on stdio that speaks only one revision: ``python -S revision_mcp_server.py REVISION``; no SDK.

Its tool ``grow`` adds an item, ``tools``, ``prompts`` or ``resources`` as its argument says, and notifies.
"""

import json
import sys
from typing import Any

REVISION = sys.argv[1]
SCHEMA = {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}
TOOL: dict[str, Any] = {"name": "grow", "description": "Grows.", "inputSchema": SCHEMA}
HAS = {"listChanged": True}
grown: set[str] = set()


def send(message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def answer(method: str, params: Any) -> Any:
    match method:
        case "initialize":
            return {
                "protocolVersion": REVISION,
                "capabilities": {"tools": HAS, "prompts": HAS, "resources": HAS},
                "serverInfo": {"name": f"of {REVISION}", "version": "1"},
            }
        case "tools/list":
            return {"tools": [TOOL, *([{**TOOL, "name": "new_tool"}] if "tools" in grown else [])]}
        case "prompts/list":
            return {"prompts": [{"name": "new-prompt"}] if "prompts" in grown else []}
        case "resources/list":
            return {"resources": [{"uri": "note://new", "name": "new"}] if "resources" in grown else []}
        case "tools/call":
            kind = params["arguments"]["kind"]
            grown.add(kind)
            send({"method": f"notifications/{kind}/list_changed"})
            return {"content": [{"type": "text", "text": "grown"}]}
        case _:
            return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params"))
    if result is None:
        send({"id": message["id"], "error": {"code": -32601, "message": "no such method"}})
    else:
        send({"id": message["id"], "result": result})
