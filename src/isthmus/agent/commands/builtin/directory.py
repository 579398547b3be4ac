"""/directory: shows the folders in which the agent works, and adds one to the session."""

import asyncio
from pathlib import Path

from isthmus.agent.commands.port.base import CommandNode, argument
from isthmus.agent.commands.port.context import CommandContext, CommandError
from isthmus.internal_events import FolderIncluded


async def show(context: CommandContext) -> None:
    """Show the workspace and the further folders."""
    workspace = context.options.workspace_of(
        context.scope.workspace, context.session.user, context.session.choices.added_folders
    )
    await context.say("\n".join([f"Workspace: {workspace.root}", *(f"Also: {folder}" for folder in workspace.others)]))


async def add(context: CommandContext) -> None:
    """Add folders, separated by commas, to the session."""
    if context.session.user or not context.options.may_include_folders:
        raise CommandError("A server's folders are chosen where it is started: --include-directories.")
    workspace = context.scope.workspace
    names = [name.strip() for name in context.args.split(",") if name.strip()]
    if not names:
        raise CommandError("Name a folder: /directory add FOLDER")
    folders = [await asyncio.to_thread(_folder, workspace, name) for name in names]
    for folder in folders:
        await context.turn.emit(FolderIncluded(str(folder)))
        await context.say(f"The agent may read and edit files in {folder} for the rest of this session.")


def _folder(workspace: Path, name: str) -> Path:
    try:
        folder = (workspace / Path(name).expanduser()).resolve()
        is_folder = folder.is_dir()
    except (OSError, RuntimeError, ValueError) as error:
        raise CommandError(f"{name} is not a usable path: {error}") from error
    if not is_folder:
        raise CommandError(f"{name} is not a folder.")
    return folder


COMMAND = CommandNode(
    "directory",
    "Show the folders in which the agent works",
    show,
    sub_commands=(
        CommandNode("show", "Show the folders in which the agent works", show),
        CommandNode(
            "add",
            "Add a folder to this session, in which the agent may read and edit",
            add,
            (argument("folder", "A path; several with commas", is_required=True),),
        ),
    ),
)
