"""/memory: shows the instructions in GEMINI.md, AGENTS.md and CLAUDE.md, and adds to them."""

from isthmus.agent.commands.port.base import CommandNode, argument
from isthmus.agent.commands.port.context import CommandContext, CommandError, ToolInvocation, error_of
from isthmus.agent.memory.instructions import Instructions
from isthmus.agent.memory.memory import DEFAULT_CONTEXT_FILES, own_file
from isthmus.agent.memory.save_memory import SaveMemory
from isthmus.development_tool import ToolCallStatus
from isthmus.text.units import show_count


async def show(context: CommandContext) -> None:
    """Show the instructions exactly as the model receives them."""
    instructions = await context.memory.instructions(context.workspace, context.home, context.context_files)
    await context.say(instructions.text or _advice_without_instructions(context))


async def paths(context: CommandContext) -> None:
    """List the files, and the files that each imports."""
    instructions = await context.memory.instructions(context.workspace, context.home, context.context_files)
    lines = [line for file in instructions.files for line in (str(file.path), *(f"  @{item}" for item in file.imports))]
    notes = [f"Note: {problem}" for problem in instructions.problems]
    await context.say("\n".join([*lines, *notes]) or _advice_without_instructions(context))


async def add(context: CommandContext) -> None:
    """Append a fact to the user's own file."""
    if context.home is None:
        raise CommandError("This agent has no folder of your own, so nothing can be remembered.", "no_memory")
    tool = SaveMemory(own_file(context.home, context.options.context_files))
    (call,) = await context.call(ToolInvocation(tool, {"fact": context.args}), is_permitted=True)
    if call.status is ToolCallStatus.SUCCEEDED and call.output is not None:
        await context.say(call.output.text or "")
    else:
        raise error_of(call, "Nothing was added.", "memory_write_failure")


async def refresh(context: CommandContext) -> None:
    """Read the files again and print the changes."""
    before = context.memory.known(context.workspace, context.home, context.context_files)
    now = await context.memory.instructions(context.workspace, context.home, context.context_files)
    size = f"{show_count(len(now.files), 'file')}, {show_count(len(now.text), 'character')}"
    if before is None:
        await context.say(f"The instructions were read: {size}.")
        return
    changes = _changes(before, now)
    await context.say("\n".join((f"The instructions were read again: {size}.", *(changes or ("Nothing changed.",)))))


def _changes(before: Instructions, now: Instructions) -> tuple[str, ...]:
    old = {file.path: file for file in before.files}
    new = {file.path: file for file in now.files}
    return (
        *(f"+ {file.shown}" for path, file in new.items() if path not in old),
        *(f"~ {file.shown}" for path, file in new.items() if path in old and old[path].text != file.text),
        *(f"- {file.shown}" for path, file in old.items() if path not in new),
    )


def _advice_without_instructions(context: CommandContext) -> str:
    names = " or ".join(context.context_files or DEFAULT_CONTEXT_FILES)
    return f"There are no instructions: no {names} in ~/.gemini or the project. Create one with /init or /memory add."


COMMAND = CommandNode(
    "memory",
    "Show the instructions in GEMINI.md, AGENTS.md and CLAUDE.md, and add to them",
    show,
    sub_commands=(
        CommandNode("show", "Show the instructions exactly as the model receives them", show),
        CommandNode("list", "List the files that they come from", paths),
        CommandNode(
            "add",
            "Remember a fact in all sessions, from the next model request on",
            add,
            (argument("fact", "What to remember, as one sentence", is_required=True),),
        ),
        CommandNode("refresh", "Read the files again and say what changed", refresh),
    ),
)
