"""Other programs at Emacs's server, as `emacsclient --eval` in an agent's shell: what they send answers nothing."""

import asyncio
from pathlib import Path

import pytest

from isthmus.ide.editor import DiffAccepted
from isthmus.ide.reviews.review import DiffReview
from support.emacs import emacs_driver
from support.neovim import hearing
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

WAYS = [
    "(isthmus-review-accept)",
    "(call-interactively #'isthmus-review-accept)",
    "(funcall-interactively #'isthmus-review-accept)",
    "(command-execute #'isthmus-review-accept)",
    '(call-interactively (key-binding (kbd "C-c C-c")))',
    '(execute-kbd-macro (kbd "C-c C-c"))',
    '(setq unread-command-events (listify-key-sequence (kbd "C-c C-c")))',
    "(run-at-time 0 nil (lambda () (with-current-buffer (window-buffer) (isthmus-review-accept))))",
    "(run-at-time 0 nil (lambda () (with-current-buffer (window-buffer) (command-execute #'isthmus-review-accept))))",
    "(isthmus-review-reject)",
    '(execute-kbd-macro (kbd "C-c C-k"))',
]


@pytest.mark.parametrize("code", WAYS)
async def test_a_review_is_not_answered_by_a_program_and_then_by_the_user(workspace: Path, code: str) -> None:
    path = workspace / "a.py"
    path.write_bytes(b"one\n")
    async with emacs_driver(workspace) as driver, hearing(driver.editor) as heard:
        await driver.editor.open_diff(DiffReview("r1", str(path), "two\n", "owner", "Gemini CLI"))

        async def is_in_front() -> bool:
            return await driver.emacs.evaluate("(buffer-name)") == "*proposed: a.py*"

        await eventually_async(is_in_front, what="the review is shown")
        await driver.emacs.evaluate(f"(ignore-errors {code} t)")
        await driver.emacs.says("not answered: a program called that")
        assert heard.decisions == []
        driver.emacs.terminal.press("\x03\x03")
        assert await heard.decision() == DiffAccepted("r1", "two\n")


@pytest.mark.parametrize("code", ["(isthmus-answer-yes)", '(execute-kbd-macro "y")', "(isthmus-answer-no)"])
async def test_a_question_is_not_answered_by_a_program_and_then_by_the_user(workspace: Path, code: str) -> None:
    async with emacs_driver(workspace) as driver:
        asking = asyncio.create_task(driver.editor.confirm("May it run?", "print(1)"))

        async def is_asked() -> bool:
            return await driver.emacs.evaluate("(consp isthmus--questions)") is True

        await eventually_async(is_asked, what="the question")
        await driver.emacs.evaluate("(progn (pop-to-buffer (car isthmus--questions)) t)")
        await driver.emacs.evaluate(f"(ignore-errors {code} t)")
        await driver.emacs.says("not answered: a program called that")
        assert not asking.done()
        driver.emacs.terminal.press("y")
        assert await asyncio.wait_for(asking, 30) is True
