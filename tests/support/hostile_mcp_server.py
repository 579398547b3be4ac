"""A program, an MCP server on stdio without the SDK, that misbehaves in the way of its first argument.

A second argument is a file for its process id, a third one a log of calls. The code describes
each way.
"""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

WAY = sys.argv[1]
TOOL = {
    "name": "ok",
    "description": "Works.",
    "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}},
}
LOOP = {"$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"}

TWICE = {
    "$defs": {**{f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)}, "a60": {}},
    "$ref": "#/$defs/a0",
}


def send(message: Any) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def raw(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def reply(request: Any, result: Any) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "result": result})


def refuse(request: Any, code: int, why: str) -> None:
    send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": code, "message": why}})


def text(value: str) -> Any:
    return {"content": [{"type": "text", "text": value}]}


def tools(page: int) -> Any:
    match WAY:
        case "bad-entries":
            bad: list[Any] = [
                3,
                {"inputSchema": {"type": "object"}},
                {"name": 5, "inputSchema": {"type": "object"}},
                {"name": "string_schema", "inputSchema": {"type": "string"}},
                {"name": "no_schema"},
                {"name": "php", "inputSchema": {"type": "object", "properties": [], "required": []}},
                {"name": "bad_extras", "inputSchema": {"type": "object"}, "annotations": "x", "title": 7, "_meta": 1},
                {"name": "loop", "inputSchema": {"type": "object", "properties": {"p": LOOP}}, "outputSchema": LOOP},
                {"name": "numbers", "inputSchema": {"properties": {"p": {"minimum": math.nan, "maximum": math.inf}}}},
                {**TOOL, "name": "elicitation"},
                {**TOOL, "name": "sampling"},
            ]
            return {"tools": [*bad, TOOL, TOOL]}
        case "no-list":
            return {"tools": "ok"}
        case "endless-pages":
            return {"tools": [{**TOOL, "name": f"tool_{page}"}], "nextCursor": f"page {page + 1}"}
        case "nothing":
            return {"tools": []}
        case "changing":
            extra = [{**TOOL, "name": f"new_{Counts.changes}"}] if Counts.changes else []
            return {"tools": [TOOL, *extra]}
        case "surrogates":
            schema = {"type": "object", "properties": {"x": {"type": "string", "description": "half \ud83d"}}}
            return {"tools": [{**TOOL, "description": "half \ud83d", "inputSchema": schema}]}
        case "slow-pattern":
            slow = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(a+)+$"}}}
            return {"tools": [{**TOOL, "inputSchema": slow}]}
        case "needs-y":
            needs: dict[str, Any] = {"type": "object", "properties": {"y": {}}, "required": ["y"]}
            return {"tools": [{**TOOL, "inputSchema": needs}]}
        case "listed":
            return {"tools": json.loads(Path(sys.argv[3]).read_text())}
        case "bad-structured":
            output = {"type": "object", "properties": {"n": {"type": "integer"}}}
            outputs = {"ok": output, "loop": LOOP, "twice": TWICE}
            return {"tools": [{**TOOL, "name": name, "outputSchema": found} for name, found in outputs.items()]}
        case "read-only" | "slow-read-only":
            return {"tools": [{**TOOL, "annotations": {"readOnlyHint": True}}]}
        case _:
            return {"tools": [TOOL]}


class Counts:
    changes = 0
    page = 0


def call(request: Any) -> None:
    arguments: dict[str, Any] = request["params"].get("arguments") or {}
    match WAY:
        case "changing":
            Counts.changes += 1
            send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            reply(request, text("changed"))
        case "dies-in-call":
            sys.stderr.write("Traceback: it broke\n")
            sys.stderr.flush()
            os._exit(7)
        case "silent":
            pass
        case "progress":
            token = request["params"]["_meta"]["progressToken"]
            for step in range(1, 9):
                time.sleep(0.4)
                params = {"progressToken": token, "progress": step, "total": 8, "message": f"step {step}"}
                send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
            reply(request, text("done"))
        case "bad-structured":
            reply(request, {**text("taken as it is"), "structuredContent": {"n": "five"}})
        case "rude-progress":
            token = request["params"]["_meta"]["progressToken"]
            params = {"progressToken": token, "progress": 1, "message": "\x1b[2Jgone" + "x" * 100_000}
            send({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        case "malformed":
            raw(b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [}\n' % request["id"])
        case "invalid-utf8":
            raw(
                b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "a\xff\xfeb"}]}}\n'
                % request["id"]
            )
        case "surrogates":
            reply(request, {**text("half \ud83d"), "structuredContent": {"x": "half \ud83d"}})
        case "slow" | "slow-read-only":
            with Path(sys.argv[3]).open("a") as file:
                file.write("call\n")
            # Until the test makes it quick: the file is made between two processes of the agent.
            if Path(sys.argv[3] + ".quick").exists():
                reply(request, text("slow but sure"))
        case "where":
            reply(request, text(f"{os.environ['NAME']} in {Path.cwd()}"))
        case "wrong-id":
            send({"jsonrpc": "2.0", "id": 123456, "result": text("whose?")})
        case "huge":
            raw(b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "' % request["id"])
            for _ in range(100):
                raw(b"x" * 1024**2)
            raw(b'"}]}}\n')
        case "long":
            reply(request, text("\n".join(f"line {number}" for number in range(20_000))))
        case "flood-of-changes":
            for _ in range(3_000):
                send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
            reply(request, text(f"listed {Counts.page} times"))
        case "flood":
            for number in range(5_000):
                params = {"level": "info", "data": f"message {number}"}
                send({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
            reply(request, text("after the flood"))
        case "unknown-content":
            blocks = [{"type": "hologram", "data": 1}, {"type": "text"}, {"type": "text", "text": "fine"}, "bare"]
            reply(request, {"content": blocks, "structuredContent": [1, 2]})
        case "listed" if request["params"]["name"] == "die":
            with Path(sys.argv[3] + ".calls").open("a") as file:
                file.write("call\n")
            if len(Path(sys.argv[3] + ".calls").read_text().split()) == 1:
                os._exit(7)
            reply(request, text("lived"))
        case "error-result":
            reply(request, {**text("no such table"), "isError": True})
        case "rpc-error":
            refuse(request, -32602, "x is wrong")
        case "own-error":
            refuse(request, -32000, "the quota is used up")
        case "cancellable":
            Path(sys.argv[2] + ".called").touch()
        case _:
            reply(request, text(f"ok {arguments.get('x', '')}".strip()))


def main() -> None:
    if len(sys.argv) > 2:
        with Path(sys.argv[2]).open("a") as file:
            file.write(f"{os.getpid()}\n")
    match WAY:
        case "dies":
            sys.stderr.write("ImportError: no module named nothing\n")
            sys.exit(3)
        case "hangs":
            time.sleep(1000)
        case "ignores-end":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        case "listed" if not Path(sys.argv[3]).exists():
            sys.exit(3)
        case "grandchild":
            subprocess.Popen(["sleep", "1000"])
        case "launcher":
            # As with npx: the server is a child, and it starts a process that leaves the process group.
            with Path(sys.argv[2]).open("a") as file:
                stray = subprocess.Popen(["sleep", "1000"], start_new_session=True)
                file.write(f"{stray.pid}\n")
            sys.exit(subprocess.call([sys.executable, "-S", __file__, "plain", sys.argv[2]]))
        case _:
            pass
    while True:
        line = sys.stdin.readline()
        if not line:
            if WAY == "ignores-end":
                time.sleep(1000)
            return
        message = json.loads(line)
        if WAY == "junk":
            raw(b"Server running on stdio\n\xff\xfe\n[1, 2\n\n")
        match message.get("method"):
            case "initialize":
                if WAY == "hangs-later":
                    continue
                while WAY == "listed" and Path(sys.argv[3] + ".hold").exists():
                    time.sleep(0.01)
                reply(
                    message,
                    {
                        "protocolVersion": "3000-01-01" if WAY == "bad-version" else "2025-06-18",
                        "capabilities": {
                            "tools": {"listChanged": True},
                            **({"prompts": {}} if WAY in ("bad-prompts", "own-error") else {}),
                        },
                        "serverInfo": {"name": WAY, "version": "1"},
                    },
                )
            case "tools/list":
                if WAY == "hangs-at-list":
                    continue
                if WAY == "refuses-list":
                    refuse(message, -32000, "the index is locked")
                    continue
                Counts.page += 1
                reply(message, tools(Counts.page))
            case "prompts/list" if WAY == "bad-prompts":
                reply(message, {"prompts": [3, {"name": "fine"}]})
            case "prompts/list" if WAY == "own-error":
                refuse(message, -32000, "none today")
            case "tools/call":
                call(message)
            case "notifications/cancelled":
                if WAY == "cancellable":
                    Path(sys.argv[2] + ".cancelled").write_text("yes")
            case None | "notifications/initialized":
                pass
            case _:
                if "id" in message:
                    error = {"code": -32601, "message": "no such method"}
                    send({"jsonrpc": "2.0", "id": message["id"], "error": error})


main()
