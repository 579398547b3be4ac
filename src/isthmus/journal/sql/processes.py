"""The processes that work with a journal, as its tables, its locks and the names of lease owners tell."""

from collections.abc import Sequence

from isthmus.journal.port.base import JournalError
from isthmus.journal.port.lease_owner import is_alive as is_alive_here
from isthmus.journal.port.lease_owner import machine_and_pid
from isthmus.record import record


@record
class Process:
    """A process that works with a journal, or has.

    ``owner`` is the name under which it holds leases, or empty. ``host`` and ``pid`` are None if they are unknown.
    ``tasks`` is the number of tasks that it holds now. ``is_alive`` is None if that cannot be known from here.
    """

    owner: str = ""
    host: str | None = None
    pid: int | None = None
    labels: tuple[str, ...] = ()
    slots: int | None = None
    begun: float | None = None
    tasks: int = 0
    is_alive: bool | None = None

    @property
    def name(self) -> str:
        """The process in words."""
        if self.pid is None:
            return f"the process {self.owner}"
        return f"process {self.pid}" if self.host is None else f"process {self.pid} on {self.host}"


def owner_process(
    owner: str,
    tasks: int,
    is_alive: bool | None,
    *,
    labels: tuple[str, ...] = (),
    slots: int | None = None,
    begun: float | None = None,
) -> Process:
    """Return the process of a lease owner's name; what this machine knows of it counts more than ``is_alive``."""
    host, pid = machine_and_pid(owner) or (None, None)
    if (found := is_alive_here(owner)) is not None:
        is_alive = found
    return Process(owner, host, pid, labels, slots, begun, tasks, is_alive)


def refuse_holders(name: str, processes: Sequence[Process], *, is_held: bool = False) -> None:
    """Check that no process works with a journal; ``is_held`` says that one does, known or not.

    Raises:
        JournalError: one does.
    """
    holders = [process for process in processes if process.is_alive is not False]
    if not holders and not is_held:
        return
    names = ", ".join(dict.fromkeys(process.name for process in holders[:5])) or "another process"
    more = f" and {len(holders) - 5} more" if len(holders) > 5 else ""
    raise JournalError(
        f"{name} is in use: {names}{more} works with it. Stop that first, so that nothing is written while the"
        " journal is copied; isthmus journal status shows the processes."
    )
