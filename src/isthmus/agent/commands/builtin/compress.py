"""/compress: the older part of the conversation becomes a summary; the last turns stay."""

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext, CommandError
from isthmus.agent.context.compaction import NotCompactedError, compact
from isthmus.agent.context.windows import window_of
from isthmus.agent.hooks.refusal import RefusedByHookError


async def compress(context: CommandContext) -> None:
    """Let the model write the summary, and report the saved tokens."""
    model = await context.model()
    try:
        done = await compact(context.turn, model, window_of(context.session, model))
    except NotCompactedError as error:
        raise CommandError(str(error), "not_compacted") from error
    except RefusedByHookError as refused:
        raise CommandError(str(refused), refused.reason) from refused
    await context.say(
        f"The conversation was compressed from about {done.tokens_before:,} to {done.tokens_after:,} tokens;"
        " its last turns are unchanged."
    )


COMMAND = CommandNode("compress", "Replace the older part of the conversation by a summary, to save tokens", compress)
