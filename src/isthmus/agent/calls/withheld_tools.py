"""Warnings of tools of MCP servers that the model is not offered, because nobody can be asked."""

import logging
from collections.abc import Mapping, Sequence
from typing import TypeAlias

WithheldTools: TypeAlias = Mapping[str, Sequence[str]]
"""The servers' own names of tools that are not offered, by server; empty for all tools of a server."""
MAXIMUM_NAMED = 20
"""Maximum number of tools and servers that are named."""

log = logging.getLogger(__name__)


class WithheldNotice:
    """Warns of withheld tools, once of each."""

    def __init__(self) -> None:
        self._said = set[str]()

    def say(self, withheld: WithheldTools) -> None:
        """Warn of the withheld tools that were not named before."""
        entries = [entry for server, tools in withheld.items() for entry in _entries(server, tools)]
        if new := [entry for entry in entries if entry not in self._said]:
            self._said.update(new)
            log.warning("%s", withheld_text(new))


def withheld_text(entries: Sequence[str]) -> str:
    """Return in a line which tools are not offered, why, and what would allow them."""
    named = entries[:MAXIMUM_NAMED]
    more = f" and {len(entries) - len(named)} more" if len(entries) > len(named) else ""
    return (
        "the model is not offered these tools of MCP servers, since they need a permission and nobody can be asked"
        f" here: {', '.join(named)}{more}. Allow them with --allowed-tools '{','.join(named)}', by `trust` of the"
        " server, or with a policy"
    )


def _entries(server: str, tools: Sequence[str]) -> list[str]:
    """Return the entries of an allow-list for these tools of a server, or for all if there are none."""
    return [f"{server}.{tool}" for tool in tools] or [server]
