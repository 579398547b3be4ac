"""What :mod:`host` runs: one server for each protocol that agent CLIs speak. A port; it knows no protocol itself."""

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
        """The protocol, short and lowercase; what is kept for a next life stands under it."""
        ...

    @property
    def port(self) -> int:
        """Where it listens, from :meth:`start` on."""
        ...

    @property
    def discovery_files(self) -> tuple[str, ...]:
        """The paths of the files by which CLIs find it, from :meth:`start` on."""
        ...

    async def start(self, former: JsonObject | None) -> bool:
        """Bind the port; ``former`` is what :meth:`life` said in the life before. Whether that port could be had again.

        Raises:
            OSError: there is no port.
        """
        ...

    async def serve(self) -> None:
        """Take connections until :meth:`stop`; returns when the last one is closed."""
        ...

    async def listening(self) -> None:
        """Return when connections are taken."""
        ...

    def announce(self, folders: Sequence[str]) -> None:
        """Write the discovery files, each 0600 and whole at every moment.

        Raises:
            OSError: one cannot be written that its clients need.
        """
        ...

    @property
    def is_announced(self) -> bool:
        """Whether the discovery files are still there, and whole; CLIs remove what they take for stale."""
        ...

    def variables(self, folders: Sequence[str]) -> Mapping[str, str]:
        """What the environment of a terminal needs so that a CLI in it finds this server and no other."""
        ...

    def life(self) -> JsonObject:
        """What a next life needs so that attached CLIs come back: ``port`` and ``token`` at least."""
        ...

    async def housekeep(self) -> None:
        """Close the views of clients that are gone, and forget those that are gone for long."""
        ...

    def withdraw(self) -> None:
        """Remove the discovery files."""
        ...

    async def stop(self) -> None:
        """End every connection properly."""
        ...
