"""/cost: shows what this session has cost, by model, with its last turn and its last request."""

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext
from isthmus.agent.session.spending import BudgetLimits
from isthmus.task_view import ModelUsage, cost_of, unpriced_models
from isthmus.text.money import show_cost, show_dollars
from isthmus.text.units import show_count, show_share

NOTE = (
    "Prices are those at the time of each request; fees for tools of a provider, such as web search, are not in them."
)
ADVICE = "State prices under isthmus.models in your settings to have later requests counted."


async def cost(context: CommandContext) -> None:
    """Show the cost and the tokens by model."""
    statistics = context.session.statistics
    models = statistics.models
    lines = ["This session has made no model request yet."]
    if models:
        turn = statistics.turn or statistics.turn_before
        lines = [
            f"This session: {cost_of(models)}",
            *(_line(name, used) for name, used in models.items()),
            f"Last turn: {cost_of(turn)}; its last request: {_last(statistics.last)}",
        ]
    if context.resources.day_use is not None:
        today = await context.resources.day_use(context.session.user)
        more = " and more, whose price is not known" if today.unpriced else ""
        lines.append(f"Today, all of your sessions: {show_dollars(today.cost)}{more}")
    spending = context.turn.spending
    lines += _budgets(spending.limits, spending.left(context.session))
    if models:
        lines.append(f"{NOTE} {ADVICE}" if unpriced_models(models) else NOTE)
    await context.say("\n".join(lines))


def _budgets(limits: BudgetLimits, left: int | None) -> list[str]:
    """Return the line with the budgets of the work; ``left`` is what remains of those of the turn and the session."""
    shown = [
        f"{show_dollars(limit)} for {what}"
        for limit, what in ((limits.turn, "a turn"), (limits.session, "a session"))
        if limit is not None
    ]
    if shown and left is not None:
        shown[-1] += f", of which {show_dollars(left)} is left"
    if limits.run is not None:
        shown.append(f"{show_dollars(limits.run)} for this run")
    return [f"Budgets: {'; '.join(shown)}"] if shown else []


def _line(name: str, used: ModelUsage) -> str:
    cost = show_cost(used.cost, (name,)) if used.unpriced else show_cost(used.cost, ())
    return (
        f"  {name}: {cost}, {show_count(used.requests, 'request')}, {used.input_tokens:,} tokens of input"
        f" ({show_share(used.cached_tokens, used.input_tokens)} of them cached), {used.output_tokens:,} of output"
    )


def _last(used: ModelUsage | None) -> str:
    return "cost unknown" if used is None or used.unpriced else show_cost(used.cost, ())


COMMAND = CommandNode("cost", "Show what this session has cost, by model", cost, needs_folder=False)
