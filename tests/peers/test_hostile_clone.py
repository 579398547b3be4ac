"""Every program of Isthmus in a folder of an attacker: none hangs, runs its programs, or uses many resources.

Each runs below a small program that measures it, without the resources of pytest itself. CLONE_FILES is the
number of files in the clone.
"""

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.emacs import lisp_string, running_emacs
from support.extended import first_of
from support.hostile_clone import OTHERS, SETTINGS, STAND_INS, HostileClone, folder_of_stand_ins, hostile_clone
from support.neovim import neovim_with_plugin
from support.processor_time import seconds_here
from support.pty_program import pty_program
from support.waiting import eventually, eventually_async

PROCESSOR_SECONDS = 15.0
"""Far more than a start takes; what is endless in the clone would take all."""
MEMORY_BYTES = 200 * 1024**2
OUTPUT_BYTES = 100_000
DEADLINE = 100
"""Time limit in seconds, on a loaded machine."""

QUESTION = r"answer \(1, 2, 3\):$"
PROMPT = r"(?m)^\u203a ?$"
PROGRAM = str(Path(sys.executable).with_name("isthmus"))
"""The installed program: ``python -m`` would import modules from the working folder."""

MEASURE = """
import json, os, sys
report, *command = sys.argv[1:]
pid = os.posix_spawn(command[0], command, os.environ)
open(report + ".pid", "w").write(str(pid))
_, status, usage = os.wait4(pid, 0)
took = [os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss]
open(report + ".part", "w").write(json.dumps(took))
os.rename(report + ".part", report)
"""

SCRIPT = """
scenarios:
  - prompt: look
    replies:
      - steps:
          - call: {name: list_directory, arguments: {dir_path: .}}
          - call: {name: list_directory, arguments: {dir_path: src}}
          - call: {name: glob, arguments: {pattern: "**/*.py"}}
          - call: {name: grep_search, arguments: {pattern: look, dir_path: src}}
          - call: {name: read_file, arguments: {file_path: zero.txt}}
          - call: {name: read_file, arguments: {file_path: pipe}}
          - call: {name: read_file, arguments: {file_path: huge.py}}
          - call: {name: read_file, arguments: {file_path: deep.ipynb}}
          - call: {name: read_file, arguments: {file_path: root/etc/passwd}}
          - call: {name: read_file, arguments: {file_path: beside/secret}}
          - call: {name: read_many_files, arguments: {include: ["src/**", "*.txt", "*.md"]}}
      - steps:
          - text: Looked at it all.
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """Exit status and resource use of a program."""

    code: int
    output: str
    error: str


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Generator[HostileClone]:
    made = hostile_clone(tmp_path_factory.mktemp("hostile"))
    yield made
    made.remove()


@pytest.fixture
def script(tmp_path: Path) -> str:
    path = tmp_path / "script.yaml"
    path.write_text(SCRIPT, encoding="utf-8")
    return f"scripted:{path}"


def command(report: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-ISc", MEASURE, str(report), PROGRAM, *arguments]


def require_little(report: Path) -> int:
    """Check the program's resource use against the limits; return its exit status."""
    eventually(report.exists, what="the program has ended", seconds=DEADLINE)
    code, seconds, kilobytes = json.loads(report.read_text(encoding="utf-8"))
    assert seconds < seconds_here(PROCESSOR_SECONDS), f"{seconds:.1f} s of processor time"
    assert kilobytes * 1024 < MEMORY_BYTES, f"{kilobytes / 1024:.0f} MB"
    return code


def ran(report: Path, folder: Path, *arguments: str) -> Measured:
    """Run the program to its end in a folder, within the limits."""
    done = subprocess.run(
        command(report, *arguments),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=DEADLINE,
    )
    assert len(done.stdout) + len(done.stderr) < OUTPUT_BYTES
    error = done.stderr.decode()
    assert "Traceback" not in error, error
    assert "\x1b" not in error.replace("\x1b[0m", ""), "an escape sequence of a file's name"
    return Measured(require_little(report), done.stdout.decode(), error)


def ready_and_ended(report: Path, folder: Path, *arguments: str) -> str:
    """Start a program that serves, wait for its first line, and end it; return the line."""
    with subprocess.Popen(
        command(report, *arguments),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        pid = int(Path(f"{report}.pid").read_text(encoding="utf-8"))
        caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text(encoding="utf-8"))
        assert caught is not None
        assert int(caught[1], 16) >> 25 & 1, "SIGVTALRM ends it where its event loop hangs"
        os.kill(pid, signal.SIGTERM)
        output, error = process.communicate(timeout=DEADLINE)
    assert len(output) + len(error) < OUTPUT_BYTES
    assert "Traceback" not in error.decode(), error.decode()
    assert require_little(report) in (0, -signal.SIGTERM, 128 + signal.SIGTERM), error.decode()
    return line


def test_nothing_of_a_hostile_clone_is_run_waited_for_or_changed(
    clone: HostileClone, tmp_path: Path, script: str
) -> None:
    before = clone.state()
    looked = ran(tmp_path / "prompt", clone.folder, "-m", script, "-p", "look")
    assert looked.code == 0, looked.error
    assert "Looked at it all." in looked.output
    for arguments in (("doctor",), ("mcp", "list")):
        assert ran(tmp_path / arguments[-1], clone.folder, *arguments).code in (0, 1)
    companion = ("companion", "--editor", "headless", "--open", f"src/{'a' * 60}")
    assert "Companion ready" in ready_and_ended(tmp_path / "companion", clone.folder, *companion)
    wrapped = ran(tmp_path / "exec", clone.folder, "companion", "exec", "--editor", "headless", "--", "true")
    assert wrapped.code == 0, wrapped.error
    served = ("serve", "--port", "0", "--no-ide", "--data-dir", str(tmp_path / "data"), "-m", script)
    assert "ready" in ready_and_ended(tmp_path / "serve", clone.folder, *served)
    assert clone.traces() == []
    assert clone.state() == before


def test_the_interactive_program_opens_in_a_hostile_clone(clone: HostileClone, tmp_path: Path, script: str) -> None:
    report = tmp_path / "interactive"
    with pty_program(
        command(report, "-m", script), folder=clone.folder, environment=dict(os.environ), columns=150
    ) as terminal:
        terminal.wait_for(QUESTION, DEADLINE).press("3\r")
        # The prompt's line is its own, even with messages about the commands of this folder.
        terminal.wait_for(r"! custom commands: ", DEADLINE).wait_for(PROMPT, DEADLINE)
        terminal.press("look\r")
        # Links that lead out of the folder are asked about, under the name of what they lead to.
        for target in ("/etc/passwd", r"\S*/outside/secret"):
            terminal.wait_for(rf"(?s)Read a file outside the workspace: {target}.*1  Allow once", DEADLINE).press("3")
        terminal.wait_for(r"Looked at it all\.", DEADLINE)
        terminal.press("/quit\r")
        assert require_little(report) == 0
        assert len(terminal.received) < OUTPUT_BYTES
        assert b"\x1b]0;owned" not in terminal.received
    assert clone.traces() == []


@pytest.mark.anyio
async def test_neovim_with_the_plugin_opens_a_hostile_clone(clone: HostileClone) -> None:
    async with neovim_with_plugin(clone.folder, program=[PROGRAM]) as neovim:
        await neovim.command("edit GEMINI.md")

        await eventually_async(neovim.jobs, what="a companion")
        await neovim.quit()
    await asyncio.to_thread(lambda: None)
    assert clone.traces() == []


@pytest.mark.anyio
async def test_emacs_with_the_plugin_opens_a_hostile_clone(clone: HostileClone) -> None:
    # The work of Emacs's own version control in a repository is not the plugin's.
    configuration = f"(setq vc-handled-backends nil isthmus-program {lisp_string(PROGRAM)}) (isthmus-mode 1)"
    async with running_emacs(clone.folder, configuration) as emacs:
        await emacs.shows("agents can find this Emacs")
        emacs.terminal.press("\x18\x06GEMINI.md\r")  # C-x C-f
        await emacs.shows("contains values that may not be safe")
        emacs.terminal.press("n")

        async def is_open() -> bool:
            return await emacs.evaluate("(buffer-file-name)") == str(clone.folder / "GEMINI.md")

        await eventually_async(is_open, what="the file is open")
        await emacs.quit()
    assert clone.traces() == []


@pytest.mark.parametrize("kind", STAND_INS)
def test_what_stands_in_the_place_of_a_settings_file_is_an_error_in_one_line(
    tmp_path: Path, script: str, kind: str
) -> None:
    folder = folder_of_stand_ins(tmp_path / "clone", kind, SETTINGS)
    found = ran(tmp_path / "report", folder, "-m", script, "-p", "look")
    assert found.code != 0
    assert str(folder / ".gemini" / "settings.json") in found.error.splitlines()[-1]


@pytest.mark.parametrize("kind", first_of(STAND_INS))
def test_what_stands_in_the_place_of_other_files_of_a_project_ends_no_start(
    tmp_path: Path, script: str, kind: str
) -> None:
    folder = folder_of_stand_ins(tmp_path / "clone", kind, OTHERS)
    found = ran(tmp_path / "report", folder, "-m", script, "-p", "look")
    assert found.code == 0, found.error
    assert "Looked at it all." in found.output
