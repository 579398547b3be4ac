"""A review in Emacs as users have it: plain, or under Evil, its vi layer; commands without keys have keys here."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from isthmus.ide.editor import DiffAccepted
from isthmus.ide.reviews.review import DiffReview
from support.emacs import AT_ONCE, EmacsDriver, emacs_driver, evil_layer
from support.neovim import Heard, hearing
from support.programs import emacs
from support.waiting import eventually_async

ACCEPT, REJECT, SHOW, OTHER_WINDOW = "\x03\x03", "\x03\x0b", "\x03iv", "\x18o"
PROPOSED = "one\nTWO\nthree\n"
PLAIN, EVIL = "plain", "evil"
LAYERS = (PLAIN, EVIL)
_COMMANDS = {
    "\\C-cg": "bury-buffer",
    "\\C-ch": "tab-bar-history-back",
    "\\C-cp": "previous-buffer",
    "\\C-cq": "quit-window",
    "\\C-cs": "save-buffer",
    "\\C-cu": "winner-undo",
    "\\C-cx": "execute-extended-command",
    "\\C-ci": "isthmus-command-map",
}
_CONFIGURATION = (
    f"{AT_ONCE} (setq isthmus-review-when-idle 0.1) (winner-mode 1) (tab-bar-history-mode 1)"
    ' (setq tab-bar-new-tab-choice "*scratch*")'
    ' (setq compilation-ask-about-save nil) (global-set-key (kbd "C-c m") (kbd "C-x C-s"))'
    + "".join(f' (global-set-key "{key}" \'{command})' for key, command in _COMMANDS.items())
)


@dataclass(slots=True)
class Scene:
    """A user in front of Emacs, where own.txt is open; the only review that a test opens is of a.py."""

    driver: EmacsDriver
    heard: Heard
    workspace: Path

    @property
    def own(self) -> Path:
        """The user's own file."""
        return self.workspace / "own.txt"

    async def press(self, *keys: str) -> None:
        """Type `keys`; between two of them wait until Emacs has handled the first."""
        for each in keys:
            self.driver.emacs.terminal.press(each)
            await self.driver.emacs.evaluate("(input-pending-p)")

    async def open_review(self, name: str = "a.py", proposed: str = PROPOSED) -> DiffReview:
        """Open a review of a file in which two is to become TWO, and wait until it has the focus."""
        path = self.workspace / name
        path.write_text("one\ntwo\nthree\n", encoding="utf-8")
        review = DiffReview(name, str(path), proposed, "owner", "Gemini CLI")
        await self.driver.editor.open_diff(review)
        await self.in_front(f"*proposed: {name}*")
        return review

    async def in_front(self, name: str) -> None:
        """Wait until this buffer has the focus."""

        async def has_focus() -> bool:
            return await self.driver.emacs.evaluate("(buffer-name)") == name

        await eventually_async(has_focus, what=f"{name} has the focus")

    async def begin_anew(self) -> None:
        """Leave one window with own.txt, forget what was said and decided: for the next of several cases in one Emacs.

        Raises:
            AssertionError: a review is still there.
        """
        await self.nothing_waits()
        assert await self.driver.emacs.reviews() == []
        await self.driver.emacs.evaluate(
            "(progn (delete-other-frames) (tab-bar-mode -1) (tab-bar-close-other-tabs) (delete-other-windows)"
            ' (switch-to-buffer "own.txt") (let ((inhibit-read-only t))'
            ' (with-current-buffer "*Messages*" (erase-buffer))) t)'
        )
        await self.press("\x0c")
        self.heard.events.clear()

    async def mode_lines(self) -> list[str]:
        """Return the mode lines of all windows that can be seen."""
        texts = "(mapcar (lambda (window) (format-mode-line mode-line-format nil window)) (window-list))"
        return await self.driver.emacs.evaluate(texts)

    async def nothing_waits(self) -> None:
        """Wait until the view is gone, with it the count in the mode lines."""

        async def is_gone() -> bool:
            names = await self.driver.emacs.buffers()
            lines = await self.mode_lines()
            return not any(name.startswith(("*on disk", "*proposed")) for name in names) and "Isthmus:" not in str(
                lines
            )

        await eventually_async(is_gone, what="nothing waits any more")

    async def is_undecided(self) -> None:
        """Fail unless the review of a.py waits, nothing was decided, and Emacs asks nothing."""
        assert await self.driver.emacs.reviews() == ["a.py"]
        assert self.heard.decisions == []
        assert await self.driver.emacs.evaluate("(minibuffer-depth)") == 0

    async def was_accepted_once(self, text: str = PROPOSED) -> None:
        """Wait until the review of a.py was accepted with `text`; fail if more was decided or anything was asked."""
        assert await self.heard.decision() == DiffAccepted("a.py", text)
        await self.nothing_waits()
        assert await self.driver.emacs.evaluate("(minibuffer-depth)") == 0
        assert self.heard.decisions == [DiffAccepted("a.py", text)]


@asynccontextmanager
async def review_scene(workspace: Path, layer: str) -> AsyncGenerator[Scene]:
    """Yield a user in front of Emacs with this layer, one of `LAYERS`."""
    configuration = _CONFIGURATION + (evil_layer() if layer == EVIL else "")
    async with (
        emacs_driver(workspace, reviews=configuration, program=emacs()) as driver,
        hearing(driver.editor) as heard,
    ):
        scene = Scene(driver, heard, workspace)
        scene.own.write_text("mine\n", encoding="utf-8")
        await driver.open(scene.own)
        yield scene
