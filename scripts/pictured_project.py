"""A small project with changes to it, and the script of a model that proposes them: what ``make pictures`` shows."""

import json
from typing import Any

SCHEDULE = '''"""When ferries leave, and how late they are."""

from dataclasses import dataclass
from datetime import datetime, timedelta

GRACE_MINUTES = 5
"""Delay in minutes that the board does not show."""


@dataclass(frozen=True)
class Sailing:
    """A sailing of the timetable."""

    harbour: str
    departs: str
    left_at: str | None = None


def is_late(sailing: Sailing, now: datetime) -> bool:
    """Whether the board says so."""
    return delay_of(sailing, now) > timedelta(minutes=GRACE_MINUTES)


def delay_of(sailing: Sailing, now: datetime) -> timedelta:
    """How late a sailing is; zero when it is on time."""
    due = datetime.fromisoformat(sailing.departs)
    if sailing.left_at is None:
        return max(now - due, timedelta(0))
    left = datetime.fromisoformat(sailing.left_at)
    return left - due


def line_of(sailing: Sailing, now: datetime) -> str:
    """The line of a sailing on the board."""
    state = "late" if is_late(sailing, now) else "on time"
    return f"{sailing.departs}  {sailing.harbour}  {state}"
'''
CHANGED = (
    SCHEDULE.replace(
        "from datetime import datetime, timedelta",
        "from datetime import UTC, datetime, timedelta\nfrom zoneinfo import ZoneInfo",
    )
    .replace('''    due = datetime.fromisoformat(sailing.departs)
    if sailing.left_at is None:
        return max(now - due, timedelta(0))
    left = datetime.fromisoformat(sailing.left_at)
    return left - due
''', '''    zone = ZoneInfo(sailing.harbour)
    due = _moment(sailing.departs, zone)
    left = now if sailing.left_at is None else _moment(sailing.left_at, zone)
    return max(left - due, timedelta(0))


def _moment(text: str, zone: ZoneInfo) -> datetime:
    """A time of the timetable; one without an offset is local."""
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)
''')
)  # fmt: skip
TESTS = "from schedule import Sailing, delay_of, is_late\n" + "".join(
    f'\n\ndef test_a_sailing_at_{hour}_is_late() -> None:\n    assert is_late(Sailing("Lisbon", "{hour}:50"), NOW)\n'
    for hour in (21, 22, 23)
)
CHECK = """echo "E   AssertionError: sailing 23:50 is 'on time', not 'late'"
echo '1 failed, 8 passed in 3.41 s'
exit 1
"""
BOARD = '''"""Lines of the departure board."""

from schedule import Sailing

WIDE, NARROW = 60, 32
"""Columns of the board at the quay, and on a phone."""


def line_of(sailing: Sailing, columns: int = WIDE) -> str:
    """Return the line of a sailing."""
    return f"{sailing.departs}  {sailing.harbour}"[:columns]
'''
BOARD_CHANGED = BOARD.replace(
    """    return f"{sailing.departs}  {sailing.harbour}"[:columns]
""",
    """    berth = f"B{sailing.berth}" if columns < WIDE else f"berth {sailing.berth}"
    return f"{sailing.departs}  {sailing.harbour}  {berth}"[:columns]
""",
)
QUERIES = '''"""Tides of a zone."""

from harbour import db, Tide

ALL_TIDES = "select * from tides"
TIDES_BY_ZONE = "select * from tides where zone = %s and at::date = %s"


def tides_of(zone: str, day: date) -> list[Tide]:
    """All tides of a day in one zone."""
    rows = db.execute(ALL_TIDES)
    return [t for t in map(Tide.of, rows)
            if t.zone == zone
            and t.at.date() == day]


def nearest(zone: str, now: datetime) -> Tide:
    """The tide closest to a moment."""
    today = tides_of(zone, now.date())
    return min(today, key=lambda t: abs(t.at - now))
'''
QUERIES_CHANGED = (
    QUERIES.replace('''    rows = db.execute(ALL_TIDES)
    return [t for t in map(Tide.of, rows)
            if t.zone == zone
            and t.at.date() == day]
''', '''    rows = db.execute(TIDES_BY_ZONE, (zone, day))
    return [Tide.of(row) for row in rows]
''').replace('''    today = tides_of(zone, now.date())
    return min(today, key=lambda t: abs(t.at - now))
''', '''    days = (now.date(), (now + DAY).date())
    tides = [t for day in days for t in tides_of(zone, day)]
    return min(tides, key=lambda t: abs(t.at - now))
''')
)  # fmt: skip
MIGRATION = """-- Tides are asked for by zone and day.
create index concurrently if not exists
    tides_zone_day on tides (zone, (at::date));
"""
WRITTEN: tuple[tuple[str, dict[str, str]], ...] = (
    ("Read how tides are stored", {"NOTES.md": "# Tides\n\nTides are stored by zone.\n"}),
    ("Let the query use it", {"queries.py": QUERIES_CHANGED, "0043_zone_index.sql": MIGRATION}),
)
"""The turns of an agent that writes without asking: title and files of each."""
PACKAGES = ("@rollup/rollup-linux-x64-gnu", "esbuild", "postcss", "rollup", "vite", "yaml")


def lock_file(versions: dict[str, str], hosts: dict[str, str]) -> str:
    """Return a lock file of 200 packages; the versions and hosts of those that are not named are the same each time."""
    names = sorted({*PACKAGES, *(f"package-{number}" for number in range(200))})
    packages: dict[str, Any] = {}
    for name in names:
        version, host = versions.get(name, "1.4.2"), hosts.get(name, "registry.example")
        packages[f"node_modules/{name}"] = {
            "version": version,
            "resolved": f"https://{host}/{name}/-/{name}-{version}.tgz",
            "integrity": f"sha512-{name.upper()}/{version.replace('.', '+')}Hy7VQDT7S8sTQCBNR3YbDgble==",
            "license": "MIT",
        }
    return json.dumps({"name": "harbour-web", "packages": packages}, indent=2) + "\n"


LOCK = lock_file({"vite": "7.1.2", "rollup": "4.46.2"}, {})
LOCK_CHANGED = lock_file({"vite": "7.1.4", "rollup": "4.50.1", "yaml": "2.8.1"}, {"rollup": "npm.tidemirror.example"})
PACKAGE = '{\n  "name": "harbour-web",\n  "devDependencies": {\n    "vite": "^7.1.2"\n  }\n}\n'
FERRIES = "Late midnight ferries"
IMPORT = "Nightly import"
TICKET = "Ticket HB-412"
INDEX = "Tide index"
BERTH = "Berth on the phone board"
SINCE = "Winter timetable"
QUESTIONS: list[dict[str, Any]] = [
    {
        "question": "Which zone has a time without an offset?",
        "type": "choice",
        "options": [
            {
                "label": "The harbour's own zone",
                "description": "Lisbon for Cais do Sodré, Ponta Delgada for the islands",
            },
            {"label": "UTC", "description": "as the old importer read them"},
            {"label": "Refuse such lines", "description": "the import stops and names the line"},
        ],
    },
    {
        "question": "Which harbours does it concern?",
        "type": "choice",
        "multiSelect": True,
        "options": [{"label": name} for name in ("Cais do Sodré", "Cacilhas", "Trafaria", "Ponta Delgada")],
    },
    {"question": "What is the report called?", "type": "text"},
    {"question": "Write over last night's import?", "type": "yesno"},
]
PLAN = [
    {"description": "Find where delays are computed", "status": "completed"},
    {"description": "Read times in the harbour's zone", "status": "in_progress"},
    {"description": "Add tests for midnight and October", "status": "pending"},
    {"description": "Note it in docs/timetable.md", "status": "pending"},
]
WRONG = (
    "`delay_of` subtracts times that carry no zone, so the 23:50 sailing, logged at 00:20 `+02:00`, comes out as "
    "*early*. I treat departure times without an offset as local time of the harbour."
)


def call(name: str, **arguments: object) -> dict[str, Any]:
    """Return a step of a script that calls a tool."""
    return {"call": {"name": name, "arguments": arguments}}


def change(name: str, content: str) -> dict[str, Any]:
    """Return a step that writes a file."""
    return call("write_file", file_path=name, content=content)


OUTPUT = "".join(f"tests/test_schedule.py::test_{number} PASSED\\n" for number in range(190))
SCRIPT = json.dumps(
    {
        "name": "gemini-2.5-pro",
        "price": 1.25,
        "scenarios": [
            {
                "prompt": rf"\A{FERRIES}",
                "replies": [
                    {
                        "thought": "**Comparing times with and without a zone**\n\nAn offset is missing in some.",
                        **call("write_todos", todos=PLAN),
                    },
                    call("grep_search", pattern="fromisoformat"),
                    call("run_shell_command", command="sh check.sh tests/test_board.py"),
                    change("test_board.py", TESTS),
                    {"text": WRONG, **change("src/harbour/schedule.py", CHANGED)},
                    {"text": "The board shows late sailings as late."},
                ],
            },
            {
                "prompt": rf"\A{IMPORT}",
                "replies": [
                    {
                        "text": "412 of 9,806 lines carry no offset; I should not guess.",
                        **call("ask_user", questions=QUESTIONS),
                    },
                    {"text": "The import reads them."},
                ],
            },
            {"prompt": rf"\A{TICKET}", "replies": [call("release"), {"text": "The ticket has a release."}]},
            {
                "prompt": rf"\A{INDEX}",
                "replies": [
                    {
                        "text": "Add an index to the tide table.",
                        **call("run_shell_command", command="psql -1 -f migrations/0042_tide_index.sql"),
                    },
                    {"text": "The index is there."},
                ],
            },
            {
                "prompt": rf"\A{SINCE}",
                "replies": [
                    {
                        "thought": "**Reading the sheet of holidays**",
                        "text": "I read every time in the zone of its harbour, and run the tests.",
                        **call("run_shell_command", command="sh run.sh tests"),
                    },
                    {"text": "All of them pass."},
                ],
            },
            {
                "prompt": rf"\A{BERTH}",
                "replies": [change("board.py", BOARD_CHANGED), {"text": "The board shows the berth, also on a phone."}],
            },
        ],
    }
)  # a YAML document, too
RUN = f"""printf '{OUTPUT}'
while [ ! -e ended ]; do sleep 0.2; done
"""
"""A program that prints lines, and goes on until a file exists."""
