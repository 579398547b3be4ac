"""Which IDE our own agent uses, whatever protocol it speaks: one connection for a workspace, never two to one editor.

An IDE that the environment names, or that we run in, comes first. Where both protocols are as near, spec 3's is taken:
it tells diagnostics besides; our own companion, which speaks both, says there also what spec 1 has and spec 3 lacks.
Deliberately not here: how each is found and spoken to.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from isthmus.ide.claude.finding import PORT_VARIABLE, ClaudeIde, find_ides
from isthmus.ide.clients.ide_client import IdeClient, IdeError
from isthmus.ide.discovery_file import RejectedFile, port_number
from isthmus.ide.gemini.finding import Companion, find_companions
from isthmus.ide.processes import process_ancestors

GEMINI_PORT_VARIABLE = "GEMINI_CLI_IDE_SERVER_PORT"


@dataclass(frozen=True, slots=True)
class Candidates:
    """What there is for a workspace, best first within each protocol.

    ``prefers_claude``: which protocol is tried first. ``rejected`` are the discovery files that are of no use here.
    """

    companions: tuple[Companion, ...]
    ides: tuple[ClaudeIde, ...]
    prefers_claude: bool
    rejected: tuple[RejectedFile, ...]

    def __bool__(self) -> bool:
        return bool(self.companions or self.ides)


def find_candidates(workspace: Path, environment: Mapping[str, str]) -> Candidates:
    """Look for IDEs of both protocols. Blocking file access: call it in a thread when on an event loop."""
    companions, ides = find_companions(workspace, environment), find_ides(workspace, environment)
    prefers_claude = bool(ides.ides)
    if companions.companions and ides.ides:
        above = set(process_ancestors()) - {os.getpid()}
        companion, ide = companions.companions[0], ides.ides[0]
        named = companion.port == port_number(environment.get(GEMINI_PORT_VARIABLE))
        prefers_claude = (ide.port == port_number(environment.get(PORT_VARIABLE)), ide.pid in above) >= (
            named,
            companion.pid in above,
        )
    return Candidates(companions.companions, ides.ides, prefers_claude, (*companions.rejected, *ides.rejected))


async def connect_ide(workspace: Path, environment: Mapping[str, str], candidates: Candidates) -> IdeClient:
    """Connect to the best one that answers; one that shows no diffs only when no other does.

    Raises:
        IdeError: none answers; the text says which were tried.
    """
    kinds = [kind for kind, is_there in (("claude", candidates.ides), ("gemini", candidates.companions)) if is_there]
    if not candidates.prefers_claude:
        kinds.reverse()
    problems: list[str] = []
    kept: IdeClient | None = None
    for kind in kinds:
        client = _client(kind, workspace, environment)
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


def _client(kind: str, workspace: Path, environment: Mapping[str, str]):
    if kind == "claude":
        from isthmus.ide.claude.peer import ClaudePeer  # websockets only when there is such an IDE

        return ClaudePeer(workspace, environment)
    from isthmus.ide.gemini.peer import GeminiPeer

    return GeminiPeer(workspace, environment)
