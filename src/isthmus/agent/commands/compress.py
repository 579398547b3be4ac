"""/compress: the older part of the conversation becomes a summary; the last turns stay."""

from contextlib import aclosing

from isthmus.agent.commands.base import CommandContext, CommandNode, Fail, Keep, Say, Steps
from isthmus.agent.compaction import NotCompactedError, compact
from isthmus.agent.context_size import context_window
from isthmus.events import Compacted


async def compress(context: CommandContext) -> Steps:
    """Let the model write the summary, and say what that saves."""
    model = await context.resources.open_model(context.session.model)
    done: Compacted | None = None
    try:
        async with aclosing(compact(context.session, model, context_window(model))) as events:
            async for event in events:
                if isinstance(event, Compacted):
                    done = event
                yield Keep(event)
    except NotCompactedError as error:
        yield Fail(str(error), "not_compacted")
        return
    if done is not None:
        yield Say(
            f"The conversation was compressed from about {done.tokens_before:,} to {done.tokens_after:,} tokens;"
            " its last turns are as they were."
        )


COMMAND = CommandNode("compress", "Replace the older part of the conversation by a summary, to save tokens", compress)
