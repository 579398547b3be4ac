"""The command ``isthmus connect`` in a terminal: the server is killed and restarted, two terminals share a task."""

import asyncio
import os
import signal
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.isthmus_program import ISTHMUS
from support.loaded_program import LoadedProgram
from support.ports import free_port
from support.pty_program import PtyProgram, pty_program
from support.serve_program import ServeProgram, serve_program

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

SECONDS = 60
"""Maximum seconds for any step on a slow machine."""
SCRIPT = """
name: practice
scenarios:
  - prompt: (?i)greet
    replies:
      - call: {name: write_file, arguments: {file_path: '{{workspace}}/greeting.txt', content: "hello\\n"}}
      - text: I wrote the greeting.
  - prompt: (?i)choose
    replies:
      - call:
          name: ask_user
          arguments: {question: 'Which database?', options: [{label: SQLite}, {label: Postgres}]}
      - alternatives:
          - {when: result matches Postgres, text: 'Postgres it is.'}
          - {text: 'Then I choose.'}
  - prompt: (?i)ask all
    replies:
      - call:
          name: ask_user
          arguments:
            questions:
              - question: Which database?
                header: Database
                type: choice
                options: [{label: SQLite, description: One file}, {label: Postgres, description: A server}]
              - {question: 'Which name?', header: Name, type: text, placeholder: my-project}
              - question: Which features?
                header: Features
                type: choice
                multiSelect: true
                options: [{label: Auth, description: a}, {label: Search, description: b}, {label: Export}]
      - alternatives:
          - {when: result matches Auth.*Export, text: 'I build it.'}
          - {text: 'I do not know what.'}
  - prompt: (?i)build
    replies:
      - call:
          name: run_shell_command
          arguments: {command: 'echo begun; while [ ! -e go ]; do sleep 0.05; done; echo built'}
      - text: The build is done.
  - prompt: '.'
    replies:
      - text: 'You said: {{prompt}}'
"""


@contextmanager
def connected(
    loaded: LoadedProgram | None,
    served: ServeProgram,
    folder: Path,
    *options: str,
    columns: int = 100,
    environment: Mapping[str, str] | None = None,
) -> Generator[PtyProgram]:
    """Start `isthmus connect` in a terminal of its own, as a copy of a loaded process if there is one."""
    variables = {**os.environ, "TERM": "xterm-256color", "ISTHMUS_A2A_TOKEN": served.token, **(environment or {})}
    arguments = ("connect", served.url, *options)
    with (
        pty_program([*ISTHMUS, *arguments], folder=folder, environment=variables, columns=columns)
        if loaded is None
        else loaded.terminal(*arguments, folder=folder, environment=variables, columns=columns)
    ) as program:
        yield program


def fixed_port() -> tuple[str, str]:
    """Return the options for a port that is still free when the server is restarted."""
    return "--port", str(free_port())


async def test_a_question_outlives_the_server_and_is_answered_when_it_is_back(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    port = fixed_port()
    async with serve_program(tmp_path, workspace, *port, script=SCRIPT, loaded=loaded_isthmus) as served:
        with connected(loaded_isthmus, served, workspace) as terminal:
            terminal.wait_for("Connected to", SECONDS).press("greet me\r").wait_for("Allow once", SECONDS)
            served.process.send_signal(signal.SIGKILL)
            await asyncio.wait_for(served.process.wait(), SECONDS)
            terminal.press("1").wait_for("nothing answers at", SECONDS)
            async with serve_program(tmp_path, workspace, *port, script=SCRIPT, loaded=loaded_isthmus):
                # The question that is asked again accepts answers once its choices are shown.
                terminal.wait_for(r"nothing answers at(?s:.*)1  Allow once", SECONDS)
                terminal.press("1").wait_for("I wrote the greeting.", SECONDS)
                assert (workspace / "greeting.txt").read_text(encoding="utf-8") == "hello\n"
                assert terminal.screen.count("I wrote the greeting.") == 1
                terminal.press("/quit\r")
                assert terminal.wait_for_exit(SECONDS) == 0


async def test_a_models_question_is_answered_by_another_client_after_a_kill(tmp_path: Path, workspace: Path) -> None:
    async with serve_program(tmp_path, workspace, script=SCRIPT) as served:
        with connected(None, served, workspace) as terminal:
            terminal.wait_for("Connected to", SECONDS).press("choose one\r").wait_for("2  Postgres", SECONDS)
            served.process.send_signal(signal.SIGKILL)
            await asyncio.wait_for(served.process.wait(), SECONDS)
    async with serve_program(tmp_path, workspace, script=SCRIPT) as served:
        with connected(None, served, workspace, "--resume") as other:
            other.wait_for(r"Which database\?(?s:.*)2  Postgres", SECONDS)
            other.press("2").wait_for("Postgres it is.", SECONDS)
            assert other.screen.count("Postgres it is.") == 1


async def test_answers_outlive_a_kill_between_two_questions_of_one_call(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with serve_program(tmp_path, workspace, script=SCRIPT, loaded=loaded_isthmus) as served:
        with connected(loaded_isthmus, served, workspace) as terminal:
            terminal.wait_for("Connected to", SECONDS).press("ask all\r").wait_for("2  Postgres", SECONDS)
            terminal.press("2").wait_for(r"Which name\?(?s:.*)f  Answer", SECONDS)
            served.process.send_signal(signal.SIGKILL)
            await asyncio.wait_for(served.process.wait(), SECONDS)
    async with serve_program(tmp_path, workspace, script=SCRIPT, loaded=loaded_isthmus) as served:
        with connected(loaded_isthmus, served, workspace, "--resume") as other:
            other.wait_for(r"Which name\?(?s:.*)f  Answer", SECONDS).press("f").wait_for(r"(?m)^  Name:$", SECONDS)
            other.press("Zephyr\r").wait_for(r"Which features\?(?s:.*)f  Choose several", SECONDS).press("f")
            other.wait_for("1 of 1: Features", SECONDS).press("1,3\r").wait_for("I build it.", SECONDS)
            for answer in ("Zephyr", "Auth, Export"):
                assert f"Answer: {answer}" in other.screen
            # The first question is among the calls that are shown again, and is not asked again.
            assert other.screen.count("Which database?") == 1
            assert "SQLite" not in other.screen
            assert other.screen.count("I build it.") == 1


async def test_a_turn_whose_server_is_killed_goes_on_in_the_same_terminal(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    options = ("--allowed-tools", "run_shell_command", *fixed_port())
    async with serve_program(tmp_path, workspace, *options, script=SCRIPT, loaded=loaded_isthmus) as served:
        with connected(loaded_isthmus, served, workspace) as terminal:
            terminal.wait_for("Connected to", SECONDS).press("build it\r").wait_for("begun", SECONDS)
            served.process.send_signal(signal.SIGKILL)
            await asyncio.wait_for(served.process.wait(), SECONDS)
            (workspace / "go").touch()
            async with serve_program(tmp_path, workspace, *options, script=SCRIPT, loaded=loaded_isthmus):
                # An interrupted side effect is reported, and not repeated.
                terminal.wait_for("interrupted", SECONDS).wait_for("The build is done.", SECONDS)
                assert terminal.screen.count("The build is done.") == 1
                terminal.press("again\r").wait_for("(?m)You said: again\\s+\u203a ?$", SECONDS).press("\x04")
                assert terminal.wait_for_exit(SECONDS) == 0


async def test_what_one_terminal_answers_the_other_is_told(
    tmp_path: Path, workspace: Path, loaded_isthmus: LoadedProgram
) -> None:
    async with serve_program(tmp_path, workspace, script=SCRIPT, loaded=loaded_isthmus) as served:
        with connected(loaded_isthmus, served, workspace) as first:
            first.wait_for("Connected to", SECONDS).press("greet me\r").wait_for("Allow once", SECONDS)
            with connected(loaded_isthmus, served, workspace, "--resume", columns=40) as second:
                second.wait_for("Allow once", SECONDS).press("1").wait_for("I wrote the greeting.", SECONDS)
                first.wait_for("answered in terminal", SECONDS).wait_for("I wrote the greeting.", SECONDS)
                for terminal in (first, second):
                    assert terminal.screen.count("I wrote the greeting.") == 1
                    terminal.press("/quit\r")
                    assert terminal.wait_for_exit(SECONDS) == 0


async def test_commands_are_completed_and_a_terminal_without_unicode_or_colours_gets_none(
    tmp_path: Path, workspace: Path
) -> None:
    plain = {"NO_COLOR": "1", "LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    async with serve_program(tmp_path, workspace, script=SCRIPT) as served:
        with connected(None, served, workspace, environment=plain, columns=30) as terminal:
            # The list of commands has arrived when the help is shown. Ctrl-C and Ctrl-D belong to the prompt when it is
            # shown again: during a response they belong to the turn.
            terminal.wait_for("Connected to", SECONDS).press("/help\r").wait_for("/tasks all", SECONDS)
            terminal.press("/mem\t sh\t\r").wait_for("> /memory show", SECONDS)
            terminal.press("gr\u00fc\u00dfe \u4e16\r").wait_for(r"(?m)You said: [^\n]+\s+> ?$", SECONDS)
            terminal.press("\x03").wait_for("Ctrl-C again", SECONDS).press("\x03")
            assert terminal.wait_for_exit(SECONDS) == 0
        assert b"Traceback" not in terminal.received
        assert b"\x1b[31m" not in terminal.received
        terminal.received.decode("ascii")
