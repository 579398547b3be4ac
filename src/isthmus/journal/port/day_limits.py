"""Limits of what models may use for one user in a day, and the words for a limit that is reached. Pure."""

from datetime import UTC, datetime

from isthmus.journal.port.removed_tokens import DAY, Used, UsedToday
from isthmus.record import record
from isthmus.text.money import show_dollars


@record
class DayLimits:
    """Maximum of a user's day: model tokens, and cost in picodollars; None for no limit."""

    tokens: int | None = None
    cost: int | None = None

    def are_reached(self, used: Used) -> bool:
        """Return whether the user has used as much as may be of one of them."""
        of_tokens = self.tokens is not None and used.tokens >= self.tokens
        return of_tokens or (self.cost is not None and used.cost >= self.cost)

    def reached(self, user: str, used: Used) -> str:
        """Return the sentence, without its end, which of them a user has used up."""
        whose = f"{user} has" if user else "Your sessions have"
        if self.tokens is not None and used.tokens >= self.tokens:
            return f"{whose} used {used.tokens:,} model tokens today, and {self.tokens:,} are the maximum of a day"
        return (
            f"{whose} cost {show_dollars(used.cost)} today, and {show_dollars(self.cost or 0)} is the budget of a day"
        )


def begins_again(used: UsedToday) -> str:
    """Return the time at which the next day begins, as ISO 8601."""
    return datetime.fromtimestamp(used.begun + DAY, UTC).isoformat(timespec="minutes")
