"""The real Gemini CLI in IDE mode, with ``isthmus companion`` as its IDE."""

import asyncio
import signal
from pathlib import Path

import pytest

from support.editor_tree import below_editor
from support.extended import first_of
from support.gemini_cli import SECONDS, SETTINGS, GeminiCli, gemini_cli
from support.isolation import IsolatedFolders
from support.isthmus_program import ISTHMUS, companion_program, isthmus, user, would_choose
from support.neovim import RunningNeovim, running_neovim, view_is_closed
from support.programs import NODE_PEERS
from support.scripted_wire import Call
from support.waiting import eventually_async

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

BEFORE = "one\ntwo\nthree\n"
PROPOSED = "one\nTWO\nthree\n"


def write_file(path: Path, content: str = PROPOSED) -> Call:
    return Call("write_file", {"file_path": str(path), "content": content})


def replace(path: Path, old: str = "two", new: str = "TWO") -> Call:
    arguments = {"file_path": str(path), "old_string": old, "new_string": new, "instruction": "Shout."}
    return Call("replace", arguments)


async def proposal_is_shown(neovim: RunningNeovim, text: str = PROPOSED) -> None:
    async def shown() -> bool:
        return await neovim.tabs() == 2 and await neovim.lines() == text.splitlines()

    await eventually_async(shown, what="the proposal in a tab page of Neovim")


@pytest.fixture
def files(workspace: Path) -> tuple[Path, Path]:
    paths = workspace / "a.py", workspace / "b.py"
    for path in paths:
        path.write_text(BEFORE, encoding="utf-8")
    return paths


@pytest.mark.requirement("GEM-006", "GEM-016", "GEM-061", "GEM-066")
async def test_the_cli_finds_the_companion_and_its_edits_are_answered_across_a_restart(
    workspace: Path, files: tuple[Path, Path]
) -> None:
    (workspace / "c.py").touch()
    with companion_program(workspace, "--open", "a.py:2:3") as companion:
        async with gemini_cli(workspace) as cli:
            assert "Connected to Isthmus (headless)" in await cli.status()
            await _selections_reach_the_model(cli, workspace, files)
            await _edits_are_accepted_changed_and_rejected(cli, workspace, files)
            await asyncio.to_thread(companion.end, signal.SIGTERM)
            with companion_program(workspace, *("--open", "a.py", "--open", "b.py", "--open", "c.py")) as again:
                assert again.ready["port"] == companion.ready["port"]
                await cli.sees_files(3)
                assert "Connected to Isthmus (headless)" in await cli.status()
                await cli.propose(write_file(files[0], "again\n"), "Accepted again, I see.")
                await user("diffs", "--wait", "60", folder=workspace)
                await user("accept", "a.py", "--content", "-", folder=workspace, text="reviewed again\n")
                await cli.shows("Accepted again, I see.")
                assert files[0].read_text(encoding="utf-8") == "reviewed again\n"


async def _selections_reach_the_model(cli: GeminiCli, workspace: Path, files: tuple[Path, Path]) -> None:
    a, b = files
    active = {"path": str(a), "cursor": {"line": 2, "character": 3}}
    assert await cli.ask("first") == {"activeFile": active}
    await user("select", "b.py:1:2-2:3", folder=workspace)
    await cli.sees_files(2)
    changes = {
        "filesOpened": [str(b)],
        "activeFileChanged": {
            "path": str(b),
            "cursor": {"line": 2, "character": 3},
            "selectedText": "ne\ntw",
        },
    }
    assert await cli.ask("second") == {"changes": changes}


async def _edits_are_accepted_changed_and_rejected(cli: GeminiCli, workspace: Path, files: tuple[Path, Path]) -> None:
    a, b = files
    await cli.propose(write_file(a), "Accepted, I see.")
    (shown,) = (await user("diffs", "--wait", "60", folder=workspace))["diffs"]
    assert (shown["file"], shown["new_content"]) == (str(a), PROPOSED)
    await user("accept", "a.py", folder=workspace)
    await cli.shows("Accepted, I see.")
    assert a.read_text(encoding="utf-8") == PROPOSED

    await cli.propose(replace(b), "Changed, I see.")
    await user("diffs", "--wait", "60", folder=workspace)
    await user("accept", "b.py", "--content", "-", folder=workspace, text="reviewed\n")
    await cli.shows("Changed, I see.")
    assert b.read_text(encoding="utf-8") == "reviewed\n"
    assert "modified the `new_string` content to be: reviewed\n" in cli.tool_response()["output"]

    await cli.propose(write_file(b, "mine\n"), "Written, I see.")
    await user("diffs", "--wait", "60", folder=workspace)
    b.write_text("theirs\n", encoding="utf-8")
    refused = await asyncio.to_thread(isthmus, "ide", "accept", "b.py", folder=workspace)
    assert refused.returncode != 0
    assert "has changed on disk while its review was open" in refused.stderr
    assert b.read_text(encoding="utf-8") == "theirs\n"
    (shown,) = (await user("diffs", folder=workspace))["diffs"]
    assert shown["new_content"] == "mine\n"
    await user("accept", "b.py", folder=workspace)
    await cli.shows("Written, I see.")
    assert b.read_text(encoding="utf-8") == "mine\n"

    await cli.propose(write_file(a, "worse\n"))
    await user("diffs", "--wait", "60", folder=workspace)
    await user("reject", "a.py", folder=workspace)
    await cli.shows("Rejected")
    assert a.read_text(encoding="utf-8") == PROPOSED
    assert (await user("diffs", folder=workspace))["diffs"] == []


@pytest.mark.extended
@pytest.mark.requirement("GEM-037", "GEM-063", "GEM-074", "GEM-082")
async def test_the_cli_knows_the_neovim_position_and_its_edits_are_answered_in_either(
    workspace: Path, files: tuple[Path, Path]
) -> None:
    async with running_neovim(workspace, str(files[0])) as neovim:
        with companion_program(workspace, "--editor", "nvim", "--address", neovim.address):
            async with gemini_cli(workspace) as cli:
                assert "Connected to Neovim" in await cli.status()
                await _what_the_user_does_reaches_the_model(cli, neovim, workspace, files)
                await _edits_are_accepted_changed_and_rejected_in_neovim(cli, neovim, files)
                await _an_answer_in_the_cli_closes_the_view_and_keeps_what_was_typed_there(cli, neovim, files)


async def _what_the_user_does_reaches_the_model(
    cli: GeminiCli, neovim: RunningNeovim, workspace: Path, files: tuple[Path, Path]
) -> None:
    a, b = files
    c = workspace / "c.py"
    c.touch()
    await neovim.type("jl")
    # The cursor is not visible in the CLI; a file that is opened after it is.
    await user("open", "--background", "b.py", folder=workspace)
    await cli.sees_files(2)
    assert await cli.ask("first") == {
        "activeFile": {"path": str(a), "cursor": {"line": 2, "character": 2}},
        "otherOpenFiles": [str(b)],
    }
    await neovim.type("viw")
    await user("open", "--background", "c.py", folder=workspace)
    await cli.sees_files(3)
    changes = (await cli.ask("second"))["changes"]
    assert changes["selectionChanged"] == {"path": str(a), "selectedText": "two"}
    assert changes["filesOpened"] == [str(c)]
    await neovim.type("<Esc>")


async def _edits_are_accepted_changed_and_rejected_in_neovim(
    cli: GeminiCli, neovim: RunningNeovim, files: tuple[Path, Path]
) -> None:
    a, b = files
    await cli.propose(write_file(a), "Accepted, I see.")
    await proposal_is_shown(neovim)
    await neovim.type(":w<CR>")
    await cli.shows("Accepted, I see.")
    assert a.read_text(encoding="utf-8") == PROPOSED
    await view_is_closed(neovim)

    await cli.propose(replace(b), "Changed, I see.")
    await proposal_is_shown(neovim)
    await neovim.type("Goreviewed<Esc>:w<CR>")
    await cli.shows("Changed, I see.")
    assert b.read_text(encoding="utf-8") == PROPOSED + "reviewed\n"
    assert f"content to be: {PROPOSED}reviewed\n" in cli.tool_response()["output"]
    await view_is_closed(neovim)

    d = a.with_name("d.py")
    d.write_text(BEFORE, encoding="utf-8")
    await cli.propose(write_file(d, "mine\n"), "Written, I see.")
    await proposal_is_shown(neovim, "mine\n")
    d.write_text("theirs\n", encoding="utf-8")
    await neovim.type(":w<CR>")
    await eventually_async(lambda: neovim.has_message("has changed on disk"), what="the message")
    await proposal_is_shown(neovim, "mine\n")
    assert d.read_text(encoding="utf-8") == "theirs\n"
    await neovim.type(":w<CR>")
    await cli.shows("Written, I see.")
    assert d.read_text(encoding="utf-8") == "mine\n"
    await view_is_closed(neovim)

    await cli.propose(write_file(a, "worse\n"))
    await proposal_is_shown(neovim, "worse\n")
    await neovim.type(":q<CR>")
    await cli.shows("Rejected")
    assert a.read_text(encoding="utf-8") == PROPOSED
    await view_is_closed(neovim)


async def _an_answer_in_the_cli_closes_the_view_and_keeps_what_was_typed_there(
    cli: GeminiCli, neovim: RunningNeovim, files: tuple[Path, Path]
) -> None:
    a, b = files
    before = b.read_text(encoding="utf-8")
    await cli.propose(write_file(a, "allowed\n"), "Allowed, I see.")
    await proposal_is_shown(neovim, "allowed\n")
    await neovim.type("Gotyped, not written")
    await cli.choose("Allow once")
    await cli.shows("Allowed, I see.")
    assert a.read_text(encoding="utf-8") == "allowed\ntyped, not written\n"
    await view_is_closed(neovim)
    assert await neovim.mode() == "n"

    await cli.propose(replace(b, "TWO", "2"))
    await proposal_is_shown(neovim, before.replace("TWO", "2"))
    await cli.choose("No, suggest changes")
    await eventually_async(lambda: cli.terminal.screen.count("Rejected") > 1, SECONDS, what="rejected once more")
    assert b.read_text(encoding="utf-8") == before
    await view_is_closed(neovim)


@pytest.mark.extended
@pytest.mark.requirement("GEM-029", "GEM-084", "GEM-086", "GEM-087")
async def test_the_cli_is_started_together_with_a_companion_that_ends_with_it(
    workspace: Path, files: tuple[Path, Path], isolated_folders: IsolatedFolders
) -> None:
    a, _ = files
    fresh = {key: values for key, values in SETTINGS.items() if key != "ide"}  # /ide enable was not used
    command = (*ISTHMUS, "companion", "exec", "--")
    question = "Do you want to connect Isthmus (web) to Gemini CLI?"
    async with gemini_cli(workspace, *command, files=0, settings=fresh, first=question) as cli:
        assert b"answer No: Yes looks for an extension to install" in cli.terminal.received
        assert b"Review its edits in your browser: http://127.0.0.1:" in cli.terminal.received
        await cli.choose("No (esc)")
        await cli.type("/ide enable", "Enable IDE integration")
        await user("open", "a.py:3", folder=workspace)
        await cli.sees_files(1)
        assert "Connected to Isthmus (web)" in await cli.status()
        await cli.propose(write_file(a), "Allowed, I see.")
        assert len((await user("diffs", "--wait", "60", folder=workspace))["diffs"]) == 1
        # Its own question takes no answer of an edit until it is restarted with IDE mode on.
        await user("accept", "a.py", folder=workspace)
        await cli.shows("Allowed, I see.")
        assert a.read_text(encoding="utf-8") == PROPOSED
        assert (await user("diffs", folder=workspace))["diffs"] == []
        (discovery_file,) = (isolated_folders.temporary / "gemini" / "ide").iterdir()
        await cli.type("/quit")
        await eventually_async(lambda: cli.terminal.process.poll() is not None, SECONDS, what="the CLI has ended")
        await eventually_async(lambda: not discovery_file.exists(), SECONDS, what="the companion has ended")


@pytest.mark.requirement("GEM-007", "GEM-019")
async def test_the_cli_takes_its_editors_companion_and_asks_in_the_terminal_without_diffs(
    workspace: Path, files: tuple[Path, Path]
) -> None:
    a, _ = files
    with (
        companion_program(workspace, "--open", "a.py", "--no-diff") as editors,
        companion_program(workspace, "--open", "b.py"),
    ):
        async with gemini_cli(workspace, *below_editor(editors.discovery_file)) as cli:
            assert (await cli.ask("first"))["activeFile"]["path"] == str(a)
            await cli.propose(write_file(a), "Allowed, I see.")
            await cli.choose("Allow once")
            await cli.shows("Allowed, I see.")
            assert a.read_text(encoding="utf-8") == PROPOSED
            port = ("--port", str(editors.ready["port"]))
            assert (await user("diffs", *port, folder=workspace))["diffs"] == []


@pytest.mark.requirement("GEM-030")
@pytest.mark.parametrize("by", first_of(["doctor", "the terminal"]))
async def test_of_two_companions_the_cli_takes_its_terminals_else_the_one_doctor_names(
    workspace: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    # Their editors are not processes above it.
    monkeypatch.setenv("REMOTE_CONTAINERS", "true")
    folder = workspace / "sub"
    folder.mkdir()
    first, second = (companion_program(workspace, "--open", file.name) for file in files)
    with first as one, second as other:
        by_port = {companion.ready["port"]: file for companion, file in zip((one, other), files, strict=True)}
        chosen = would_choose("Gemini CLI", folder)
        assert chosen is not None
        environment: dict[str, str] = {}
        if by == "the terminal":
            (chosen,) = by_port.keys() - {chosen}
            environment = {"GEMINI_CLI_IDE_SERVER_PORT": str(chosen)}
            monkeypatch.setenv("GEMINI_CLI_IDE_SERVER_PORT", str(chosen))
            assert would_choose("Gemini CLI", folder) == chosen
        async with gemini_cli(folder, environment=environment) as cli:
            assert (await cli.ask("first"))["activeFile"]["path"] == str(by_port[chosen])


@pytest.mark.extended
async def test_the_cli_finds_the_companion_by_its_variables_alone(
    workspace: Path, files: tuple[Path, Path], tmp_path: Path
) -> None:
    a, _ = files
    with companion_program(workspace, "--open", "a.py:2:3") as companion:
        elsewhere = tmp_path / "temporary"
        elsewhere.mkdir()
        variables = {
            "TMPDIR": str(elsewhere),
            # Without a discovery file, which names the editor, the terminal's variables must name it.
            "TERM_PROGRAM": "sublime",
            "GEMINI_CLI_IDE_SERVER_PORT": str(companion.ready["port"]),
            "GEMINI_CLI_IDE_WORKSPACE_PATH": companion.discovered["workspacePath"],
            "GEMINI_CLI_IDE_AUTH_TOKEN": companion.discovered["authToken"],
        }
        async with gemini_cli(workspace, environment=variables) as cli:
            active = {"path": str(a), "cursor": {"line": 2, "character": 3}}
            assert await cli.ask("first") == {"activeFile": active}
            await cli.propose(write_file(a), "Accepted, I see.")
            await user("diffs", "--wait", "60", folder=workspace)
            await user("accept", "a.py", "--content", "-", folder=workspace, text="reviewed\n")
            await cli.shows("Accepted, I see.")
            assert a.read_text(encoding="utf-8") == "reviewed\n"


@pytest.mark.extended
async def test_the_cli_in_a_container_reaches_the_companion_under_the_name_of_its_host(
    workspace: Path, files: tuple[Path, Path]
) -> None:
    a, _ = files
    in_container = {"NODE_OPTIONS": f"--require {NODE_PEERS / 'in_container.cjs'}", "REMOTE_CONTAINERS": ""}
    with companion_program(workspace, "--open", "a.py"):
        async with gemini_cli(workspace, environment=in_container) as cli:
            await cli.propose(write_file(a), "Accepted, I see.")
            await user("diffs", "--wait", "60", folder=workspace)
            await user("accept", "a.py", folder=workspace)
            await cli.shows("Accepted, I see.")
            assert a.read_text(encoding="utf-8") == PROPOSED
