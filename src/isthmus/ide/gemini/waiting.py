"""What an agent waits for when its companion is killed, as the next life has it from the one before. Data only.

A proposal is shown to the user again. A decision that nobody knows to have arrived is told again, unless the agent
names an event that came with it or after it: no answer of a user is asked for twice or lost.
"""

from dataclasses import dataclass, field

from isthmus.encoding.codec import JsonObject, from_json, to_json


@dataclass(frozen=True, slots=True)
class Proposal:
    """The proposed whole text of a file that nobody has decided."""

    file_path: str
    text: str


@dataclass(frozen=True, slots=True)
class PendingDecision:
    """An encoded ``ide/diffAccepted`` or ``ide/diffRejected``, and its event id in the life that it comes from."""

    file_path: str
    event_id: str
    message: str


@dataclass(frozen=True, slots=True)
class _Kept:
    """How :class:`UnsettledProposals` is written down."""

    proposals: tuple[Proposal, ...] = ()
    decisions: tuple[PendingDecision, ...] = ()


@dataclass(frozen=True, slots=True)
class UnsettledProposals:
    """Of one session, by file: proposals without a decision, and decisions that may not have arrived."""

    proposals: dict[str, Proposal] = field(default_factory=dict[str, Proposal])
    decisions: dict[str, PendingDecision] = field(default_factory=dict[str, PendingDecision])

    def __bool__(self) -> bool:
        return bool(self.proposals or self.decisions)

    def forget(self, file_path: str) -> None:
        """The agent has settled this file, or asks anew."""
        self.proposals.pop(file_path, None)
        self.decisions.pop(file_path, None)

    def to_json(self) -> JsonObject:
        """What :meth:`from_json` reads."""
        return to_json(_Kept(tuple(self.proposals.values()), tuple(self.decisions.values())))

    @classmethod
    def from_json(cls, value: object) -> "UnsettledProposals":
        """What was written down.

        Raises:
            DecodeError: it is something else.
        """
        kept = from_json(_Kept, value)
        return cls({each.file_path: each for each in kept.proposals}, {each.file_path: each for each in kept.decisions})


def is_heard(event_id: str, last_event_id: str | None) -> bool:
    """Return whether a client that names `last_event_id` as the last one it has heard knows the event `event_id`."""
    if last_event_id is None:
        return False
    epoch, number = parts_of(event_id)
    last_epoch, last_number = parts_of(last_event_id)
    return epoch == last_epoch and 0 < number <= last_number


def parts_of(event_id: str) -> tuple[str, int]:
    """Epoch and number of an event id as a client names it; 0 where there is no number."""
    epoch, _, number = event_id.rpartition("-")
    is_number = number.isascii() and number.isdigit() and len(number) < 20
    return epoch, int(number) if is_number else 0
