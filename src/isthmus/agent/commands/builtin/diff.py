"""/diff: shows how the files differ that this session has edited, its subagents included, from before until now."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from isthmus.agent.commands.port.base import CommandNode
from isthmus.agent.commands.port.context import CommandContext, CommandError
from isthmus.files.atomic import read_regular
from isthmus.text.diff import unified_diff
from isthmus.text.text_file import BinaryContentError, decode_text

MAXIMUM_FILE_BYTES = 20 * 1024 * 1024
"""Maximum size in bytes of a file that is compared."""
MAXIMUM_CHARACTERS = 200_000
"""Maximum number of characters of all differences; the rest is counted."""


async def diff(context: CommandContext) -> None:
    """Show the differences as a unified diff."""
    if (checkpoints := context.resources.checkpoints) is None:
        raise CommandError("This agent keeps no checkpoints, from which differences could be shown.", "no_checkpoints")
    before = await checkpoints.before(context.session.checkpoints_key)
    await context.say(await asyncio.to_thread(_differences, before, context.workspace))


def _differences(before: Mapping[str, bytes | None], workspace: Path) -> str:
    parts: list[str] = []
    size = hidden = 0
    for path, old in sorted(before.items()):
        difference = _difference(Path(path), old, workspace)
        size += len(difference)
        if size > MAXIMUM_CHARACTERS:
            hidden += 1
        elif difference:
            parts.append(difference.rstrip("\n"))
    if not parts and not hidden:
        return "No file differs from before this session's edits. What commands wrote is not shown; see git for it."
    if hidden:
        parts.append(f"[{hidden} more files differ; their differences are not shown]")
    return "```diff\n" + "\n".join(parts) + "\n```"


def _difference(path: Path, old: bytes | None, workspace: Path) -> str:
    shown = path.relative_to(workspace).as_posix() if path.is_relative_to(workspace) else str(path)
    try:
        new = read_regular(path, MAXIMUM_FILE_BYTES, through_links=False)
    except FileNotFoundError:
        new = None
    except OSError as error:
        return f"{shown} cannot be read: {error.strerror or error}"
    if new == old:
        return ""
    try:
        old_text = None if old is None else decode_text(old).text
        return unified_diff(old_text, "" if new is None else decode_text(new).text, shown)
    except BinaryContentError:
        return f"Binary file {shown} differs"


COMMAND = CommandNode("diff", "Show what the agent's edits in this session have changed, as a unified diff", diff)
