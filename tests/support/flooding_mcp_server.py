"""A program, an MCP server on stdio without the SDK, that floods its client in the way of its first argument.

The code describes each way. Most ways are the answer to the first call of its only tool, ``ok``.
"""

import json
import sys
from typing import Any

WAY = sys.argv[1]
TOOL = {"name": "ok", "description": "Works.", "inputSchema": {"type": "object"}}


def raw(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def line(message: Any) -> bytes:
    return json.dumps(message).encode() + b"\n"


def result(request: Any, value: Any) -> bytes:
    return line({"jsonrpc": "2.0", "id": request["id"], "result": value})


def text(value: str) -> Any:
    return {"content": [{"type": "text", "text": value}]}


def notification(method: str, **params: Any) -> bytes:
    return line({"jsonrpc": "2.0", "method": method, "params": params})


def question(number: int, method: str, **params: Any) -> bytes:
    return line({"jsonrpc": "2.0", "id": f"question {number}", "method": method, "params": params})


def call(request: Any) -> None:
    number = b"%d" % request["id"]
    token = request["params"].get("_meta", {}).get("progressToken")
    after = result(request, text("after the flood"))
    Counts.calls += 1
    match WAY if Counts.calls == 1 else "over":
        case "many-blocks":
            raw(result(request, {"content": [{"type": "text", "text": f"block {index}"} for index in range(10_100)]}))
        case "many-bad-blocks":
            raw(result(request, {"content": [{"type": "hologram", "data": index} for index in range(100_000)]}))
        case "deep":
            nested = b'{"a":' * 900 + b"1" + b"}" * 900
            raw(b'{"jsonrpc":"2.0","id":%b,"result":{"content":[],"structuredContent":%b}}\n' % (number, nested))
        case "deepest":
            nested = b"[" * 200_000 + b"]" * 200_000
            raw(b'{"jsonrpc":"2.0","id":%b,"result":{"content":[],"structuredContent":{"a":%b}}}\n' % (number, nested))
        case "many-values":
            raw(b'{"jsonrpc":"2.0","id":%b,"result":{"content":[%b1]}}\n' % (number, b'{"a":1},' * 3_000_000))
        case "twice":
            raw(result(request, text("first")) * 500)
        case "misfits":
            misfits = [
                notification("notifications/progress", progressToken=None, progress=1),
                notification("notifications/progress", progressToken=token, progress="much"),
                notification("notifications/progress", progressToken=token, progress=10**400),
                notification("notifications/progress", progressToken=token, progress=1, total=10**400),
                notification("notifications/progress"),
                notification("notifications/cancelled", requestId={}),
                notification("notifications/elicitation/complete"),
                notification("notifications/tools/list_changed", _meta=5),
            ]
            raw(b"".join(misfits) * 250 + after)
        case "answers-to-nothing":
            for index in range(5_000):
                raw(result({"id": 100_000 + index}, text("to whom?")))
            raw(after)
        case "junk-lines":
            raw(b"y\n" * 20_000 + b"{\n" * 5_000 + b"\n" * 100_000)
            raw(after)
        case "error-output":
            for _ in range(20):
                sys.stderr.write("y\n" * 100_000)
            sys.stderr.flush()
            raw(after)
        case "progress":
            for index in range(5_000):
                raw(notification("notifications/progress", progressToken=token, progress=index, message="x" * 200))
            raw(after)
        case "pings":
            raw(b"".join(question(index, "ping") for index in range(5_000)))
            raw(after)
        case "pings-that-nobody-reads":
            try:
                while True:
                    raw(b"".join(question(index, "ping") for index in range(1_000)))
            except BrokenPipeError:
                sys.exit(0)
        case "unknown-requests":
            for index in range(2_000):
                raw(question(index, "no/such/method"))
            raw(after)
        case "cancels-and-asks":
            for index in range(200):
                raw(question(index, "elicitation/create", message="?", requestedSchema={"type": "object"}))
                raw(notification("notifications/cancelled", requestId=f"question {index}"))
            raw(after)
        case _:
            raw(after)


class Counts:
    calls = 0
    listings = 0


def capabilities() -> Any:
    if WAY.startswith("hangs-at-"):
        return {"tools": {}, "prompts": {}, "resources": {}}
    return {"tools": {"listChanged": True}}


def tools() -> list[Any]:
    match WAY:
        case "many-tools":
            return [{"name": f"tool_{index}", "inputSchema": {"type": "object"}} for index in range(50_000)]
        case "long-names":
            return [TOOL, {**TOOL, "name": "n" * 10_000}, {**TOOL, "name": "n" * 10_000}]
        case "other-tools-each-time":
            return [TOOL, {**TOOL, "name": f"listing_{Counts.listings}"}]
        case "same-cursor":
            return [{**TOOL, "name": f"page_{Counts.listings}"}]
        case _:
            return [TOOL]


def listing(request: Any) -> None:
    Counts.listings += 1
    found: dict[str, Any] = {"tools": tools()}
    if WAY == "same-cursor":
        found["nextCursor"] = "again"
    raw(result(request, found))
    if WAY == "other-tools-each-time":
        raw(notification("notifications/tools/list_changed"))


def main() -> None:
    try:
        while WAY == "endless-error-output":
            sys.stderr.write("y\n" * 5_000)
        while WAY == "endless-junk":
            raw(b"y\n" * 5_000)
        while WAY == "endless-line":
            raw(b"y" * 100_000)
    except BrokenPipeError:
        sys.exit(0)
    for received in sys.stdin:
        request = json.loads(received)
        match request.get("method"):
            case "initialize" if WAY == "hangs-at-discover":
                raw(line({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32601, "message": "no handshake"}}))
            case "initialize":
                info = {"name": WAY, "version": "1"}
                hello = {"protocolVersion": "2025-06-18", "capabilities": capabilities(), "serverInfo": info}
                mark = b"\xef\xbb\xbf" if WAY == "byte-order-mark" else b""
                raw(mark + result(request, hello))
            case "tools/list":
                listing(request)
            case "prompts/list" if WAY != "hangs-at-prompts":
                raw(result(request, {"prompts": [{"name": "p"}]}))
            case "resources/list" if WAY != "hangs-at-resources":
                raw(result(request, {"resources": [{"uri": "note://1", "name": "n"}]}))
            case "resources/templates/list" if WAY != "hangs-at-templates":
                raw(result(request, {"resourceTemplates": []}))
            case "tools/call":
                call(request)
            case _:
                pass


main()
