"""Custom commands: a prompt in a TOML file, run by handing it to the model.

Its shell commands (``!{...}``) go through the shell tool and the approval policy; a refusal ends the command.
``custom_files`` finds the files.
"""

import asyncio
from dataclasses import replace
from functools import partial
from pathlib import Path

from isthmus.agent.approval.permission_rules import access_of
from isthmus.agent.approval.policy import AskedEachTime
from isthmus.agent.commands.custom.injecting import inject
from isthmus.agent.commands.custom.template import Template
from isthmus.agent.commands.port.base import CommandNode, argument
from isthmus.agent.commands.port.context import CommandContext, CommandError, CommandRefusedError, ToolInvocation
from isthmus.development_tool import ToolCallStatus
from isthmus.files.private_files import PRIVATE_FILES
from isthmus.record import record
from isthmus.settings.trust.agreements import new_items
from isthmus.settings.trust.items import ProjectItem
from isthmus.tools.port.workspace import Workspace

SHELL = "run_shell_command"


@record
class CustomCommand:
    """A custom command: its names from the top folder down, and its file.

    ``is_of_project`` is whether the file belongs to the project instead of the user; ``item`` is then what the user
    agrees to, if the command runs the shell.
    """

    path: tuple[str, ...]
    description: str
    template: Template
    file: Path
    is_of_project: bool = False
    item: ProjectItem | None = None

    @property
    def name(self) -> str:
        """The name as in Gemini CLI: ``/git:commit``."""
        return "/" + ":".join(self.path)


def node_of(command: CustomCommand, sub_commands: tuple[CommandNode, ...] = ()) -> CommandNode:
    """Return the command in the tree, under the last of its names."""
    taken = argument("args", "Inserted into the prompt" if command.template.takes_args else "Appended to the prompt")
    return CommandNode(command.path[-1], command.description, partial(run_custom, command), (taken,), sub_commands)


async def run_custom(command: CustomCommand, context: CommandContext) -> None:
    """Read the files and run the shell commands of the prompt, then send it to the model."""
    template, args = command.template, context.args
    access = replace(access_of(context.tools.permissions), asked=(PRIVATE_FILES,))
    workspace = Workspace(context.workspace, access=access)
    contents = {path: await asyncio.to_thread(inject, workspace, path) for path in dict.fromkeys(template.files(args))}
    outputs: list[str] = []
    wanted = template.shell_commands(args)
    if wanted:
        tool = context.tools.tools.get(SHELL)
        if tool is None:
            raise CommandError(f"{command.name} runs shell commands, and this session has no {SHELL}.", "no_shell")
        reason = f"requested by the command {command.name} in {command.file}"
        uses = tuple(ToolInvocation(tool, {"command": line, "description": reason}) for line in wanted)
        calls = await context.call(*uses, asked_each_time=await _asked_each_time(command, context))
        for call, line in zip(calls, wanted, strict=True):
            match call.status:
                case ToolCallStatus.SUCCEEDED:
                    outputs.append((call.output.text if call.output is not None else None) or "")
                case ToolCallStatus.CANCELLED:
                    await context.say(f"{command.name} was cancelled: `{line}` was not allowed.")
                    raise CommandRefusedError
                case _:
                    problem = call.error.message if call.error is not None else f"`{line}` failed."
                    raise CommandError(f"{command.name} was not run: {problem}", "shell_command_failed")
    await context.ask_model(template.render(args, f"{command.name} {args}".rstrip(), outputs, contents))


async def _asked_each_time(command: CustomCommand, context: CommandContext) -> AskedEachTime | None:
    """Return why the user is asked about each shell command of a project that they did not agree to, else None."""
    if not command.is_of_project:
        return None
    if await context.resources.trusts_project(context.session.user, context.workspace):
        items = () if command.item is None else (command.item,)
        if not await asyncio.to_thread(new_items, items, context.workspace):
            return None
        return AskedEachTime(
            f"{command.name} comes with the project, and is new or changed since you trusted its folder",
            f"`isthmus trust {context.workspace}` shows what is new, and allows it.",
        )
    return AskedEachTime(
        f"{command.name} comes with the project, and its folder is not trusted",
        f'"{context.workspace}": "TRUST_FOLDER" in ~/.gemini/trustedFolders.json trusts it.',
    )
