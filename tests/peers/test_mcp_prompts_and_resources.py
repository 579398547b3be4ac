"""Prompts, resources and instructions of real MCP servers in the whole program: headless, in a terminal, over A2A."""

import functools
import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from isthmus.client import CommandMessage, CommandScope, PromptMessage
from isthmus.development_tool import CommandExecutionStatus, McpDetails, ToolCallConfirmation, ToolCallStatus
from isthmus.events import AgentEvent, StateChange, TaskState, TextContent, ToolCallUpdate
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS, InProcess
from support.loaded_program import LoadedProgram
from support.mcp_contents_harness import asked, contents_server
from support.mcp_hosting import everything_over, node_server, write_servers
from support.mcp_tools import are_connected
from support.programs import NODE_PEERS, node_package, require
from support.pty_program import PtyProgram
from support.serve_program import serve_program
from support.turns import events_of, events_of_command

pytestmark = pytest.mark.anyio

ECHO = """
name: echo
scenarios:
  - prompt: '.'
    replies:
      - text: 'You said: {{prompt}}'
"""
READING = """
name: reading
scenarios:
  - prompt: '.'
    replies:
      - call: {name: list_mcp_resources, arguments: {serverName: everything}}
      - call: {name: read_mcp_resource, arguments: {uri: 'demo://resource/dynamic/text/7'}}
      - text: done
"""
PROMPT = r"(?m)^\u203a ?$"
LONG = 60
"""Maximum seconds on a busy machine."""
HAIKU = (
    "Write a haiku{} called Gemini CLI. Note that a haiku is 5 syllables followed by 7 syllables followed by 5"
    " syllables"
)


def poems(keep: Path) -> dict[str, Any]:
    """Return the example server of Gemini CLI's MCP documentation; `keep` is the file with its calls."""
    node_package("@modelcontextprotocol/sdk")
    return {"command": str(require("node")), "args": [str(NODE_PEERS / "poem_server.mjs"), str(keep)]}


def everything() -> dict[str, Any]:
    return node_server("server-everything", "stdio")


def run(tmp_path: Path, workspace: Path, prompt: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "script.yaml").write_text(ECHO, encoding="utf-8")
    return subprocess.run(
        [*ISTHMUS, "-p", prompt, "-m", f"scripted:{tmp_path / 'script.yaml'}", "--no-ide", *arguments,
         "--data-dir", str(tmp_path / "data")],
        cwd=workspace, capture_output=True, text=True, encoding="utf-8", timeout=120, stdin=subprocess.DEVNULL,
    )  # fmt: skip


@pytest.fixture
def headless(tmp_path: Path, isthmus_here: InProcess) -> InProcess:
    """Return a function that runs a prompt as :func:`run` does, in this process."""
    (tmp_path / "script.yaml").write_text(ECHO, encoding="utf-8")
    options = ("-m", f"scripted:{tmp_path / 'script.yaml'}", "--no-ide", "--data-dir", str(tmp_path / "data"))
    return functools.partial(isthmus_here, *options, "-p")


def text_of(events: list[AgentEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextContent))


@pytest.mark.requirement("MCP-153", "MCP-154", "MCP-155", "MCP-156")
@pytest.mark.parametrize(
    ("typed", "mood"),
    [
        ('/poem-writer --title="Gemini CLI" --mood="reverent"', "reverent"),
        ('/poem-writer "Gemini CLI" reverent', "reverent"),
        ("/poem-writer --title 'Gemini CLI'", None),
    ],
)
def test_the_documents_example_runs_as_it_stands_there(
    isolated_folders: IsolatedFolders, tmp_path: Path, headless: InProcess, typed: str, mood: str | None
) -> None:
    write_servers(isolated_folders.home, {"nodeServer": poems(tmp_path / "calls")})
    status, said, problem = headless(typed)
    assert status == 0, problem
    assert HAIKU.format(f" with the mood {mood}" if mood else "") in said
    call = {"title": "Gemini CLI"} | ({"mood": mood} if mood else {})
    assert [json.loads(line) for line in (tmp_path / "calls").read_text().splitlines()] == [call]


@pytest.mark.requirement("MCP-152")
def test_headless_a_missing_argument_is_bad_input_and_names_the_usage(
    isolated_folders: IsolatedFolders, tmp_path: Path, headless: InProcess
) -> None:
    write_servers(isolated_folders.home, {"nodeServer": poems(tmp_path / "calls")})
    status, _, problem = headless("/poem-writer")
    assert status == 42
    assert "/poem-writer needs title - Usage: /poem-writer TITLE [MOOD]" in problem
    assert not (tmp_path / "calls").exists()


@pytest.mark.requirement("MCP-003")
def test_headless_a_resource_stands_behind_the_prompt(isolated_folders: IsolatedFolders, headless: InProcess) -> None:
    write_servers(isolated_folders.home, {"everything": everything()})
    status, said, problem = headless("Read @everything:demo://resource/static/document/features.md, please.")
    assert status == 0, problem
    assert "# Everything Server - Features" in said


def test_in_a_terminal_tab_completes_prompts_arguments_values_and_resources(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(isolated_folders.home, {"everything": everything()})
    (tmp_path / "script.yaml").write_text(ECHO, encoding="utf-8")
    command = ["-m", f"scripted:{tmp_path / 'script.yaml'}", "--no-ide", "--data-dir", str(tmp_path / "data")]
    with loaded_isthmus.terminal(*command, folder=workspace, environment=dict(os.environ), columns=120) as terminal:
        terminal.wait_for(PROMPT, LONG)
        for _ in range(8):
            with suppress(AssertionError):
                terminal.press("/help\r").wait_for("/completable-prompt").wait_for(PROMPT, LONG)
                break
        tab(terminal, "/comple", r"\u203a /completable-prompt")
        tab(terminal, " --dep", r"\u203a /completable-prompt --department=")
        tab(terminal, "Eng", r"\u203a /completable-prompt --department=Engineering")
        tab(terminal, " --name=", "--name=Alice.*--name=Charlie")
        tab(terminal, "Bo", r"\u203a /completable-prompt --department=Engineering --name=Bob")
        terminal.press("\r").wait_for("Please promote Bob to the head of the Engineering team", LONG).wait_for(
            PROMPT, LONG
        )
        tab(terminal, "See @every", r"\u203a See @everything:demo://resource/static/document/")
        tab(terminal, "fea", r"\u203a See @everything:demo://resource/static/document/features.md")
        # The output is longer than the screen, and may have scrolled everything else away.
        terminal.press("\r").wait_for("end of", LONG).wait_for(PROMPT, LONG)


def tab(terminal: PtyProgram, typed: str, pattern: str) -> None:
    """Type, and press Tab until the pattern matches: on a busy machine the server may answer too late."""
    terminal.press(typed)
    for _ in range(8):
        with suppress(AssertionError):
            terminal.press("\t").wait_for(pattern, 3)
            return
    terminal.wait_for(pattern, LONG)


@pytest.mark.requirement("MCP-151", "MCP-152", "MCP-155", "MCP-156")
async def test_over_a2a_prompts_are_listed_with_their_arguments_and_executed(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(isolated_folders.home, {"nodeServer": poems(tmp_path / "calls"), "everything": everything()})
    async with (
        serve_program(tmp_path, workspace, script=ECHO, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        scope = CommandScope(settings={"workspace_path": str(workspace)})
        await are_connected(agent, workspace, "nodeServer", "everything")
        tree = {command.name: command for command in await agent.commands(scope)}
        assert [(item.name, item.is_required) for item in tree["poem-writer"].arguments] == [
            ("title", True),
            ("mood", False),
        ]
        assert "Name of the city" in tree["args-prompt"].arguments[0].description
        run = await agent.execute(CommandMessage(("poem-writer",), '"Gemini CLI" --mood=reverent', scope))
        assert run.status is CommandExecutionStatus.STARTED
        events = await events_of_command(run)
        assert events[-1] == StateChange(TaskState.COMPLETED)
        assert HAIKU.format(" with the mood reverent") in text_of(events)
        refused = await agent.execute(CommandMessage(("poem-writer",), "", scope))
        assert refused.status is CommandExecutionStatus.FAILED_TO_START
        assert "Usage: /poem-writer TITLE [MOOD]" in (refused.message or "")
        run = await agent.execute(CommandMessage(("resource-prompt",), "Text 1", scope))
        assert "[resource demo://resource/dynamic/text/1]" in text_of(await events_of_command(run))
        one = {"workspace_path": str(workspace), "mcp_servers": [{"name": "nodeServer"}]}
        turn = await agent.prompt(PromptMessage("hello", settings=one))
        await events_of(turn)
        session = CommandScope(context_id=turn.context_id)
        listed = {item.name for item in await agent.commands(session)}
        assert listed & {"poem-writer", "args-prompt", "resource-prompt"} == {"poem-writer"}
        run = await agent.execute(CommandMessage(("resource-prompt",), "Text 1", session))
        assert run.status is CommandExecutionStatus.FAILED_TO_START
        assert len((tmp_path / "calls").read_text().splitlines()) == 1


@pytest.mark.requirement("MCP-003")
async def test_over_a2a_a_message_refers_to_resources_and_a_kill_does_not_read_them_again(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    notes = tmp_path / "notes"
    write_servers(isolated_folders.home, {"notes": contents_server(notes)})
    script = ECHO.replace(
        "- text: 'You said: {{prompt}}'", "- call: {name: run_shell_command, arguments: {command: ls}}"
    )
    async with (
        serve_program(tmp_path, workspace, script=script, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        await are_connected(agent, workspace, "notes")
        message = PromptMessage("See @notes:notes://today", settings={"workspace_path": str(workspace)})
        turn = await agent.prompt(message)
        events = await events_of(turn)
        assert events[-1] == StateChange(TaskState.INPUT_REQUIRED)
        calls = [event.tool_call for event in events if isinstance(event, ToolCallUpdate)]
        assert [call.status for call in calls if call.tool_name == "read_mcp_resource"][-1] is ToolCallStatus.SUCCEEDED
        asking = calls[-1].tool_call_id
        await server.end(signal.SIGKILL)
    async with (
        serve_program(tmp_path, workspace, script=script, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        answer = [ToolCallConfirmation(asking, "cancel")]
        events = await events_of(await agent.answer(turn.task_id, answer, answered_by="test"))
        assert isinstance(events[-1], StateChange)
        assert events[-1].state.is_terminal
    assert [method for method, _ in asked(notes)] == ["resources/read"]


async def test_over_a2a_the_model_lists_resources_freely_and_reads_them_with_permission(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    write_servers(isolated_folders.home, {"everything": everything()})
    async with (
        serve_program(tmp_path, workspace, script=READING, loaded=loaded_isthmus) as server,
        server.client() as agent,
    ):
        await are_connected(agent, workspace, "everything")
        turn = await agent.prompt(PromptMessage("go", settings={"workspace_path": str(workspace)}))
        events = await events_of(turn)
        assert events[-1] == StateChange(TaskState.INPUT_REQUIRED)
        calls = {e.tool_call.tool_name: e.tool_call for e in events if isinstance(e, ToolCallUpdate)}
        listed = calls["list_mcp_resources"]
        assert listed.status is ToolCallStatus.SUCCEEDED
        assert listed.output is not None
        assert "- everything: demo://resource/dynamic/text/{resourceId} (template)" in (listed.output.text or "")
        asks = calls["read_mcp_resource"]
        assert asks.confirmation_request is not None
        assert asks.confirmation_request.mcp_details == McpDetails("everything", "read_mcp_resource")
        answer = [ToolCallConfirmation(asks.tool_call_id, "proceed_always_server")]
        events = await events_of(await agent.answer(turn.task_id, answer, answered_by="test"))
        done = [e.tool_call for e in events if isinstance(e, ToolCallUpdate)][-1]
        assert done.output is not None
        assert "Resource 7: This is a plaintext resource" in (done.output.text or "")
        assert events[-1] == StateChange(TaskState.COMPLETED)


@pytest.mark.requirement("MCP-003")
async def test_over_a2a_a_client_refers_to_the_resources_of_its_own_server(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    with everything_over("streamableHttp") as port:
        theirs = {"name": "theirs", "url": f"http://127.0.0.1:{port}/mcp"}
        async with (
            serve_program(tmp_path, workspace, "--allow-client-mcp", script=ECHO, loaded=loaded_isthmus) as server,
            server.client() as agent,
        ):
            settings = {"workspace_path": str(workspace), "mcp_servers": [theirs]}
            text = "See @theirs:demo://resource/static/document/features.md"
            events = await events_of(await agent.prompt(PromptMessage(text, settings=settings)))
            assert "# Everything Server - Features" in text_of(events)
            assert events[-1] == StateChange(TaskState.COMPLETED)


async def test_a_server_that_starts_at_its_first_call_runs_a_prompt(
    isolated_folders: IsolatedFolders, tmp_path: Path, workspace: Path
) -> None:
    write_servers(isolated_folders.home, {"nodeServer": {**poems(tmp_path / "calls"), "lazy": True}})
    for _ in range(2):
        # The second time its list is known, and only the call starts it.
        ended = run(tmp_path, workspace, "/poem-writer 'Gemini CLI'")
        assert ended.returncode == 0, ended.stderr
        assert HAIKU.format("") in ended.stdout
    assert len((tmp_path / "calls").read_text().splitlines()) == 2
