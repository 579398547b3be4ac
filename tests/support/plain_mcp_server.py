"""The main loop of MCP servers on stdio that start quickly: only tools, and no SDK, which takes a second to import.

Such a program is run with ``python -S`` and finds this module beside it.
"""

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any


def serve(name: str, tools: Sequence[Any], call: Callable[[str, Any], str]) -> None:
    """Answer each request until the input ends; `call` returns the text of a tool call by the tool's name."""
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            answer: dict[str, Any]
            result: dict[str, Any]
            match request["method"]:
                case "initialize":
                    info = {"name": name, "version": "1"}
                    result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
                    answer = {"result": result}
                case "tools/list":
                    answer = {"result": {"tools": tools}}
                case "tools/call":
                    text = call(request["params"]["name"], request["params"].get("arguments") or {})
                    answer = {"result": {"content": [{"type": "text", "text": text}]}}
                case _:
                    answer = {"error": {"code": -32601, "message": "no such method"}}
            print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
