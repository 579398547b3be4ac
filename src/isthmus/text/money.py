"""Amounts of money as whole picodollars, so that sums are exact, quick, and the same in every store. Pure.

A picodollar is 10^-12 US dollars. With a price of up to six decimals for a million tokens, each token costs a whole
number of them. Prices themselves are in :mod:`isthmus.models.port.costs`, which alone computes with them.
"""

import re
from collections.abc import Collection

from isthmus.text.units import AmountError

PICODOLLARS = 10**12
"""Number of picodollars in a US dollar."""
NAMED_MODELS = 3
"""Maximum number of models that are named because they have no price."""
_SMALLEST = PICODOLLARS // 10_000
"""Smallest amount that is shown as a number."""
_DOLLARS = re.compile(r"\$?([0-9]{1,12})(?:\.([0-9]{1,12}))?")


def parse_dollars(text: str) -> int:
    """Return the picodollars of an amount such as ``2.50`` or ``$2.50``. Raises AmountError."""
    found = _DOLLARS.fullmatch(text.strip())
    if found is None:
        raise AmountError(f"{text[:100]!r} is not an amount of money; expected US dollars, e.g. 2.50")
    return int(found[1]) * PICODOLLARS + int((found[2] or "").ljust(12, "0"))


def in_dollars(amount: int) -> float:
    """Return picodollars as US dollars, for JSON."""
    return amount / PICODOLLARS


def from_dollars(amount: float) -> int:
    """Return US dollars as picodollars, from JSON."""
    return round(amount * PICODOLLARS)


def show_dollars(amount: int) -> str:
    """Return picodollars as text: ``$0.0123``, ``$0.50``, ``$1,234.50``; ``<$0.0001`` for less."""
    if 0 < amount < _SMALLEST:
        return "<$0.0001"
    rounded = (amount * 10_000 + PICODOLLARS // 2) // PICODOLLARS
    if rounded >= 10_000:
        cents = (amount * 100 + PICODOLLARS // 2) // PICODOLLARS
        return f"${cents // 100:,}.{cents % 100:02}"
    places = f"{rounded:04}"
    return f"$0.{places.removesuffix('00') if places.endswith('00') else places.removesuffix('0')}"


def show_cost(amount: int, unpriced: Collection[str]) -> str:
    """Return what is known of a cost as text. ``unpriced`` are the models without a price whose cost is not in it."""
    if not unpriced:
        return show_dollars(amount)
    names = list(unpriced)
    more = f" and {len(names) - NAMED_MODELS} more" if len(names) > NAMED_MODELS else ""
    reason = f"(no price for {', '.join(names[:NAMED_MODELS])}{more})"
    return f"{show_dollars(amount)} and more {reason}" if amount else f"cost unknown {reason}"
