"""Runs the A2A contract suites with either agent behind their servers: our own, and the same one as an ACP agent.

``--agent acp`` runs them all with an ACP agent, ``--agent own`` with our own, and the default with our own and a
sample with both. support/own_agent_only.py lists what does not run with an ACP agent.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.agent_behind import CHOICE
from support.journals import KINDS, JournalPlace, PostgresPlace, SqlitePlace
from support.own_agent_only import OWN_AGENT_ONLY, SAMPLE

if TYPE_CHECKING:
    from support.postgres import Postgres

SUITES = ("test_a2a_", "test_coder_agent_requests")
_KEPT = {name for names in OWN_AGENT_ONLY.values() for name in names}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Choose the agents of a test."""
    file = metafunc.definition.path.stem
    if not file.startswith(SUITES):
        return
    chosen = metafunc.config.getoption("agent")
    name = f"{file}::{metafunc.function.__name__}"
    serves_acp = file not in _KEPT and name not in _KEPT
    if chosen == "acp":
        metafunc.parametrize("agent_kind", ["acp" if serves_acp else "left out"], indirect=True)
    elif chosen == "sample" and file in SAMPLE and serves_acp:
        acp = pytest.param("acp", marks=pytest.mark.slow)
        metafunc.parametrize("agent_kind", ["own", acp], indirect=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what has no ACP agent, and the agent in memory, which is the engine's own where it speaks ACP."""
    left = [item for item in items if isinstance(item, pytest.Function) and _is_left_out(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        leaving = set(left)
        items[:] = [item for item in items if item not in leaving]


def _is_left_out(item: pytest.Function) -> bool:
    params = item.callspec.params if hasattr(item, "callspec") else {}
    kind = params.get("agent_kind")
    return kind == "left out" or (kind == "acp" and any(value == "memory" for value in params.values()))


@pytest.fixture(autouse=True)
def agent_kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """Choose the agent behind the servers of the test, and check that an ACP agent was behind one."""
    kind: str = getattr(request, "param", "own")
    CHOICE.is_acp, CHOICE.was_used = kind == "acp", False
    CHOICE.sessions.clear()
    try:
        yield kind
        assert CHOICE.was_used or not CHOICE.is_acp, "no ACP agent was behind a server: list the test in OWN_AGENT_ONLY"
    finally:
        CHOICE.is_acp = False


@pytest.fixture(scope="session")
def postgres_server() -> "Iterator[Postgres]":
    """Return a PostgreSQL for all tests of this process."""
    from support.postgres import postgres  # here, because most tests need none

    with postgres() as server:
        yield server


@pytest.fixture(params=KINDS)
def journal_place(request: pytest.FixtureRequest, tmp_path: Path, postgres_server: "Postgres") -> JournalPlace:
    """Return the place of an empty journal of each kind."""
    if request.param == "sqlite":
        return SqlitePlace(tmp_path / "data" / "journal.sqlite")
    return PostgresPlace(postgres_server.database())
