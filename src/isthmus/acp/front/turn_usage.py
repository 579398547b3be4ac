"""The tokens of a turn for a client. Pure."""

from collections.abc import Iterable

from isthmus.acp.v1.sessions import TurnTokens
from isthmus.task_view import ModelUsage, total_usage


def usage_of(models: Iterable[ModelUsage]) -> TurnTokens | None:
    """Return the tokens of all requests of a turn; None if none were counted.

    The kinds do not overlap, as with other agents: the input is without cached tokens, and the output without thoughts.
    """
    total = total_usage(models)
    whole = total.input_tokens + total.output_tokens
    if not whole:
        return None
    cached, thoughts = min(total.cached_tokens, total.input_tokens), min(total.thought_tokens, total.output_tokens)
    given, said = total.input_tokens - cached, total.output_tokens - thoughts
    return TurnTokens(whole, given, said, thoughts or None, cached or None)
