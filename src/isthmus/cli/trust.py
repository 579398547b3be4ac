"""``isthmus trust``: decide whether what the files in a folder start, reach and set may be used on this machine."""

import json
import os
from pathlib import Path

import click

from isthmus.mcp_host.config.folder_trust import TrustRule, state_trust, stated_trust, trusted_folders_path
from isthmus.programs.setup.setup import BadInputError
from isthmus.programs.setup.trust_items import ShownItem, listed, shown_items
from isthmus.settings.edit_file import SettingsFileError
from isthmus.settings.trust.agreements import Agreement, agreement_path, read_agreement, write_agreement
from isthmus.settings.trust.items import ProjectItem
from isthmus.text.visible import visible_line


@click.command("trust")
@click.argument(
    "folder", type=click.Path(file_okay=False, exists=True, path_type=Path), default=".", metavar="[FOLDER]"
)
@click.option("--no", "is_refused", is_flag=True, help="Do not trust it: use nothing that its files bring.")
@click.option("--parent", "is_parent", is_flag=True, help="Trust the folder around it, with everything in that folder.")
@click.option("--show", "is_shown", is_flag=True, help="Change nothing; show its trust and what its files bring.")
@click.option("--json", "is_json", is_flag=True, help="Print JSON.")
def command(folder: Path, is_refused: bool, is_parent: bool, is_shown: bool, is_json: bool) -> None:
    """Trust FOLDER (by default the current one): let its files start programs and change settings on this machine.

    This covers the MCP servers, hooks, custom commands, further folders, variables and settings that the files have
    now. What is new or changed later is asked about, and allowed by this command. The answer is stored in
    ~/.gemini/trustedFolders.json, which Gemini CLI reads, too. An editor that has the folder open and says whether it
    is trusted takes precedence.
    """
    if is_refused + is_parent + is_shown > 1:
        raise BadInputError("--no, --parent and --show exclude each other; give one of them")
    place, home = folder.resolve(), Path.home()
    shown = shown_items(place, home, os.environ)
    if not is_shown:
        if not is_refused:
            _record(place, shown)
        rule = TrustRule.NOT if is_refused else TrustRule.PARENT if is_parent else TrustRule.FOLDER
        state_trust(home, place, rule)
    stated = stated_trust(home, place)
    agreement = read_agreement(place) if stated else None
    if is_json:
        click.echo(json.dumps(_as_json(place, stated, shown, agreement), indent=2))
        return
    for line in _describe(place, home, stated, shown, agreement):
        click.echo(visible_line(line))


def _record(place: Path, shown: tuple[ShownItem, ...]) -> None:
    """Record all items of a folder as agreed to."""
    try:
        write_agreement(place, Agreement(frozenset(each.item.digest for each in shown)))
    except OSError as error:
        raise SettingsFileError(f"{agreement_path(place)} cannot be written: {error.strerror or error}") from error


def _state(stated: bool | None, agreement: Agreement | None, item: ProjectItem) -> str:
    """Return whether an item is used: ``allowed``, ``new``, ``refused``, or ``untrusted`` with its folder."""
    if not stated:
        return "untrusted"
    if agreement is None or agreement.covers(item):
        return "allowed"
    return "refused" if agreement.is_decided(item) else "new"


def _as_json(
    place: Path, stated: bool | None, shown: tuple[ShownItem, ...], agreement: Agreement | None
) -> dict[str, object]:
    items = [
        {
            "kind": each.item.kind.value,
            "name": each.item.name,
            "file": each.item.file,
            "text": each.line,
            "state": _state(stated, agreement, each.item),
            "digest": each.item.digest,
        }
        for each in shown
    ]
    return {"folder": str(place), "trusted": stated, "items": items}


def _describe(
    place: Path, home: Path, stated: bool | None, shown: tuple[ShownItem, ...], agreement: Agreement | None
) -> list[str]:
    words = {True: "is trusted", False: "is not trusted", None: "is not trusted, because nothing was decided for it"}
    lines = [f"{place} {words[stated]} ({trusted_folders_path(home)})."]
    by_state: dict[str, list[ShownItem]] = {}
    for each in shown:
        by_state.setdefault(_state(stated, agreement, each.item), []).append(each)
    headings = {
        "allowed": ("Its files start:", "They also bring:", "Its files bring:"),
        "untrusted": ("Its files would start:", "They would also bring:", "Its files would bring:"),
        "new": (
            "New or changed since you trusted it, and not started:",
            "New or changed, and not used:",
            "New or changed since you trusted it, and not used:",
        ),
        "refused": (
            "Refused by you, and not started:",
            "Refused by you, and not used:",
            "Refused by you, and not used:",
        ),
    }
    for state, texts in headings.items():
        lines.extend(listed(by_state.get(state, ()), *texts))
    if "new" in by_state or "refused" in by_state:
        lines.append(f"`isthmus trust {place}` allows all of it.")
    return lines
