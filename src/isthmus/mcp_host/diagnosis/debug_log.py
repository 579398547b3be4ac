"""Log of one MCP server for --debug: its error output as it comes, and the time of each step of connecting.

It goes to the program's log at the level "debug", without the secrets of the server's configuration; lines that the
server itself calls INFO are left out. Deliberately not here: the output kept for error messages
(:mod:`isthmus.mcp_host.diagnosis.server_log`).
"""

import logging
import re
import time

from isthmus.mcp_host.config.secrets import Secrets
from isthmus.mcp_host.config.server_config import ServerConfig

_LOG = logging.getLogger("isthmus.mcp.debug")

_LEVELS = frozenset({"INFO", "WARN", "WARNING", "ERROR", "CRITICAL", "FATAL", "DEBUG", "TRACE"})
_LEVEL = re.compile(
    r"""
    \b(?P<word>INFO|WARN|WARNING|ERROR|CRITICAL|FATAL|DEBUG|TRACE)\b
    | (?i: [\[(<](?P<bracketed>[a-z]+)[\])>] | \blevel["']?\s*[:=]\s*["']?(?P<field>[a-z]+) | ^(?P<first>[a-z]+):)
    """,
    re.VERBOSE,
)
_BEGINNING = 120
"""Number of characters at the beginning of a line in which its level is looked for."""


def is_info(line: str) -> bool:
    """Return whether a log line says that its level is INFO: ``[INFO]``, ``INFO:``, ``[info]``, ``"level":"info"``.

    The first level that a line names is its own.
    """
    for found in _LEVEL.finditer(line[:_BEGINNING]):
        level = next(text for text in found.groups() if text is not None).upper()
        if level in _LEVELS:
            return level == "INFO"
    return False


class DebugLog:
    """Logs one attempt to connect to a server, and the server's output meanwhile."""

    def __init__(self, config: ServerConfig) -> None:
        self._name = config.name
        self._secrets = Secrets(config)
        self._began = time.monotonic()

    def wrote(self, line: str) -> None:
        """Log a line of the server's output that is not an MCP message, unless it says that it is INFO."""
        if line.strip() and _LOG.isEnabledFor(logging.DEBUG) and not is_info(line):
            _LOG.debug("MCP STDERR (%s): %s", self._name, self._secrets.hidden(line))

    def begins(self, what: str) -> None:
        """Log the start of a step."""
        self._began = time.monotonic()
        _LOG.debug("MCP server %s: %s", self._name, what)

    def done(self, what: str) -> None:
        """Log the success of a step, and start the next one."""
        _LOG.debug("MCP server %s: %s took %.2f s", self._name, what, self._took())

    def failed(self, what: str, why: str) -> None:
        """Log the failure of a step."""
        _LOG.debug(
            "MCP server %s: %s failed after %.2f s: %s", self._name, what, self._took(), self._secrets.hidden(why)
        )

    def _took(self) -> float:
        before, self._began = self._began, time.monotonic()
        return self._began - before
