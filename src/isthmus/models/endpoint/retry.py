"""Retries of model requests: the decision whether and when to try again. Pure.

The retries of the providers' SDKs are off, so that there is one policy, and a user sees every wait.
"""

import re
from collections.abc import Mapping
from typing import Any

from isthmus.encoding.json_shapes import as_list, as_object, as_text
from isthmus.models.port.base import WAITED_FOR, ModelError, ModelErrorKind
from isthmus.network.retry_after import plain_number, retry_after_seconds
from isthmus.record import record

PASSING = WAITED_FOR | {ModelErrorKind.EMPTY}
"""Kinds of temporary failures, for which the same request may succeed later."""


@record
class RetryPolicy:
    """Number of tries and delays of a request. Times are in seconds.

    ``attempts`` includes the first try. ``empty_attempts`` applies to an answer without text and calls,
    ``broken_attempts`` to an answer that breaks off. ``patience`` is the maximum sum of all waits of a request: those
    between tries, those that a server asks for, and those for a network that is away. The latter have no number of
    tries (:mod:`isthmus.models.endpoint.patience`). A wait beyond it is not begun, and the request fails.
    """

    attempts: int = 10
    empty_attempts: int = 3
    broken_attempts: int = 5
    first_wait: float = 1.0
    longest_back_off: float = 60.0
    patience: float = 600.0

    def attempts_for(self, error: ModelError) -> int:
        """Return the total number of tries for an error of this kind."""
        if error.final or error.kind not in PASSING:
            return 1
        match error.kind:
            case ModelErrorKind.EMPTY:
                return min(self.attempts, self.empty_attempts)
            case ModelErrorKind.INTERRUPTED:
                return min(self.attempts, self.broken_attempts)
            case _:
                return self.attempts

    def wait(self, error: ModelError, attempt: int, random: float, waited: float = 0.0) -> float | None:
        """Return the seconds until the next try after try number ``attempt`` (1 = the first), or None to give up.

        ``random`` is in [0, 1); it spreads the waits of many clients over the upper half of the back-off. ``waited`` is
        the sum of the waits so far.
        """
        if attempt >= self.attempts_for(error):
            return None
        if error.retry_after is not None:
            wait = error.retry_after
        elif error.kind is ModelErrorKind.EMPTY:
            wait = 0.0
        else:
            wait = min(self.first_wait * 2.0 ** (attempt - 1), self.longest_back_off) * (0.5 + random / 2)
        return wait if waited + wait <= self.patience else None


PATIENT = RetryPolicy(first_wait=2.0, patience=1200.0)
"""Policy where no user watches (a script, a server)."""


BRIEF = RetryPolicy(attempts=2, patience=10.0)
"""Policy while another model can be asked instead; an answer that breaks off is asked for as often as otherwise."""


def may_be_offline(error: ModelError) -> bool:
    """Return whether an error may mean that the network is away: no connection, or one that broke off."""
    kinds = (ModelErrorKind.UNREACHABLE, ModelErrorKind.INTERRUPTED)
    return error.kind in kinds and error.status is None and not error.final


def retry_after(headers: Mapping[str, str], body: Mapping[str, Any], now: float) -> float | None:
    """Return the requested wait in seconds: Retry-After (seconds or a date), Retry-After-Ms, or Google's RetryInfo.

    ``headers`` has lower-case names; ``body`` is the error object; ``now`` is in seconds since the epoch.
    """
    for value in (_milliseconds(headers.get("retry-after-ms")), retry_after_seconds(headers.get("retry-after"), now)):
        if value is not None:
            return value
    for detail in as_list(body.get("details")):
        if match := re.fullmatch(r"(\d+(?:\.\d+)?)s", as_text(as_object(detail).get("retryDelay"))):
            return float(match[1])
    return None


def _milliseconds(value: str | None) -> float | None:
    seconds = plain_number(value)
    return None if seconds is None else seconds / 1000
