"""Proposals and decisions that wait for an agent when its companion is killed, as the next run reads them. Data only.

A proposal is shown to the user again. A decision that may not have arrived is sent again, unless the agent names an
event that came with it or after it: no decision of a user is asked for twice or lost.
"""

from dataclasses import dataclass, field

from isthmus.encoding.codec import JsonObject, from_json, to_json


@dataclass(frozen=True, slots=True)
class Proposal:
    """The proposed whole text of a file, not decided yet."""

    file_path: str
    text: str


@dataclass(frozen=True, slots=True)
class PendingDecision:
    """An encoded ``ide/diffAccepted`` or ``ide/diffRejected``, and its event id in the run that it comes from."""

    file_path: str
    event_id: str
    message: str


@dataclass(frozen=True, slots=True)
class _Kept:
    """Stored form of :class:`UnsettledProposals`."""

    proposals: tuple[Proposal, ...] = ()
    decisions: tuple[PendingDecision, ...] = ()


@dataclass(frozen=True, slots=True)
class UnsettledProposals:
    """Proposals without a decision, and decisions that may not have arrived, of one session by file."""

    proposals: dict[str, Proposal] = field(default_factory=dict[str, Proposal])
    decisions: dict[str, PendingDecision] = field(default_factory=dict[str, PendingDecision])

    def __bool__(self) -> bool:
        return bool(self.proposals or self.decisions)

    def forget(self, file_path: str) -> None:
        """Forget a file, because the agent has settled it or asks again."""
        self.proposals.pop(file_path, None)
        self.decisions.pop(file_path, None)

    def to_json(self) -> JsonObject:
        """Return the form that :meth:`from_json` reads."""
        return to_json(_Kept(tuple(self.proposals.values()), tuple(self.decisions.values())))

    @classmethod
    def from_json(cls, value: object) -> "UnsettledProposals":
        """Return the proposals and decisions that :meth:`to_json` encoded.

        Raises:
            DecodeError: the value has another form.
        """
        kept = from_json(_Kept, value)
        return cls({each.file_path: each for each in kept.proposals}, {each.file_path: each for each in kept.decisions})


def has_received(event_id: str, last_event_id: str | None) -> bool:
    """Return whether a client whose last received event is `last_event_id` has received the event `event_id`."""
    if last_event_id is None:
        return False
    epoch, number = parts_of(event_id)
    last_epoch, last_number = parts_of(last_event_id)
    return epoch == last_epoch and 0 < number <= last_number


def parts_of(event_id: str) -> tuple[str, int]:
    """Return epoch and number of an event id that a client names; 0 if it holds no number."""
    epoch, _, number = event_id.rpartition("-")
    is_number = number.isascii() and number.isdigit() and len(number) < 20
    return epoch, int(number) if is_number else 0
