"""/context: shows what fills the model's context window, part by part."""

from collections.abc import Sequence

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext
from isthmus.agent.context.windows import window_of
from isthmus.agent.session.conversation import is_summary
from isthmus.agent.session.size import (
    estimate_tokens,
    message_tokens,
    tool_tokens,
)
from isthmus.models.port.base import Message, ModelToolResult
from isthmus.tools.port.base import full_parameters_of


async def show_context(context: CommandContext) -> None:
    """Show the tokens of each part of the next request, and their share of the window."""
    session = context.session
    model = await context.resources.open_model(session.choices.model)
    window = window_of(session, model)
    instructions = await context.memory.instructions(context.workspace, context.home, context.context_files)
    tools = sum(
        tool_tokens(tool.name, tool.description, full_parameters_of(tool)) for tool in context.tools.tools.values()
    )
    rows = [
        (f"tools ({len(context.tools.tools)})", tools),
        ("instructions (GEMINI.md and others)", estimate_tokens(instructions.text)),
        *_conversation(session.messages),
    ]
    estimated = sum(tokens for _, tokens in rows)
    in_all = session.conversation.tokens
    if in_all is not None:
        rows.append(("system prompt, and what the estimates missed", max(0, in_all - estimated)))
        how = "counted by the provider"
    else:
        in_all, how = estimated, "estimated, without the system prompt"
    lines = [f"About {in_all:,} of {window:,} tokens ({_share(in_all, window)}), {how}:"]
    lines += [f"  {tokens:>10,}  {_share(tokens, window):>6}  {name}" for name, tokens in rows if tokens]
    lines.append(f"  {max(0, window - in_all):>10,}  {_share(max(0, window - in_all), window):>6}  free")
    await context.say("\n".join(lines))


def _conversation(messages: Sequence[Message]) -> list[tuple[str, int]]:
    """Return the parts of the conversation with their tokens."""
    parts = {"summary of older messages": 0, "your messages and files": 0, "results of tools": 0, "the model": 0}
    for message in messages:
        tokens = message_tokens(message)
        if is_summary(message):
            parts["summary of older messages"] += tokens
        elif message.role == "user":
            results = message_tokens(
                Message("user", tuple(part for part in message.parts if isinstance(part, ModelToolResult)))
            )
            parts["results of tools"] += results
            parts["your messages and files"] += tokens - results
        else:
            parts["the model"] += tokens
    return list(parts.items())


def _share(tokens: int, window: int) -> str:
    return f"{100 * tokens / window:.1f} %"


COMMAND = CommandNode("context", "Show what fills the context window of the model", show_context)
