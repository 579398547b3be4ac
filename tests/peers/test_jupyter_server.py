"""A companion beside a real Jupyter server: discovery, the context that agents see, reviews, terminals."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from isthmus.cli.plugin import plugins_folder
from isthmus.editors.jupyter import editor as jupyter
from isthmus.editors.jupyter.finding import KernelAddress, find, running_servers
from isthmus.editors.jupyter_extension import starts_companion
from isthmus.ide.editor import Capability, ContextChanged, EditorError, EditorGoneError, NotAvailableError
from isthmus.ide.options import CompanionOptions
from support.claude_cli import claude_cli
from support.companion import attached_agent, running_host
from support.isthmus_program import CompanionProgram, process_ends, user
from support.jupyter import TOKEN, RunningJupyter, running_jupyter, shared_jupyter
from support.review_page import visiting
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_EXTENSION = "--ServerApp.jpserver_extensions={'isthmus.editors.jupyter_extension': True}"


@pytest.fixture
async def server(workspace: Path) -> AsyncGenerator[RunningJupyter]:
    async with shared_jupyter(workspace) as server:
        yield server


def _notebook(path: Path, *sources: str) -> Path:
    cells = [
        {"cell_type": "code", "execution_count": 1, "id": f"cell-{number}", "metadata": {"n": number},
         "outputs": [{"output_type": "stream", "name": "stdout", "text": [f"output {number}\n"]}], "source": [source]}
        for number, source in enumerate(sources)
    ]  # fmt: skip
    notebook = {"cells": cells, "metadata": {"k": "v"}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(notebook, indent=1), encoding="utf-8")
    return path


async def test_the_server_of_the_workspace_is_found_by_its_file(server: RunningJupyter, workspace: Path) -> None:
    assert find(None, (str(workspace),), server.environment) == server.address
    assert [found.pid for found in running_servers(server.environment)] == [server.process.pid]
    name = Path(server.file).name
    assert find(name, (), server.environment) == server.address
    assert find(f"{server.address.url}lab/tree/a.ipynb?token={TOKEN}", (), server.environment) == server.address


async def test_what_cannot_be_found_is_told_with_what_was_found_and_what_to_do(
    server: RunningJupyter, workspace: Path
) -> None:
    with pytest.raises(EditorError, match=r"no running Jupyter server has the files of /usr; running servers: http"):
        find(None, ("/usr",), server.environment)
    with pytest.raises(EditorError, match=r"expected the URL of a Jupyter server .* or an existing jpserver"):
        find("nothing.json", (), server.environment)
    with pytest.raises(EditorError, match=r"name the folder with --workspace"):
        find("http://127.0.0.1:1/", (), server.environment)
    kernel = workspace / "kernel-1.json"
    kernel.write_text('{"shell_port": 1}', encoding="utf-8")
    assert find(str(kernel), (), server.environment) == KernelAddress(str(kernel))


async def test_a_wrong_token_and_a_server_that_is_not_there_are_told(server: RunningJupyter, workspace: Path) -> None:
    with pytest.raises(EditorError, match="refused the token"):
        await jupyter.attach(f"{server.address.url}?token=wrong", (str(workspace),))
    with pytest.raises(EditorGoneError, match="no Jupyter server answers"):
        await jupyter.attach("http://127.0.0.1:9/?token=x", (str(workspace),))


async def test_agents_see_the_notebooks_of_the_workspace_and_hear_of_new_ones(
    server: RunningJupyter, workspace: Path
) -> None:
    first = _notebook(workspace / "one.ipynb", "1")
    outside = _notebook(workspace.parent / "outside.ipynb", "1")
    await server.open(first)
    await server.open(outside)
    editor = await jupyter.attach(server.file, (str(workspace),), poll_seconds=0.1)
    events = editor.changes()
    assert [(file.path, file.is_active) for file in await editor.open_files()] == [(str(first), True)]
    second = _notebook(workspace / "two.ipynb", "1")
    await server.open(second)
    assert await asyncio.wait_for(anext(events), 30) == ContextChanged()

    async def seen() -> bool:
        return {file.path: file.is_active for file in await editor.open_files()} == {
            str(first): False,
            str(second): True,
        }

    await eventually_async(seen, what="the second notebook has the focus")
    await editor.aclose()


_PROPOSAL = ("a = 10", "b = 20", "c = 30")


async def test_one_accepted_cell_of_three_reaches_the_agent_with_all_else_unchanged(
    server: RunningJupyter, workspace: Path
) -> None:
    path = _notebook(workspace / "a.ipynb", "a = 1", "b = 2", "c = 3")
    old = path.read_text(encoding="utf-8")
    proposed = (
        _notebook(workspace / "proposed.json", *_PROPOSAL).read_text(encoding="utf-8").replace('"output ', '"no ')
    )
    await server.open(path)
    editor = await jupyter.attach(server.file, (str(workspace),), poll_seconds=0.1)
    async with running_host(editor, CompanionOptions(allow_agent_accept=True)) as (_, ready, _task):
        discovered = json.loads(Path(ready.discovery_file).read_text(encoding="utf-8"))
        async with attached_agent(f"http://127.0.0.1:{ready.port}/mcp", discovered["authToken"]) as agent:
            await agent.sees(path=str(path))
            await agent.open_diff(path, proposed)
            [diff] = (await user("diffs", folder=workspace))["diffs"]
            assert diff["file"] == str(path)
            await user("accept", str(path), "--cells", "2", folder=workspace)
            accepted = await agent.notified("ide/diffAccepted")
            assert accepted["content"] != old
            assert accepted["content"] == old.replace("b = 2", "b = 20").replace("output 1", "no 1")

            await agent.open_diff(path, proposed)
            page = (await user("diffs", folder=workspace))["page"]
            async with visiting(page) as visitor:
                [link] = [link for link in (await visitor.overview()).links if "/review/" in link]
                form = (await visitor.get(link)).forms[0]
                del form.fields["change-1"], form.fields["change-2"]
                await visitor.submit(form, "accept")
            accepted = await agent.notified("ide/diffAccepted", 2)
            assert accepted["content"] == old.replace("c = 3", "c = 30").replace("output 2", "no 2")
    assert path.read_text(encoding="utf-8") == old


@pytest.fixture(scope="module")
async def extended(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RunningJupyter]:
    """Start a server with the extension; each test has a variable of the server to itself."""
    folder = tmp_path_factory.mktemp("extended")
    variables = {"FIRST": "own", "SECOND": "own"}
    async with running_jupyter(folder, _EXTENSION, "--Isthmus.companion=False", **variables) as server:
        yield server


async def _says(server: RunningJupyter, command: str) -> str:
    """Return the output of a command in a new terminal of Jupyter."""
    name = (await server.request("POST", "api/terminals"))["name"]
    url = f"{server.address.url.replace('http', 'ws', 1)}terminals/websocket/{name}"
    headers = {"authorization": f"token {TOKEN}"}
    async with connect(url, additional_headers=headers, open_timeout=60, proxy=None) as socket, asyncio.timeout(60):
        typed = json.dumps(["stdin", f'echo "<<$({command})>>"\r'])
        await socket.send(typed)
        shown = ""
        while (found := re.search(r"<<([^$]*?)>>", shown)) is None:
            try:
                kind, *rest = json.loads(await asyncio.wait_for(socket.recv(), 5))
            except TimeoutError:
                await socket.send(typed)  # text typed before the shell runs can be lost
                continue
            shown += str(rest[0]) if kind == "stdout" else ""
        # Not DELETE: Jupyter waits after every signal for the end of the shell, and reports only an end in time.
        await socket.send(json.dumps(["stdin", "exit\r"]))
    return found[1]


@pytest.mark.extended
@pytest.mark.timeout(300)
async def test_terminals_opened_in_jupyter_have_the_variables_of_the_companion(extended: RunningJupyter) -> None:
    editor = await jupyter.attach(extended.file)
    assert Capability.TERMINAL not in editor.unavailable
    async with running_host(editor, CompanionOptions()) as (_, ready, _task):
        [gemini] = [found for found in ready.servers if found.name == "gemini"]

        async def has_it() -> list[str]:
            said = (
                await _says(extended, "echo $FIRST $ENABLE_IDE_INTEGRATION $GEMINI_CLI_IDE_SERVER_PORT $NO_PROXY")
            ).split()
            assert said[1:3] == ["true", str(gemini.port)]
            return said

        first, *_, exceptions = await eventually_async(has_it, 120, what="a terminal has the port")
        assert first == "own"
        assert "127.0.0.1" in exceptions.split(",")

    assert await _says(extended, "echo $GEMINI_CLI_IDE_SERVER_PORT") == ""


@pytest.mark.parametrize(
    ("arguments", "starts"),
    [
        ([], True),
        (["--Isthmus.companion=True"], True),
        (["--Isthmus.companion=False"], False),
        (["--Isthmus.companion=0"], False),
    ],
)
def test_a_companion_starts_with_the_server_unless_it_is_told_not_to(arguments: list[str], starts: bool) -> None:
    from jupyter_server.serverapp import ServerApp

    app = ServerApp()
    app.parse_command_line(arguments)
    assert starts_companion(app) is starts
    app.config.Isthmus.companion = False  # as in a configuration file
    assert not starts_companion(app)


async def test_variables_that_are_taken_away_show_again_what_the_server_has(extended: RunningJupyter) -> None:
    editor = await jupyter.attach(extended.file)
    await editor.set_terminal_environment({"SECOND": "ours", "NEW": "x y"})
    assert await _says(extended, "echo $SECOND-$NEW") == "ours-x y"
    await editor.set_terminal_environment({"SECOND": None, "NEW": None})
    assert await _says(extended, "echo $SECOND-$NEW") == "own-"
    await editor.set_terminal_environment({"SECOND": None})
    assert await _says(extended, "echo $SECOND-$NEW") == "-"
    with pytest.raises(EditorError, match="400"):
        await editor.set_terminal_environment({"A=B": "x"})
    await editor.aclose()


async def test_what_a_browser_has_open_is_seen_and_is_read_again(extended: RunningJupyter) -> None:
    folder = Path(extended.address.root)
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text("old\n")
    url = f"{extended.address.url.replace('http', 'ws', 1)}isthmus/documents/browser"
    headers = {"authorization": f"token {TOKEN}"}
    with pytest.raises(InvalidStatus, match="403"):
        await connect(url, proxy=None)
    editor = await jupyter.attach(extended.file, (str(folder),), poll_seconds=0.1)
    async with connect(url, additional_headers=headers, proxy=None) as browser:
        await browser.send(json.dumps({"documents": ["a.txt", "b.txt", "gone.txt"], "current": "b.txt"}))

        async def is_seen() -> bool:
            found = {file.path: file.is_active for file in await editor.open_files()}
            return found == {str(folder / "a.txt"): False, str(folder / "b.txt"): True}

        await eventually_async(is_seen, what="the documents of the browser")
        async with running_host(editor, CompanionOptions()), claude_cli(folder):
            assert json.loads(await asyncio.wait_for(browser.recv(), 30)) == {"reload": ["b.txt", "a.txt"]}
            (folder / "a.txt").write_text("a new text\n")
            assert json.loads(await asyncio.wait_for(browser.recv(), 30)) == {"reload": ["a.txt"]}
    with pytest.raises(AssertionError, match=r"400.*list of paths"):
        await extended.request("PUT", "isthmus/documents", {"reload": "a.txt"})


async def test_without_the_extension_the_reason_names_it(server: RunningJupyter, workspace: Path) -> None:
    editor = await jupyter.attach(server.file, (str(workspace),))
    with pytest.raises(
        NotAvailableError, match=r"extension isthmus\.editors\.jupyter_extension.*isthmus plugin jupyter"
    ):
        await editor.set_terminal_environment({"NAME": "value"})
    with pytest.raises(NotAvailableError, match=r"choose File, Reload from Disk there, or enable it"):
        await editor.reload([str(workspace / "a.ipynb")])
    await editor.aclose()


@pytest.mark.timeout(300)
async def test_the_enabled_extension_starts_a_companion_and_any_ends_with_the_server(
    workspace: Path,
) -> None:
    configuration = workspace.parent / "jupyter"
    (configuration / "jupyter_server_config.d").mkdir(parents=True)
    shutil.copy(plugins_folder() / "jupyter" / "isthmus.json", configuration / "jupyter_server_config.d")
    async with running_jupyter(workspace, JUPYTER_CONFIG_DIR=str(configuration)) as server:

        async def has_it() -> bool:
            return (await _says(server, "echo $ENABLE_IDE_INTEGRATION")) == "true"

        await eventually_async(has_it, 90, what="the companion runs and has set the variables")
        [control] = Path(server.environment["TMPDIR"]).glob("isthmus-*/companion-*.json")
        companion = json.loads(control.read_text(encoding="utf-8"))
        assert companion["workspace_folders"] == [str(workspace)]
        editor = await jupyter.attach(server.file, poll_seconds=0.1)
        assert await editor.workspace_folders() == (str(workspace),)
        async with running_host(editor, CompanionOptions()) as (_, _ready, by_hand):
            await asyncio.to_thread(server.end)
            await asyncio.wait_for(asyncio.shield(by_hand), 60)
        with pytest.raises(EditorGoneError, match="does not answer any more"):
            await editor.execute_code("1")
        await asyncio.to_thread(process_ends, companion["pid"])


async def test_the_program_serves_the_jupyter_server_that_runs_for_the_folder(
    server: RunningJupyter, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", server.environment["JUPYTER_RUNTIME_DIR"])
    path = _notebook(workspace / "a.ipynb", "1")
    await server.open(path)
    command = [sys.executable, "-m", "isthmus", "companion", "--editor", "jupyter", "--workspace", ".", "--json"]
    process = subprocess.Popen(
        command, cwd=workspace, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, encoding="utf-8",
    )  # fmt: skip
    with process:
        try:
            companion = await asyncio.to_thread(CompanionProgram, process)
            assert companion.ready["editor"] == "jupyter"
            assert companion.ready["workspace_folders"] == [str(workspace)]
            status = await user("status", folder=workspace)
            assert status["editor"] == {"name": "jupyter", "display_name": "Jupyter", "pid": server.process.pid}
            files = status["context"]["workspaceState"]["openFiles"]
            assert [file["path"] for file in files] == [str(path)]
        finally:
            process.terminate()
            await asyncio.to_thread(process.wait, 30)
