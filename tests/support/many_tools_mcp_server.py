"""An MCP server on stdio with as many tools as one likes: ``python many_tools_mcp_server.py COUNT``; no SDK.

Each ``record_NUMBER_ANIMAL`` has a description of some length and answers with its number. Two more say of themselves
that they only read, and that they may destroy things. The SDK would take longer to start than all that is asked here.
"""

import json
import sys
from typing import Any

ANIMALS = ("aardvark", "badger", "camel", "dolphin", "echidna", "falcon", "gecko", "heron")
SCHEMA = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
HINTS = [
    {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "wipe", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": True}},
]


def tool(number: int) -> dict[str, Any]:
    """The tool of a number; it is about the animal of the number modulo 8, and says so at length."""
    animal = ANIMALS[number % len(ANIMALS)]
    text = f"Keeps record number {number}, that of the {animal}. " + f"Everything about the {animal} is kept. " * 8
    return {"name": f"record_{number}_{animal}", "description": text, "inputSchema": SCHEMA}


def answer(count: int, method: str, params: Any) -> dict[str, Any] | None:
    """The result of a request; None where there is no such method."""
    match method:
        case "initialize":
            info = {"name": "many", "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        case "tools/list":
            return {"tools": [*(tool(number) for number in range(count)), *HINTS]}
        case "tools/call":
            _, number, _ = params["name"].split("_")
            return {"content": [{"type": "text", "text": f"record {number}: {params['arguments']['note']}"}]}
        case _:
            return None


def main(count: int) -> None:
    """Answer each request until there are no more."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            result = answer(count, request["method"], request.get("params"))
            kept = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **kept}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
