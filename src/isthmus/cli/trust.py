"""``isthmus trust``: let what a folder's files configure run on this machine, or not."""

import os
from pathlib import Path

import click

from isthmus.app.project_starts import project_starts
from isthmus.app.setup import BadInputError
from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust, stated_trust, trusted_folders_path
from isthmus.terminal.sanitize import visible_line


@click.command("trust", context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument(
    "folder", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".", metavar="[FOLDER]"
)
@click.option("--no", "is_refused", is_flag=True, help="Do not trust it: nothing that its files configure is started.")
@click.option("--parent", "is_parent", is_flag=True, help="Trust the folder around it, and all that is in there.")
@click.option("--show", "is_shown", is_flag=True, help="Change nothing; say how it stands and what would be started.")
def command(folder: Path, is_refused: bool, is_parent: bool, is_shown: bool) -> None:
    """Trust FOLDER (this one without a name): let what its files configure run on this machine.

    These are the MCP servers of its .gemini/settings.json and .mcp.json, and the shell commands in its custom commands.
    The answer is kept in ~/.gemini/trustedFolders.json, which Gemini CLI reads, too. Where an editor has the folder
    open and says whether it is trusted, that counts instead.
    """
    if is_refused + is_parent + is_shown > 1:
        raise BadInputError("--no, --parent and --show exclude each other; give one of them")
    place, home = folder.resolve(), Path.home()
    if not is_shown:
        rule = TrustRule.NOT if is_refused else TrustRule.PARENT if is_parent else TrustRule.FOLDER
        state_trust(home, place, rule)
    for line in _told(place, home):
        click.echo(visible_line(line))


def _told(place: Path, home: Path) -> list[str]:
    stated = stated_trust(home, place)
    words = {True: "is trusted", False: "is not trusted", None: "is not trusted: nothing was said of it"}
    lines = [f"{place} {words[stated]} ({trusted_folders_path(home)})."]
    starts = project_starts(place, home, os.environ)
    if starts:
        lines.append("Its files start:" if stated else "Its files would start:")
    return [*lines, *(f"  - {line}" for line in starts)]
