"""Work of an agent in the worktree of a repository, with real git whose commands are counted."""

from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path

import pytest

from isthmus.agent.calls.suspended_calls import SuspendedCalls
from isthmus.agent.session.choices import Choices
from isthmus.agent.session.session import ReadSession, Session
from isthmus.agent.session.turn import AgentTurn
from isthmus.client import PromptMessage
from isthmus.development_tool import AgentSettings, SlashCommand, ToolCall, ToolCallStatus
from isthmus.engine import Engine, EngineOptions
from isthmus.engine.port.agents import GeneralCommandAgent
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.events import AgentEvent, StateChange, TaskState, ToolCallUpdate
from isthmus.journal.port.base import Journal
from isthmus.journal.sqlite.journal import SqliteJournal
from isthmus.parts.repositories.served import ServedRepositories
from isthmus.session_status import SessionStatus
from isthmus.slash_commands.tree import Completion
from support.engines import events
from support.git_repositories import SharedRepository, git
from support.programs import require
from support.turns import all_of

pytestmark = pytest.mark.anyio

Work = Callable[[Path], None]


class ScriptedAgent:
    """An agent that does these steps: the name of a tool, and what it does to the workspace."""

    def __init__(self, *steps: tuple[str, Work]) -> None:
        self.steps = steps
        self.suspended = SuspendedCalls()
        self.after: list[tuple[int, ...]] = []

    async def commands(self, workspace: Path, settings: AgentSettings | None, user: str = "") -> Sequence[SlashCommand]:
        return ()

    def general_commands(self) -> Sequence[SlashCommand]:
        return (SlashCommand("about", "Say what runs."), SlashCommand("init", "Write a file."))

    def needs_folder(self, path: Sequence[str]) -> bool:
        return tuple(path) != ("about",)

    async def complete(
        self, session: ReadSession, workspace: Path, settings: AgentSettings | None, line: str, user: str = ""
    ) -> Sequence[Completion]:
        return ()

    async def status(self, session: Session) -> SessionStatus:
        return SessionStatus()

    async def advance(self, turn: AgentTurn) -> StateChange:
        for number, (name, work) in enumerate(self.steps):
            work(Path(turn.session.workspace))
            call = ToolCall(f"c{number}", ToolCallStatus.SUCCEEDED, name, {})
            await turn.emit(ToolCallUpdate(call))
        return StateChange(TaskState.COMPLETED)


class CountedGit:
    """Folder with a git that writes down its commands."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.log = folder / "log"
        script = f'#!/bin/sh\necho "$*" >> {self.log}\nexec {require("git")} "$@"\n'
        (folder / "git").write_text(script, "utf-8")
        (folder / "git").chmod(0o755)
        self.path = str(folder)

    def take(self) -> list[str]:
        """Return the commands since the last call."""
        found = self.log.read_text("utf-8").splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return found


@pytest.fixture
def shared(tmp_path: Path) -> SharedRepository:
    return SharedRepository(tmp_path, SharedRepository.make_template(tmp_path / "template", {"a": "a\n"}))


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncGenerator[Journal]:
    opened = await SqliteJournal.open(tmp_path / "journal.sqlite")
    yield opened
    await opened.aclose()


def nothing(folder: Path) -> None:
    """Change nothing."""


async def commands_after_calls(
    shared: SharedRepository, journal: Journal, *steps: tuple[str, Work]
) -> list[tuple[str, list[str]]]:
    """Run an agent; return each tool's name with the commands of git that came before the event of its result."""
    counted = CountedGit(shared.folder / "counted")
    environment = {**shared.environment, "PATH": f"{counted.path}:{shared.environment['PATH']}"}
    served = ServedRepositories(shared.folder / "one", environment, {"app": shared.url()}, "a journal")
    seen: list[tuple[str, list[str]]] = []

    async def keep(event: AgentEvent) -> None:
        commands = counted.take()
        if isinstance(event, ToolCallUpdate):
            seen.append((event.tool_call.tool_name, commands))

    session = Session("session-1", choices=Choices(AgentSettings(workspace_path="/git:app")))
    await served.agent(ScriptedAgent(*steps), journal).advance(AgentTurn(session, keep))
    return seen


async def test_commands_before_a_session_has_a_folder_are_those_of_the_agent(
    shared: SharedRepository, journal: Journal
) -> None:
    served = ServedRepositories(shared.folder / "one", shared.environment, {"app": shared.url()}, "a journal")
    agent = served.agent(ScriptedAgent(), journal)
    assert isinstance(agent, GeneralCommandAgent)
    assert [(command.name, agent.needs_folder((command.name,))) for command in agent.general_commands()] == [
        ("about", False),
        ("init", True),
    ]


async def test_a_call_that_reads_takes_no_command_of_git(shared: SharedRepository, journal: Journal) -> None:
    names = ("read_file", "list_directory", "glob", "grep_search", "read_many_files")
    assert await commands_after_calls(shared, journal, *((name, nothing) for name in names)) == [
        (name, []) for name in names
    ]


async def test_a_call_that_changes_nothing_takes_one_command_of_git(shared: SharedRepository, journal: Journal) -> None:
    def write(folder: Path) -> None:
        (folder / "b").write_text("b", "utf-8")

    seen = await commands_after_calls(
        shared, journal, ("write_file", write), ("run_shell_command", nothing), ("mcp_tool", nothing)
    )
    counts = [len(commands) for _, commands in seen]
    assert counts[0] > 4
    assert counts[1:] == [1, 1]


@pytest.mark.parametrize("how", ["changed", "same size", "removed", "mode", "committed", "amended", "other branch"])
async def test_each_change_is_kept_after_its_call(shared: SharedRepository, journal: Journal, how: str) -> None:
    kept: list[str] = []

    def begin(folder: Path) -> None:
        (folder / "b").write_text("one", "utf-8")
        git(folder, "add", "b")
        git(folder, "commit", "-qm", "by the agent")

    def change(folder: Path) -> None:
        kept.append(git(shared.bare, "rev-parse", "refs/isthmus/sessions/session-1"))
        match how:
            case "changed":
                (folder / "b").write_text("later", "utf-8")
            case "same size":
                (folder / "b").write_text("two", "utf-8")
            case "removed":
                (folder / "b").unlink()
            case "mode":
                (folder / "b").chmod(0o755)
            case "committed":
                git(folder, "commit", "-q", "--allow-empty", "-m", "nothing")
            case "amended":
                git(folder, "commit", "-q", "--amend", "-m", "better said")
            case _:
                git(folder, "checkout", "-q", "--detach", "HEAD~1")

    def look(folder: Path) -> None:
        kept.append(git(shared.bare, "rev-parse", "refs/isthmus/sessions/session-1"))

    steps: tuple[tuple[str, Work], ...] = (("run_shell_command", begin), ("run_shell_command", change), ("glob", look))
    await commands_after_calls(shared, journal, *steps)
    assert kept[0] != kept[1]


async def test_a_repository_that_cannot_be_reached_is_one_line_of_the_log(
    shared: SharedRepository, journal: Journal, caplog: pytest.LogCaptureFixture
) -> None:
    shared.bare.rename(shared.bare.with_name("away.git"))
    served = ServedRepositories(shared.folder / "one", shared.environment, {"app": shared.url()}, "a journal")
    rule = WorkspaceRule(repositories=served.workspaces)
    engine = Engine(served.agent(ScriptedAgent(), journal), journal, EngineOptions(rule))
    await engine.start()
    turn = await engine.prompt(PromptMessage("go", settings={"workspace_path": "/git:app"}))
    end = events(await all_of(turn))[-1]
    await engine.aclose()
    assert isinstance(end, StateChange)
    assert "cannot be opened: the repository file:" in (end.error or "")
    (record,) = (each for each in caplog.records if each.name.startswith("isthmus.") and each.levelname == "ERROR")
    assert (record.exc_info, "\n" in record.getMessage()) == (None, False)
    assert record.getMessage().endswith(f": {end.error}")
