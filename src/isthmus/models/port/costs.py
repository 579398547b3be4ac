"""Prices of a model, and what a request costs. Pure; all amounts are exact.

Prices are for texts and images, in US dollars. What a provider asks for its own tools or for audio is not in them.
"""

from decimal import Decimal

from isthmus.models.port.base import Usage
from isthmus.record import record
from isthmus.text.money import PICODOLLARS

MILLION = Decimal(1_000_000)


@record
class Price:
    """US dollars for a million tokens of a request with more than ``above`` input tokens; None where it is unknown.

    ``cache_write`` is for the shortest lifetime in the provider's cache, ``cache_write_1h`` for an hour.
    """

    above: int
    input: Decimal
    output: Decimal
    cache_read: Decimal | None = None
    cache_write: Decimal | None = None
    cache_write_1h: Decimal | None = None


@record
class ModelCosts:
    """Prices of a model on one day, by the size of a request: in ascending order, the first one above 0 tokens."""

    prices: tuple[Price, ...]

    def price_for(self, input_tokens: int) -> Price:
        """Return the price of a request with so many input tokens, which holds for all of its tokens."""
        return [price for price in self.prices if not price.above or input_tokens > price.above][-1]


def cost(usage: Usage, costs: ModelCosts | None) -> Decimal | None:
    """Return what a request costs in US dollars; None if a price that it needs is not known."""
    if costs is None:
        return None
    price = costs.price_for(usage.input)
    plain = max(0, usage.input - usage.cached - usage.cache_write)
    amounts = (
        (plain, price.input),
        (usage.cached, price.cache_read),
        (usage.cache_write - usage.cache_write_1h, price.cache_write),
        (usage.cache_write_1h, price.cache_write_1h),
        (usage.output, price.output),
    )
    total = Decimal(0)
    for tokens, each in amounts:
        if tokens <= 0:
            continue
        if each is None:
            return None
        total += tokens * each
    return total / MILLION


def request_cost(usage: Usage, costs: ModelCosts | None) -> int | None:
    """Return what a request costs in picodollars, the nearest whole number; None if a price is not known."""
    amount = cost(usage, costs)
    return None if amount is None else int((amount * PICODOLLARS).to_integral_value())
