"""All the ways in which our servers are spoken to: to add a dialect, name it here."""

from isthmus.a2a.coder_agent.dialect import CoderAgentDialect
from isthmus.a2a.coder_agent.reservations import Reservations
from isthmus.a2a.wires import Wires


class AllWires(Wires):
    """Every version, and every dialect; one object for all that a server tells its clients, pushes too.

    ``reservations`` are the tasks that clients of ``coderAgent`` made before their first message.
    """

    def __init__(self, *, strict_extension: bool = False) -> None:
        self.reservations = Reservations()
        # A server that requires the extension refuses what would stand in its place.
        dialects = () if strict_extension else (CoderAgentDialect(self.reservations),)
        super().__init__(dialects, strict_extension=strict_extension)
