"""The question about a folder's files in the workbench: its answer is for the items that were shown, and no others."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from isthmus.mcp_host.config.folder_trust import stated_trust
from isthmus.programs.serve.workbench_view import AgentView
from isthmus.settings.trust.agreements import read_agreement
from isthmus.web.view import ChangedQuestionError, NotShownError
from support.isolation import IsolatedFolders
from support.project_files import write

if TYPE_CHECKING:
    from isthmus.agent.resources import AgentResources

pytestmark = pytest.mark.anyio


@pytest.fixture
def view() -> AgentView:
    """Return the view of an agent that runs; nothing of the agent itself is looked at."""
    nothing: Any = None
    return AgentView(nothing, nothing, cast("AgentResources", object()))


async def shown(view: AgentView, workspace: Path) -> list[str]:
    question = await view.trust("", str(workspace))
    assert question is not None
    return [item["digest"] for item in question["items"]]


def add(workspace: Path, *names: str) -> None:
    write(workspace, ".mcp.json", {"mcpServers": {name: {"command": f"./{name}"} for name in names}})


async def test_an_answer_to_items_that_have_changed_since_decides_nothing(
    view: AgentView, workspace: Path, isolated_folders: IsolatedFolders
) -> None:
    add(workspace, "one")
    old = await shown(view, workspace)
    add(workspace, "one", "two")
    for digests in (old, [], [*old, "made up"]):
        with pytest.raises(ChangedQuestionError, match="have changed since"):
            await view.decide_trust("", str(workspace), "trust-folder", digests)
    assert stated_trust(isolated_folders.home, workspace) is None
    assert read_agreement(workspace) is None
    new = await shown(view, workspace)
    await view.decide_trust("", str(workspace), "trust-folder", new)
    agreement = read_agreement(workspace)
    assert agreement is not None
    assert set(new) <= agreement.agreed


async def test_what_is_new_in_a_trusted_folder_is_decided_as_it_was_shown(view: AgentView, workspace: Path) -> None:
    add(workspace, "one")
    await view.decide_trust("", str(workspace), "trust-folder", await shown(view, workspace))
    assert await view.trust("", str(workspace)) is None
    add(workspace, "one", "two")
    old = await shown(view, workspace)
    add(workspace, "one", "three")
    with pytest.raises(ChangedQuestionError, match="have changed since"):
        await view.decide_trust("", str(workspace), "allow", old)
    new = await shown(view, workspace)
    assert set(old).isdisjoint(new)
    await view.decide_trust("", str(workspace), "refuse", new)
    agreement = read_agreement(workspace)
    assert agreement is not None
    assert set(new) <= agreement.refused


async def test_a_user_of_the_server_decides_about_no_folder(view: AgentView, workspace: Path) -> None:
    add(workspace, "one")
    items = await shown(view, workspace)
    with pytest.raises(NotShownError):
        await view.decide_trust("bob", str(workspace), "trust-folder", items)
