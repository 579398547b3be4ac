"""/shells: lists the commands of a session in the background, and stops one."""

from isthmus.agent.commands.port.base import CommandNode, argument
from isthmus.agent.commands.port.context import CommandContext, CommandError
from isthmus.text.visible import visible_line


async def shells(context: CommandContext) -> None:
    """List the commands."""
    background = context.resources.background
    found = background(context.session.key) if background is not None else ()
    lines = [f"[{item.id}] {item.state}: {visible_line(item.text)}" for item in found]
    await context.say("\n".join(lines) or "No command runs in the background.")


async def stop(context: CommandContext) -> None:
    """Stop one command."""
    background, given = context.resources.background, context.args.strip()
    found = background(context.session.key) if background is not None else ()
    item = next((item for item in found if str(item.id) == given), None)
    if item is None:
        known = ", ".join(str(item.id) for item in found) or "none"
        raise CommandError(f"Expected the pid of a command in the background ({known}), received {given[:100]!r}.")
    item.stop("stopped by the user")
    await item.ended.wait()
    await context.say(f"[{item.id}] {item.state}")


COMMAND = CommandNode(
    "shells",
    "List the commands that run in the background",
    shells,
    sub_commands=(
        CommandNode("list", "List them", shells),
        CommandNode("stop", "Stop one", stop, (argument("pid", "its process id", is_required=True),)),
    ),
)
