"""Agents in terminals of a real Emacs: starting, showing, hiding and ending them, and what is typed into them.

The agent is a program that writes down the bytes that its terminal gets; the companion's side is in this process.
"""

import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from isthmus.ide.editor import DiffAccepted, FileMentioned
from support.editing import review
from support.emacs import AT_ONCE, EmacsDriver, emacs_driver, lisp_string
from support.neovim import hearing
from support.waiting import eventually, eventually_async

pytestmark = pytest.mark.anyio

_AGENT = """#!{python} -IS
import os, sys, tty
tty.setraw(0)
print("port", os.getenv("TEST_PORT"), "project", os.getenv("OF_PROJECT"), *sys.argv[1:], end="\\r\\n", flush=True)
print("in", os.path.basename(os.getcwd()), end="\\r\\n", flush=True)
with open({received!r}, "ab", buffering=0) as received:
    while data := os.read(0, 65536):
        received.write(data)
        if b"!" in data:
            sys.exit(2)
"""
STARTED = "port 4711"


@pytest.fixture
def received(tmp_path: Path) -> Path:
    path = tmp_path / "received"
    path.touch()
    return path


@pytest.fixture
async def driver(workspace: Path, tmp_path: Path, received: Path) -> AsyncGenerator[EmacsDriver]:
    agent = tmp_path / "claude"
    agent.write_text(_AGENT.format(python=sys.executable, received=str(received)), encoding="utf-8")
    agent.chmod(0o700)
    options = (
        f'(setq isthmus-review-when-idle 0.1 isthmus-agent-commands \'("no-such-agent" {lisp_string(str(agent))}))'
    )
    keys = '(global-set-key (kbd "C-c i") isthmus-command-map)'
    async with emacs_driver(workspace, reviews=f"{AT_ONCE} {options} {keys}") as driver:
        driver.editor.announce({"TEST_PORT": "4711"}, [])
        yield driver


async def _open(driver: EmacsDriver, path: Path, text: str = "one\ntwo\nthree\n") -> Path:
    path.write_text(text, encoding="utf-8")
    await driver.open(path)
    return path


async def _start(driver: EmacsDriver) -> None:
    driver.emacs.terminal.press("\x03ia")
    await driver.emacs.shows(STARTED)


def _gets(received: Path, data: bytes) -> None:
    def condition() -> bool:
        assert received.read_bytes() == data
        return True

    eventually(condition, what=f"the agent gets {data!r}")


async def _windows(driver: EmacsDriver) -> list[str]:
    return await driver.emacs.evaluate("(mapcar (lambda (w) (buffer-name (window-buffer w))) (window-list))")


async def test_an_agent_is_started_with_the_companions_variables_shown_hidden_and_ended(
    driver: EmacsDriver, workspace: Path, received: Path
) -> None:
    path = await _open(driver, workspace / "a.py")
    await driver.emacs.evaluate('(setq-local process-environment (cons "OF_PROJECT=yes" process-environment))')
    await _start(driver)
    for text in ("project yes", f"in {workspace.name}"):
        await driver.emacs.shows(text)
    name = f"*claude: {workspace.name}*"
    assert await _windows(driver) == [name, "a.py"]
    width = await driver.emacs.evaluate("(/ (* 10 (window-total-width)) (frame-width))")
    assert width in (3, 4)
    driver.emacs.terminal.press("ü\x18o\x03io")  # C-x o, C-c i o
    _gets(received, "ü".encode())
    driver.emacs.terminal.press("2\x18o\x03it")
    await eventually_async(lambda: _only(driver, path), what="it is hidden")
    driver.emacs.terminal.press("\x03it3")
    _gets(received, "ü23".encode())
    driver.emacs.terminal.press("\x18o\x03iky")
    await eventually_async(lambda: _only(driver, path), what="it is gone")
    assert name not in await driver.emacs.buffers()


async def _only(driver: EmacsDriver, path: Path) -> bool:
    return await _windows(driver) == [path.name]


async def test_a_second_start_goes_to_the_agent_and_a_prefix_starts_another_one(
    driver: EmacsDriver, workspace: Path, tmp_path: Path
) -> None:
    await _open(driver, workspace / "a.py")
    await _start(driver)
    driver.emacs.terminal.press("\x18o\x03ia")
    await eventually_async(lambda: _selected_is(driver, f"*claude: {workspace.name}*"), what="the agent has the focus")
    driver.emacs.terminal.press(f"\x18o\x15\x03ia\x01\x0b{tmp_path}/claude --resume 'a b'\r")
    await driver.emacs.shows("project None --resume a b")
    assert f"*claude: {workspace.name}*<2>" in await driver.emacs.buffers()


async def _selected_is(driver: EmacsDriver, name: str) -> bool:
    return await driver.emacs.evaluate("(buffer-name (window-buffer (selected-window)))") == name


async def test_an_agent_that_fails_leaves_its_terminal(driver: EmacsDriver, workspace: Path) -> None:
    await _open(driver, workspace / "a.py")
    await _start(driver)
    driver.emacs.terminal.press("!")
    await driver.emacs.shows("claude ended with code 2; its terminal is in the buffer")
    await driver.emacs.shows(STARTED)


async def test_without_an_agent_the_user_is_told_what_to_do(driver: EmacsDriver, workspace: Path) -> None:
    await _open(driver, workspace / "a.py")
    await driver.emacs.evaluate('(setq isthmus-agent-commands \'("no-such-agent" "nor-this --one"))')
    driver.emacs.terminal.press("\x03ia")
    await driver.emacs.shows("no such program: no-such-agent, nor-this --one; see")
    driver.emacs.terminal.press("\x03ip")
    await driver.emacs.shows("no agent runs in this Emacs; M-x isthmus-agent-start")


async def test_a_prompt_is_pasted_and_submitted(driver: EmacsDriver, workspace: Path, received: Path) -> None:
    path = await _open(driver, workspace / "a.py")
    await _start(driver)
    driver.emacs.terminal.press("\x18o\x03ip")
    await driver.emacs.shows("Prompt for claude:")
    driver.emacs.terminal.press("Erkläre das\r")
    _gets(received, "\x1b[200~Erkläre das\x1b[201~\r".encode())
    assert await _selected_is(driver, path.name)


async def test_a_region_is_pasted_with_its_place_and_nothing_in_it_is_a_key(
    driver: EmacsDriver, workspace: Path, received: Path
) -> None:
    await _open(driver, workspace / "a.py", "one\nend\x1b[201~\rrm ```\x9b\nthree\n")
    await _start(driver)
    driver.emacs.terminal.press("\x18o\x0e\x00\x0e\x0e\x03ir")  # C-n C-SPC C-n C-n
    text = "a.py, lines 2 to 3:\r````\rend[201~rm ```\rthree\r````\r"
    _gets(received, f"\x1b[200~{text}\x1b[201~".encode())
    await eventually_async(lambda: _selected_is(driver, f"*claude: {workspace.name}*"), what="the agent has the focus")


async def test_a_region_is_sent_with_a_prompt(driver: EmacsDriver, workspace: Path, received: Path) -> None:
    await _open(driver, workspace / "a.py")
    await _start(driver)
    driver.emacs.terminal.press("\x18o\x00\x05\x15\x03ir")  # C-SPC C-e C-u
    await driver.emacs.shows("Prompt for claude:")
    driver.emacs.terminal.press("Why?\r")
    _gets(received, b"\x1b[200~Why?\r\ra.py, line 1:\r```\rone\r```\r\x1b[201~\r")


@pytest.mark.parametrize(
    ("name", "program", "expected"),
    [
        ("a.py", "claude", "@a.py#L1-2 "),
        ("b c.py", "claude", '@"b c.py" (lines 1 to 2) '),
        ("b c.py", "gemini", "@b\\ c.py (lines 1 to 2) "),
    ],
)
async def test_lines_are_mentioned_as_the_agent_reads_them(
    driver: EmacsDriver, workspace: Path, received: Path, name: str, program: str, expected: str
) -> None:
    await _open(driver, workspace / name)
    await _start(driver)
    await driver.emacs.evaluate(f"(setq isthmus-agent--program {lisp_string(program)})")
    driver.emacs.terminal.press("\x18o\x00\x0e\x0e\x03i@")
    _gets(received, f"\x1b[200~{expected}\x1b[201~".encode())


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ('("/opt/bin/claude" "--" "x")', "claude"),
        ('("isthmus" "companion" "exec" "--" "/opt/claude" "--ide")', "claude"),
        ('("isthmus")', "isthmus"),
    ],
)
async def test_an_agent_that_companion_exec_starts_has_its_own_name(driver: EmacsDriver, words: str, name: str) -> None:
    await driver.emacs.evaluate("(autoload-do-load (symbol-function 'isthmus-agent-start))")
    assert await driver.emacs.evaluate(f"(isthmus-agent--name '{words})") == name


async def test_without_an_agent_in_emacs_the_companion_mentions_the_file(driver: EmacsDriver, workspace: Path) -> None:
    path = await _open(driver, workspace / "a.py")
    async with hearing(driver.editor) as heard:
        driver.emacs.terminal.press("\x03i@")
        await eventually_async(lambda: FileMentioned(str(path)) in heard.events, what="the file is mentioned")


@pytest.mark.parametrize("in_terminal", [True, False])
async def test_a_review_leaves_the_agents_terminal_at_its_side(
    driver: EmacsDriver, workspace: Path, in_terminal: bool
) -> None:
    path = await _open(driver, workspace / "a.py")
    await _start(driver)
    if not in_terminal:
        driver.emacs.terminal.press("\x18o")
    before = await _windows(driver)
    async with hearing(driver.editor) as heard:
        await driver.editor.open_diff(proposed := review(str(path), "one\nTWO\nthree\n"))
        await driver.emacs.shows("C-c C-c accept")
        assert set(await _windows(driver)) == {
            f"*claude: {workspace.name}*", "*on disk: a.py*", "*proposed: a.py*"
        }  # fmt: skip
        assert (await _windows(driver))[0] == (before[0] if in_terminal else "*proposed: a.py*")
        driver.emacs.terminal.press(("\x18o\x18o" if in_terminal else "") + "\x03\x03")
        assert await heard.decision() == DiffAccepted(proposed.id, proposed.proposed)
    await eventually_async(lambda: _windows_are(driver, before), what="the windows are as they were")


async def _windows_are(driver: EmacsDriver, names: list[str]) -> bool:
    return await _windows(driver) == names
