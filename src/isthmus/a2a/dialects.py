"""All versions and dialects that our servers speak; to add a dialect, name it here."""

from isthmus.a2a.coder_agent.dialect import CoderAgentDialect
from isthmus.a2a.coder_agent.reservations import Reservations
from isthmus.a2a.wires import Wires


class AllWires(Wires):
    """Every version and dialect. A server uses one object for all its answers and push notifications.

    ``reservations`` are the tasks that clients of ``coderAgent`` created before their first message.
    """

    def __init__(self, *, strict_extension: bool = False) -> None:
        self.reservations = Reservations()
        # A server that requires the extension refuses dialects that replace it.
        dialects = () if strict_extension else (CoderAgentDialect(self.reservations),)
        super().__init__(dialects, strict_extension=strict_extension)
