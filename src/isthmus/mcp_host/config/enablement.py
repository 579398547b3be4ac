"""MCP servers that the user switched off, in Gemini CLI's file ``~/.gemini/mcp-server-enablement.json``.

The file is an object with the lower-case name of each switched-off server and ``{"enabled": false}``; all other servers
are on. Pure; the file is changed by :mod:`isthmus.settings.edit_file`.
"""

from pathlib import Path
from typing import cast

from isthmus.encoding.jsonc import parse
from isthmus.encoding.jsonc_edit import remove_member, set_member


def enablement_path(home: Path) -> Path:
    """Return the path of the file below the home folder."""
    return home / ".gemini" / "mcp-server-enablement.json"


def enablement_key(name: str) -> str:
    """Return the key of a server in the file."""
    return name.lower().strip()


def switched_off(text: str) -> frozenset[str]:
    """Return the keys of the servers that the file's text switches off.

    Raises:
        JsoncError: it is not JSON.
    """
    value: object = parse(text) if text.strip() else {}
    if not isinstance(value, dict):
        return frozenset()
    return frozenset(
        name
        for name, entry in cast("dict[str, object]", value).items()
        if isinstance(entry, dict) and cast("dict[str, object]", entry).get("enabled") is False
    )


def with_server_off(text: str, name: str) -> str:
    """Return the file's text with a server switched off.

    Raises:
        JsoncError: the text is not a JSON object.
    """
    return set_member(text, [enablement_key(name)], {"enabled": False})


def with_server_on(text: str, name: str) -> str:
    """Return the file's text with a server switched on again.

    Raises:
        JsoncError: the text is not a JSON object.
    """
    return remove_member(text, [enablement_key(name)])
