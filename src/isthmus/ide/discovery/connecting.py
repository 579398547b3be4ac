"""Connects our own agent to an IDE of any protocol: one connection per workspace, never two to the same editor.

An IDE that the environment names or that we run in comes first. Otherwise the Claude IDE protocol is preferred, because
it has diagnostics; our own companion adds to it the features that only the Gemini protocol has.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from isthmus.ide.clients.ide_client import IdeClient, IdeError
from isthmus.ide.discovery.protocols import BY_PREFERENCE, IDE_PROTOCOLS
from isthmus.ide.discovery_file import RejectedFile, port_number
from isthmus.ide.ide_protocol import FoundIde, IdeProtocol
from isthmus.ide.processes import process_ancestors
from isthmus.record import record


@record
class Candidates:
    """IDEs of a workspace by protocol, best first; the protocols are in the order in which to try them.

    Protocols without IDEs are left out. ``rejected`` are the discovery files that cannot be used for the workspace.
    """

    by_protocol: Mapping[IdeProtocol, tuple[FoundIde, ...]]
    rejected: tuple[RejectedFile, ...]

    def __bool__(self) -> bool:
        return bool(self.by_protocol)

    def only(self, is_wanted: Callable[[IdeProtocol, FoundIde], bool]) -> "Candidates":
        """Return the IDEs for which ``is_wanted`` is true, in the same order."""
        wanted = {
            protocol: tuple(ide for ide in ides if is_wanted(protocol, ide))
            for protocol, ides in self.by_protocol.items()
        }
        return replace(self, by_protocol={protocol: ides for protocol, ides in wanted.items() if ides})

    def by_preference(self) -> Iterator[tuple[IdeProtocol, FoundIde]]:
        """Yield each IDE with its protocol, in the general order of preference, regardless of the environment."""
        return ((protocol, ide) for protocol in BY_PREFERENCE for ide in self.by_protocol.get(protocol, ()))


def find_candidates(workspace: Path, environment: Mapping[str, str]) -> Candidates:
    """Find the IDEs of every protocol. Blocking; call it in a thread from an event loop."""
    searched = {protocol: protocol.find(workspace, environment) for protocol in IDE_PROTOCOLS}
    rejected = tuple(file for found in searched.values() for file in found.rejected)
    found = {protocol: searched[protocol].ides for protocol in BY_PREFERENCE if searched[protocol].ides}
    if len(found) > 1:
        above = set(process_ancestors()) - {os.getpid()}

        def nearness(protocol: IdeProtocol) -> tuple[bool, bool]:
            best = found[protocol][0]
            return best.port == port_number(environment.get(protocol.port_variable)), best.pid in above

        found = {protocol: found[protocol] for protocol in sorted(found, key=nearness, reverse=True)}
    return Candidates(found, rejected)


async def connect_ide(workspace: Path, environment: Mapping[str, str], candidates: Candidates) -> IdeClient:
    """Connect to the best IDE that answers; use an IDE without diffs only if no other answers.

    Raises:
        IdeError: no IDE answers; the text lists the ones tried.
    """
    problems: list[str] = []
    kept: IdeClient | None = None
    for protocol in candidates.by_protocol:
        client = protocol.client(workspace, environment)
        try:
            await client.connect()
        except IdeError as error:
            problems.append(str(error))
            await client.aclose()
            continue
        except BaseException:
            await client.aclose()
            if kept is not None:
                await kept.aclose()
            raise
        if client.can_review:
            if kept is not None:
                await kept.aclose()
            return client
        if kept is None:
            kept = client
        else:
            await client.aclose()
    if kept is None:
        raise IdeError("; ".join(problems) or "no IDE has this workspace open")
    return kept
