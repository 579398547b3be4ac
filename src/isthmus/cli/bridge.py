"""``isthmus bridge``: let agents that speak one protocol work in an editor whose extension speaks only the other."""

import asyncio
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from isthmus.errors import IsthmusError
from isthmus.ide.discovery.protocols import BY_PREFERENCE
from isthmus.programs.companion.serving_editor import serve_editor
from isthmus.programs.process.event_loop import run_loop
from isthmus.record import record

if TYPE_CHECKING:
    from isthmus.ide.discovery.connecting import Candidates
    from isthmus.ide.options import CompanionOptions

KINDS = {protocol.name: f"{protocol.clis[0].name}'s" for protocol in BY_PREFERENCE}
"""Names of the protocols in messages to the user, by their names on the command line."""


@record
class AnnouncedIde:
    """An IDE that announced itself in one of the protocols."""

    kind: str
    name: str
    pid: int | None


@click.command("bridge")
@click.option("--workspace", metavar="DIR", default=".", help="A folder that the IDE has open. Default: this one.")
@click.option(
    "--from",
    "kind",
    type=click.Choice(list(KINDS)),
    help="Use the IDE that speaks this protocol. Needed only when there are IDEs of both kinds.",
)
@click.option("--fresh", is_flag=True, help="Do not take over port and token of a bridge that has just stopped.")
@click.option("--allow-agent-accept", is_flag=True, help="Let `isthmus ide accept` work also for an agent's processes.")
@click.option("--no-context", is_flag=True, help="Do not send agents what you have open.")
@click.option("--no-selection", is_flag=True, help="Send agents the open files, but not your selection.")
@click.option("--no-diff", is_flag=True, help="Do not show reviews in the IDE: agents ask in their own terminals.")
@click.option("--no-record", is_flag=True, help="Do not record what agents write, for `isthmus ide changes`.")
@click.option("--json", "as_json", is_flag=True, help="Print the ready line as JSON.")
def command(
    workspace: str,
    kind: str | None,
    fresh: bool,
    allow_agent_accept: bool,
    no_context: bool,
    no_selection: bool,
    no_diff: bool,
    no_record: bool,
    as_json: bool,
) -> None:
    """Let every agent CLI use an IDE extension that was made for one of them.

    Run it beside an editor that has, for example, an extension for Claude Code: Gemini CLI and Qwen Code then see its
    open files and selection, and their edits are reviewed there. The other direction works, too. Ends with the editor,
    or with Ctrl-C.

    \b
    isthmus bridge
    """
    from isthmus.ide.options import CompanionOptions

    folder = os.path.realpath(workspace)
    if not os.path.isdir(folder):  # noqa: PTH112 - Path raises for a name that is too long
        raise click.UsageError(f"--workspace: {workspace} is not a folder; expected an existing one")
    options = CompanionOptions(
        fresh=fresh,
        allow_agent_accept=allow_agent_accept,
        share_context=not no_context,
        share_selection=not no_selection,
        show_diffs=not no_diff,
        records_changes=not no_record,
    )
    run_loop(_run(Path(folder), kind, options, as_json=as_json))


async def _run(workspace: Path, kind: str | None, options: "CompanionOptions", *, as_json: bool) -> None:
    from isthmus.editors.remote import RemoteEditor
    from isthmus.ide.discovery.connecting import connect_ide

    candidates = await asyncio.to_thread(_living_candidates, workspace)
    chosen = choose(_announced(candidates), kind, _bridges())
    of_kind = candidates.only(lambda protocol, _ide: protocol.name == chosen.kind)
    client = await connect_ide(workspace, os.environ, of_kind)
    editor = RemoteEditor(client, _tell)
    try:
        lacking = tuple(each for each in KINDS if each != chosen.kind)
        await serve_editor(editor, f"{client.ide_name}, bridged", replace(options, protocols=lacking), as_json=as_json)
    finally:
        await editor.aclose()


def _living_candidates(workspace: Path) -> "Candidates":
    """Return the IDEs that can be reached; a killed bridge leaves a file with a live IDE but no server."""
    from isthmus.ide.discovery.connecting import find_candidates
    from isthmus.network.loopback import open_ports

    candidates = find_candidates(workspace, os.environ)
    is_open = open_ports(ide.port for _, ide in candidates.by_preference())
    return candidates.only(lambda _protocol, ide: ide.remote is not None or ide.port in is_open)


def _bridges() -> dict[int, int]:
    """Return the ports of running bridges by the process of their IDE: companions that do not speak every protocol."""
    from isthmus.ide.control import control_client

    names = {protocol.port_variable for protocol in BY_PREFERENCE}
    newest_last = reversed(control_client.running())
    return {found.editor_pid: found.port for found in newest_last if not names <= found.variables.keys()}


def choose(
    announced: "tuple[AnnouncedIde, ...]", kind: str | None, bridges: Mapping[int, int] | None = None
) -> AnnouncedIde:
    """Return the IDE to bridge: the first of ``kind``, or of the only kind there is; ``announced`` is best first.

    ``bridges`` are the ports of the running bridges by the process of their IDE.

    Raises:
        IsthmusError: there is none, there are both kinds, or it speaks every protocol itself.
    """
    if not announced:
        raise IsthmusError(
            "no IDE has this folder open and an extension for agents; start one there (`isthmus doctor` says what was "
            "found), or serve an editor directly with `isthmus companion`"
        )
    of_kind = {each: [ide for ide in announced if ide.kind == each] for each in KINDS}
    complete = [
        ide
        for ide in announced
        if ide.pid and {other.kind for other in announced if other.pid == ide.pid} == KINDS.keys()
    ]
    if complete and (kind is None or (of_kind[kind] and of_kind[kind][0] in complete)):
        ide = f"{complete[0].name} (process {complete[0].pid})"
        if (port := (bridges or {}).get(complete[0].pid or 0)) is not None:
            raise IsthmusError(f"{ide} has a bridge already, on port {port}; start the agent")
        raise IsthmusError(f"{ide} speaks every protocol already; nothing to bridge")
    if kind is None:
        if len(found := {each: ides[0] for each, ides in of_kind.items() if ides}) > 1:
            names = "; ".join(f"--from {each}: {ide.name}" for each, ide in found.items())
            raise IsthmusError(f"there are IDEs of both kinds here; choose one: {names}")
        (kind,) = found
    if not of_kind[kind]:
        names = ", ".join(sorted({f"{ide.name} ({KINDS[ide.kind]} protocol)" for ide in announced}))
        raise IsthmusError(f"no IDE here speaks {KINDS[kind]} protocol; found: {names}")
    return of_kind[kind][0]


def _announced(candidates: "Candidates") -> tuple[AnnouncedIde, ...]:
    return tuple(AnnouncedIde(protocol.name, ide.display_name, ide.pid) for protocol, ide in candidates.by_preference())


def _tell(text: str) -> None:
    from isthmus.text.visible import visible_line

    print(f"isthmus bridge: {visible_line(text)}", file=sys.stderr, flush=True)  # it may quote the IDE
