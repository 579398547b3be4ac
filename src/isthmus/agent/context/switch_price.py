"""Price of the next request of a session with another model, which has nothing of the conversation in its cache.

An estimate: the tokens are those that the present model counted, and the answer is not in it.
"""

from dataclasses import replace

from isthmus.agent.session.session import Session
from isthmus.agent.session.size import messages_tokens
from isthmus.models.port.base import DEFAULT_EFFORT, Capabilities, ChatModel, Effort, Usage
from isthmus.models.port.costs import ModelCosts, request_cost
from isthmus.record import record
from isthmus.text.money import PICODOLLARS, show_cost, show_dollars

DEAR = PICODOLLARS // 20
"""Price in picodollars from which a user is asked before a switch."""


@record
class SwitchPrice:
    """Price of the next request after a switch from ``present`` to ``chosen``, in picodollars; None where unknown.

    With an ``effort`` both are the same model, which gets that effort.
    """

    present: str
    chosen: str
    tokens: int
    after: int | None
    before: int | None
    effort: str = ""

    @property
    def is_dear(self) -> bool:
        """Whether the switch makes the next request so much dearer that a user is asked."""
        return self.after is not None and self.after - (self.before or 0) >= DEAR

    @property
    def text(self) -> str:
        """Sentences for a user."""
        where = f" for the effort {self.effort}" if self.effort else ""
        read = (
            f"{self.chosen} has nothing of this conversation in its cache{where}: its next request reads about"
            f" {self.tokens:,} tokens anew"
        )
        if self.after is None:
            return f"{read}; {show_cost(0, (self.chosen,))}."
        costs = f"{read}, which costs about {show_dollars(self.after)} without its answer."
        if self.before is None:
            return costs
        same = "Without the switch" if self.effort else f"With {self.present}"
        return f"{costs} {same} the same costs about {show_dollars(self.before)}."


def switch_price(session: Session, present: ChatModel, chosen: ChatModel) -> SwitchPrice | None:
    """Return the price of a switch; None where it makes no difference: no request was made, or it is the same model."""
    is_same = (present.provider, present.name) == (chosen.provider, chosen.name)
    return None if is_same else _price(session, present, chosen)


def effort_price(
    session: Session, model: ChatModel, before: str | None, after: str | None, otherwise: Effort | None
) -> SwitchPrice | None:
    """Return the price of another effort of a model; None where it makes no difference.

    ``before`` and ``after`` are choices of the session, None for ``otherwise``, which the settings state.
    """
    able = model.capabilities
    sent = [_sent(able, effort, otherwise) for effort in (before, after)]
    if not able.effort_empties_cache or sent[0] == sent[1]:
        return None
    price = _price(session, model, model)
    return None if price is None else replace(price, effort=sent[1] or DEFAULT_EFFORT)


def _sent(able: Capabilities, chosen: str | None, otherwise: Effort | None) -> str:
    effort = otherwise if chosen is None else Effort(chosen)
    nearest = None if effort is None else able.nearest_effort(effort)
    return able.default_effort if nearest is None else nearest.value


def _price(session: Session, present: ChatModel, chosen: ChatModel) -> SwitchPrice | None:
    conversation = session.conversation
    if not conversation.measured_messages:
        return None
    new = messages_tokens(session.messages[conversation.measured_messages :])
    tokens = conversation.measured_tokens + new
    before = request_cost(Usage(tokens, cached=conversation.measured_tokens), present.capabilities.costs)
    return SwitchPrice(present.name, chosen.name, tokens, _anew(tokens, chosen.capabilities.costs), before)


def reread_text(session: Session, model: ChatModel) -> str:
    """Return how much a model reads anew where its cache is emptied, and the price, as a sentence."""
    tokens = session.conversation.tokens or messages_tokens(session.messages)
    read = f"{model.name} reads about {tokens:,} tokens anew with each request that differs so"
    costs = model.capabilities.costs
    if (after := _anew(tokens, costs)) is None:
        return f"{read}; {show_cost(0, (model.name,))}."
    before = request_cost(Usage(tokens, cached=tokens), costs)
    beside = "" if before is None else f", and about {show_dollars(before)} with its prompt cache"
    return f"{read}, which costs about {show_dollars(after)}{beside}."


def _anew(tokens: int, costs: ModelCosts | None) -> int | None:
    """Return the price of tokens that are not cached; providers that ask for writing the cache ask for all of them.

    Where a cache can last an hour it does, since a user makes the switch.
    """
    price = None if costs is None else costs.price_for(tokens)
    written = tokens if price is not None and price.cache_write is not None else 0
    lasting = written if price is not None and price.cache_write_1h is not None else 0
    return request_cost(Usage(tokens, cache_write=written, cache_write_1h=lasting), costs)
