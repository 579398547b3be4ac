"""Counts how far a reader goes: visits and climbs of the trips of ARCHITECTURE.md, and of a real start of ``serve()``.

A visit of a trip is a module that its steps name, and a climb is one in a room above the one that is named before it.
Steps that begin with "Up:" are results and events, which do not count as climbs.

For ``serve()`` a server is started. A visit is then a function that a reader has to open: one of the rooms that build
programs that calls others of these rooms. A climb is a call of a function by one of a room below its own.
As a program: ``trips.py`` prints all as JSON, ``trips.py serve`` the start alone.
"""

import inspect
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FrameType

from isthmus.a2a.serving.application import served_application
from isthmus.cli.main import run
from isthmus.programs.agent.local_agent import local_agent
from isthmus.programs.serve.serving import serve

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "src" / "isthmus"
READY = "A2A server ready"
PAGE = ROOT / "docs" / "ARCHITECTURE.md"
VISITS, CLIMBS = 25, 4
"""Maximum numbers of one trip."""
_TRIP = re.compile(r"^(?P<name>[A-Z][^\n]*):\n\n(?P<steps>(?:(?:\d+\.|  ) [^\n]*\n)+)", re.MULTILINE)
_MODULE = re.compile(r"`isthmus/([\w/]+\.py)`")


@dataclass(frozen=True, slots=True)
class Trip:
    """A way through the program: what a reader visits, and where the way climbs."""

    name: str
    visits: tuple[str, ...]
    climbs: tuple[str, ...]


def read_trips(text: str, floor_of: Mapping[str, int]) -> tuple[Trip, ...]:
    """Return the trips of a page: each a line with a colon, and numbered steps that name modules."""
    return tuple(
        _trip(found["name"], re.split(r"\n(?=\d+\. )", found["steps"]), floor_of)
        for found in _TRIP.finditer(text)
        if _MODULE.search(found["steps"])
    )


def _trip(name: str, steps: list[str], floor_of: Mapping[str, int]) -> Trip:
    visits: dict[str, None] = {}
    climbs: list[str] = []
    before: str | None = None
    for step in steps:
        visits |= dict.fromkeys(_MODULE.findall(step))
        is_up = re.match(r"\d+\. Up:", step) is not None
        for module in [] if is_up else _MODULE.findall(step):
            if before is not None and floor_of[room_of(Path(module))] > floor_of[room_of(Path(before))]:
                climbs.append(f"{before} -> {module}")
            before = module
        before = None if is_up else before
    return Trip(name, tuple(visits), tuple(climbs))


def floors(pyproject: Path) -> Mapping[str, int]:
    """Return the floor of each room, from the layers of import-linter: the lowest is 0."""
    contracts = tomllib.loads(pyproject.read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers: list[str] = next(each["layers"] for each in contracts if each.get("containers") == ["isthmus"])
    return {
        room.strip("()"): floor
        for floor, layer in enumerate(reversed(layers))
        for room in layer.replace("|", " ").replace(":", " ").split()
    }


def room_of(file: Path) -> str:
    """Return the room of a module, by the path of its file below the package: its first folder, or its own name."""
    return file.parts[0].removesuffix(".py")


class Follower:
    """Follows the calls of this thread from a function on. To be given to :func:`sys.setprofile`."""

    def __init__(self, first: CodeType, floor_of: Mapping[str, int], building: tuple[str, ...]) -> None:
        self._first = first
        self._floor_of = floor_of
        self._building = building
        self._begun: set[CodeType] = set()
        self.visits: dict[str, None] = {}
        self.climbs: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        """Take note of a call."""
        del argument
        if event != "call" or not (self._begun or frame.f_code is self._first):
            return
        if (called := _function(frame.f_code)) is None:
            return
        self._begun.add(frame.f_code)
        if (caller := self._caller(frame)) is None:
            return
        if self._is_building(called) and self._is_building(caller):
            self.visits[f"{caller[0]} {caller[1]}"] = None
        if self._floor(called) > self._floor(caller):
            self.climbs[f"{caller[0]} {caller[1]} -> {called[0]} {called[1]}"] = None

    def _caller(self, frame: FrameType) -> tuple[Path, str] | None:
        """Return the function of the program that waits for a call; None if it began before the first one."""
        above = frame.f_back
        while above is not None:
            if (function := _function(above.f_code)) is not None:
                return function if above.f_code in self._begun else None
            above = above.f_back
        return None

    def _is_building(self, function: tuple[Path, str]) -> bool:
        return str(function[0]).startswith(self._building)

    def _floor(self, function: tuple[Path, str]) -> int:
        return self._floor_of.get(room_of(function[0]), 0)


def _function(code: CodeType) -> tuple[Path, str] | None:
    """Return the file below the package and the name of a function of the program; None for any other code."""
    path = Path(code.co_filename)
    if not path.is_relative_to(SOURCES) or not code.co_flags & inspect.CO_OPTIMIZED or code.co_name.startswith("<"):
        return None
    return path.relative_to(SOURCES), code.co_qualname


class _Output(io.StringIO):
    """Standard output of the server: follows until the server is ready, and ends it then."""

    def write(self, text: str, /) -> int:
        if text.startswith(READY):
            sys.setprofile(None)
            os.kill(os.getpid(), signal.SIGTERM)
        return super().write(text)


def _file(function: object) -> Path:
    return Path(inspect.getfile(inspect.unwrap(function))).relative_to(SOURCES)  # pyright: ignore[reportArgumentType]


def followed_start() -> Trip:
    """Start a server with the demonstration model in this process, and return what was called until it was ready."""
    building = (room_of(_file(serve)), room_of(_file(local_agent)), str(_file(served_application).parent))
    follower = Follower(serve.__code__, floors(ROOT / "pyproject.toml"), tuple(f"{each}/" for each in building))
    output, sys.stdout = sys.stdout, _Output()
    try:
        with tempfile.TemporaryDirectory(prefix="trips-") as folder:
            os.chdir(folder)
            sys.setprofile(follower)
            run(["serve", "-m", "demo", "--port", "0", "--data-dir", f"{folder}/data"])
            os.chdir(ROOT)
    finally:
        sys.setprofile(None)
        sys.stdout = output
    return Trip("serve(), from its call until the server is ready", (*follower.visits,), (*follower.climbs,))


def started_apart() -> Trip:
    """Return the trip of a start of ``serve()`` in a process and home folder of its own.

    Raises:
        subprocess.CalledProcessError: the server did not start.
    """
    with tempfile.TemporaryDirectory(prefix="trips-") as folder:
        places = dict.fromkeys(("HOME", "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"), folder)
        command = [sys.executable, __file__, "serve"]
        done = subprocess.run(command, env={**os.environ, **places}, capture_output=True, check=True, timeout=100)
    (found,) = json.loads(done.stdout)
    return Trip(found["name"], tuple(found["visits"]), tuple(found["climbs"]))


def all_trips() -> tuple[Trip, ...]:
    """Return the trips of the page, and the one of a start."""
    return (*read_trips(PAGE.read_text("utf-8"), floors(ROOT / "pyproject.toml")), started_apart())


def main(arguments: list[str]) -> int:
    """Print trips as JSON."""
    trips = (followed_start(),) if arguments == ["serve"] else all_trips()
    print(json.dumps([asdict(trip) for trip in trips], indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
