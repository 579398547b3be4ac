"""/help: lists the commands, or describes one of them."""

from collections.abc import Iterator

from isthmus.agent.commands.port.base import CommandNode, argument
from isthmus.agent.commands.port.context import CommandContext, CommandError
from isthmus.development_tool import SlashCommand
from isthmus.slash_commands.tree import all_commands, find, near, resolve, usage_of


async def show_help(context: CommandContext) -> None:
    """List all commands and problems with them, or describe the named command."""
    wanted = context.args.split()
    if not wanted:
        lines = [line for path, command in all_commands(context.tree) for line in _lines(path, command)]
        if context.problems:
            lines += ["", "Problems:"]
            lines += [f"- {problem}" for problem in context.problems]
        await context.say("Commands:\n" + "\n".join(lines))
        return
    path = resolve(wanted, context.tree)
    command = find(path, context.tree) if path is not None else None
    if path is None or command is None:
        likely = near(wanted, context.tree)
        meant = f"Did you mean {' or '.join(likely)}?" if likely else "/help lists the commands."
        raise CommandError(f"There is no command /{' '.join(wanted)[:100]}. {meant}", "unknown_command")
    lines = [f"/{' '.join(path)}{usage_of(command)}", command.description]
    lines += [
        f"  {item.name}{'' if item.is_required else ' (optional)'}: {item.description}" for item in command.arguments
    ]
    for below, inner in all_commands(command.sub_commands, path):
        lines += _lines(below, inner)
    await context.say("\n".join(lines))


def _lines(path: tuple[str, ...], command: SlashCommand) -> Iterator[str]:
    yield f"{'  ' * len(path)}/{' '.join(path)}{usage_of(command)}  {command.description}"


COMMAND = CommandNode(
    "help",
    "List the commands, or describe one",
    show_help,
    (argument("command", "The command to describe"),),
    needs_folder=False,
)
