"""A journal's state as text and as JSON, for ``isthmus journal status``."""

from collections.abc import Mapping, Sequence
from typing import Any

from isthmus.journal.sql.processes import Process
from isthmus.journal.upkeep.status import JournalStatus
from isthmus.text.units import show_count, show_size
from isthmus.text.visible import visible_line


def status_json(status: JournalStatus) -> dict[str, Any]:
    """Return a journal's state as JSON. Times are Unix seconds, sizes are bytes."""
    return {
        "journal": status.name,
        "version": status.version,
        "newest_version": status.newest,
        "agent": status.agent,
        "size": status.size,
        "tasks": dict(status.tasks),
        "events": status.events,
        "queued": status.queued,
        "oldest_queued_since": status.oldest,
        "pushes": dict(status.pushes),
        "processes": [
            {
                "owner": process.owner,
                "host": process.host,
                "pid": process.pid,
                "labels": list(process.labels),
                "slots": process.slots,
                "begun": process.begun,
                "tasks": process.tasks,
                "alive": process.is_alive,
            }
            for process in status.processes
        ],
    }


def status_lines(status: JournalStatus, now: float) -> list[str]:
    """Return a journal's state as text. ``now`` is the time in Unix seconds."""
    version = str(status.version)
    if status.version < status.newest:
        version += f"; this program works with {status.newest}: isthmus journal migrate, or the next start, upgrades it"
    queued = "none (the journal is older than the queue)" if status.queued is None else str(status.queued)
    if status.oldest is not None:
        queued += f", the first for {_span(now - status.oldest)}"
    facts = [
        ("Journal", status.name),
        ("Version", version),
        ("Agent", status.agent or "any"),
        ("Size", show_size(status.size)),
        ("Tasks", _counts(status.tasks)),
        ("Events", f"{status.events:,}"),
        ("Queue", queued),
        ("Pushes", _counts(status.pushes)),
        ("Processes", str(len(status.processes)) if status.processes else "none"),
    ]
    lines = [f"{name + ':':<11}{visible_line(value)}" for name, value in facts]
    return [*lines, *(f"  {visible_line(_process(process, now))}" for process in status.processes)]


def _counts(counts: Mapping[str, int]) -> str:
    if not counts:
        return "none"
    return f"{sum(counts.values()):,} ({', '.join(f'{count:,} {state}' for state, count in counts.items())})"


def _process(process: Process, now: float) -> str:
    facts: Sequence[str] = [
        process.name,
        {True: "alive", False: "ended", None: "alive or ended, as nobody here can tell"}[process.is_alive],
        show_count(process.tasks, "task"),
        *([f"{process.slots} slots"] if process.slots is not None else []),
        *([f"labels {' '.join(process.labels)}"] if process.labels else []),
        *([f"for {_span(now - process.begun)}"] if process.begun is not None else []),
    ]
    return ", ".join(facts)


def _span(seconds: float) -> str:
    """Return a time span as text, in its largest unit."""
    if not -1e9 < seconds < 1e9:
        return "an unknown time"
    for unit, name in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= unit:
            return show_count(int(seconds // unit), name)
    return f"{max(seconds, 0):.0f} s"
