"""The mark of a program that was started as an MCP server, by which Isthmus knows that it is its own server.

The mark is a variable of the program's environment. It names the servers as which the program and those that started
it were started, the outermost first, by hashes that do not show their commands.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from isthmus.record import record

CHAIN = "ISTHMUS_SERVER_CHAIN"
"""Environment variable with the servers, joined by commas."""
_DIGITS = 16


@record
class StartedServer:
    """A server by the hashes of its entry in a file and of its command, whose variables may differ by process."""

    entry: str
    command: str

    @classmethod
    def of(cls, name: str, source: Path | None, command: Sequence[str]) -> "StartedServer":
        """Return the server of this name in a file, which is started by a command."""
        return cls(_hash(name, str(source)), _hash(*command))

    def is_same(self, other: "StartedServer") -> bool:
        """Return whether both are the same entry or run the same command."""
        return self.entry == other.entry or self.command == other.command


def server_chain(environment: Mapping[str, str]) -> tuple[StartedServer, ...]:
    """Return the servers as which a process was started; empty if it was not started as a server."""
    parts = (part.partition(".") for part in environment.get(CHAIN, "").split(",") if part)
    return tuple(StartedServer(entry, command) for entry, _, command in parts)


def environment_below(environment: Mapping[str, str], server: StartedServer) -> Mapping[str, str]:
    """Return the environment with the mark of a server that this process starts."""
    chain = ",".join(f"{one.entry}.{one.command}" for one in (*server_chain(environment), server))
    return {**environment, CHAIN: chain}


def _hash(*words: str) -> str:
    return hashlib.sha256(json.dumps(words).encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
