"""Commands, hooks and MCP servers that a served repository brings: only where its folder itself is trusted."""

import asyncio
import json
from pathlib import Path

import pytest

from isthmus.a2a.client.remote_agent import RemoteAgent
from isthmus.client import CommandMessage, CommandScope, PromptMessage
from isthmus.events import StateChange, TaskState, TextContent
from isthmus.slash_commands.tree import find
from support.git_repositories import SharedRepository
from support.loaded_program import LoadedProgram
from support.serve_program import ServeProgram, serve_program

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]

SCRIPT = """
name: practice
scenarios:
  - prompt: 'read'
    replies:
      - call: {name: read_file, arguments: {file_path: '{{workspace}}/README'}}
      - text: I have read it.
  - prompt: '.'
    replies:
      - text: 'You said: {{prompt}}'
"""
COMMAND = ("team", "greet")
SETTINGS = {"workspace_path": "/git:app"}


@pytest.fixture
def repository(tmp_path: Path) -> SharedRepository:
    """Return a repository that brings a command, a hook and an MCP server; these leave marks when they run."""
    hook = {"hooks": [{"type": "command", "command": f"touch {tmp_path}/hook-ran"}]}
    server = {"command": "touch", "args": [f"{tmp_path}/server-ran"]}
    files = {
        "README": "Read me.\n",
        ".gemini/commands/team/greet.toml": 'description = "Greets"\nprompt = "Greet {{args}} from the team."\n',
        ".gemini/settings.json": json.dumps({"hooks": {"BeforeTool": [hook]}, "mcpServers": {"theirs": server}}),
    }
    return SharedRepository(tmp_path, SharedRepository.make_template(tmp_path / "template", files))


def trust(folder: Path, rule: str) -> None:
    path = Path.home() / ".gemini" / "trustedFolders.json"
    path.parent.mkdir(exist_ok=True)
    rules: dict[str, str] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**rules, str(folder): rule}), "utf-8")


async def ended(agent: RemoteAgent, task: str) -> str:
    """Return the text of a task at its end, with that state."""
    text = ""
    async with asyncio.timeout(60):
        async for item in (await agent.follow(task, 0)).deliveries:
            if isinstance(item.event, TextContent):
                text += item.event.text
            if isinstance(item.event, StateChange) and item.event.state.is_terminal:
                assert item.event.state is TaskState.COMPLETED, item.event
                return text
    raise AssertionError(f"the stream ended: {text}")


async def offered(program: ServeProgram, session: str | None) -> bool:
    async with program.client() as agent:
        return find(COMMAND, await agent.commands(CommandScope(context_id=session, settings=SETTINGS))) is not None


async def test_a_repository_brings_commands_and_programs_only_where_its_folder_is_trusted(
    tmp_path: Path, repository: SharedRepository, loaded_isthmus: LoadedProgram
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    trust(tmp_path, "TRUST_FOLDER")  # also around the data folder, which says nothing about repositories
    options = ("--repository", f"app=git+file://{repository.bare}")
    marks = [tmp_path / "hook-ran", tmp_path / "server-ran"]
    async with (
        serve_program(tmp_path, work, *options, script=SCRIPT, loaded=loaded_isthmus) as program,
        program.client() as agent,
    ):
        turn = await agent.prompt(PromptMessage("read", settings=SETTINGS))
        session = (await agent.get(turn.task_id)).context_id
        assert "I have read it." in await ended(agent, turn.task_id)
        assert not await offered(program, session)
        scope = CommandScope(context_id=session, settings=SETTINGS)
        refused = await agent.execute(CommandMessage(COMMAND, "Ada", scope))
        assert "There is no command /team greet" in str(refused.message)
        helping = await agent.execute(CommandMessage(("help",), "", scope))
        assert helping.turn is not None
        assert "greet" not in await ended(agent, helping.turn.snapshot.task_id)
        assert [mark.exists() for mark in marks] == [False, False]

        (mirror,) = (tmp_path / "data" / "repositories").glob("shared-*")
        trust(mirror, "TRUST_FOLDER")
        assert await offered(program, session)
        assert not await offered(program, None)
        assert not await offered(program, "another session")
        greeting = await agent.execute(CommandMessage(COMMAND, "Ada", scope))
        assert greeting.turn is not None
        assert "You said: Greet Ada from the team." in await ended(agent, greeting.turn.snapshot.task_id)
        again = await agent.prompt(PromptMessage("read", context_id=session, settings=SETTINGS))
        await ended(agent, again.task_id)
        assert [mark.exists() for mark in marks] == [True, True]

        trust(mirror / "worktrees" / session, "DO_NOT_TRUST")
        assert not await offered(program, session)
