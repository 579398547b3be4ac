"""Servers that misbehave in the way that their name says: ``NAME [FILE_FOR_PROCESS_IDS [LOG_OF_CALLS]]``.

A name that nothing here mentions (``plain``) behaves well. The code describes each way.
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

import stdio_server
from stdio_server import StdioServer, notify, raw, refuse, reply, text

TOOL = {**stdio_server.TOOL, "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}}}
LOOP = {"$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"}

TWICE = {
    "$defs": {**{f"a{n}": {"allOf": [{"$ref": f"#/$defs/a{n + 1}"}] * 2} for n in range(60)}, "a60": {}},
    "$ref": "#/$defs/a0",
}


class Server(StdioServer):
    def __init__(self, name: str, pids: str = "", log: str = "") -> None:
        super().__init__(name, pids, log)
        self.pids, self.log = pids, log
        self.changes = self.listings = 0
        self.capabilities = {"tools": {"listChanged": True}}
        if name in ("bad-prompts", "own-error"):
            self.capabilities["prompts"] = {}
        if name == "bad-version":
            self.revision = "3000-01-01"

    def run(self) -> None:
        if self.pids:
            with Path(self.pids).open("a") as file:
                file.write(f"{os.getpid()}\n")
        match self.name:
            case "dies":
                sys.stderr.write("ImportError: no module named nothing\n")
                sys.exit(3)
            case "hangs":
                time.sleep(1000)  # delay: the server hangs before it answers
            case "ignores-end":
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            case "listed" if not Path(self.log).exists():
                sys.exit(3)
            case "grandchild":
                subprocess.Popen(["sleep", "1000"])
            case "launcher":
                # As with npx: the server is a child, and it starts a process that leaves the process group.
                with Path(self.pids).open("a") as file:
                    stray = subprocess.Popen(["sleep", "1000"], start_new_session=True)
                    file.write(f"{stray.pid}\n")
                sys.exit(subprocess.call([sys.executable, "-S", sys.argv[0], "plain", self.pids]))
            case _:
                pass
        super().run()
        if self.name == "ignores-end":
            time.sleep(1000)  # delay: the server ignores the end of its input

    def receive(self, message: Any) -> None:
        if self.name == "junk":
            raw(b"Server running on stdio\n\xff\xfe\n[1, 2\n\n")
        match self.name, message.get("method"):
            case ("hangs-later", "initialize") | ("hangs-at-list", "tools/list"):
                return
            case "listed", "initialize":
                while Path(self.log + ".hold").exists():
                    time.sleep(0.01)  # delay: pause between two looks for the file of the test
            case "refuses-list", "tools/list":
                refuse(message, -32000, "the index is locked")
                return
            case _:
                pass
        super().receive(message)

    def receive_other(self, method: str, message: Any) -> None:
        match self.name, method:
            case "bad-prompts", "prompts/list":
                reply(message, {"prompts": [3, {"name": "fine"}]})
            case "own-error", "prompts/list":
                refuse(message, -32000, "none today")
            case "cancellable", "notifications/cancelled":
                Path(self.pids + ".cancelled").write_text("yes")
            case _:
                super().receive_other(method, message)

    def listing(self) -> dict[str, Any]:
        self.listings += 1
        match self.name:
            case "bad-entries":
                bad: list[Any] = [
                    3,
                    {"inputSchema": {"type": "object"}},
                    {"name": 5, "inputSchema": {"type": "object"}},
                    {"name": "string_schema", "inputSchema": {"type": "string"}},
                    {"name": "no_schema"},
                    {"name": "php", "inputSchema": {"type": "object", "properties": [], "required": []}},
                    {
                        "name": "bad_extras",
                        "inputSchema": {"type": "object"},
                        "annotations": "x",
                        "title": 7,
                        "_meta": 1,
                    },
                    {
                        "name": "loop",
                        "inputSchema": {"type": "object", "properties": {"p": LOOP}},
                        "outputSchema": LOOP,
                    },
                    {
                        "name": "numbers",
                        "inputSchema": {"properties": {"p": {"minimum": math.nan, "maximum": math.inf}}},
                    },
                    {**TOOL, "name": "elicitation"},
                    {**TOOL, "name": "sampling"},
                ]
                return {"tools": [*bad, TOOL, TOOL]}
            case "no-list":
                return {"tools": "ok"}
            case "endless-pages":
                return {"tools": [{**TOOL, "name": f"tool_{self.listings}"}], "nextCursor": f"page {self.listings + 1}"}
            case "nothing":
                return {"tools": []}
            case "changing" | "changing-late":
                extra = [{**TOOL, "name": f"new_{self.changes}"}] if self.changes else []
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
                return {"tools": json.loads(Path(self.log).read_text())}
            case "bad-structured":
                output = {"type": "object", "properties": {"n": {"type": "integer"}}}
                outputs = {"ok": output, "loop": LOOP, "twice": TWICE}
                return {"tools": [{**TOOL, "name": name, "outputSchema": found} for name, found in outputs.items()]}
            case "read-only" | "slow-read-only":
                return {"tools": [{**TOOL, "annotations": {"readOnlyHint": True}}]}
            case _:
                return {"tools": [TOOL]}

    def call(self, request: Any) -> None:
        match self.name:
            case "changing":
                self.changes += 1
                notify("notifications/tools/list_changed")
                reply(request, text("changed"))
            case "changing-late":
                self.changes += 1
                reply(request, text("changed"))
                time.sleep(0.02)  # delay: the notification comes late, after the response
                notify("notifications/tools/list_changed")
            case "dies-in-call":
                sys.stderr.write("Traceback: it broke\n")
                sys.stderr.flush()
                os._exit(7)
            case "silent":
                pass
            case "progress":
                token = request["params"]["_meta"]["progressToken"]
                for step in range(1, 9):
                    time.sleep(0.4)  # delay: progress comes over more time than a call may take
                    params = {"progressToken": token, "progress": step, "total": 8, "message": f"step {step}"}
                    notify("notifications/progress", **params)
                reply(request, text("done"))
            case "bad-structured":
                reply(request, {**text("taken as it is"), "structuredContent": {"n": "five"}})
            case "rude-progress":
                token = request["params"]["_meta"]["progressToken"]
                params = {"progressToken": token, "progress": 1, "message": "\x1b[2Jgone" + "x" * 100_000}
                notify("notifications/progress", **params)
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
                with Path(self.log).open("a") as file:
                    file.write("call\n")
                # Until the test makes it quick: the file is made between two processes of the agent.
                if Path(self.log + ".quick").exists():
                    reply(request, text("slow but sure"))
            case "where":
                reply(request, text(f"{os.environ['NAME']} in {Path.cwd()}"))
            case "wrong-id":
                reply({"id": 123456}, text("whose?"))
            case "huge":
                raw(b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "' % request["id"])
                for _ in range(100):
                    raw(b"x" * 1024**2)
                raw(b'"}]}}\n')
            case "long":
                reply(request, text("\n".join(f"line {number}" for number in range(20_000))))
            case "flood-of-changes":
                for _ in range(3_000):
                    notify("notifications/tools/list_changed")
                reply(request, text(f"listed {self.listings} times"))
            case "flood":
                for number in range(5_000):
                    params = {"level": "info", "data": f"message {number}"}
                    notify("notifications/message", **params)
                reply(request, text("after the flood"))
            case "unknown-content":
                blocks = [{"type": "hologram", "data": 1}, {"type": "text"}, {"type": "text", "text": "fine"}, "bare"]
                reply(request, {"content": blocks, "structuredContent": [1, 2]})
            case "listed" if request["params"]["name"] == "die":
                with Path(self.log + ".calls").open("a") as file:
                    file.write("call\n")
                if len(Path(self.log + ".calls").read_text().split()) == 1:
                    os._exit(7)
                reply(request, text("lived"))
            case "error-result":
                reply(request, {**text("no such table"), "isError": True})
            case "rpc-error":
                refuse(request, -32602, "x is wrong")
            case "own-error":
                refuse(request, -32000, "the quota is used up")
            case "cancellable":
                Path(self.pids + ".called").touch()
            case _:
                arguments: dict[str, Any] = request["params"].get("arguments") or {}
                reply(request, text(f"ok {arguments.get('x', '')}".strip()))
