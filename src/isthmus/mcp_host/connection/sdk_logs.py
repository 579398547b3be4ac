"""Keeps what the MCP SDK logs off the terminal: a server could fill it, with a traceback for each message.

What matters of it is told in the server's status instead. Deliberately not here: what isthmus itself logs.
"""

import logging
from pathlib import Path

import mcp

_FOLDER = str(Path(mcp.__file__).parent)


def _is_of_others(record: logging.LogRecord) -> bool:
    return not record.pathname.startswith(_FOLDER)


def silence_sdk() -> None:
    """Silence the SDK's loggers: ``mcp`` and those below, and its share of ``client``, a name that is not its alone."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    logging.getLogger("client").addFilter(_is_of_others)
