"""Servers that flood their client: ``floods-WAY``. Most ways are the answer to the first call of the tool, ``ok``.

The code describes each way.
"""

import sys
from typing import Any

from stdio_server import TOOL, StdioServer, line_of, notification, notify, raw, refuse, reply, result_line, text


def _question(number: int, method: str, **params: Any) -> bytes:
    return line_of(id=f"question {number}", method=method, params=params)


class Server(StdioServer):
    def __init__(self, name: str, *arguments: str) -> None:
        self.way = name.removeprefix("floods-")
        super().__init__(self.way, *arguments)
        self.calls = self.listings = 0
        self.capabilities = {"tools": {"listChanged": True}}
        if self.way.startswith("hangs-at-"):
            self.capabilities = {"tools": {}, "prompts": {}, "resources": {}}

    def run(self) -> None:
        try:
            while self.way == "endless-error-output":
                sys.stderr.write("y\n" * 5_000)
            while self.way == "endless-junk":
                raw(b"y\n" * 5_000)
            while self.way == "endless-line":
                raw(b"y" * 100_000)
        except BrokenPipeError:
            sys.exit(0)
        super().run()

    def receive(self, message: Any) -> None:
        match self.way, message.get("method"):
            case "hangs-at-discover", "initialize":
                refuse(message, -32601, "no handshake")
            case "byte-order-mark", "initialize":
                raw(b"\xef\xbb\xbf" + result_line(message, self.hello(message)))
            case _, method:
                super().receive(message)
                if (self.way, method) == ("other-tools-each-time", "tools/list"):
                    notify("notifications/tools/list_changed")

    def receive_other(self, method: str, message: Any) -> None:
        match method:
            case "prompts/list" if self.way != "hangs-at-prompts":
                reply(message, {"prompts": [{"name": "p"}]})
            case "resources/list" if self.way != "hangs-at-resources":
                reply(message, {"resources": [{"uri": "note://1", "name": "n"}]})
            case "resources/templates/list" if self.way != "hangs-at-templates":
                reply(message, {"resourceTemplates": []})
            case _:
                pass

    def listing(self) -> dict[str, Any]:
        self.listings += 1
        found = {"tools": self._tools()}
        return {**found, "nextCursor": "again"} if self.way == "same-cursor" else found

    def _tools(self) -> list[Any]:
        match self.way:
            case "many-tools":
                return [{"name": f"tool_{index}", "inputSchema": {"type": "object"}} for index in range(50_000)]
            case "long-names":
                return [TOOL, {**TOOL, "name": "n" * 10_000}, {**TOOL, "name": "n" * 10_000}]
            case "other-tools-each-time":
                return [TOOL, {**TOOL, "name": f"listing_{self.listings}"}]
            case "same-cursor":
                return [{**TOOL, "name": f"page_{self.listings}"}]
            case _:
                return [TOOL]

    def call(self, request: Any) -> None:
        number = b"%d" % request["id"]
        token = request["params"].get("_meta", {}).get("progressToken")
        after = result_line(request, text("after the flood"))
        self.calls += 1
        match self.way if self.calls == 1 else "over":
            case "many-blocks":
                raw(
                    result_line(
                        request, {"content": [{"type": "text", "text": f"block {index}"} for index in range(10_100)]}
                    )
                )
            case "many-bad-blocks":
                raw(
                    result_line(request, {"content": [{"type": "hologram", "data": index} for index in range(100_000)]})
                )
            case "deep":
                nested = b'{"a":' * 900 + b"1" + b"}" * 900
                raw(b'{"jsonrpc":"2.0","id":%b,"result":{"content":[],"structuredContent":%b}}\n' % (number, nested))
            case "deepest":
                nested = b"[" * 200_000 + b"]" * 200_000
                raw(
                    b'{"jsonrpc":"2.0","id":%b,"result":{"content":[],"structuredContent":{"a":%b}}}\n'
                    % (number, nested)
                )
            case "many-values":
                raw(b'{"jsonrpc":"2.0","id":%b,"result":{"content":[%b1]}}\n' % (number, b'{"a":1},' * 3_000_000))
            case "twice":
                raw(result_line(request, text("first")) * 500)
            case "misfits":
                misfits = [
                    notification("notifications/progress", progressToken=None, progress=1),
                    notification("notifications/progress", progressToken=token, progress="much"),
                    notification("notifications/progress", progressToken=token, progress=10**400),
                    notification("notifications/progress", progressToken=token, progress=1, total=10**400),
                    line_of(method="notifications/progress", params={}),
                    notification("notifications/cancelled", requestId={}),
                    line_of(method="notifications/elicitation/complete", params={}),
                    notification("notifications/tools/list_changed", _meta=5),
                ]
                raw(b"".join(misfits) * 250 + after)
            case "answers-to-nothing":
                for index in range(5_000):
                    raw(result_line({"id": 100_000 + index}, text("to whom?")))
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
                raw(b"".join(_question(index, "ping") for index in range(5_000)))
                raw(after)
            case "pings-that-nobody-reads":
                try:
                    while True:
                        raw(b"".join(_question(index, "ping") for index in range(1_000)))
                except BrokenPipeError:
                    sys.exit(0)
            case "unknown-requests":
                for index in range(2_000):
                    raw(_question(index, "no/such/method"))
                raw(after)
            case "cancels-and-asks":
                for index in range(200):
                    raw(_question(index, "elicitation/create", message="?", requestedSchema={"type": "object"}))
                    raw(notification("notifications/cancelled", requestId=f"question {index}"))
                raw(after)
            case _:
                raw(after)
