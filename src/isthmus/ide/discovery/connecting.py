"""Which IDE our own agent uses, whatever protocol it speaks: one connection for a workspace, never two to one editor.

An IDE that the environment names, or that we run in, comes first. Where both are as near, the Claude IDE protocol is
taken: it tells diagnostics besides; our own companion, which speaks both, says there also what only the Gemini
companion protocol has. Deliberately not here: how each is found and spoken to.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from isthmus.ide.clients.ide_client import IdeClient, IdeError
from isthmus.ide.discovery.protocols import IDE_PROTOCOLS
from isthmus.ide.discovery_file import RejectedFile, port_number
from isthmus.ide.ide_protocol import FoundIde, IdeProtocol
from isthmus.ide.processes import process_ancestors


@dataclass(frozen=True, slots=True)
class Candidates:
    """The IDEs for a workspace, best first, by protocol, the one that is tried first before the others.

    A protocol without IDEs is left out. ``rejected`` are the discovery files that are of no use here.
    """

    by_protocol: Mapping[IdeProtocol, tuple[FoundIde, ...]]
    rejected: tuple[RejectedFile, ...]

    def __bool__(self) -> bool:
        return bool(self.by_protocol)

    def only(self, is_wanted: Callable[[IdeProtocol, FoundIde], bool]) -> "Candidates":
        """Return those of the IDEs that are wanted, in the same order."""
        wanted = {
            protocol: tuple(ide for ide in ides if is_wanted(protocol, ide))
            for protocol, ides in self.by_protocol.items()
        }
        return replace(self, by_protocol={protocol: ides for protocol, ides in wanted.items() if ides})

    def by_preference(self) -> Iterator[tuple[IdeProtocol, FoundIde]]:
        """Yield each IDE with its protocol, the generally preferred protocol first, wherever we run."""
        return ((protocol, ide) for protocol in IDE_PROTOCOLS for ide in self.by_protocol.get(protocol, ()))


def find_candidates(workspace: Path, environment: Mapping[str, str]) -> Candidates:
    """Look for IDEs of every protocol. Blocking file access: call it in a thread when on an event loop."""
    # The least preferred protocol's files are named first among the rejected.
    searched = {protocol: protocol.find(workspace, environment) for protocol in reversed(IDE_PROTOCOLS)}
    rejected = tuple(file for found in searched.values() for file in found.rejected)
    found = {protocol: searched[protocol].ides for protocol in IDE_PROTOCOLS if searched[protocol].ides}
    if len(found) > 1:
        above = set(process_ancestors()) - {os.getpid()}

        def nearness(protocol: IdeProtocol) -> tuple[bool, bool]:
            best = found[protocol][0]
            return best.port == port_number(environment.get(protocol.port_variable)), best.pid in above

        found = {protocol: found[protocol] for protocol in sorted(found, key=nearness, reverse=True)}
    return Candidates(found, rejected)


async def connect_ide(workspace: Path, environment: Mapping[str, str], candidates: Candidates) -> IdeClient:
    """Connect to the best one that answers; one that shows no diffs only when no other does.

    Raises:
        IdeError: none answers; the text says which were tried.
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
