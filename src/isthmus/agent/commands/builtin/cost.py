"""/cost: shows what this session has cost, by model, with its last turn and its last request."""

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext
from isthmus.task_view import ModelUsage, cost_of, unpriced_models
from isthmus.text.money import show_cost
from isthmus.text.units import show_count, show_share

NOTE = (
    "Prices are those at the time of each request; fees for tools of a provider, such as web search, are not in them."
)
ADVICE = "State prices under isthmus.models in your settings to have later requests counted."


async def cost(context: CommandContext) -> None:
    """Show the cost and the tokens by model."""
    statistics = context.session.statistics
    models = statistics.models
    if not models:
        await context.say("This session has made no model request yet.")
        return
    lines = [f"This session: {cost_of(models)}", *(_line(name, used) for name, used in models.items())]
    turn = statistics.turn or statistics.turn_before
    lines.append(f"Last turn: {cost_of(turn)}; its last request: {_last(statistics.last)}")
    lines.append(f"{NOTE} {ADVICE}" if unpriced_models(models) else NOTE)
    await context.say("\n".join(lines))


def _line(name: str, used: ModelUsage) -> str:
    cost = show_cost(used.cost, (name,)) if used.unpriced else show_cost(used.cost, ())
    return (
        f"  {name}: {cost}, {show_count(used.requests, 'request')}, {used.input_tokens:,} tokens of input"
        f" ({show_share(used.cached_tokens, used.input_tokens)} of them cached), {used.output_tokens:,} of output"
    )


def _last(used: ModelUsage | None) -> str:
    return "cost unknown" if used is None or used.unpriced else show_cost(used.cost, ())


COMMAND = CommandNode("cost", "Show what this session has cost, by model", cost, needs_folder=False)
