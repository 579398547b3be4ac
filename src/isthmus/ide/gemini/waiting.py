"""Unfinished proposals and decisions of a killed companion, in the form that its next run reads. Data only.

A proposal is shown to the user again. A decision that may not have arrived is sent again, unless the agent has received
this or a later event: no decision is lost, and the user is not asked twice.
"""

from dataclasses import field

from isthmus.encoding.codec import JsonObject, from_json, to_json
from isthmus.record import record


@record
class Proposal:
    """Proposed whole text of a file, not yet decided."""

    file_path: str
    text: str


@record
class PendingDecision:
    """An encoded ``ide/diffAccepted`` or ``ide/diffRejected``, with its event id in its original run."""

    file_path: str
    event_id: str
    message: str


@record
class _Kept:
    """Stored form of :class:`UnsettledProposals`."""

    proposals: tuple[Proposal, ...] = ()
    decisions: tuple[PendingDecision, ...] = ()


@record
class UnsettledProposals:
    """Undecided proposals, and decisions that may not have arrived, of one session by file."""

    proposals: dict[str, Proposal] = field(default_factory=dict[str, Proposal])
    decisions: dict[str, PendingDecision] = field(default_factory=dict[str, PendingDecision])

    def __bool__(self) -> bool:
        return bool(self.proposals or self.decisions)

    def forget(self, file_path: str) -> None:
        """Forget a file, because the agent has settled its proposal or asks again."""
        self.proposals.pop(file_path, None)
        self.decisions.pop(file_path, None)

    def to_json(self) -> JsonObject:
        """Return the form that :meth:`from_json` reads."""
        return to_json(_Kept(tuple(self.proposals.values()), tuple(self.decisions.values())))

    @classmethod
    def from_json(cls, value: object) -> "UnsettledProposals":
        """Return the proposals and decisions that :meth:`to_json` encoded.

        Raises:
            DecodeError: the value is not of this form.
        """
        kept = from_json(_Kept, value)
        return cls({each.file_path: each for each in kept.proposals}, {each.file_path: each for each in kept.decisions})


def has_received(event_id: str, last_event_id: str | None) -> bool:
    """Return whether a client that last received ``last_event_id`` has received ``event_id``."""
    if last_event_id is None:
        return False
    epoch, number = parts_of(event_id)
    last_epoch, last_number = parts_of(last_event_id)
    return epoch == last_epoch and 0 < number <= last_number


def parts_of(event_id: str) -> tuple[str, int]:
    """Return epoch and number of a client's event id; the number is 0 if it has none."""
    epoch, _, number = event_id.rpartition("-")
    is_number = number.isascii() and number.isdigit() and len(number) < 20
    return epoch, int(number) if is_number else 0
