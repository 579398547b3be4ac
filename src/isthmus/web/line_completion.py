"""The request ``/ui/api/complete``: names of commands and their arguments, files and folders behind ``@``."""

import asyncio
from collections.abc import Sequence
from typing import Any

from isthmus.a2a.server.users.auth import Refusal
from isthmus.client import AgentClient, CommandScope, LineCompleter
from isthmus.errors import IsthmusError, Unavailable
from isthmus.slash_commands.tree import Completion, completions
from isthmus.web.http.refusals import RefusalCode, refusal

MAXIMUM_COMPLETIONS = 50
"""Maximum number of completions of a line."""
COMPLETION_SECONDS = 3.0
"""Maximum time for the completions of a line."""


async def complete_line(agent: AgentClient | None, given: dict[str, Any]) -> dict[str, Any] | Refusal:
    """Return the completions of the line that a request has; none without an agent. Raises Unavailable."""
    line, context_id, workspace = given.get("line"), given.get("contextId"), given.get("workspace")
    if not isinstance(line, str) or not isinstance(context_id, str | None) or not isinstance(workspace, str | None):
        return refusal(RefusalCode.BAD_REQUEST, "expected line, and perhaps contextId and workspace, all text")
    if agent is None:
        return {"completions": []}
    scope = CommandScope(None, context_id or None, {"workspace_path": workspace} if workspace else None)
    try:
        async with asyncio.timeout(COMPLETION_SECONDS):
            found = await _completed(agent, scope, line)
    except TimeoutError:
        found = ()
    except Unavailable:
        raise
    except IsthmusError as error:
        return refusal(RefusalCode.NOT_COMPLETED, str(error))
    shown = [{"line": item.line, "description": item.description} for item in found[:MAXIMUM_COMPLETIONS]]
    return {"completions": shown}


async def _completed(agent: AgentClient, scope: CommandScope, line: str) -> Sequence[Completion]:
    """Return the completions of a line: from the tree of commands, else what the agent knows."""
    if line.startswith("/") and "\n" not in line:
        found = completions(line, await agent.commands(scope))
        if found:
            return found
    return await agent.complete(scope, line) if isinstance(agent, LineCompleter) else ()
