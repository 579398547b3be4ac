"""The line below a turn: what its requests to models have cost, and their tokens. Pure.

A turn that is known to cost nothing has no line. A model without a price is named once.
"""

from collections.abc import Mapping

from isthmus.task_view import ModelUsage, cost_of, total_usage, unpriced_models
from isthmus.text.units import show_share, show_tokens
from isthmus.text.visible import visible_line


class TurnCosts:
    """The lines of one terminal."""

    def __init__(self) -> None:
        self._named: set[str] = set()

    def line(self, models: Mapping[str, ModelUsage], dot: str) -> str:
        """Return the line for the use of models in a turn; empty for no line. ``dot`` separates its parts."""
        whole = total_usage(models.values())
        unpriced = set(unpriced_models(models))
        is_new = not unpriced <= self._named
        self._named |= unpriced
        if not whole.cost and not is_new:
            return ""
        cached = f" ({show_share(whole.cached_tokens, whole.input_tokens)} cached)" if whole.cached_tokens else ""
        given, said = show_tokens(whole.input_tokens), show_tokens(whole.output_tokens)
        return visible_line(f"{cost_of(models)} {dot} {given} tokens in{cached}, {said} out")
