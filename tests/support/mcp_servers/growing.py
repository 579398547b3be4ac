"""``grows REVISION``: a server of that revision alone, with the tool ``grow``.

It adds a tool, a prompt or a resource, as its argument ``kind`` says, and notifies.
"""

from typing import Any

from stdio_server import StdioServer, notify, reply

SCHEMA = {"type": "object", "properties": {"kind": {"type": "string"}}, "required": ["kind"]}
TOOL: dict[str, Any] = {"name": "grow", "description": "Grows.", "inputSchema": SCHEMA}


class Server(StdioServer):
    def __init__(self, name: str, revision: str) -> None:
        super().__init__(f"of {revision}")
        self.revision = revision
        self.capabilities = {kind: {"listChanged": True} for kind in ("tools", "prompts", "resources")}
        self.grown: set[str] = set()

    def listing(self) -> dict[str, Any]:
        return {"tools": [TOOL, *self._grown("tools", {**TOOL, "name": "new_tool"})]}

    def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        self.grown.add(arguments["kind"])
        notify(f"notifications/{arguments['kind']}/list_changed")
        return "grown"

    def receive_other(self, method: str, message: Any) -> None:
        match method:
            case "prompts/list":
                reply(message, {"prompts": self._grown("prompts", {"name": "new-prompt"})})
            case "resources/list":
                reply(message, {"resources": self._grown("resources", {"uri": "note://new", "name": "new"})})
            case _:
                super().receive_other(method, message)

    def _grown(self, kind: str, item: dict[str, Any]) -> list[dict[str, Any]]:
        return [item] if kind in self.grown else []
