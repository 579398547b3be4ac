"""References to files and folders in a prompt: the whole program in a terminal, with -p, and over A2A."""

import asyncio
import json
from pathlib import Path

import pytest

from support.isthmus_program import InProcess, isthmus
from support.loaded_program import LoadedProgram
from support.serve_program import serve_program
from support.session_terminal import PROMPT, Sessions, model_request

GREETING = "def greet():\n    return 'hi'\n"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.fixture
def sessions(tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram) -> Sessions:
    (workspace / "src").mkdir()
    (workspace / "src" / "greeting.py").write_text(GREETING, "utf-8")
    (workspace / "src" / "ignored.log").write_text("secret noise", "utf-8")
    (workspace / "closed.txt").write_text("closed to agents", "utf-8")
    (workspace / "lines.txt").write_text("".join(f"line {number}\n" for number in range(1, 41)), "utf-8")
    (workspace / "picture.png").write_bytes(PNG)
    (workspace / ".geminiignore").write_text("closed.txt\n", "utf-8")
    (workspace / ".gitignore").write_text("*.log\n", "utf-8")
    (workspace / ".git").mkdir()
    (workspace.parent / "outside.txt").write_text("top secret text", "utf-8")
    script = "name: echo\nscenarios:\n  - prompt: '.'\n    replies: [{text: 'Answered.'}]\n"
    return Sessions(tmp_path, script, workspace, loaded_isthmus)


def test_further_folders_are_added_and_files_elsewhere_are_asked_about(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file.txt").write_text(f"text of {name}", "utf-8")
    replies = "\n".join(
        f"  - prompt: 'read {name}'\n    replies:\n"
        f"      - call: {{name: read_file, arguments: {{file_path: '{tmp_path}/{name}/file.txt'}}}}\n"
        "      - text: 'It says: {{result}}'"
        for name in ("first", "second", "third")
    )
    sessions = Sessions(tmp_path, f"name: reads\nscenarios:\n{replies}\n", workspace, loaded_isthmus)
    with sessions.terminal("--include-directories", str(tmp_path / "first")) as terminal:
        terminal.wait_for(PROMPT).press("read first\r").wait_for(r"It says: 1\s+text of first").wait_for(PROMPT)
        terminal.press(f"/directory add {tmp_path}/second\r").wait_for("may read and edit files in").wait_for(PROMPT)
        terminal.press("read second\r").wait_for(r"It says: 1\s+text of second").wait_for(PROMPT)
        terminal.press("read third\r").wait_for("Read a file outside the workspace:")
        terminal.wait_for("1  Allow once").press("1").wait_for(r"It says: 1\s+text of third").wait_for(PROMPT)


def test_a_cell_of_a_notebook_is_read_and_edited(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    cell = '{"cell_type": "code", "execution_count": 1, "id": "a1", "metadata": {}, "outputs": [], "source": ["x = 1"]}'
    notebook = f'{{"cells": [{cell}], "metadata": {{}}, "nbformat": 4, "nbformat_minor": 5}}'
    (workspace / "n.ipynb").write_text(notebook, "utf-8")
    script = """
name: notebooks
scenarios:
  - prompt: 'edit'
    replies:
      - call: {name: read_file, arguments: {file_path: n.ipynb}}
      - text: 'I see {{result}}'
        call: {name: notebook_edit, arguments: {notebook_path: n.ipynb, cell_id: a1, new_source: 'x = 2'}}
      - text: Edited.
"""
    with Sessions(tmp_path, script, workspace, loaded_isthmus).terminal() as terminal:
        terminal.wait_for(PROMPT).press("edit\r").wait_for('I see <cell id="a1" type="code">')
        terminal.wait_for("Change n.ipynb").wait_for("1  Allow once").press("1").wait_for("Edited.").wait_for(PROMPT)
    changed = json.loads((workspace / "n.ipynb").read_text("utf-8"))["cells"][0]
    assert (changed["source"], changed["execution_count"]) == (["x = 2"], None)


def sent(prompt: str, run: InProcess, tmp_path: Path) -> str:
    """Return the messages of the request that a model provider gets for a prompt, as text."""
    return model_request(run, "--data-dir", str(tmp_path / "d"), "-p", prompt)


@pytest.mark.usefixtures("sessions")
def test_files_ranges_folders_and_images_are_part_of_the_message(
    workspace: Path, tmp_path: Path, isthmus_here: InProcess
) -> None:
    (workspace / "other").mkdir()
    (workspace / "other" / "inside.py").write_text("inside = True\n", "utf-8")
    (workspace / "other" / "ignored.log").write_text("secret noise", "utf-8")
    request = sent(
        "explain @src/greeting.py, please, @lines.txt:10-12. Then @other/ and @picture.png?", isthmus_here, tmp_path
    )
    assert "--- @src/greeting.py " in request
    assert "return 'hi'" in request
    assert "10\\tline 10\\n11\\tline 11\\n12\\tline 12" in request
    assert "line 13" not in request
    assert "inside = True" in request
    assert "secret noise" not in request
    assert "data:image/png;base64," in request


@pytest.mark.usefixtures("sessions")
def test_what_the_agent_may_not_read_is_not_read(isthmus_here: InProcess, tmp_path: Path) -> None:
    request = sent("explain @closed.txt and @../outside.txt", isthmus_here, tmp_path)
    for reference, kept_out in (("@closed.txt", "closed to agents"), ("@../outside.txt", "top secret text")):
        assert kept_out not in request
        assert f"{reference} was not read: " in request


@pytest.mark.usefixtures("sessions")
def test_what_names_no_file_stays_text(isthmus_here: InProcess, tmp_path: Path) -> None:
    request = sent("install @types/node for joe@lines.txt and @param", isthmus_here, tmp_path)
    assert "was not read" not in request
    assert "--- @" not in request


def test_a_reference_is_completed_while_it_is_typed(sessions: Sessions) -> None:
    with sessions.terminal() as terminal:
        terminal.wait_for(PROMPT).press("see @grt").wait_for(r"(?m)^  @src/greeting\.py$")
        assert "ignored.log" not in terminal.screen
        terminal.press("\t").wait_for(r"(?m)^\u203a see @src/greeting\.py$").press(" there\r")
        terminal.wait_for(r"read_file  .*src/greeting\.py").wait_for("Answered.")
        terminal.wait_for(PROMPT).press("@li").wait_for(r"(?m)^  @lines\.txt$").press("\t")
        terminal.wait_for(r"(?m)^\u203a @lines\.txt$")
        terminal.press("\x03").wait_for(PROMPT)
        terminal.press("@closed").wait_for(r"(?m)^\u203a @closed$")
        assert "  @closed.txt" not in terminal.screen


@pytest.mark.anyio
@pytest.mark.usefixtures("sessions")
async def test_a_server_reads_what_its_workspace_has_and_nothing_else(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    script = "name: echo\nscenarios:\n  - prompt: '.'\n    replies: [{text: 'Answered.'}]\n"
    async with serve_program(tmp_path, workspace, script=script, loaded=loaded_isthmus) as served:
        ended = await asyncio.to_thread(
            isthmus, "connect", served.url, "--token-file", str(tmp_path / "token"), "-o", "stream-json",
            "-p", "explain @src/greeting.py and @../outside.txt", folder=workspace, text="",
        )  # fmt: skip
    assert ended.returncode == 0, ended.stderr + ended.stdout
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    results = [(line["status"], line.get("output", "")) for line in lines if line["type"] == "tool_result"]
    assert [status for status, _ in results] == ["success", "error"]
    assert "greet" in results[0][1]
    assert "top secret text" not in ended.stdout
