"""The built-in slash commands. To add one, copy ``about.py`` and list the copy here."""

from isthmus.agent.commands import (
    about,
    compress,
    helping,
    ide,
    init,
    mcp,
    memory,
    model,
    restore,
    shell,
    stats,
    tasks,
    tools,
)
from isthmus.agent.commands.base import CommandNode

BUILT_IN: tuple[CommandNode, ...] = (
    helping.COMMAND,
    about.COMMAND,
    model.COMMAND,
    tools.COMMAND,
    mcp.COMMAND,
    ide.COMMAND,
    memory.COMMAND,
    init.COMMAND,
    compress.COMMAND,
    restore.COMMAND,
    shell.COMMAND,
    stats.COMMAND,
    tasks.COMMAND,
)
