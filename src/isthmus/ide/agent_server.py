"""Port of the servers that :mod:`host` runs, one for each protocol of the agent CLIs."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from isthmus.encoding.codec import JsonObject


class AgentServer(Protocol):
    """A server by which the CLIs of one protocol attach to a companion.

    Call the methods in this order: :meth:`start`, :meth:`serve` in a task, :meth:`announce` (again whenever the
    workspace changes or a discovery file was removed), :meth:`housekeep` every few seconds, :meth:`withdraw`,
    :meth:`stop`.
    """

    @property
    def name(self) -> str:
        """Short lowercase name of the protocol; also the key of its state for a restart."""
        ...

    @property
    def port(self) -> int:
        """Port on which the server listens; valid after :meth:`start`."""
        ...

    @property
    def discovery_files(self) -> tuple[str, ...]:
        """Paths of the files by which CLIs find the server; valid after :meth:`start`."""
        ...

    async def start(self, former: JsonObject | None) -> bool:
        """Bind the port, and return whether it is the port of the previous run.

        ``former`` is the result of :meth:`saved_state` in the previous run.

        Raises:
            OSError: no port can be bound.
        """
        ...

    async def serve(self) -> None:
        """Accept connections until :meth:`stop`; return when the last one is closed."""
        ...

    async def listening(self) -> None:
        """Wait until the server accepts connections."""
        ...

    def announce(self, folders: Sequence[str]) -> None:
        """Write the discovery files atomically, with mode 0600.

        Raises:
            OSError: a file that its clients need cannot be written.
        """
        ...

    @property
    def is_announced(self) -> bool:
        """Whether the discovery files still exist and are complete; CLIs remove files that they consider stale."""
        ...

    def variables(self, folders: Sequence[str]) -> Mapping[str, str]:
        """Return the environment variables that make a CLI in a terminal find this server and no other."""
        ...

    def saved_state(self) -> JsonObject:
        """Return the state with which attached CLIs can reconnect after a restart; at least ``port`` and ``token``."""
        ...

    async def housekeep(self) -> None:
        """Close the views of disconnected clients, and forget clients that have been disconnected for long."""
        ...

    def withdraw(self) -> None:
        """Remove the discovery files."""
        ...

    async def stop(self) -> None:
        """Close every connection in the way of its protocol."""
        ...
