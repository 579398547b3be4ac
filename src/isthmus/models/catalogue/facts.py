"""Facts about a model: limits, prices, how much it can be told to think, and when it ends. Pure."""

from dataclasses import field, replace
from datetime import date
from decimal import Decimal
from enum import StrEnum

from isthmus.models.port.base import Effort
from isthmus.models.port.costs import ModelCosts, Price
from isthmus.record import record


class Thinking(StrEnum):
    """Form in which a request says how much the model shall think."""

    NONE = "none"
    """The model does not think, or it is not known to."""
    FIXED = "fixed"
    """The model thinks as much as it likes."""
    ADAPTIVE = "adaptive"
    """Anthropic: the model decides when to think; an effort says how much."""
    BUDGET = "budget"
    """A number of tokens, in Anthropic's older models and Gemini before version 3."""
    LEVEL = "level"
    """Gemini from version 3: the name of a level."""
    EFFORT = "effort"
    """OpenAI and servers that imitate it: the name of an effort."""


@record
class DatedCosts:
    """Costs that hold from a day on; None for as long as anything is known."""

    begin: date | None
    costs: ModelCosts


@record
class ModelFacts:
    """A row of the table of models. Numbers are in tokens; None is unknown.

    Attributes:
        owner: the provider or server that offers the model, such as ``anthropic``.
        window: tokens of the context window, which answers share.
        sources: catalogues that the row is from, by their names in the table; ``settings`` for the user's own.
        seen: ISO date on which a source last had the row.
        input_limit: maximum of a request, where that is less than the window.
        efforts: levels that change the request, in ascending order; empty if there are none.
        default_effort: level without a word of ours; empty if it is not known.
        media: kinds of input beside text: ``image``, ``pdf``, ``audio``, ``video``; None if they are not known.
        server_tools: tools that the provider runs itself.
        takes_sampling: whether parameters of sampling are accepted.
        takes_forced_calls: whether a request may force a tool call.
        ends: day on which the provider ends the model.
        successor: the model that its provider names in its place; empty if none is known.
        is_deprecated: its end is announced without a day, or no catalogue lists it any more.
    """

    owner: str
    id: str
    window: int
    sources: tuple[str, ...]
    seen: str
    input_limit: int | None = None
    output_limit: int | None = None
    thinking: Thinking = Thinking.NONE
    efforts: tuple[Effort, ...] = ()
    default_effort: str = ""
    media: frozenset[str] | None = None
    server_tools: frozenset[str] = field(default_factory=frozenset[str])
    takes_sampling: bool = True
    takes_forced_calls: bool = True
    knowledge: str = ""
    ends: date | None = None
    successor: str = ""
    is_deprecated: bool = False
    prices: tuple[DatedCosts, ...] = ()

    @property
    def room(self) -> int:
        """Tokens that a request may have."""
        return self.window if self.input_limit is None else min(self.window, self.input_limit)

    def costs_on(self, day: date) -> ModelCosts | None:
        """Return the costs of a day; None if they are not known."""
        held = [each.costs for each in self.prices if each.begin is None or each.begin <= day]
        return held[-1] if held else None


@record
class ModelOverride:
    """Words of the user's settings about a model, in place of the table; None leaves a fact to the table.

    Prices are in US dollars for a million tokens; ``media`` is as in :class:`ModelFacts`.
    """

    window: int | None = None
    output_limit: int | None = None
    input_price: Decimal | None = None
    output_price: Decimal | None = None
    cache_read_price: Decimal | None = None
    cache_write_price: Decimal | None = None
    media: frozenset[str] | None = None

    def applied(self, facts: ModelFacts) -> ModelFacts:
        """Return the facts of a model with what the settings say of it."""
        prices = facts.prices
        if self.input_price is not None and self.output_price is not None:
            price = Price(0, self.input_price, self.output_price, self.cache_read_price, self.cache_write_price)
            prices = (DatedCosts(None, ModelCosts((price,))),)
        return replace(
            facts,
            window=self.window or facts.window,
            input_limit=None if self.window else facts.input_limit,
            output_limit=self.output_limit or facts.output_limit,
            prices=prices,
            media=facts.media if self.media is None else self.media,
        )


@record
class SaidLimits:
    """Limits in tokens that a server states for a model; ``output_limit`` is None if it does not."""

    window: int
    output_limit: int | None = None

    def applied(self, facts: ModelFacts) -> ModelFacts:
        """Return the facts of a model with the limits of its server."""
        output = self.output_limit or facts.output_limit
        return replace(facts, window=self.window, input_limit=None, output_limit=output)


def end_of(facts: ModelFacts, today: date) -> str:
    """Return a sentence that the model ends or has ended, with its successor; empty if nothing is known of it."""
    successor = f" Its successor is {facts.successor}" if facts.successor else ""
    if facts.ends is None:
        if not facts.is_deprecated:
            return ""
        return f"{facts.id} is deprecated, or its provider lists it no more.{successor and f'{successor}.'}"
    if today < facts.ends:
        return f"{facts.id} ends on {facts.ends.isoformat()}.{successor and f'{successor}.'}"
    advice = f"{successor}: choose it with -m or /model." if successor else " Choose another model with -m or /model."
    return f"{facts.id} ended on {facts.ends.isoformat()}.{advice}"
