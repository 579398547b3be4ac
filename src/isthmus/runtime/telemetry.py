"""Port for those who operate a server: the work that it does, as it begins and ends. Metrics and traces implement it.

An :data:`Operation` is made where the work is done, with what is known at the beginning; the rest is set before the
work ends. No text of a prompt, an answer, a call or a file is in it, but a :class:`ModelCall` can return them to those
who were told to keep them.
"""

import contextlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from typing_extensions import override

from isthmus.record import record


@dataclass(slots=True, eq=False)
class ServedRequest:
    """A request to the server, from its head to the end of its answer.

    ``verb`` is the HTTP method; ``method`` is the one of A2A, empty if the request has none that is known. ``status``
    is the HTTP status, 0 if nothing was answered; ``error`` is the code of a JSON-RPC error.
    """

    verb: str
    headers: Mapping[str, str]
    is_let_in: bool
    """Whether the sender showed a valid token."""
    method: str = ""
    task_id: str = ""
    status: int = 0
    error: int | None = None


@dataclass(slots=True, eq=False)
class TaskSegment:
    """The work on a task until it asks or ends. ``state`` is the task's then, empty if the work was broken off.

    ``queued_seconds`` is the time for which the task waited for a process; None if its former process broke it off.
    ``user`` is the name of its user, empty for the local one; ``parent`` is the task of which it is a part, or empty.
    """

    task_id: str
    context_id: str
    user: str
    parent: str
    queued_seconds: float | None
    state: str = ""
    reason: str = ""
    """Word for the reason of a failure."""


@dataclass(slots=True, eq=False)
class ModelCall:
    """A request to a model with all its attempts. ``input_tokens`` include the cached ones.

    ``cost`` is in picodollars; None if a price is not known.

    ``prompt`` and ``answer`` return the texts as JSON, with so many characters of them; they are not called unless
    somebody is to keep them.
    """

    provider: str
    model: str
    prompt: Callable[[int], str]
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    cost: int | None = None
    finish: str = ""
    """Word for the reason why the model stopped."""
    failure: str = ""
    """Word for the reason why there is no answer."""
    answer: Callable[[int], str] | None = None


@dataclass(slots=True, eq=False)
class ToolRun:
    """A tool that runs. ``kind`` is the word for its effect; ``server`` is the MCP server that has it, or empty.

    ``status`` is ``succeeded``, ``failed``, ``canceled``, or ``waiting`` for an answer to a question of its task.
    """

    name: str
    kind: str
    call_id: str
    server: str = ""
    status: str = ""
    failure: str = ""
    """Word for the reason of a failure."""


Operation: TypeAlias = ServedRequest | TaskSegment | ModelCall | ToolRun


@record
class PushAttempt:
    """An attempt to deliver a push notification: ``delivered``, ``failed`` and tried again later, or ``given-up``.

    ``lag_seconds`` is the time since the task changed.
    """

    outcome: str
    lag_seconds: float


class Telemetry(Protocol):
    """Takes what happens. Its methods must be quick, must not fail and must not wait for anything."""

    def measure(self, operation: Operation) -> AbstractContextManager[object]:
        """Return a context that lasts as long as the operation; it lets every exception pass."""
        ...

    def queued(self, task_id: str) -> None:
        """Note that the request under way has let a task wait for a process."""
        ...

    def pushed(self, attempt: PushAttempt) -> None:
        """Note an attempt to deliver a push notification."""
        ...


class _NoTelemetry(Telemetry):
    """Takes nothing."""

    _NOTHING = contextlib.nullcontext()

    @override
    def measure(self, operation: Operation) -> AbstractContextManager[object]:
        return self._NOTHING

    @override
    def queued(self, task_id: str) -> None: ...

    @override
    def pushed(self, attempt: PushAttempt) -> None: ...


NO_TELEMETRY: Telemetry = _NoTelemetry()


class Telemetries(Telemetry):
    """Passes everything on to several."""

    def __init__(self, *each: Telemetry) -> None:
        self._each = each

    @override
    def measure(self, operation: Operation) -> AbstractContextManager[object]:
        stack = contextlib.ExitStack()
        for one in self._each:
            stack.enter_context(one.measure(operation))
        return stack

    @override
    def queued(self, task_id: str) -> None:
        for one in self._each:
            one.queued(task_id)

    @override
    def pushed(self, attempt: PushAttempt) -> None:
        for one in self._each:
            one.pushed(attempt)
