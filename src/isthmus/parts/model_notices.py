"""Lines for users about their models: how large they are, when they end, and which effort is sent."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta

from isthmus.errors import IsthmusError
from isthmus.models.catalogue.facts import ModelFacts, ModelOverride, end_of
from isthmus.models.catalogue.table import snapshot
from isthmus.models.choose import ModelChoice, choose, choose_by_name, facts_of_choice
from isthmus.models.port.base import DEFAULT_EFFORT, USUAL_EFFORTS, Effort, nearest_effort
from isthmus.settings import Settings

SOON = timedelta(days=60)
"""Time before the end of a model from which each start names it."""


def model_overrides(settings: Settings) -> Mapping[str, ModelOverride]:
    """Return the facts about models that the settings state."""
    return {
        stated.name: ModelOverride(
            stated.context_window,
            stated.max_output_tokens,
            stated.input_price,
            stated.output_price,
            stated.cache_read_price,
            stated.cache_write_price,
            stated.media,
        )
        for stated in settings.models
    }


def model_notices(
    choice: ModelChoice, settings: Settings, environment: Mapping[str, str], today: date
) -> tuple[str, ...]:
    """Return a line for each model in use that ends soon, and one for an effort that the model does not have."""
    overrides = model_overrides(settings)
    own = facts_of_choice(choice, environment, overrides)
    lines: list[str] = []
    for facts in (own, *_fallbacks(settings, environment)):
        if facts is not None and (facts.ends is None or facts.ends - today <= SOON) and (end := end_of(facts, today)):
            lines.append(end)
    if own is not None and settings.thinking_effort is not None:
        lines += _effort_lines(choice.name, own.efforts, Effort(settings.thinking_effort))
    return tuple(dict.fromkeys(lines))


def efforts_to_choose(
    choice: ModelChoice, settings: Settings, environment: Mapping[str, str]
) -> tuple[str, tuple[str, ...]]:
    """Return the effort at the start of a session, and the levels of the model; both empty if it has none."""
    facts = facts_of_choice(choice, environment, model_overrides(settings))
    levels = USUAL_EFFORTS if facts is None else facts.efforts
    chosen = settings.thinking_effort
    sent = None if chosen is None else nearest_effort(Effort(chosen), levels)
    effort = DEFAULT_EFFORT if sent is None else sent.value
    return (effort if levels else ""), tuple(level.value for level in levels)


def _fallbacks(settings: Settings, environment: Mapping[str, str]) -> Iterator[ModelFacts | None]:
    for name in settings.fallback_models:
        if not name.lower().startswith("scripted:"):
            with suppress(IsthmusError):  # a missing key is said when the model is needed
                yield facts_of_choice(choose_by_name(name, environment, ""), environment)


def _effort_lines(name: str, levels: Sequence[Effort], chosen: Effort) -> Iterator[str]:
    sent = nearest_effort(chosen, levels)
    if sent is None:
        yield f"isthmus.thinkingEffort is {chosen}, but {name} has no levels of thinking"
    elif sent is not chosen:
        yield f"isthmus.thinkingEffort is {chosen}, but {name} has only {', '.join(levels)}: {sent} is sent"


def model_report(settings: Settings, environment: Mapping[str, str], today: date) -> Iterator[str]:
    """Yield lines about the model that would be used now, without asking servers, and about the table of models."""
    sources = ", ".join(f"{each.package} {each.version} of {each.date}" for each in snapshot().sources.values())
    with suppress(IsthmusError):
        choice = choose(None, settings.model, environment, lambda _: None, project_model=settings.project_model)
        facts = facts_of_choice(choice, environment, model_overrides(settings))
        if facts is not None:
            yield f"{choice.name} ({choice.reason}): {_described(facts)}"
            if end := end_of(facts, today):
                yield end
        elif choice.provider not in ("demo", "scripted"):
            yield f"{choice.name} ({choice.reason}): the table does not know it; isthmus.models in your settings can"
    yield f"Table of models of {snapshot().date.isoformat()}, made of {sources}"


def _described(facts: ModelFacts) -> str:
    output = "" if facts.output_limit is None else f", answers of up to {facts.output_limit:,}"
    levels = f"; effort {', '.join(facts.efforts)}" if facts.efforts else ""
    default = f" (default {facts.default_effort})" if facts.default_effort else ""
    return f"requests of up to {facts.room:,} tokens{output}{levels}{default}"
