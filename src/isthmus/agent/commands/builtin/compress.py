"""/compress: the older part of the conversation becomes a summary; the last turns stay."""

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext, CommandError
from isthmus.agent.context.compaction import NotCompactedError, compact
from isthmus.agent.context.windows import window_of
from isthmus.agent.hooks.refusal import RefusedByHookError
from isthmus.agent.session.next_request import next_request
from isthmus.models.port.base import ModelRequest, key_of


async def compress(context: CommandContext) -> None:
    """Let the model write the summary, and report the saved tokens."""
    model, session = await context.model(), context.session
    request: ModelRequest | None = None
    if key_of(model) in session.prefixes:
        request = next_request(session, model, context.options.effort, may_ask=context.options.policy.may_ask)
    try:
        done = await compact(context.turn, model, window_of(session, model), request)
    except NotCompactedError as error:
        raise CommandError(str(error), "not_compacted") from error
    except RefusedByHookError as refused:
        raise CommandError(str(refused), refused.reason) from refused
    await context.say(
        f"The conversation was compressed from about {done.tokens_before:,} to {done.tokens_after:,} tokens;"
        " its last turns are unchanged."
    )


COMMAND = CommandNode("compress", "Replace the older part of the conversation by a summary, to save tokens", compress)
