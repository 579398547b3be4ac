"""``many-records COUNT``: a server with any number of tools.

Each ``record_NUMBER_ANIMAL`` has a long description and answers with its number. Two more are annotated as
read-only and as destructive.
"""

from typing import Any

from stdio_server import StdioServer

ANIMALS = ("aardvark", "badger", "camel", "dolphin", "echidna", "falcon", "gecko", "heron")
SCHEMA = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
HINTS = [
    {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "wipe", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": True}},
]


def tool_of(number: int) -> dict[str, Any]:
    """Return the tool of a number; its long description names the animal of the number modulo 8."""
    animal = ANIMALS[number % len(ANIMALS)]
    text = f"Keeps record number {number}, that of the {animal}. " + f"Everything about the {animal} is kept. " * 8
    return {"name": f"record_{number}_{animal}", "description": text, "inputSchema": SCHEMA}


class Server(StdioServer):
    def listing(self) -> dict[str, Any]:
        return {"tools": [*map(tool_of, range(int(self.arguments[0]))), *HINTS]}

    def text_of(self, tool: str, arguments: dict[str, Any]) -> str:
        _, number, _ = tool.split("_")
        return f"record {number}: {arguments['note']}"
