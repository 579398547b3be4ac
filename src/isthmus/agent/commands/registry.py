"""The built-in slash commands. To add one, copy ``examples/slash_commands/folder.py`` to ``builtin``; list it below."""

from isthmus.agent.commands.builtin import (
    about,
    agents,
    chat,
    compress,
    context_size,
    cost,
    diff,
    directory,
    effort,
    helping,
    ide,
    init,
    mcp,
    memory,
    model,
    restore,
    review,
    rewind,
    shell,
    shells,
    skills,
    stats,
    tasks,
    tools,
)
from isthmus.agent.commands.port.base import CommandNode

BUILT_IN: tuple[CommandNode, ...] = (
    helping.COMMAND,
    about.COMMAND,
    model.COMMAND,
    effort.COMMAND,
    tools.COMMAND,
    mcp.COMMAND,
    ide.COMMAND,
    memory.COMMAND,
    directory.COMMAND,
    init.COMMAND,
    compress.COMMAND,
    restore.COMMAND,
    shell.COMMAND,
    shells.COMMAND,
    skills.COMMAND,
    agents.COMMAND,
    stats.COMMAND,
    tasks.COMMAND,
)

YIELDING: tuple[CommandNode, ...] = (
    chat.COMMAND,
    diff.COMMAND,
    review.COMMAND,
    rewind.COMMAND,
    context_size.COMMAND,
    cost.COMMAND,
)
"""Built-in commands that a custom command, or a prompt of an MCP server, of the same name replaces."""
