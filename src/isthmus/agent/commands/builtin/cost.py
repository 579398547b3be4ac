"""/cost: shows the tokens that this session has used, by model. Prices are not known here, so no money is shown."""

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext
from isthmus.agent.session.statistics import total
from isthmus.text.units import show_count, show_share


async def cost(context: CommandContext) -> None:
    """Show the tokens by model, and that what they cost is not known."""
    tasks = context.session.statistics.tasks
    used = total(use for task_id, use in tasks.items() if task_id != context.session.task_id)
    lines = [
        f"{name}: {show_count(model.requests, 'request')}, {model.input_tokens:,} tokens of input"
        f" ({show_share(model.cached_tokens, model.input_tokens)} of them cached), {model.output_tokens:,} of output"
        for name, model in used.models.items()
    ]
    if not lines:
        await context.say("This session has made no model request yet.")
        return
    lines.append("What they cost is unknown: Isthmus has no prices. See your provider's price list or its console.")
    await context.say("\n".join(lines))


COMMAND = CommandNode("cost", "Show the tokens that this session has used, by model", cost, needs_folder=False)
