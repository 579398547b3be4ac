"""Each hosted agent with each kind of change to a file: what is asked over A2A, what is on disk, how the task ends.

The agents are the real programs, with scripted models. The table is in docs/how-to/acp-agents.md for users.
"""

import os
import re
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from isthmus.client import PromptMessage
from isthmus.development_tool import ExecuteDetails, FileDiff, ToolCallStatus
from isthmus.events import TaskState
from support.acp_file_agents import EVERYTHING, HOSTED, FileAgent, file_agent
from support.acp_hosting import AcpHosting, Seen, seen_of
from support.extended import first_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.timeout(300)]


@dataclass(frozen=True, slots=True)
class Kind:
    """A change that the model makes: the text before it, None without a file, and after it, None for a deletion.

    ``mine`` is the text that the user writes into the question; ``meanwhile`` is what another program writes into the
    file while the question is open. ``is_core``: also in runs that are short.
    """

    path: str
    before: str | None
    after: str | None
    mine: str | None = None
    meanwhile: str | None = None
    is_core: bool = False


KINDS = {
    "new file": Kind("new.txt", None, "one\n", is_core=True),
    "new folder": Kind("made/deep/new.txt", None, "one\n", is_core=True),
    "existing": Kind("existing.txt", "one\ntwo\n", "one\nTWO\n", is_core=True),
    "edited": Kind("edited.txt", "one\ntwo\n", "one\nTWO\n", mine="one\nMINE\n", is_core=True),
    "edited too late": Kind("late.txt", "one\n", "two\n", mine="mine\n", meanwhile="other\n", is_core=True),
    "edited and new": Kind("edited/new.txt", None, "one\n", mine="mine\n"),
    "empty": Kind("empty.txt", "", "one\n"),
    "new and empty": Kind("nothing.txt", None, ""),
    "emptied": Kind("full.txt", "one\n", ""),
    "deletion": Kind("gone.txt", "one\n", None),
}


@dataclass(frozen=True, slots=True)
class Row:
    """The question of a kind of change, as two texts or a command; the file, the call and the task after it."""

    asked: tuple[str | None, str] | str | None
    on_disk: str | None
    status: ToolCallStatus | None
    state: TaskState = TaskState.COMPLETED
    text: str = "Done."


def expected(name: str, kind: Kind, path: Path) -> Row:
    """Return what every agent does; the cases are what one of them does otherwise."""
    asked = f"rm {path}" if kind.after is None else (kind.before, kind.after)
    on_disk = next((text for text in (kind.meanwhile, kind.mine) if text is not None), kind.after)
    row = Row(asked, on_disk, ToolCallStatus.SUCCEEDED if kind.meanwhile is None else ToolCallStatus.FAILED)
    match name, kind:
        case "codex", Kind(after=None):
            return replace(row, asked=("one\n", ""))
        case "codex", Kind(path="made/deep/new.txt"):
            # Its own sandbox lets it write the file, but not make the folder.
            return replace(row, on_disk=None, status=ToolCallStatus.FAILED)
        case "codex", Kind(mine=str()):
            return replace(row, state=TaskState.CANCELED, text="")
        case "opencode", Kind(mine=str()):
            return replace(row, text="")
        case _:
            return row


@pytest.fixture
def settings() -> bool:
    """Whether the settings tell the agent to ask."""
    return True


@pytest.fixture(params=first_of(HOSTED))
def peer(
    request: pytest.FixtureRequest, settings: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Generator[FileAgent]:
    with file_agent(request.param, tmp_path, asks=settings) as agent:
        for name, value in agent.environment.items():
            monkeypatch.setenv(name, value)
        yield agent


async def test_each_kind_of_change_is_asked_about_and_made_as_the_user_answers(peer: FileAgent, tmp_path: Path) -> None:
    kinds = {title: kind for title, kind in KINDS.items() if kind.is_core or EVERYTHING}
    rows: dict[str, Row] = {}
    reasons: dict[str, str] = {}
    context = None
    async with peer.hosted(tmp_path) as hosting:
        for title, kind in kinds.items():
            seen, rows[title] = await change(peer, hosting, kind, context)
            context = seen.context_id
            reasons[title] = reason(seen)
        paths = {title: hosting.workspace / kind.path for title, kind in kinds.items()}
    assert rows == {title: expected(peer.name, kind, paths[title]) for title, kind in kinds.items()}
    # Qwen Code looks itself before it writes.
    changed = r"late\.txt (changed since the edit was proposed; nothing was written|has been modified since)"
    assert re.search(changed, reasons["edited too late"])
    told = b"".join(request.body for request in peer.requests).decode()
    written = [title for title, kind in kinds.items() if kind.mine is not None and kind.meanwhile is None]
    assert [title for title in written if f"The user changed your proposal for {paths[title]}" not in told] == []


async def test_the_tokens_that_an_agent_states_are_counted(peer: FileAgent, tmp_path: Path) -> None:
    async with peer.hosted(tmp_path) as hosting:
        peer.says()
        seen = await hosting.prompt("Hello?")
        assert seen.state is TaskState.COMPLETED, seen.view
        (used,) = (await hosting.whole(seen.task_id)).view.models.values()
        assert (used.input_tokens > 0, used.output_tokens > 0) == (True, True)


@pytest.mark.skipif(not EVERYTHING, reason="`make agents` runs it")
async def test_whether_an_agent_takes_further_folders_is_known(peer: FileAgent, tmp_path: Path) -> None:
    async with peer.hosted(tmp_path) as hosting:
        work, beside = hosting.workspace / "work", hosting.workspace / "beside"
        for folder in (work, beside):
            folder.mkdir()
        peer.says()
        settings = {"workspace_path": str(work), "additional_directories": [str(beside)]}
        seen = await seen_of(hosting.agent, await hosting.agent.prompt(PromptMessage("Hello?", settings=settings)))
        assert (seen.state is TaskState.COMPLETED) == peer.agent.takes_folders, seen.view
        assert ("takes no further ones" in (seen.view.error or "")) != peer.agent.takes_folders


@pytest.mark.skipif(not EVERYTHING, reason="`make agents` runs it")
@pytest.mark.parametrize("settings", [False])
async def test_whether_an_agent_asks_by_itself_is_known(peer: FileAgent, tmp_path: Path) -> None:
    async with peer.hosted(tmp_path) as hosting:
        path = hosting.workspace / "new.txt"
        peer.changes(path, None, "one\n")
        seen = await hosting.prompt("Make a file.")
        asked, was_made = seen.state is TaskState.INPUT_REQUIRED, path.exists()
        assert (asked, was_made) == (not peer.agent.unasked, bool(peer.agent.unasked)), seen.view


@pytest.mark.skipif(not EVERYTHING, reason="`make agents` runs it")
@pytest.mark.parametrize("peer", ["qwen"], indirect=True)
async def test_qwen_code_reads_its_own_skills_outside_of_the_workspace(peer: FileAgent, tmp_path: Path) -> None:
    skill = Path(os.environ["HOME"], ".qwen", "skills", "knit", "SKILL.md")
    skill.parent.mkdir(parents=True)
    skill.write_text("Knit two, purl two.\n", encoding="utf-8")
    async with peer.hosted(tmp_path) as hosting:
        peer.reads(skill)
        seen = await hosting.prompt("Read it.")
        assert (seen.state, seen.text) == (TaskState.COMPLETED, "Done."), seen.view
    assert b"Knit two, purl two." in peer.requests[-1].body


async def change(peer: FileAgent, hosting: AcpHosting, kind: Kind, context: str | None) -> tuple[Seen, Row]:
    """Have the model make a change, answer the question, and return what happened."""
    path = hosting.workspace / kind.path
    if kind.before is not None:
        path.write_text(kind.before, encoding="utf-8")
    peer.changes(path, kind.before, kind.after)
    seen = await hosting.prompt(f"Change {kind.path}.", context)
    asked = None
    if seen.state is TaskState.INPUT_REQUIRED:
        request = seen.question.confirmation_request
        assert request is not None
        match request.details:
            case FileDiff(file_path=shown) as diff:
                assert shown == str(path)
                asked = (diff.old_content, diff.new_content)
            case ExecuteDetails(command):
                asked = command
            case other:
                raise AssertionError(other)
        assert (path.read_text(encoding="utf-8") if path.exists() else None) == kind.before
        if kind.meanwhile is not None:
            path.write_text(kind.meanwhile, encoding="utf-8")
        once = next(item.id for item in request.options if item.kind == "allow_once")
        seen = await hosting.answer(seen, once, kind.mine)
    on_disk = path.read_text(encoding="utf-8") if path.exists() else None
    calls = list(seen.view.calls.values())
    return seen, Row(asked, on_disk, calls[-1].call.status if calls else None, seen.state, seen.text)


def reason(seen: Seen) -> str:
    """Return the reason of the last call, if it failed."""
    calls = [view.call for view in seen.view.calls.values()]
    return calls[-1].error.message if calls and calls[-1].error is not None else ""
