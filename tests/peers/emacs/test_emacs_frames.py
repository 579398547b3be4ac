"""Where reviews come up in Emacs with two frames, and what the echo area says then and after an answer."""

import asyncio
import fcntl
import os
import pty
import struct
import termios
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from isthmus.ide.editor import DiffAccepted
from support.editing import make_file, review
from support.emacs import AT_ONCE, EmacsDriver
from support.neovim import hearing
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

_SHOWN_IN = """
(let ((window (get-buffer-window "*proposed: a.py*" t)))
  (and window (frame-parameter (window-frame window) 'tty)))
"""
_FRAMES = "(length (frame-list))"


@pytest.fixture
def configuration() -> str:
    return f"{AT_ONCE} (setq isthmus-review-when-idle 0.1)"


@asynccontextmanager
async def _another_frame(driver: EmacsDriver) -> AsyncGenerator[tuple[str, int]]:
    """Open a frame in another terminal, as ``emacsclient -t`` does; yield the terminal's name and its user's side."""
    user, inner = pty.openpty()
    loop = asyncio.get_running_loop()

    def drop_what_is_drawn() -> None:
        with suppress(OSError):
            os.read(user, 65536)

    try:
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        loop.add_reader(user, drop_what_is_drawn)
        _, writer = await asyncio.open_unix_connection(str(driver.emacs.socket))
        name = os.ttyname(inner)
        writer.write(f"-env TERM=linux -tty {name} linux \n".encode())

        async def is_open() -> bool:
            return await driver.emacs.evaluate(_FRAMES) == 2

        await eventually_async(is_open, what="the other frame")
        yield name, user
        writer.close()
    finally:
        loop.remove_reader(user)
        os.close(user)
        os.close(inner)


async def _comes_up_in(driver: EmacsDriver, terminal: str) -> None:
    async def is_there() -> bool:
        found = await driver.emacs.evaluate(_SHOWN_IN)
        assert found == terminal
        return True

    await eventually_async(is_there)


async def test_a_review_comes_up_in_the_frame_where_the_user_works(driver: EmacsDriver, workspace: Path) -> None:
    driver.emacs.terminal.press("\x06")
    async with _another_frame(driver) as (name, user):  # which Emacs selects, though nobody has gone there
        await driver.editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
        await _comes_up_in(driver, "/dev/tty")
        await driver.editor.close_diff("review-1")
        os.write(user, b"\x06")

        async def is_used() -> bool:
            return await driver.emacs.evaluate("(frame-parameter last-event-frame 'tty)") == name

        await eventually_async(is_used, what="the key in the other frame")
        await driver.editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n", 2))
        await _comes_up_in(driver, name)
        await driver.editor.close_diff("review-2")

        async def is_left() -> bool:
            return await driver.emacs.evaluate("(mapcar (lambda (f) (length (window-list f))) (frame-list))") == [1, 1]

        await eventually_async(is_left, what="both frames are as they were")


async def test_a_review_that_waits_moves_to_the_frame_where_the_user_asks_for_it(
    driver: EmacsDriver, workspace: Path
) -> None:
    driver.emacs.terminal.press("\x06")
    await driver.editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await _comes_up_in(driver, "/dev/tty")
    async with _another_frame(driver) as (name, user), hearing(driver.editor) as heard:
        os.write(user, b"\x1bxisthmus-review\r")
        await _comes_up_in(driver, name)
        await driver.emacs.evaluate("(redisplay)")
        os.write(user, b"\x03\x03")
        assert await heard.decision() == DiffAccepted("review-1", "proposed\n")


async def test_in_a_terminal_the_echo_area_offers_the_key_that_works_there(
    driver: EmacsDriver, workspace: Path, tmp_path: Path
) -> None:
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\nexec cat\n", encoding="utf-8")
    program.chmod(0o700)
    await driver.emacs.evaluate(f'(progn (setq isthmus-agent-commands \'("{program}")) t)')
    driver.editor.announce({}, [])
    driver.emacs.terminal.press("\x1bxisthmus-agent-start\r")

    async def runs() -> bool:
        return await driver.emacs.evaluate("(and (derived-mode-p 'term-mode) t)") is True

    await eventually_async(runs, what="the agent's terminal has the focus")
    await driver.editor.open_diff(review(make_file(workspace, "a.py"), "proposed\n"))
    await driver.emacs.says("a review of a.py is shown above; C-x o goes there")
    said = await driver.emacs.evaluate('(with-current-buffer "*Messages*" (buffer-string))')
    assert "C-c C-c accepts" not in said
    async with hearing(driver.editor) as heard:
        driver.emacs.terminal.press("\x18o")

        async def is_there() -> bool:
            return await driver.emacs.evaluate("(buffer-name)") in ("*proposed: a.py*", "*on disk: a.py*")

        await eventually_async(is_there, what="the key leads to the review")
        driver.emacs.terminal.press("\x03\x03")
        assert await heard.decision() == DiffAccepted("review-1", "proposed\n")


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ('(progn (insert "mine") t)', "a.py changed on disk; your changes are kept.  M-x revert-buffer takes the file"),
        ("(progn (setq isthmus-reload-files nil) t)", "a.py changed on disk; this buffer has the former text."),
    ],
)
async def test_a_buffer_that_differs_from_the_file_after_an_accept_is_said(
    driver: EmacsDriver, workspace: Path, before: str, said: str
) -> None:
    path = Path(make_file(workspace, "a.py"))
    await driver.open(path)
    await driver.emacs.evaluate(before)
    async with hearing(driver.editor) as heard:
        for number, text in enumerate(("proposed\n", "proposed again\n"), 1):
            asked = review(str(path), text, number)
            await driver.editor.open_diff(asked)
            await driver.accept(asked)
            await eventually_async(lambda count=number: len(heard.decisions) == count, what="the decision")
            path.write_text(text, encoding="utf-8")  # as the agent does
            await driver.emacs.says(said)

            async def is_said(times: int = number) -> bool:
                count = '(with-current-buffer "*Messages*" (how-many "changed on disk" (point-min)))'
                return await driver.emacs.evaluate(count) == times

            await eventually_async(is_said, what="it is said for each")
    assert (await driver.editor.text(str(path))) != "proposed again\n"
