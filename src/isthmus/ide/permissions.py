"""Port of permission questions: how an agent CLI's hook asks for one step, and how it reads the answer. No I/O."""

from collections.abc import Callable, Sequence
from typing import Protocol

from isthmus.encoding.codec import JsonObject
from isthmus.record import record


@record
class PermissionAsked:
    """One step for which an agent asks permission. ``agent`` is the agent's name, ``title`` one line.

    ``text`` is all that the user has to see, in any length. ``file`` is the absolute path of the file that the step
    edits, if the agent may show that edit as a diff in the editor; then the diff is the question. ``may_be_first``: the
    CLI's terminal may ask only after its hook has ended without an answer.
    """

    agent: str
    title: str
    text: str
    file: str | None = None
    may_be_first: bool = False


@record
class PermissionAnswer:
    """The user's answer. ``by`` is the place where they gave it, ``reason`` their words about a no."""

    is_allowed: bool
    by: str
    reason: str = ""


class TerminalWatch(Protocol):
    """Tells whether the terminal of a CLI still asks."""

    def look(self) -> str | None:
        """Return a name for what the terminal asks now, another one for each question; empty if it asks nothing.

        None if the CLI has ended, or does not say. Quick enough for the event loop.
        """
        ...


@record
class PermissionHook:
    """Messages of a CLI's hook. ``read`` returns None if the question belongs in the CLI's own terminal; it blocks.

    ``watch`` returns the watch on the terminal that a message comes from; its CLI is one of the given ancestors of the
    hook's process. It returns None if nothing tells. ``write`` encodes an answer for the CLI. ``read`` raises
    :class:`~isthmus.errors.DecodeError` for a message that is none of this CLI's.
    """

    read: Callable[[JsonObject], PermissionAsked | None]
    watch: Callable[[JsonObject, Sequence[int]], TerminalWatch | None]
    write: Callable[[PermissionAnswer], JsonObject]
