"""Requests and answers within what a model takes: its levels of thinking, and the size of its answers. Pure."""

from collections.abc import Mapping
from dataclasses import replace

from isthmus.models.catalogue.facts import ModelFacts, Thinking
from isthmus.models.endpoint.media_rules import MediaRules, input_kind
from isthmus.models.port.base import (
    USUAL_EFFORTS,
    Effort,
    Finish,
    Message,
    ModelRequest,
    Sampling,
    ToolChoice,
    ToolRequest,
    nearest_effort,
)

BUDGETS: Mapping[Effort, int] = {Effort.LOW: 1_024, Effort.MEDIUM: 8_192, Effort.HIGH: 24_576}
"""Tokens for the thoughts of models that take a number; Google's own translation of the three words."""


def fitted(request: ModelRequest, facts: ModelFacts | None) -> ModelRequest:
    """Return a request that asks for no more than the model takes; the same one if nothing is known of the model.

    The level of thinking is fitted where it is encoded, see :func:`effort_for`.
    """
    if facts is None:
        return request
    longest = request.max_output_tokens
    if longest is not None and facts.output_limit is not None:
        longest = min(longest, facts.output_limit)
    forced = request.choice is ToolChoice.ANY and not facts.takes_forced_calls
    return replace(
        request,
        max_output_tokens=longest,
        sampling=request.sampling if facts.takes_sampling else Sampling(),
        choice=ToolChoice.AUTO if forced else request.choice,
    )


def fitted_media(rules: MediaRules, facts: ModelFacts | None) -> MediaRules:
    """Return the rules of a provider for one model, without the kinds of media that it is known not to read."""
    if facts is None or facts.media is None:
        return rules
    return replace(rules, kinds=frozenset(kind for kind in rules.kinds if input_kind(kind) in facts.media))


def effort_for(effort: Effort | None, facts: ModelFacts | None) -> Effort | None:
    """Return the level to send for a chosen one: the same, or the nearest that the model has; None for none."""
    if effort is None:
        return None
    return nearest_effort(effort, USUAL_EFFORTS if facts is None else facts.efforts)


def thinking_form(facts: ModelFacts | None, otherwise: Thinking) -> Thinking:
    """Return the form of thinking of a model; ``otherwise`` if nothing is known of it."""
    return otherwise if facts is None else facts.thinking


def with_cut_calls(message: Message, finish: Finish, limit: int) -> Message:
    """Return an answer whose last call says that it was cut, if the answer ended at its output limit within it.

    ``limit`` is the output limit in tokens.
    """
    last = message.parts[-1] if message.parts else None
    if finish is not Finish.LENGTH or not isinstance(last, ToolRequest) or (last.arguments and last.invalid is None):
        return message
    reason = (
        f"the answer was cut at the output limit of {limit:,} tokens, so its arguments are incomplete; "
        "ask for less at once, for example write a long file in several calls"
    )
    return replace(message, parts=(*message.parts[:-1], replace(last, arguments={}, invalid=reason)))
