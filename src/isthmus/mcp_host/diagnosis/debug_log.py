"""Log of one MCP server for --debug: its error output as it arrives, and the time of each step of connecting.

It is written to the program's log at the level "debug", without the secrets of the server's configuration. The server's
lines of level INFO are left out. Not here: the output kept for error messages, see
:mod:`isthmus.mcp_host.diagnosis.server_log`.
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
"""Number of characters at the beginning of a line that are searched for its level."""


def is_info(line: str) -> bool:
    """Return whether a log line has the level INFO: ``[INFO]``, ``INFO:``, ``[info]`` or ``"level":"info"``.

    The first level in a line counts.
    """
    for found in _LEVEL.finditer(line[:_BEGINNING]):
        level = next(text for text in found.groups() if text is not None).upper()
        if level in _LEVELS:
            return level == "INFO"
    return False


class DebugLog:
    """Log of one attempt to connect to a server, with the server's output during it."""

    def __init__(self, config: ServerConfig) -> None:
        self._name = config.name
        self._secrets = Secrets(config)
        self._began = time.monotonic()

    def wrote(self, line: str) -> None:
        """Log a line of the server's output that is not an MCP message, unless its level is INFO."""
        if line.strip() and _LOG.isEnabledFor(logging.DEBUG) and not is_info(line):
            _LOG.debug("MCP STDERR (%s): %s", self._name, self._secrets.hidden(line))

    def begins(self, step: str) -> None:
        """Log the start of a step."""
        self._began = time.monotonic()
        _LOG.debug("MCP server %s: %s", self._name, step)

    def done(self, step: str) -> None:
        """Log the success of a step, and start the next one."""
        _LOG.debug("MCP server %s: %s took %.2f s", self._name, step, self._took())

    def failed(self, step: str, reason: str) -> None:
        """Log the failure of a step."""
        _LOG.debug(
            "MCP server %s: %s failed after %.2f s: %s", self._name, step, self._took(), self._secrets.hidden(reason)
        )

    def _took(self) -> float:
        before, self._began = self._began, time.monotonic()
        return self._began - before
