"""``isthmus trust``: decide whether the configuration in a folder may start programs on this machine."""

import os
from pathlib import Path

import click

from isthmus.app.project_programs import project_programs
from isthmus.app.setup import BadInputError
from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust, stated_trust, trusted_folders_path
from isthmus.text.visible import visible_line


@click.command("trust")
@click.argument(
    "folder", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".", metavar="[FOLDER]"
)
@click.option("--no", "is_refused", is_flag=True, help="Do not trust it: start nothing that its files configure.")
@click.option("--parent", "is_parent", is_flag=True, help="Trust the folder around it, with everything in that folder.")
@click.option("--show", "is_shown", is_flag=True, help="Change nothing; show its trust and what would be started.")
def command(folder: Path, is_refused: bool, is_parent: bool, is_shown: bool) -> None:
    """Trust FOLDER (by default the current one): let its configuration start programs on this machine.

    This covers the MCP servers in its .gemini/settings.json and .mcp.json, and the shell commands in its custom
    commands. The answer is stored in ~/.gemini/trustedFolders.json, which Gemini CLI reads, too. An editor that has the
    folder open and says whether it is trusted takes precedence.
    """
    if is_refused + is_parent + is_shown > 1:
        raise BadInputError("--no, --parent and --show exclude each other; give one of them")
    place, home = folder.resolve(), Path.home()
    if not is_shown:
        rule = TrustRule.NOT if is_refused else TrustRule.PARENT if is_parent else TrustRule.FOLDER
        state_trust(home, place, rule)
    for line in _describe(place, home):
        click.echo(visible_line(line))


def _describe(place: Path, home: Path) -> list[str]:
    stated = stated_trust(home, place)
    words = {True: "is trusted", False: "is not trusted", None: "is not trusted, because nothing was decided for it"}
    lines = [f"{place} {words[stated]} ({trusted_folders_path(home)})."]
    programs = project_programs(place, home, os.environ)
    if programs:
        lines.append("Its files start:" if stated else "Its files would start:")
    return [*lines, *(f"  - {line}" for line in programs)]
