"""Port of a server that :mod:`host` runs: one for each protocol that agent CLIs speak."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from isthmus.encoding.codec import JsonObject


class AgentServer(Protocol):
    """Lets the CLIs of one protocol attach to a companion.

    In this order: :meth:`start`, then :meth:`serve` in a task, :meth:`announce` (again whenever the workspace changes
    or a discovery file has been removed), :meth:`housekeep` every few seconds, :meth:`withdraw`, :meth:`stop`.
    """

    @property
    def name(self) -> str:
        """Name of the protocol, short and lowercase; also the key of the state kept for a restart."""
        ...

    @property
    def port(self) -> int:
        """Port on which it listens, from :meth:`start` on."""
        ...

    @property
    def discovery_files(self) -> tuple[str, ...]:
        """Paths of the files by which CLIs find it, from :meth:`start` on."""
        ...

    async def start(self, former: JsonObject | None) -> bool:
        """Bind the port, and return whether it is the port of the former run.

        ``former`` is what :meth:`saved_state` returned in the former run.

        Raises:
            OSError: no port can be bound.
        """
        ...

    async def serve(self) -> None:
        """Take connections until :meth:`stop`; return when the last one is closed."""
        ...

    async def listening(self) -> None:
        """Wait until the server takes connections."""
        ...

    def announce(self, folders: Sequence[str]) -> None:
        """Write the discovery files, each with mode 0600 and never incomplete.

        Raises:
            OSError: a file that its clients need cannot be written.
        """
        ...

    @property
    def is_announced(self) -> bool:
        """Whether the discovery files are still there and complete; CLIs remove those that they take for stale."""
        ...

    def variables(self, folders: Sequence[str]) -> Mapping[str, str]:
        """Return the environment variables with which a CLI in a terminal finds this server and no other."""
        ...

    def saved_state(self) -> JsonObject:
        """Return the state that lets attached CLIs reconnect after a restart: ``port`` and ``token`` at least."""
        ...

    async def housekeep(self) -> None:
        """Close the views of clients that are gone, and forget those that have been gone for long."""
        ...

    def withdraw(self) -> None:
        """Remove the discovery files."""
        ...

    async def stop(self) -> None:
        """Close every connection properly."""
        ...
