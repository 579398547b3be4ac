"""State of a session that no event tells, such as its model, the context in use and what it cost."""

from isthmus.record import record

US_DOLLARS = "USD"
"""Currency of all prices that are known here."""


@record
class Cost:
    """An amount in a currency of ISO 4217, such as USD, or in another unit, such as credits."""

    amount: float
    currency: str


@record
class TokensUsed:
    """Tokens of models that were used. ``input_tokens`` include cached ones, ``output_tokens`` include thoughts."""

    input_tokens: int
    cached_tokens: int
    output_tokens: int


@record
class ContextParts:
    """Parts of the tokens of the next request: estimates, whose sum is the number that was counted.

    ``instructions`` are the system prompt and the tools, ``contents`` the calls of tools, with their results and media,
    and ``words`` are the user's and the model's.
    """

    instructions: int
    contents: int
    words: int


@record
class SessionStatus:
    """State of a session that no event tells; None: not known.

    ``approval_mode`` is the one in force. ``context_tokens`` of ``context_window`` are used: what the provider counted
    for the last reply, and an estimate of the rest. ``effort`` of the next message's ``model`` is one of its levels,
    ``efforts``, or ``default``; None if it has none. ``cost`` is the whole session's, as far as it is known; without a
    price for ``unpriced_models``, what these cost is not in it. ``cached_share`` is the share of the session's input
    tokens that providers have read from their caches, from 0 to 1; None without any. ``cost_limit`` is what the whole
    session may cost, ``tokens_used`` what all its requests used so far.
    """

    approval_mode: str | None = None
    context_tokens: int | None = None
    context_window: int | None = None
    model: str | None = None
    effort: str | None = None
    cost: Cost | None = None
    efforts: tuple[str, ...] = ()
    cached_share: float | None = None
    unpriced_models: tuple[str, ...] | None = None
    cost_limit: Cost | None = None
    tokens_used: TokensUsed | None = None
    context_parts: ContextParts | None = None
