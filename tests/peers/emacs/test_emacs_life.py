"""The plugin in a real Emacs with the real companion, and a CLI that finds it as Claude Code does."""

import asyncio
import re
import signal
import subprocess
from pathlib import Path

import pytest

from support.claude_cli import Edit, claude_cli, locks
from support.emacs import AT_ONCE, EARLY_INIT, PLUGIN, RunningEmacs, lisp_string, running_emacs
from support.isolation import IsolatedFolders
from support.isthmus_program import process_ends
from support.programs import emacs, loaded_emacs, require
from support.waiting import eventually, eventually_async

pytestmark = pytest.mark.anyio

READY = "agents can find this Emacs"


def _configuration(*more: str) -> str:
    program = lisp_string(str(require("isthmus")))
    return f"{AT_ONCE} (setq isthmus-program {program}) {' '.join(more)} (isthmus-mode 1)"


async def _companion(running: RunningEmacs) -> int:
    return await running.evaluate("(process-id isthmus--process)")


async def test_an_edit_is_reviewed_written_and_read_again(workspace: Path) -> None:
    path = workspace / "a.py"
    path.write_text("one\ntwo\n")
    async with running_emacs(workspace, _configuration()) as running:
        await running.shows(READY)
        await running.evaluate(f"(progn (find-file {lisp_string(str(path))}) t)")
        async with claude_cli(workspace) as cli:
            await cli.selects(filePath=str(path))
            running.terminal.press("\x00\x05")  # C-SPC C-e
            await cli.selects(text="one")
            editing = asyncio.create_task(cli.edit(path, "one\nTWO\n"))
            await running.shows("*proposed: a.py*")
            running.terminal.press("x\x03\x03")
            assert await editing == Edit("written", "one\nxTWO\n", is_modified=True)

            async def is_read_again() -> bool:
                return await running.evaluate('(with-current-buffer "a.py" (buffer-string))') == "one\nxTWO\n"

            await eventually_async(is_read_again, what="the file is read again")
        await running.quit()
    eventually(lambda: not locks(), 30, what="the lock file is removed")


_SETTINGS = """(let (found) (mapatoms (lambda (name)
  (when (and (boundp name) (custom-variable-p name) (not (local-variable-p name)) (atom (symbol-value name)))
    (push (format "%s %.300S" name (symbol-value name)) found)))) (vconcat found))"""


async def test_the_emacs_that_has_loaded_libraries_has_the_settings_of_a_plain_one(workspace: Path) -> None:
    async with running_emacs(workspace) as plain:
        expected: list[str] = await plain.evaluate(_SETTINGS)
    async with running_emacs(workspace, program=loaded_emacs()) as loaded:
        assert set(expected) - set(await loaded.evaluate(_SETTINGS)) == set()
    assert len(expected) > 500


async def test_a_companion_that_crashes_is_started_again_and_the_agent_comes_back(workspace: Path) -> None:
    async with running_emacs(workspace, _configuration()) as running:
        await running.shows(READY)
        former = await _companion(running)
        async with claude_cli(workspace) as cli:
            subprocess.run(["kill", "-KILL", str(former)], check=True)
            # Emacs that writes to it just now does not learn of the signal: "has ended".
            await running.says("; it is started again in 0.1 s")
            said = await running.evaluate('(with-current-buffer "*Messages*" (buffer-string))')
            assert re.search("the companion (was killed by signal 9|has ended); it is started again", said)
            await running.shows(READY)
            assert await _companion(running) != former
            await cli.lost()
            assert await cli.reconnect()


async def test_a_companion_that_never_starts_is_given_up_with_its_last_words(workspace: Path, tmp_path: Path) -> None:
    program = tmp_path / "isthmus"
    program.write_text("#!/bin/sh\necho 'the port is taken' >&2\nexit 3\n")
    program.chmod(0o700)
    start = f"(setq isthmus-program {lisp_string(str(program))} isthmus-restart-delays '(0.1 0.1)) (isthmus-mode 1)"
    async with running_emacs(workspace, start) as running:
        await running.shows("*Warnings*")
        warning = await running.evaluate('(with-current-buffer "*Warnings*" (buffer-string))')
        assert "ended with code 3 (the port is taken), 3 times in a row" in warning
        assert await running.evaluate("(list isthmus--process isthmus--restart-timer)") == [None, None]


async def test_without_the_program_it_says_what_to_install(workspace: Path) -> None:
    async with running_emacs(workspace, '(setq isthmus-program "no-such-isthmus")') as running:
        running.terminal.press("\x1bxisthmus-start\r")
        await running.shows("install it (pip install isthmus), or set")
        assert await running.evaluate("isthmus-mode") is None


async def test_terminals_find_the_companion_until_it_is_stopped(workspace: Path) -> None:
    async with running_emacs(workspace, _configuration()) as running:
        await running.shows(READY)
        (lock,) = locks()
        running.terminal.press("\x1bxeshell\recho port=$CLAUDE_CODE_SSE_PORT\r")
        await running.shows(f"port={lock.port}")
        companion = await _companion(running)
        running.terminal.press("\x1bxisthmus-stop\r")
        eventually(lambda: not locks() and not Path(f"/proc/{companion}").exists(), 30, what="it has ended")
        assert await running.evaluate('(with-temp-buffer (getenv "CLAUDE_CODE_SSE_PORT"))') is None


async def test_a_terminal_in_term_mode_leads_the_agents_of_all_protocols_here(workspace: Path) -> None:
    async with running_emacs(workspace, f'{_configuration()} (setq explicit-shell-file-name "/bin/sh")') as running:
        await running.shows(READY)
        (lock,) = locks()
        running.terminal.press("\x1bxterm\r\r")
        await running.shows("*terminal*")
        for name, value in {
            "CLAUDE_CODE_SSE_PORT": str(lock.port),
            "ENABLE_IDE_INTEGRATION": "true",
            "GEMINI_CLI_IDE_WORKSPACE_PATH": str(workspace),
            "QWEN_CODE_IDE_WORKSPACE_PATH": str(workspace),
            "NO_PROXY": "127.0.0.1",
        }.items():
            running.terminal.press(f"echo {name}: ${name}\r")
            await running.shows(f"{name}: {value}")


async def test_an_emacs_that_is_killed_leaves_no_companion(workspace: Path) -> None:
    async with running_emacs(workspace, _configuration()) as running:
        await running.shows(READY)
        companion = await _companion(running)
        running.terminal.signal(signal.SIGKILL)
        await asyncio.to_thread(process_ends, companion)  # a restarted companion need not wait for this one
    assert locks() == ()


def test_it_compiles_without_a_warning_and_its_documentation_is_in_order(
    tmp_path: Path, isolated_folders: IsolatedFolders
) -> None:
    early = tmp_path / "early.el"
    early.write_text(EARLY_INIT, encoding="utf-8")
    names = [file.name for file in PLUGIN.parent.glob("*.el")]
    assert sorted(names) == ["isthmus-agent.el", "isthmus-changes.el", "isthmus.el"]
    codes = ["(setq byte-compile-error-on-warn t)", "(require 'checkdoc)"]
    for name in names:
        (tmp_path / name).write_bytes((PLUGIN.parent / name).read_bytes())
        codes += [f'(unless (byte-compile-file "{name}") (kill-emacs 1))', f'(checkdoc-file "{name}")']
    for code in (f"(progn {' '.join(codes)})",):
        command = [emacs(), "-Q", "--batch", "-L", ".", "-l", early, "--eval", code]
        done = subprocess.run(
            command, cwd=tmp_path, check=False, capture_output=True, text=True, encoding="utf-8", timeout=120
        )
        assert (done.returncode, done.stdout + done.stderr) == (0, "")


_ASKING = """
(defun test-child () (start-process "child" nil "sleep" "1000"))
(defun test-file () (find-file "own.txt") (insert "x"))
"""


@pytest.mark.parametrize(
    ("start", "question"), [("(test-child)", "Active processes exist"), ("(test-file)", "Save file")]
)
async def test_an_emacs_whose_terminal_goes_away_while_it_asks_whether_to_quit_ends(
    workspace: Path, start: str, question: str
) -> None:
    async with running_emacs(workspace, f"{_configuration()} {_ASKING} {start}") as running:
        await running.shows(READY)
        running.terminal.press("\x18\x03")  # C-x C-c
        await running.shows(question)
        running.terminal.hang_up()
        assert await asyncio.to_thread(running.terminal.wait_for_exit, 60) is not None
