"""The engine of an agent that is served, with its journal."""

import contextlib
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from isthmus.files.locations import make_private_directory

if TYPE_CHECKING:
    from isthmus.engine import Engine, EngineOptions
    from isthmus.engine.port.agents import Agent

FILE = "journal.sqlite"
"""Name of the journal's file in the folder of an agent."""


@contextlib.asynccontextmanager
async def engine_of(
    agent: "Agent", folder: Path, journal: str, names: Sequence[str], options: "EngineOptions"
) -> AsyncGenerator["Engine"]:
    """Run an engine as long as the context lasts; running tasks are then left to be continued.

    ``journal`` is the URL of a PostgreSQL database; if it is empty, the journal is a file in ``folder``. It belongs to
    the agent whose name is the first of ``names``; the others are its former names.

    Raises:
        JournalError: the journal cannot be used, or is another agent's.
    """
    from isthmus.engine import Engine
    from isthmus.journal.opening import open_journal

    make_private_directory(folder)
    engine = Engine(agent, await open_journal(folder / FILE, journal, names), options)
    try:
        await engine.start()
        yield engine
    finally:
        await engine.aclose()
