"""Use of models, as agents state it: how full the context is, the cost of a session, and the tokens of a turn. Pure.

What does not fit is taken for not stated: it never fails a turn.
"""

import math
from collections.abc import Iterator

from isthmus.acp.v1.sessions import PromptResponse
from isthmus.acp.v1.updates import UsageUpdate
from isthmus.encoding.codec import JsonObject
from isthmus.encoding.json_shapes import as_list, as_object
from isthmus.internal_events import ModelUsed
from isthmus.record import record
from isthmus.session_status import Cost

MAXIMUM_TOKENS = 2**53
"""Limit of a number of tokens; larger ones do not count."""
MAXIMUM_NAME = 200
"""Maximum length in characters of a model's name and of a currency."""


@record
class StatedUsage:
    """Used tokens and size of the context of a session, and the session's cost if that is stated."""

    used: int
    size: int
    cost: Cost | None = None

    @property
    def kept(self) -> JsonObject:
        """The same as JSON."""
        about: JsonObject = {"used": self.used, "size": self.size}
        return about if self.cost is None else {**about, "amount": self.cost.amount, "currency": self.cost.currency}

    @classmethod
    def of(cls, update: UsageUpdate) -> "StatedUsage | None":
        """Return what an update states."""
        cost = as_object(update.cost)
        about: JsonObject = {"used": update.used, "size": update.size}
        return cls.of_kept({**about, "amount": cost.get("amount"), "currency": cost.get("currency")})

    @classmethod
    def of_kept(cls, kept: object) -> "StatedUsage | None":
        """Return what :attr:`kept` returned; None for anything else."""
        about = as_object(kept)
        used, size = _tokens(about.get("used")), _tokens(about.get("size"))
        return None if used is None or size is None else cls(used, size, _cost(about))


def model_in(options: object, models: object = None) -> str:
    """Return the model that the options of a session name, or ``models`` of earlier drafts; empty without one."""
    of_models = [as_object(option) for option in as_list(options) if as_object(option).get("category") == "model"]
    named = [option.get("currentValue") for option in of_models] + [as_object(models).get("currentModelId")]
    return next((name[:MAXIMUM_NAME] for name in named if isinstance(name, str)), "")


def models_used(answer: PromptResponse, model: str) -> tuple[ModelUsed, ...]:
    """Return the tokens of a turn by model; ``model`` is the session's. Empty if the agent states none."""
    used = (*_of_usage(as_object(answer.usage), model),) or (*_of_quota(answer.meta, model),)
    return tuple(filter(_has_tokens, used))


def request_used(meta: JsonObject | None, model: str) -> tuple[ModelUsed, ...]:
    """Return the tokens of one request, which Qwen Code states in the ``_meta`` of a text; empty if it states none."""
    return tuple(filter(_has_tokens, _of_usage(as_object(as_object(meta).get("usage")), model)))


def _has_tokens(used: ModelUsed) -> bool:
    return bool(used.input_tokens or used.output_tokens)


def _of_usage(usage: JsonObject, model: str) -> Iterator[ModelUsed]:
    """Yield what ``usage`` of a response states.

    Cached and thought tokens are among the others with some agents, and apart with others: the sum says it.
    """
    read, written, thoughts = (
        _tokens(usage.get(name)) or 0 for name in ("cachedReadTokens", "cachedWriteTokens", "thoughtTokens")
    )
    given, said = _tokens(usage.get("inputTokens")), _tokens(usage.get("outputTokens"))
    if given is None or said is None:
        return
    cached, more = read + written, (_tokens(usage.get("totalTokens")) or 0) - given - said
    if more != 0:
        given += cached if more != thoughts else 0
        said += thoughts if more != cached else 0
    yield ModelUsed(model, given, said, read, thoughts)


def _of_quota(meta: JsonObject | None, model: str) -> Iterator[ModelUsed]:
    """Yield what Gemini CLI states in ``_meta.quota`` instead."""
    quota = as_object(as_object(meta).get("quota"))
    by_model = [as_object(item) for item in as_list(quota.get("model_usage"))]
    for item in by_model or [quota]:
        count, name = as_object(item.get("token_count")), item.get("model")
        given, said = _tokens(count.get("input_tokens")), _tokens(count.get("output_tokens"))
        if given is not None and said is not None:
            yield ModelUsed(name[:MAXIMUM_NAME] if isinstance(name, str) and name else model, given, said)


def _cost(about: JsonObject) -> Cost | None:
    amount, currency = about.get("amount"), about.get("currency")
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not isinstance(currency, str):
        return None
    is_usable = math.isfinite(amount) and amount >= 0 and currency.strip() and currency.isprintable()
    return Cost(float(amount), currency[:MAXIMUM_NAME]) if is_usable else None


def _tokens(value: object) -> int | None:
    is_whole = isinstance(value, int | float) and not isinstance(value, bool) and value == value // 1
    return int(value) if is_whole and isinstance(value, int | float) and 0 <= value <= MAXIMUM_TOKENS else None
