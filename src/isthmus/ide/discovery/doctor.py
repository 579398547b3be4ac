"""Diagnoses why an agent CLI started here does or does not find an editor. No I/O.

Determines the state of each file with the reason, the choice of each CLI, and problems of this terminal. Its sources
are the contents of the discovery files, the running processes and the open ports. The caller removes files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from isthmus.ide.cli_choice import START_ADVICE, Announcement, CliChoice, Here, nothing_here
from isthmus.ide.discovery.connecting import Candidates
from isthmus.ide.discovery.protocols import AGENT_CLIS
from isthmus.ide.discovery_file import mismatch, port_number
from isthmus.record import record

PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


class State(StrEnum):
    """State of a discovery file."""

    ALIVE = "alive"
    STALE = "stale"
    UNUSABLE = "unusable"


@record
class Finding:
    """Diagnosis of one discovery file. ``reasons`` explain why it is stale or unusable, or a problem of a usable one.

    ``mismatch`` is the reason why this folder is not in the editor's folders; None if it is. ``is_sweepable`` is true
    if the process has ended, the port is closed, and the file belongs to this user.
    """

    announcement: Announcement
    state: State
    reasons: tuple[str, ...] = ()
    mismatch: str | None = None
    is_sweepable: bool = False


@record
class CompanionAnnouncement:
    """Announcement of a running companion, from its control file.

    ``suspension`` explains why it does not answer and what to do; None if it is not suspended. ``ports`` are all its
    ports.
    """

    port: int
    discovery_file: str
    folders: tuple[str, ...]
    ports: frozenset[int] = frozenset()
    suspension: str | None = None


@record
class Examination:
    """Result of the diagnosis. ``hazards`` are sentences about problems of this terminal."""

    here: Here
    findings: tuple[Finding, ...]
    choices: tuple[CliChoice, ...]
    hazards: tuple[str, ...]

    @property
    def is_well(self) -> bool:
        """Whether at least one CLI started here connects to an editor."""
        return any(choice.connects for choice in self.choices)


def ports_to_try(files: Sequence[Announcement], environment: Mapping[str, str]) -> frozenset[int]:
    """Return the ports in the files and the environment variables."""
    named = (port_number(environment.get(cli.port_variable)) for cli in AGENT_CLIS)
    return frozenset(port for port in (*(file.port for file in files), *named) if port)


def choices(files: Sequence[Announcement], here: Here) -> tuple[CliChoice, ...]:
    """Return the prediction for each known CLI except our own."""
    usable = [file for file in files if file.problem is None]
    return tuple(cli.choose([file for file in usable if file.cli == cli.name], here) for cli in AGENT_CLIS)


def isthmus_choice(candidates: Candidates, files: Sequence[Announcement], here: Here) -> CliChoice:
    """Return the prediction for our own agent, which uses the best candidate that answers."""
    cli = "Isthmus"
    ranked = [ide for ides in candidates.by_protocol.values() for ide in ides]
    for ide in ranked:
        if ide.port in here.open_ports:
            reason = "the only one for this folder" if len(ranked) == 1 else "the best one for this folder and terminal"
            return CliChoice(cli, True, ide.source, ide.port, ide.display_name, reason)
    if not ranked:
        return nothing_here(cli, [file for file in files if file.problem is None], here)
    return CliChoice(cli, False, None, None, "", "nobody listens on the ports that the files name", START_ADVICE)


def examine(
    files: Sequence[Announcement],
    here: Here,
    running: Sequence[CompanionAnnouncement] = (),
    candidates: Candidates | None = None,
    remarks: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Examination:
    """Diagnose the files; ``candidates`` are our own agent's, ``remarks`` the restrictions by each CLI's settings."""
    findings = tuple(_finding(file, here) for file in files)
    chosen = choices(files, here)
    if candidates is not None:
        chosen = (*chosen, isthmus_choice(candidates, files, here))
    silent = {port: one.suspension for one in running if one.suspension is not None for port in (one.port, *one.ports)}
    chosen = tuple(
        replace(one, connects=False, reason=f"the companion on port {one.port} is suspended", advice=silent[one.port])
        if one.connects and one.port in silent
        else one
        for one in chosen
    )
    if not any(mismatch(here.folder, companion.folders) is None for companion in running):
        chosen = tuple(_with_bridge(choice, findings) for choice in chosen)
    chosen = tuple(replace(one, remarks=tuple(remarks.get(one.cli, ()))) if one.connects else one for one in chosen)
    hazards = _hazards(findings, here, running)
    if here.in_container and not any(choice.connects for choice in chosen):
        hazards.append(
            "this is a container: editors outside of it are seen only if the folders of discovery files are shared "
            "with it, and Claude Code removes files whose process it does not see"
        )
    return Examination(here, findings, chosen, tuple(hazards))


def _finding(file: Announcement, here: Here) -> Finding:
    if file.problem is not None:
        return Finding(file, State.UNUSABLE, (file.problem,))
    problem = mismatch(here.folder, file.folders)
    is_dead = file.pid is not None and not here.is_alive(file)
    if file.port in here.open_ports:
        gone = f"its process {file.pid} is not to be seen from here, as from another container"
        if any(cli.name == file.cli and cli.removes_dead for cli in AGENT_CLIS):
            gone += f": {file.cli} removes the file when it starts"
        return Finding(file, State.ALIVE, (gone,) if is_dead else (), problem)
    reasons = [f"nobody listens on port {file.port}"]
    if is_dead:
        reasons.append(f"its process {file.pid} is gone")
    elif file.pid is not None:
        reasons.append(f"its process {file.pid} lives, so it may come back or be another one by now")
    return Finding(file, State.STALE, tuple(reasons), problem, is_dead)


def _with_bridge(choice: CliChoice, findings: Sequence[Finding]) -> CliChoice:
    """Add the advice to bridge to an editor here whose extension is for another CLI, if there is one."""
    others = (
        finding.announcement
        for finding in findings
        if finding.state is State.ALIVE and finding.mismatch is None and finding.announcement.cli != choice.cli
    )
    other = next(others, None)
    if choice.connects or other is None:
        return choice
    bridge = f"`isthmus bridge` here lets {choice.cli} use {other.editor}, whose extension is for {other.cli}"
    return replace(choice, advice=f"{bridge}; or {choice.advice}" if choice.advice else bridge)


def _hazards(findings: Sequence[Finding], here: Here, running: Sequence[CompanionAnnouncement]) -> list[str]:
    hazards: list[str] = []
    environment = here.environment
    proxy = next((name for name in PROXIES if environment.get(name)), None)
    excepted = {part.strip() for name in ("no_proxy", "NO_PROXY") for part in environment.get(name, "").split(",")}
    if proxy is not None and "127.0.0.1" not in excepted and "*" not in excepted:
        hazards.append(
            f"{proxy} is set and NO_PROXY does not except 127.0.0.1: Claude Code asks the proxy for its editor, too. "
            "Set NO_PROXY=127.0.0.1,localhost,::1 and no_proxy likewise"
        )
    known = {finding.announcement.path for finding in findings}
    for companion in running:
        if companion.discovery_file not in known and mismatch(here.folder, companion.folders) is None:
            folder = Path(companion.discovery_file).parent.parent.parent
            hazards.append(
                f"the companion on port {companion.port} has this folder open, but announces itself below {folder}, "
                f"where CLIs of this terminal do not look: start them with TMPDIR={folder}, or the companion with the "
                "TMPDIR of this terminal"
            )
    return hazards
