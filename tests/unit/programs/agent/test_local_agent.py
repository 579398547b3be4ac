"""An agent whose start fails in the middle leaves nothing open."""

from pathlib import Path

import pytest

from isthmus.agent.resources import AgentResources
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.programs.agent.local_agent import local_agent, rule_for
from isthmus.programs.agent.local_agent_options import LocalAgentOptions
from isthmus.programs.setup.setup import GivenOptions, decide

pytestmark = pytest.mark.anyio


async def test_the_journal_is_closed_if_the_start_fails(
    workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "test-key")
    setup = decide(GivenOptions("gemini:test", workspace=workspace, data_dir=tmp_path / "data"), may_ask=True)
    closed: list[SqliteJournal] = []
    aclose = SqliteJournal.aclose

    async def close(journal: SqliteJournal) -> None:
        await aclose(journal)
        closed.append(journal)

    def fail(resources: AgentResources) -> None:
        raise ValueError(resources)

    monkeypatch.setattr(SqliteJournal, "aclose", close)
    with pytest.raises(ValueError, match="AgentResources"):
        async with local_agent(setup, rule_for(setup), LocalAgentOptions(on_resources=fail)):
            pass
    assert len(closed) == 1
    async with local_agent(setup, rule_for(setup), LocalAgentOptions()):
        pass
    assert len(closed) == 2
