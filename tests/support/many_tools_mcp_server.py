"""An MCP server on stdio with as many tools as one likes; a program: ``python many_tools_mcp_server.py COUNT``.

Each ``record_NUMBER`` has a description of some length and answers with its number. Two more say of themselves that
they only read, and that they may destroy things.
"""

import sys
from collections.abc import Callable

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

ANIMALS = ("aardvark", "badger", "camel", "dolphin", "echidna", "falcon", "gecko", "heron")


def server(count: int) -> MCPServer:
    """The server; tool number n is about the animal n modulo 8, and says so at length."""
    made = MCPServer("many")
    for number in range(count):
        animal = ANIMALS[number % len(ANIMALS)]
        text = f"Keeps record number {number}, that of the {animal}. " + f"Everything about the {animal} is kept. " * 8
        made.add_tool(_recorder(number), name=f"record_{number}_{animal}", description=text)
    made.add_tool(_look, name="look", description="Looks.", annotations=ToolAnnotations(read_only_hint=True))
    made.add_tool(_wipe, name="wipe", description="Wipes.", annotations=ToolAnnotations(destructive_hint=True))
    return made


def _recorder(number: int) -> Callable[[str], str]:
    def record(note: str) -> str:
        return f"record {number}: {note}"

    return record


def _look() -> str:
    return "seen"


def _wipe() -> str:
    return "wiped"


if __name__ == "__main__":
    server(int(sys.argv[1])).run()
