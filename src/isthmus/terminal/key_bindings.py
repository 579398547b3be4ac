"""Keys of the editable prompt and of questions, for prompt_toolkit.

Imports prompt_toolkit, so import this module only to prompt.
"""

from collections.abc import Callable
from functools import partial

from prompt_toolkit.filters import is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings.named_commands import get_by_name
from prompt_toolkit.keys import Keys

from isthmus.terminal.folded_paste import FoldedPastes
from isthmus.terminal.signals import Interrupted

YES_AND_NO = "yn"


def prompt_keys(
    complete: Callable[[KeyPressEvent], None], next_mode: Callable[[KeyPressEvent], None], pastes: FoldedPastes
) -> KeyBindings:
    """Return the keys: Enter sends, Alt-Enter or a backslash and Enter begin a line, Ctrl-C clears or interrupts.

    Long pasted texts are folded; Backspace removes one as a whole, and the editor shows it.
    """
    keys = KeyBindings()
    # While the history is searched, these keys have their meaning there.
    add = partial(keys.add, filter=~is_searching)
    add("tab")(complete)
    add("s-tab")(next_mode)
    add("enter")(_send)
    add("escape", "enter")(_begin_line)
    add("c-c")(_clear)
    add(Keys.BracketedPaste)(partial(_paste, pastes))
    add("c-h")(partial(_delete, pastes))
    add("c-x", "c-e")(partial(_edit, pastes))
    return keys


def _paste(pastes: FoldedPastes, event: KeyPressEvent) -> None:
    event.current_buffer.insert_text(pastes.fold(event.data.replace("\r\n", "\n").replace("\r", "\n")))


def _delete(pastes: FoldedPastes, event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    if folded := pastes.before(buffer.document.text_before_cursor):
        buffer.delete_before_cursor(len(folded))
    else:
        get_by_name("backward-delete-char").call(event)


def _edit(pastes: FoldedPastes, event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    buffer.text = pastes.unfold(buffer.text)
    buffer.open_in_editor()


def _send(event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    if buffer.document.char_before_cursor == "\\" and buffer.document.is_cursor_at_the_end_of_line:
        buffer.delete_before_cursor()
        buffer.newline(copy_margin=False)
    else:
        buffer.validate_and_handle()


def _begin_line(event: KeyPressEvent) -> None:
    event.current_buffer.newline(copy_margin=False)


def _clear(event: KeyPressEvent) -> None:
    if event.current_buffer.text:
        event.current_buffer.reset()
    else:
        event.app.exit(exception=Interrupted())


def choice_keys(choices: list[str]) -> KeyBindings:
    """Return keys that answer at once if every choice has a single one; else a number is typed and sent with Enter."""
    keys = KeyBindings()
    keys.add("escape")(_cancel)
    if all(len(choice) == 1 for choice in choices):
        keys.add(Keys.Any)(partial(_answer, (*choices, *YES_AND_NO)))
        keys.add("enter")(_refuse_key)
        keys.add(Keys.BracketedPaste)(_refuse_key)
    return keys


def _answer(accepted: tuple[str, ...], event: KeyPressEvent) -> None:
    if event.data in accepted:
        event.app.exit(result=event.data)
    else:
        event.app.output.bell()


def _cancel(event: KeyPressEvent) -> None:
    event.app.exit(exception=Interrupted())


def _refuse_key(event: KeyPressEvent) -> None:
    event.app.output.bell()
