"""The trips of ARCHITECTURE.md, and the start of a server: how many places a reader visits, and how many climb."""

from collections.abc import Mapping

import pytest

from trips import CLIMBS, PAGE, ROOT, VISITS, Trip, floors, read_trips, started_apart

FLOORS: Mapping[str, int] = {"cli": 3, "programs": 2, "engine": 1, "journal": 0}
TEXT = """# Page

An ordinary list:

1. It names no module.

A trip:

1. `isthmus/cli/run.py` asks `isthmus/engine/runs/runner.py`,
2. which writes into `isthmus/journal/port/base.py`, and calls `isthmus/programs/back.py` back.
3. Up: `isthmus/cli/run.py` gets the result
   from `isthmus/engine/followers/feed.py`.
4. `isthmus/engine/runs/runner.py` goes on.
"""


def test_a_trip_visits_the_modules_of_its_steps_and_climbs_to_a_room_above() -> None:
    visits = (
        "cli/run.py",
        "engine/runs/runner.py",
        "journal/port/base.py",
        "programs/back.py",
        "engine/followers/feed.py",
    )
    assert read_trips(TEXT, FLOORS) == (Trip("A trip", visits, ("journal/port/base.py -> programs/back.py",)),)


def test_the_floors_are_those_of_the_import_rules() -> None:
    found = floors(ROOT / "pyproject.toml")
    assert found["cli"] > found["programs"] == found["demo"] > found["engine"] > found["journal"] > found["record"] == 0


def test_each_trip_of_the_architecture_is_short_and_straight() -> None:
    found = read_trips(PAGE.read_text("utf-8"), floors(ROOT / "pyproject.toml"))
    assert len(found) >= 5
    assert [trip for trip in found if len(trip.visits) > VISITS or len(trip.climbs) > CLIMBS] == []
    assert {path for trip in found for path in trip.visits if not (ROOT / "src" / "isthmus" / path).is_file()} == set()


@pytest.mark.slow
def test_the_path_through_the_start_of_a_server_is_short_and_straight() -> None:
    trip = started_apart()
    assert 10 < len(trip.visits) <= VISITS
    assert 0 < len(trip.climbs) <= CLIMBS
