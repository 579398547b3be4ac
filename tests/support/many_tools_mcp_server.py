"""An MCP server on stdio with any number of tools: ``python many_tools_mcp_server.py COUNT``.

Each ``record_NUMBER_ANIMAL`` has a long description and answers with its number. Two more are annotated as
read-only and as destructive.
"""

import sys
from typing import Any

from plain_mcp_server import serve

ANIMALS = ("aardvark", "badger", "camel", "dolphin", "echidna", "falcon", "gecko", "heron")
SCHEMA = {"type": "object", "properties": {"note": {"type": "string"}}, "required": ["note"]}
HINTS = [
    {"name": "look", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "wipe", "inputSchema": {"type": "object"}, "annotations": {"destructiveHint": True}},
]


def tool(number: int) -> dict[str, Any]:
    """Return the tool of a number; its long description names the animal of the number modulo 8."""
    animal = ANIMALS[number % len(ANIMALS)]
    text = f"Keeps record number {number}, that of the {animal}. " + f"Everything about the {animal} is kept. " * 8
    return {"name": f"record_{number}_{animal}", "description": text, "inputSchema": SCHEMA}


def call(name: str, arguments: Any) -> str:
    """Return the text of a call of one of the numbered tools."""
    _, number, _ = name.split("_")
    return f"record {number}: {arguments['note']}"


if __name__ == "__main__":
    serve("many", [*(tool(number) for number in range(int(sys.argv[1]))), *HINTS], call)
