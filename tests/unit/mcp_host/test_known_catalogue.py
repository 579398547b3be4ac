"""How long a turn waits for a server, after the runs before."""

from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.mcp_host.catalogue.known_catalogue import KnownCatalogue
from isthmus.mcp_host.catalogue.listing import ListedTool, Listing
from isthmus.mcp_host.catalogue.manifests import Manifests
from isthmus.mcp_host.config.server_config import Origin, ServerConfig, StdioEndpoint
from isthmus.mcp_host.connection.connection_context import ConnectionContext
from isthmus.mcp_host.connection.transport_probe import TransportChoice

pytestmark = pytest.mark.anyio

FULL = 20.0
LISTING = Listing((ListedTool("ok", "", {"type": "object"}),))


class Runs:
    """Runs with one server, each of which loads what the one before has stored."""

    def __init__(self, folder: Path) -> None:
        self._context = ConnectionContext({}, folder, manifests=Manifests(folder / "cache"))
        self._config = ServerConfig("s", Origin.USER, StdioEndpoint("x", (), {}, folder))

    def begin(self, *, notes_failures: bool = True) -> KnownCatalogue:
        known = KnownCatalogue(self._config, replace(self._context, notes_failures=notes_failures))
        known.load_cached()
        return known

    async def connect(self, took: float, known: KnownCatalogue | None = None) -> None:
        found = known or self.begin()
        found.take(LISTING)
        await found.keep(LISTING, TransportChoice(), took)

    def patience(self, seconds: float = FULL) -> float:
        return self.begin().patience(seconds)


@pytest.fixture
def runs(tmp_path: Path) -> Runs:
    return Runs(tmp_path)


async def test_a_new_server_and_one_that_works_are_waited_for_in_full(runs: Runs) -> None:
    assert runs.patience() == FULL
    await runs.connect(1.0)
    assert runs.patience() == FULL


@pytest.mark.parametrize(("took", "patience"), [(None, 5.0), (0.1, 5.0), (3.0, 8.0), (6.0, 16.0), (60.0, FULL)])
async def test_after_a_failure_the_wait_is_shorter_but_not_than_starts_usually_take(
    runs: Runs, took: float | None, patience: float
) -> None:
    if took is not None:
        await runs.connect(took)
    await runs.begin().mark_failed()
    assert runs.patience() == patience
    assert runs.patience(2.0) == 2.0


async def test_of_two_runs_without_the_server_one_at_least_waits_in_full(runs: Runs) -> None:
    waits: list[float] = []
    for seconds in (FULL, FULL, FULL, 5.0, FULL, FULL, FULL):
        known = runs.begin()
        waits.append(known.patience(seconds))
        await known.note_wait(waits[-1], seconds)
    assert waits == [FULL, 5.0, FULL, 5.0, FULL, 5.0, FULL]
    await runs.begin().mark_failed()
    assert runs.patience() == 5.0


async def test_any_success_ends_what_is_remembered_and_a_command_adds_nothing_to_it(runs: Runs) -> None:
    await runs.begin(notes_failures=False).mark_failed()
    assert runs.patience() == FULL
    await runs.begin().mark_failed()
    await runs.connect(1.0, runs.begin(notes_failures=False))
    known = runs.begin()
    assert (known.patience(FULL), known.is_cached) == (FULL, True)


async def test_a_server_that_was_connected_just_after_the_wait_is_not_marked(runs: Runs) -> None:
    known = runs.begin()
    await runs.connect(1.0, known)
    await known.note_wait(FULL, FULL)
    assert (known.wait_note, runs.begin().is_held) == (None, False)


async def test_starts_that_take_about_as_long_write_no_new_file(runs: Runs, tmp_path: Path) -> None:
    await runs.connect(3.0)
    (file,) = (tmp_path / "cache").glob("*.json")
    before = file.stat().st_ino
    for took in (1.1, 3.9):
        await runs.connect(took)
    assert file.stat().st_ino == before
    await runs.connect(4.1)
    assert file.stat().st_ino != before
