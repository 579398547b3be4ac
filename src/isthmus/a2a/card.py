"""The agent card: what a client reads before it speaks to the server (spec 2, section 3.1, in the form of A2A 0.3).

Deliberately not here: anything that needs a token; the card is public.
"""

from typing import Any

from isthmus import __version__
from isthmus.a2a.extension import DESCRIPTION, URI

PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""Where the card is: of A2A 0.3 and 1.0, and of 0.2."""


def agent_card(url: str, *, extension_required: bool = True) -> dict[str, Any]:
    """The card of a server that is reached at ``url``."""
    return {
        "protocolVersion": "0.3.0",
        "name": "Isthmus",
        "description": "An agent that generates code based on natural language instructions.",
        "version": __version__,
        "url": url,
        "preferredTransport": "JSONRPC",
        "additionalInterfaces": [{"url": url, "transport": "JSONRPC"}],
        "capabilities": {
            "streaming": True,
            "pushNotifications": False,
            "stateTransitionHistory": False,
            "extensions": [{"uri": URI, "description": DESCRIPTION, "required": extension_required}],
        },
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        "security": [{"bearer": []}],
        "supportsAuthenticatedExtendedCard": False,
        "defaultInputModes": ["text/plain", "application/json"],
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": [
            {
                "id": "code_generation",
                "name": "Code generation",
                "description": (
                    "Reads, explains, writes and changes code in a workspace, and runs commands there. "
                    "Edits and commands are confirmed by a person first."
                ),
                "tags": ["code", "development", "tools"],
                "examples": ["Fix the failing test in tests/test_parser.py", "Explain what src/main.c does"],
                "inputModes": ["text/plain"],
                "outputModes": ["text/plain", "application/json"],
            }
        ],
    }
