"""What agents wrote without a review, in a real Emacs: counted, told, listed, kept, undone and taken back."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from isthmus.ide.written_changes.ledger import ChangeSelection
from isthmus.ide.written_changes.written_changes import WrittenChanges
from support.claude_cli import claude_cli
from support.editing import make_file
from support.emacs import AT_ONCE, EmacsDriver, RunningEmacs, emacs_driver, evil_layer, lisp_string, running_emacs
from support.programs import require
from support.waiting import eventually_async
from support.written_changes import recording

pytestmark = pytest.mark.anyio

NUMBERED = "".join(f"line {number}\n" for number in range(1, 41))
SETTINGS = (
    f"{AT_ONCE} (setq isthmus-changes-quiet 0.3 isthmus-review-when-idle 0.1)"
    ' (global-set-key (kbd "C-c i") isthmus-command-map)'
)
LIST, FILE = "*isthmus changes*", "*written: a.py*"
OPEN_LIST, OTHER_WINDOW = "\x03ic", "\x18o"
MODE_LINE = '(substring-no-properties (or (isthmus--counts) ""))'


@pytest.fixture
def configuration() -> str:
    return SETTINGS


class Changes:
    """A user in front of Emacs, and what agents wrote in its workspace."""

    def __init__(self, emacs: RunningEmacs, workspace: Path, written: WrittenChanges) -> None:
        self.emacs = emacs
        self.workspace = workspace
        self.written = written

    async def turn(self, title: str, **texts: str | None) -> None:
        """Write the files `a.py` and so on in a turn of their own; None: remove it."""
        await self.written.begin_turn("Claude Code", title)
        for name, text in texts.items():
            path = self.workspace / f"{name}.py"
            if text is None:
                path.unlink()
            else:
                path.write_text(text, encoding="utf-8")
        await self.written.listing()

    async def lines(self, buffer: str = LIST) -> list[str]:
        """Return the lines of a buffer."""
        text = await self.emacs.evaluate(f"(with-current-buffer {lisp_string(buffer)} (buffer-string))")
        return text.splitlines()

    async def shows(self, *texts: str, buffer: str = LIST) -> None:
        """Wait until a buffer has all these texts."""

        async def has_all() -> bool:
            shown = "\n".join(await self.lines(buffer)) if buffer in await self.emacs.buffers() else ""
            return all(text in shown for text in texts)

        await eventually_async(has_all, what=f"{texts} in {buffer}")

    async def at(self, text: str) -> None:
        """Wait until point is in a line with this text."""

        async def is_there() -> bool:
            return text in await self.emacs.evaluate("(buffer-substring (line-beginning-position) (line-end-position))")

        await eventually_async(is_there, what=f"point at {text!r}")

    async def is_hidden(self, buffer: str) -> None:
        """Wait until no window shows a buffer."""

        async def is_gone() -> bool:
            return await self.emacs.evaluate(f"(null (get-buffer-window {lisp_string(buffer)} t))") is True

        await eventually_async(is_gone, what=f"{buffer} in no window")

    async def draws_again(self) -> None:
        """Have the list follow the files, as it does when the companion says that something was written or decided."""
        await self.emacs.evaluate("(progn (isthmus-changes--refresh (current-buffer) nil t) t)")
        await eventually_async(lambda: self.emacs.evaluate("(null isthmus--callbacks)"), what="the list is drawn")

    async def go_to(self, text: str) -> None:
        """Put point on the first line with this text."""
        await self.emacs.evaluate(
            f"(progn (goto-char (point-min)) (search-forward {lisp_string(text)}) (beginning-of-line) t)"
        )

    async def counts(self, number: int) -> None:
        """Wait until the mode line counts so many files."""
        expected = f"Isthmus~{number} " if number else ""

        async def is_counted() -> bool:
            return await self.emacs.evaluate(MODE_LINE) == expected

        await eventually_async(is_counted, what=f"the mode line counts {number} files")

    async def is_on_disk(self, text: str, name: str = "a") -> None:
        """Wait until a file and its buffer, if any, have this text, and all that was asked for is on the screen."""
        path = self.workspace / f"{name}.py"
        buffer = f"(find-buffer-visiting {lisp_string(str(path))})"

        async def is_so() -> bool:
            shown = await self.emacs.evaluate(f"(if {buffer} (with-current-buffer {buffer} (buffer-string)) nil)")
            is_settled = await self.emacs.evaluate("(null isthmus--callbacks)")
            return is_settled and path.read_text("utf-8") == text and shown in (None, text)

        await eventually_async(is_so, what=f"{name}.py on disk and in its buffer")


@asynccontextmanager
async def _changes(driver: EmacsDriver, workspace: Path, *names: str) -> AsyncGenerator[Changes]:
    """Yield the changes in a workspace with files of forty lines, of which the first is open."""
    for name in names:
        make_file(workspace, f"{name}.py", NUMBERED)
    await driver.open(workspace / f"{names[0]}.py")
    async with recording(driver.editor, workspace) as written:
        driver.editor.announce({}, [])
        await driver.emacs.says("agents can find this Emacs")
        try:
            yield Changes(driver.emacs, workspace, written)
        except BaseException:
            print(driver.emacs.terminal.screen)
            print(await driver.emacs.evaluate('(with-current-buffer "*Messages*" (buffer-string))'))
            raise


def _with(old: str, new: str, text: str = NUMBERED) -> str:
    assert old in text
    return text.replace(old, new)


ONE = _with("line 3\n", "LINE 3\n")
BOTH = _with("line 30\n", "LINE 30\n", ONE)


async def test_the_real_companion_tells_of_writes_and_a_key_undoes_them(workspace: Path) -> None:
    path = make_file(workspace, "a.py", NUMBERED)
    program = lisp_string(str(require("isthmus")))
    async with running_emacs(workspace, f"{SETTINGS} (setq isthmus-program {program}) (isthmus-mode 1)") as emacs:
        await emacs.shows("agents can find this Emacs")
        await emacs.evaluate(f"(progn (find-file {lisp_string(path)}) (goto-line 20) t)")
        async with claude_cli(workspace):
            emacs.terminal.press(OPEN_LIST)

            async def follows() -> bool:
                emacs.terminal.press("g")
                is_empty = f'(with-current-buffer {lisp_string(LIST)} (equal "" (buffer-string)))'
                return await emacs.evaluate(is_empty) is True and "Nothing was written" in emacs.terminal.screen

            await eventually_async(follows, what="the companion follows the workspace")
            make_file(workspace, "a.py", BOTH)
            await emacs.says("Claude Code wrote a.py; C-c i c shows it")
            await emacs.shows("Isthmus~1")
            await emacs.shows("changed  a.py  +2 -2")
            await emacs.evaluate("(progn (isthmus-changes-next) t)")
            emacs.terminal.press("x")
            await emacs.says("undone: a.py")
            assert Path(path).read_text() == NUMBERED

            async def is_read_again() -> bool:
                state = '(with-current-buffer "a.py" (list (buffer-string) (line-number-at-pos)))'
                return await emacs.evaluate(state) == [NUMBERED, 20]

            await eventually_async(is_read_again, what="the buffer follows, and point stays")
        await emacs.quit()


async def test_the_mode_line_counts_and_each_pause_is_told_once(driver: EmacsDriver, workspace: Path) -> None:
    async with _changes(driver, workspace, "a", "b") as changes:
        await changes.counts(0)
        await changes.turn("first", a=ONE)
        await changes.turn("second", b=ONE, c="new\n")
        await changes.counts(3)
        await changes.emacs.says("Claude Code wrote 3 files; C-c i c shows them")
        await changes.turn("third", c="newer\n")
        await changes.emacs.says("Claude Code wrote c.py; C-c i c shows it")
        await changes.written.keep(ChangeSelection())
        await changes.counts(0)
        messages = await changes.emacs.evaluate('(with-current-buffer "*Messages*" (buffer-string))')
        assert messages.count(" wrote ") == 2


async def test_turns_and_files_are_kept_undone_and_taken_back_in_the_list(driver: EmacsDriver, workspace: Path) -> None:
    async with _changes(driver, workspace, "a", "b", "c") as changes:
        press = changes.emacs.terminal.press
        await changes.turn("Let the query\nuse it", a=ONE, b=None)
        await changes.turn("And again", a=BOTH, c=ONE)
        await driver.emacs.evaluate("(progn (goto-line 10) t)")
        press(OPEN_LIST)
        await changes.shows("Turn 2", "Turn 1")
        shown = [line.split("  ") for line in await changes.lines()]
        assert [line[0] or (*line, "")[1].split(" ")[0] for line in shown] == [
            "Turn 2", "And", "changed", "changed", "", "Turn 1", "Let", "changed", "deleted", "",
        ]  # fmt: skip
        assert shown[0][2:] == ["Claude Code", "may go on", "+2 -2"]
        assert shown[8][2:] == ["b.py", "-40"]
        press("x")  # the newest turn, in which point is
        await changes.at("Turn 2")
        await changes.is_on_disk(ONE)
        await changes.is_on_disk(NUMBERED, "c")
        await changes.shows("a.py  undone", "c.py  undone", "Undone; u takes back")
        press("u")
        await changes.is_on_disk(BOTH)
        await changes.is_on_disk(ONE, "c")
        press("nx")
        await changes.shows("a.py  undone")
        await changes.is_on_disk(ONE)
        press("x")
        await changes.emacs.says("nothing is left to undo here")
        press("u")
        await changes.is_on_disk(BOTH)
        press("n")
        await changes.at("c.py")
        press("a")
        await changes.at("kept c.py")
        await changes.draws_again()
        await changes.at("kept c.py")
        press("a")
        await changes.emacs.says("this is decided; n goes to the next one")
        press("J")
        await changes.at("Turn 1")
        press("A")
        await changes.counts(1)
        await changes.is_on_disk(BOTH)
        assert not (workspace / "b.py").exists()
        view = f"(with-current-buffer {lisp_string('a.py')} (line-number-at-pos))"
        assert await changes.emacs.evaluate(view) == 10


async def test_the_list_waits_with_what_is_new_for_the_answer_to_a_decision(
    driver: EmacsDriver, workspace: Path
) -> None:
    async with _changes(driver, workspace, "a") as changes:
        await changes.turn("first", a=ONE)
        changes.emacs.terminal.press(OPEN_LIST)
        await changes.shows("Turn 1")
        looked = """(cl-letf (((symbol-function 'isthmus--may-show) #'always)
                              (isthmus-changes--deciding %s))
                      (isthmus-changes--look)
                      (and isthmus--callbacks t))"""
        assert await changes.emacs.evaluate(looked % "nil") is True
        await eventually_async(lambda: changes.emacs.evaluate("(null isthmus--callbacks)"), what="the list is drawn")
        assert await changes.emacs.evaluate(looked % "isthmus--process") is None


async def test_hunks_are_shown_kept_undone_and_taken_back(driver: EmacsDriver, workspace: Path) -> None:
    async with _changes(driver, workspace, "a") as changes:
        press = changes.emacs.terminal.press
        await changes.turn("first", a=BOTH)
        await changes.turn("second", a=_with("LINE 3\n", "LINE 3, longer\n", BOTH))
        await driver.emacs.evaluate("(progn (goto-line 29) t)")
        press("\x03if")
        await changes.at("@@ -30,1 +30,1 @@  turn 1")
        assert await changes.lines(FILE) == [
            "changed  a.py  +2 -2",
            "@@ -3,1 +3,1 @@  turns 1, 2",
            " line 1", " line 2", "-line 3", "+LINE 3, longer", " line 4", " line 5", " line 6",
            "@@ -30,1 +30,1 @@  turn 1",
            " line 27", " line 28", " line 29", "-line 30", "+LINE 30", " line 31", " line 32", " line 33",
        ]  # fmt: skip
        press("x")
        await changes.is_on_disk(_with("line 3\n", "LINE 3, longer\n"))
        await changes.at("undone; u takes that back")
        assert (await changes.lines(FILE))[10:] == [
            " line 27", " line 28", " line 29", "-line 30", "+LINE 30", " line 31", " line 32", " line 33",
        ]  # fmt: skip
        press("u")
        await changes.is_on_disk(_with("LINE 3\n", "LINE 3, longer\n", BOTH))
        await changes.at("@@ -30,1 +30,1 @@  turn 1")
        press("\x18h")  # the whole buffer as the region: all hunks
        press("x")
        await changes.is_on_disk(NUMBERED)
        await changes.shows("a.py  undone", buffer=FILE)
        await changes.go_to("@@ -3,")
        press("u")
        await changes.is_on_disk(_with("LINE 3\n", "LINE 3, longer\n", BOTH))
        await changes.shows("+LINE 3, longer", buffer=FILE)
        await changes.go_to("-line 3")
        press("a")
        await changes.at("kept a.py")
        await changes.shows("  kept a.py\n", buffer=FILE)  # the echo area may say it before the buffer does
        assert (await changes.lines(FILE))[:3] == ["changed  a.py  +1 -1", "  kept a.py", "@@ -30,1 +30,1 @@  turn 1"]
        await changes.go_to("+LINE 30")
        press("\r")
        await changes.at("LINE 30")
        assert await changes.emacs.evaluate("(list (buffer-name) (line-number-at-pos))") == ["a.py", 30]


async def test_nothing_is_decided_unseen_and_refusals_are_shown(driver: EmacsDriver, workspace: Path) -> None:
    async with _changes(driver, workspace, "a", "b") as changes:
        press = changes.emacs.terminal.press
        await changes.turn("first", a=ONE)
        press(OPEN_LIST)
        await changes.shows("a.py")
        await driver.emacs.evaluate("(progn (setq isthmus-review-when-idle 1000) t)")
        await changes.turn("second", a=BOTH)
        press("x")
        await changes.emacs.says("something was written or decided since you saw this; nothing was done.  Look again")
        await changes.shows("Turn 2")
        assert (workspace / "a.py").read_text("utf-8") == BOTH
        press(f"{OTHER_WINDOW}\x03if")
        await changes.at("@@ -3,1")
        await changes.go_to("-line 30")
        await changes.turn("third", a=_with("LINE 30\n", "LINE thirty\n", BOTH))
        press("a")
        await changes.emacs.says("This hunk has changed since it was listed; nothing was written")
        await changes.is_on_disk(_with("LINE 30\n", "LINE thirty\n", BOTH))
        await changes.shows("turns 2, 3", buffer="*written: a.py*")  # drawn again, as the third turn is in it
        with_unsaved = '(with-current-buffer "a.py" (goto-char (point-max)) (insert "mine\\n") t)'
        await driver.emacs.evaluate(with_unsaved)

        async def is_refused() -> bool:
            # The end of the third turn may have changed the state once more; then the view is drawn again first.
            await changes.go_to("a.py")
            press("x")
            unsaved = "a.py has unsaved text in Emacs; save it there first, then undo"
            return any(unsaved in line for line in await changes.lines("*Messages*"))

        await eventually_async(is_refused, what="the refusal to undo a file with unsaved text")
        text = await driver.editor.text(str(workspace / "a.py"))
        assert text is not None
        assert text.endswith("line 40\nmine\n")
        await changes.emacs.evaluate(f"(progn (switch-to-buffer {lisp_string('a.py')}) t)")
        press("\x1bxisthmus-changes-undo\r")
        await changes.emacs.says("see first what agents wrote: C-c i c, or C-c i f")


WAYS = [
    "(isthmus-changes-undo)",
    "(call-interactively #'isthmus-changes-undo)",
    "(command-execute #'isthmus-changes-keep)",
    '(call-interactively (key-binding "A"))',
    '(execute-kbd-macro "x")',
    '(setq unread-command-events (listify-key-sequence "a"))',
    "(run-at-time 0 nil (lambda () (with-current-buffer (window-buffer) (command-execute #'isthmus-changes-undo))))",
    "(isthmus-changes-redo)",
]


async def test_programs_decide_nothing_and_then_the_user_does(driver: EmacsDriver, workspace: Path) -> None:
    async with _changes(driver, workspace, "a") as changes:
        await changes.turn("first", a=ONE)
        changes.emacs.terminal.press(OPEN_LIST)
        await changes.at("Turn 1")
        for code in WAYS:
            await changes.emacs.evaluate(
                '(with-current-buffer "*Messages*" (let ((inhibit-read-only t)) (erase-buffer)) t)'
            )
            await changes.emacs.evaluate(f"(ignore-errors {code} t)")
            await changes.emacs.says("not answered: a program called that")
        changes.emacs.terminal.press("x")
        await changes.is_on_disk(NUMBERED)
        assert [len((await changes.written.listing())[name]) for name in ("turns", "undos")] == [1, 1]


async def test_in_two_frames_each_keeps_its_place_and_counts(driver: EmacsDriver, workspace: Path) -> None:
    async with _changes(driver, workspace, "a", "b") as changes:
        press = changes.emacs.terminal.press
        await changes.turn("first", a=ONE, b=ONE)
        press(OPEN_LIST)
        await changes.shows("b.py")
        await changes.go_to("b.py")
        press("\x185" + "2")
        await changes.emacs.shows("F2")
        await changes.at("b.py")
        await changes.go_to("Turn 1")
        press("na")
        await changes.at("kept a.py")
        await changes.emacs.shows("Isthmus~1")
        press("\x185o")
        await changes.emacs.shows("F1")
        await changes.at("b.py")
        press("x")
        await changes.is_on_disk(NUMBERED, "b")
        await changes.is_on_disk(ONE)


async def test_under_evil_the_keys_are_the_same_and_motions_stay(workspace: Path) -> None:
    async with (
        emacs_driver(workspace, reviews=f"{SETTINGS} {evil_layer()}") as driver,
        _changes(driver, workspace, "a", "b") as changes,
    ):
        press = changes.emacs.terminal.press
        await changes.turn("first", a=BOTH, b=ONE)
        press(OPEN_LIST)
        await changes.at("Turn 1")
        assert await changes.emacs.evaluate("evil-state") == "motion"
        press("jj")
        await changes.at("a.py")
        press("\r")
        await changes.at("@@ -3,1")
        press("x")
        await changes.is_on_disk(_with("LINE 3\n", "line 3\n", BOTH))
        press("u")
        await changes.is_on_disk(BOTH)
        press("\x0a")  # C-j
        await changes.at("@@ -30,1")
        press("a")
        await changes.at("kept a.py")
        press("q")
        await changes.is_hidden(FILE)  # or the key would come after what the next line does
        await changes.emacs.evaluate(f"(progn (pop-to-buffer {lisp_string(LIST)}) t)")
        await changes.go_to("b.py")
        press("G")
        press("gg")
        await changes.at("Turn 1")
        press("x")
        await changes.is_on_disk(NUMBERED, "b")
