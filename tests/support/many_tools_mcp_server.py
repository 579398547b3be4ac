"""An MCP server on stdio with as many tools as one likes: ``python many_tools_mcp_server.py COUNT``.

Each ``record_NUMBER_ANIMAL`` has a description of some length and answers with its number. Two more say of themselves
that they only read, and that they may destroy things.
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
    """The tool of a number; it is about the animal of the number modulo 8, and says so at length."""
    animal = ANIMALS[number % len(ANIMALS)]
    text = f"Keeps record number {number}, that of the {animal}. " + f"Everything about the {animal} is kept. " * 8
    return {"name": f"record_{number}_{animal}", "description": text, "inputSchema": SCHEMA}


def call(name: str, arguments: Any) -> str:
    """Return the text of a call of one of the numbered tools."""
    _, number, _ = name.split("_")
    return f"record {number}: {arguments['note']}"


if __name__ == "__main__":
    serve("many", [*(tool(number) for number in range(int(sys.argv[1]))), *HINTS], call)
