"""/stats: shows the cost, tokens, calls and time used by the session and by its last task."""

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext
from isthmus.agent.session.statistics import TaskUse, ToolStatistics, total
from isthmus.task_view import cost_of
from isthmus.text.money import show_dollars
from isthmus.text.units import show_count, show_share


async def stats(context: CommandContext) -> None:
    """Show the cost, tokens by model, tool calls and time, for the session and for its last task that used anything."""
    statistics = context.session.statistics
    others = {task_id: use for task_id, use in statistics.tasks.items() if task_id != context.session.task_id}
    if not others:
        await context.say("This session has not used anything yet.")
        return
    parts = [
        f"Session {context.session.context_id}: {show_count(len(others), 'task')}",
        *_format(total(others.values())),
    ]
    used = [(task_id, use) for task_id, use in others.items() if use.prompts or use.models or use.tools]
    if used and len(others) > 1:
        task_id, last = used[-1]
        parts += ["", f"Last task {task_id}", *_format(last)]
    await context.say("\n".join(parts))


def _format(use: TaskUse) -> list[str]:
    lines = [f"  prompts: {use.prompts}, worked {_seconds(use.seconds)}"]
    if use.models:
        lines.append(f"  cost: {cost_of(use.models)}")
    for name, model in use.models.items():
        requests = show_count(model.requests, "request")
        lines.append(
            f"  {name}: {requests}, {model.input_tokens:,} input tokens"
            f" ({model.cached_tokens:,} cached, {show_share(model.cached_tokens, model.input_tokens)}), "
            f"{model.output_tokens:,} output tokens ({model.thought_tokens:,} thoughts)"
            f"{f', {show_dollars(model.cost)}' if not model.unpriced else ''}"
        )
    calls = ToolStatistics()
    for tool in use.tools.values():
        calls += tool
    lines.append(f"  tool calls: {_calls(calls)}")
    lines += [f"    {name}: {_calls(tool)}" for name, tool in use.tools.items()]
    return lines


def _calls(use: ToolStatistics) -> str:
    cancelled = f", {use.cancelled} rejected or cancelled" if use.cancelled else ""
    return f"{use.succeeded} succeeded, {use.failed} failed{cancelled}, {_seconds(use.seconds)}"


def _seconds(seconds: float) -> str:
    minutes, rest = divmod(seconds, 60)
    return f"{int(minutes)} min {rest:.0f} s" if minutes else f"{seconds:.1f} s"


COMMAND = CommandNode("stats", "Show the cost, tokens, tool calls and time of this session", stats, needs_folder=False)
