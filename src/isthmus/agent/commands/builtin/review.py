"""/review: lets the model review the changes in the working tree, of a branch, or of a commit."""

import re

from isthmus.agent.commands.port.base import CommandNode, argument
from isthmus.agent.commands.port.context import CommandContext, CommandError

WORKING_TREE = "the changes that are not committed (git status, git diff HEAD, and the files that are new)"
OTHER = (
    "the changes of {name}: if it is a branch, what it has that the present branch does not"
    " (git log HEAD..{name}, git diff HEAD...{name}), or, if it is the present one, what it has that the main branch"
    " does not; if it is a commit, that commit (git show {name})"
)
PROMPT = """Review {changes}. Change nothing.

Read the changes and as much of the code around them as you need. Report only what its author would want to fix before
it is merged: wrong results, crashes, lost data, security, races, broken callers, missing or failing tests. For each one
give file:line, what happens and when, and a fix in a sentence or two; the worst first. Leave out taste and praise. If
there is nothing to fix, say so, and say what you did not check."""
_NAME = re.compile(r"[\w][\w./@{}^~-]{0,250}")


async def review(context: CommandContext) -> None:
    """Hand the review over to the model."""
    name = context.args.strip()
    if name and _NAME.fullmatch(name) is None:
        raise CommandError(f"Expected the name of a branch or a commit, received {name[:100]!r}", "invalid_argument")
    await context.ask_model(PROMPT.format(changes=OTHER.format(name=name) if name else WORKING_TREE))


COMMAND = CommandNode(
    "review",
    "Review the changes that are not committed, or those of a branch or a commit",
    review,
    (argument("name", "A branch or a commit; without it, what is not committed"),),
)
