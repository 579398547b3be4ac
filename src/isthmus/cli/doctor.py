"""``isthmus doctor``: the editors that agent CLIs find from here, why not the others, and what to do."""

import dataclasses
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from isthmus.ide.cli_choice import CliChoice
    from isthmus.ide.discovery.doctor import Examination, Finding
    from isthmus.settings import Settings


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print everything as one JSON object.")
@click.option("--sweep", is_flag=True, help="Remove your own files whose process and port are both gone.")
@click.pass_context
def command(context: click.Context, as_json: bool, sweep: bool) -> None:
    """Find out why an agent CLI does not find your editor, or finds another one.

    Editors, and `isthmus companion`, announce themselves by files; each agent CLI has its own rules for choosing one.
    The report shows which editor Gemini CLI, Qwen Code, Claude Code and Isthmus would choose if you started them in
    this folder and this terminal, and why; then every such file, alive or stale; then what interferes in this terminal;
    which settings Isthmus does not use; and what is known of the model. No data is sent: ports are only connected to.
    For MCP servers use `isthmus mcp doctor`.

    The exit status is 0 when at least one of the CLIs would connect to an editor, and 1 when none would.
    """
    from isthmus.text.visible import visible

    examination = examine_here()
    removed = list(_sweep(examination)) if sweep else []
    if as_json:
        more = {"removed": removed, "settings": list(settings_lines()), "models": list(model_lines())}
        click.echo(json.dumps(to_json(examination) | more))
    else:
        lines = [*describe(examination), *settings_lines(), *model_lines(), *(f"Removed: {path}" for path in removed)]
        if not sweep and any(finding.is_sweepable for finding in examination.findings):
            lines.append("\n`isthmus doctor --sweep` removes stale files whose process is gone.")
        # Files of other programs may contain anything, also control sequences.
        click.echo(visible("\n".join(lines)))
    context.exit(0 if examination.is_well else 1)


def examine_here(folder: str = ".") -> "Examination":
    """Examine the files, processes and ports for a CLI that is started in this terminal and a folder."""
    from isthmus.ide.cli_choice import Here
    from isthmus.ide.control import control_client
    from isthmus.ide.discovery import doctor
    from isthmus.ide.discovery.connecting import find_candidates
    from isthmus.ide.discovery.protocols import AGENT_CLIS, announcements
    from isthmus.ide.gemini.discovery import is_in_container
    from isthmus.ide.gemini.finding import editor_process
    from isthmus.ide.processes import process_is_alive
    from isthmus.network.loopback import open_ports

    files = announcements(os.environ)
    pids = {file.pid for file in files if file.pid is not None}
    here = Here(
        os.path.realpath(folder),
        os.environ,
        editor_process(),
        is_in_container(),
        frozenset(pid for pid in pids if process_is_alive(pid)),
        open_ports(doctor.ports_to_try(files, os.environ)),
    )
    running = [
        doctor.CompanionAnnouncement(
            companion.port,
            companion.discovery_file,
            companion.workspace_folders,
            doctor.ports_to_try((), companion.variables),
            control_client.suspension(companion.pid),
        )
        for companion in control_client.running()
    ]
    remarks = {cli.name: cli.remarks(Path(here.folder), os.environ) for cli in AGENT_CLIS}
    return doctor.examine(files, here, running, find_candidates(Path(folder), os.environ), remarks)


def settings_lines() -> Iterator[str]:
    """Yield a line for each setting for this folder that Isthmus does not use, or cannot use."""
    from isthmus.models.endpoint.endpoint import short_keys
    from isthmus.programs.setup.setup import settings_notices, unused_settings
    from isthmus.settings import SettingsError

    try:
        settings, environment = _settings_here()
    except SettingsError as error:
        lines: tuple[str, ...] = (str(error),)
    else:
        lines = (*settings_notices(settings), *unused_settings(settings), *short_keys(environment))
    if lines:
        yield ""
        yield "About Isthmus's settings"
        yield from (f"  ! {line}" for line in lines)


def _settings_here() -> "tuple[Settings, Mapping[str, str]]":
    """Return the settings for this folder, and the environment with the files that they allow.

    Raises:
        SettingsError: a file cannot be read.
    """
    from isthmus.mcp_host.config.folder_trust import file_trust
    from isthmus.settings import load_settings
    from isthmus.settings.env_files import load_environment

    folder, home = Path.cwd().resolve(), Path.home()
    trusts = file_trust(home)
    settings = load_settings(folder, home, os.environ, is_trusted=trusts(folder))
    local = None if settings.ignores_local_env else folder
    return settings, load_environment(os.environ, home, local, trusts, settings.excluded_variables).variables


def model_lines() -> Iterator[str]:
    """Yield lines about the model that would be used in this folder, and the age of the table of models."""
    from datetime import UTC, datetime

    from isthmus.parts.model_notices import model_report
    from isthmus.settings import SettingsError

    with suppress(SettingsError):  # the lines about the settings say it
        yield ""
        yield "About the models"
        yield from (f"  {line}" for line in model_report(*_settings_here(), datetime.now(UTC).date()))


def _sweep(examination: "Examination") -> Iterator[str]:
    for finding in examination.findings:
        if finding.is_sweepable:
            with suppress(OSError):
                Path(finding.announcement.path).unlink()
                yield finding.announcement.path


def describe(examination: "Examination") -> Iterator[str]:
    """Yield the lines that describe the examination to a user."""
    yield f"Agent CLIs started in {examination.here.folder}"
    yield from _choices(examination.choices)
    yield ""
    yield "Files by which editors announce themselves" + ("" if examination.findings else ": none")
    for finding in examination.findings:
        yield from _finding(finding)
    if examination.hazards:
        yield ""
        yield "About this terminal"
        yield from (f"  ! {hazard}" for hazard in examination.hazards)


def _choices(choices: "Sequence[CliChoice]") -> Iterator[str]:
    """Yield the lines on each CLI's choice; text that several in a row share stands once, below the last of them."""
    advised: dict[str, str] = {}  # each advice, and the CLI for which it was given first
    for (reason, advice), group in groupby(choices, lambda choice: (choice.reason, choice.advice)):
        alike = tuple(group)
        for choice in alike:
            where = f"{choice.editor} on port {choice.port}" if choice.connects else "no editor"
            yield f"  {'✓' if choice.connects else '✗'} {choice.cli}: {where}"
            yield from (f"      but: {remark}" for remark in choice.remarks)
        yield f"      why: {reason}"
        if advice in advised:
            yield f"      what to do: as for {advised[advice]}"
        elif advice:
            advised[advice] = alike[-1].cli
            yield f"      what to do: {advice}"


def _finding(finding: "Finding") -> Iterator[str]:
    file = finding.announcement
    yield f"  {finding.state.value}: {file.path} (for {file.cli})"
    if file.port:
        process = "" if file.pid is None else f", process {file.pid}"
        yield f"      {file.editor} on port {file.port}{process}: {os.pathsep.join(file.folders)}"
    for reason in finding.reasons:
        yield f"      {reason}"
    if finding.mismatch is not None:
        yield "      not for this folder"


def to_json(examination: "Examination") -> dict[str, Any]:
    """Return the examination as JSON."""
    return {
        "folder": examination.here.folder,
        "is_well": examination.is_well,
        "choices": [dataclasses.asdict(choice) for choice in examination.choices],
        "files": [_finding_to_json(finding) for finding in examination.findings],
        "hazards": list(examination.hazards),
    }


def _finding_to_json(finding: "Finding") -> dict[str, Any]:
    file = finding.announcement
    return {
        "path": file.path,
        "cli": file.cli,
        "state": finding.state.value,
        "reasons": list(finding.reasons),
        "port": file.port or None,
        "pid": file.pid,
        "editor": file.editor,
        "folders": list(file.folders),
        "fits_here": finding.announcement.problem is None and finding.mismatch is None,
        "is_sweepable": finding.is_sweepable,
    }
