"""Commands that write accept a review in Emacs when the user types them; what saves by itself does not."""

import pytest

from isthmus.ide.editor import DiffAccepted
from support.emacs_layers import EVIL, LAYERS, OTHER_WINDOW, PLAIN, PROPOSED, Scene
from support.extended import first_of
from support.waiting import eventually_async

pytestmark = pytest.mark.anyio

SAVE = "\x18\x13"
WRITING = {
    "C-x C-s": SAVE,
    "a key of the user": "\x03s",
    "a key that stands for keys": "\x03m",
    "M-x save-buffer": "\x03xsave-buffer\r",
}
WRITING_WITH_EVIL = {
    **{
        command: f"{command}\r"
        for command in (":w", ":w!", ":write", ":wq", ":wq!", ":x", ":up", ":wa", ":save-buffer")
    },
    "ZZ": "ZZ",
}
BY_ITSELF = {
    "a timer": "(run-at-time 0.1 nil #'save-proposal)",
    "an idle timer": "(run-with-idle-timer 0.1 nil #'save-proposal)",
    "a timer in the selected window": "(run-at-time 0.1 nil (lambda () (save-buffer) (setq saved t)))",
    "a timer that calls the command": (
        "(run-at-time 0.1 nil (lambda () (call-interactively #'save-buffer) (command-execute #'save-buffer)"
        " (setq saved t)))"
    ),
    "a timer that calls the command of its key": (
        '(run-at-time 0.1 nil (lambda () (ignore-errors (call-interactively (key-binding (kbd "C-x C-s"))))'
        " (setq saved t)))"
    ),
    "a timer that plays keys": (
        '(run-at-time 0.1 nil (lambda () (ignore-errors (execute-kbd-macro (kbd "C-x C-s"))) (setq saved t)))'
    ),
    "a timer that saves everything": "(run-at-time 0.1 nil (lambda () (save-some-buffers t t) (setq saved t)))",
    "the focus that goes elsewhere": (
        "(add-function :after after-focus-change-function #'save-proposal)"
        " (run-at-time 0.1 nil after-focus-change-function)"
    ),
}
BY_ITSELF_AT_A_KEY = {
    "before other-window": ("(advice-add 'other-window :before #'save-proposal)", OTHER_WINDOW),
    "before other-window, by the command": ("(advice-add 'other-window :before #'call-save)", OTHER_WINDOW),
    "after each command": ("(add-hook 'post-command-hook #'save-proposal)", "\x06"),
    "before each command": ("(add-hook 'pre-command-hook #'save-proposal)", "\x06"),
    "after each change": ("(add-hook 'after-change-functions #'save-proposal)", "\x04"),
    "as another file is saved": (
        "(add-hook 'after-save-hook (lambda () (when buffer-file-name (save-proposal))))",
        "\x18bown.txt\rx" + SAVE,
    ),
    "as the other side is saved": ("(advice-add 'isthmus-review-save :before #'save-proposal)", OTHER_WINDOW + SAVE),
    "as the minibuffer waits": ("(run-with-idle-timer 0.2 nil #'save-proposal)", "\x18\x06half"),
    "by compile": ("(advice-add 'compile :after (lambda (&rest _) (setq saved t)))", "\x03xcompile\r\x01\x0btrue\r"),
    "by save-some-buffers": (
        "(advice-add 'save-some-buffers :after (lambda (&rest _) (setq saved t)))",
        "\x15\x18s",
    ),
}
_SAVERS = """(progn (defvar saved nil)
  (defun save-proposal (&rest _)
    (let ((buffer (get-buffer "*proposed: a.py*")))
      (when buffer
        (with-current-buffer buffer (save-buffer) (basic-save-buffer))
        (setq saved t))))
  (defun call-save (&rest _) (call-interactively #'save-buffer) (setq saved t)) t)"""


@pytest.mark.parametrize("layer", first_of(LAYERS))
async def test_a_writing_command_accepts_once_and_asks_nothing(
    scene: Scene, layer: str, subtests: pytest.Subtests
) -> None:
    for name, keys in {**WRITING, **(WRITING_WITH_EVIL if layer == EVIL else {})}.items():
        with subtests.test(name):
            await scene.begin_anew()
            await scene.open_review()
            await scene.press(keys)
            await scene.was_accepted_once()
            await scene.driver.emacs.says("accepted a.py")
            assert await scene.driver.emacs.evaluate("(buffer-name)") == "own.txt"


@pytest.mark.parametrize("layer", [EVIL])
async def test_what_was_typed_in_insert_state_is_accepted_with_the_rest(scene: Scene) -> None:
    await scene.open_review()
    await scene.press("Omine", "\x1b")
    await eventually_async(lambda: scene.driver.emacs.evaluate("(eq evil-state 'normal)"), what="the state is normal")
    await scene.press(":w\r")
    await scene.was_accepted_once("one\nmine\nTWO\nthree\n")


@pytest.mark.parametrize("layer", [EVIL])
async def test_saving_everything_and_leaving_accepts_first(scene: Scene) -> None:
    await scene.open_review()
    scene.driver.emacs.terminal.press(":wqa\r")
    assert await scene.heard.decision() == DiffAccepted("a.py", PROPOSED)


@pytest.mark.parametrize(
    ("layer", "keys"), [(PLAIN, "\x18\x17copy.txt\r"), (EVIL, ":w copy.txt\r"), (EVIL, ":saveas copy.txt\r")]
)
async def test_writing_to_another_file_makes_a_copy_and_decides_nothing(scene: Scene, keys: str) -> None:
    await scene.open_review(proposed="one\r\nTWO\r\n")
    await scene.press(keys)
    copy = scene.workspace / "copy.txt"
    await eventually_async(lambda: copy.exists() and copy.read_bytes() == b"one\r\nTWO\r\n", what="a copy")
    await scene.in_front("*proposed: a.py*")
    await scene.is_undecided()


@pytest.mark.parametrize(
    ("layer", "keys", "said"),
    [
        (PLAIN, OTHER_WINDOW + SAVE, "C-c C-c accepts, C-c C-k rejects"),
        (EVIL, OTHER_WINDOW + ":w\r", "C-c C-c accepts, C-c C-k rejects"),
        (EVIL, ":1,2w\r", "a part of a proposal cannot be accepted"),
        (EVIL, ":1,2w!\r", "a part of a proposal cannot be accepted"),
    ],
)
async def test_a_command_that_cannot_accept_says_why(scene: Scene, keys: str, said: str) -> None:
    await scene.open_review()
    await scene.press(keys)
    await scene.driver.emacs.shows(said)
    await scene.is_undecided()


async def test_a_saving_command_of_ones_own_says_which_keys_decide(scene: Scene) -> None:
    await scene.driver.emacs.evaluate(
        '(progn (defun tidy-save () (interactive) (save-buffer)) (global-set-key (kbd "C-c w") \'tidy-save) t)'
    )
    await scene.open_review()
    await scene.press("\x03w")
    await scene.driver.emacs.shows("C-c C-c accepts, C-c C-k rejects")
    await scene.is_undecided()


@pytest.mark.parametrize("layer", first_of(LAYERS))
@pytest.mark.parametrize("code", first_of(BY_ITSELF.values(), ids=BY_ITSELF, count=2))
async def test_what_saves_by_itself_decides_and_asks_nothing(scene: Scene, code: str) -> None:
    await scene.open_review()
    await scene.press("x")  # edited: there is something to save
    await scene.driver.emacs.evaluate(f"(progn {_SAVERS} {code} t)")
    await eventually_async(lambda: scene.driver.emacs.evaluate("saved"), what="a save")
    await scene.is_undecided()


@pytest.mark.parametrize("layer", first_of(LAYERS))
@pytest.mark.parametrize(
    ("code", "keys"), first_of(BY_ITSELF_AT_A_KEY.values(), ids=BY_ITSELF_AT_A_KEY, count=3, are_rows=True)
)
async def test_what_saves_at_a_key_decides_nothing(scene: Scene, code: str, keys: str) -> None:
    await scene.open_review()
    await scene.press("x")  # edited: there is something to save
    await scene.driver.emacs.evaluate(f"(progn {_SAVERS} (setq saved nil) {code} t)")
    await scene.press(keys)
    await eventually_async(lambda: scene.driver.emacs.evaluate("saved"), what="a save")
    assert await scene.driver.emacs.reviews() == ["a.py"]
    assert scene.heard.decisions == []
    assert not await scene.driver.has_message("File to save in")


@pytest.mark.parametrize("layer", [EVIL])
@pytest.mark.parametrize("save", ["(save-buffer)", "(ignore-errors (evil-write nil nil nil nil))"])
async def test_what_saves_as_one_leaves_insert_state_decides_nothing(scene: Scene, save: str) -> None:
    await scene.open_review()
    hook = f"(add-hook 'evil-insert-state-exit-hook (lambda () {save} (setq saved t)))"
    await scene.driver.emacs.evaluate(f"(progn {_SAVERS} {hook} t)")
    await scene.press("Omine", "\x1b")
    await eventually_async(lambda: scene.driver.emacs.evaluate("saved"), what="a save")
    await scene.is_undecided()


@pytest.mark.parametrize("layer", first_of(LAYERS))
async def test_files_that_emacs_saves_by_itself_leave_the_review_alone(scene: Scene, layer: str) -> None:
    await scene.press("i" if layer == EVIL else "", "new ")
    await scene.open_review()
    await scene.driver.emacs.evaluate("(progn (setq auto-save-visited-interval 0.1) (auto-save-visited-mode 1) t)")
    await eventually_async(lambda: scene.own.read_text() == "new mine\n", what="the user's own file is saved")
    await scene.is_undecided()
