"""An MCP server on stdio that writes a file's content before it answers a call: ``python -S ... FILE``; no SDK.

``@ID@`` in the file is replaced by the id of the call.
"""

import json
import sys
from pathlib import Path
from typing import Any

FRAMES = Path(sys.argv[1])


def send(message: Any) -> None:
    sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    sys.stdout.buffer.flush()


def main() -> None:
    """Answer requests until standard input ends."""
    for line in sys.stdin:
        request = json.loads(line)
        number = request.get("id")
        match request.get("method"):
            case "initialize":
                info = {"name": "fuzzing", "version": "1"}
                hello: dict[str, Any] = {
                    "protocolVersion": "2025-06-18",
                    "capabilities": {"tools": {}},
                    "serverInfo": info,
                }
                send({"id": number, "result": hello})
            case "tools/list":
                tool = {"name": "ok", "description": "Works.", "inputSchema": {"type": "object"}}
                send({"id": number, "result": {"tools": [tool]}})
            case "tools/call":
                sys.stdout.buffer.write(FRAMES.read_bytes().replace(b"@ID@", json.dumps(number).encode()))
                sys.stdout.buffer.flush()
                send({"id": number, "result": {"content": [{"type": "text", "text": "fine"}]}})
            case _:
                pass


main()
