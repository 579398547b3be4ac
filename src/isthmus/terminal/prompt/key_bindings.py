"""Keys of the editable prompt, for prompt_toolkit.

Imports prompt_toolkit, so import this module only to prompt.
"""

from collections.abc import Callable
from functools import partial

from prompt_toolkit.application.current import get_app
from prompt_toolkit.filters import Condition, emacs_mode, is_searching, vi_insert_mode
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.key_binding.bindings.named_commands import get_by_name
from prompt_toolkit.keys import Keys

from isthmus.terminal.prompt.pasting import Pasting
from isthmus.terminal.signals import Interrupted

REWIND = "/rewind"


def prompt_keys(
    complete: Callable[[KeyPressEvent], None], next_mode: Callable[[KeyPressEvent], None], pasting: Pasting
) -> KeyBindings:
    """Return the keys: Enter sends, Alt-Enter or a backslash and Enter begin a line, Ctrl-C clears or interrupts.

    Escape twice at an empty prompt runs ``/rewind``.
    Long pasted texts are folded; the editor shows them. Ctrl-V or Alt-V takes the image in the clipboard. Backspace
    removes a text or an image as a whole.
    """
    keys = KeyBindings()
    # While the history is searched, these keys have their meaning there.
    add = partial(keys.add, filter=~is_searching)
    add("tab")(complete)
    add("s-tab")(next_mode)
    add("enter")(partial(pasting.when_read, _send))
    add("escape", "enter")(_begin_line)
    add("c-c")(partial(_clear, pasting))
    add(Keys.BracketedPaste)(pasting.paste)
    # In vi's other modes the key selects a block.
    keys.add("c-v", filter=~is_searching & (emacs_mode | vi_insert_mode))(pasting.paste_image)
    # Terminals of Windows keep Ctrl-V for themselves.
    keys.add("escape", "v", filter=~is_searching & emacs_mode)(pasting.paste_image)
    # In vi's keys Escape leaves the mode.
    keys.add("escape", "escape", filter=~is_searching & emacs_mode & Condition(_is_empty))(_rewind)
    add("c-h")(partial(_delete, pasting))
    add("c-x", "c-e")(partial(pasting.when_read, partial(_edit, pasting)))
    return keys


def _delete(pasting: Pasting, event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    if pasted := pasting.before(buffer.document.text_before_cursor):
        buffer.delete_before_cursor(len(pasted))
    else:
        get_by_name("backward-delete-char").call(event)


def _edit(pasting: Pasting, event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    buffer.text = pasting.texts.unfold(buffer.text)
    buffer.open_in_editor()


def _send(event: KeyPressEvent) -> None:
    buffer = event.current_buffer
    if buffer.document.char_before_cursor == "\\" and buffer.document.is_cursor_at_the_end_of_line:
        buffer.delete_before_cursor()
        buffer.newline(copy_margin=False)
    else:
        buffer.validate_and_handle()


def _is_empty() -> bool:
    return not get_app().current_buffer.text


def _rewind(event: KeyPressEvent) -> None:
    event.current_buffer.text = REWIND
    event.app.exit(result=REWIND)


def _begin_line(event: KeyPressEvent) -> None:
    event.current_buffer.newline(copy_margin=False)


def _clear(pasting: Pasting, event: KeyPressEvent) -> None:
    pasting.stop()
    if event.current_buffer.text:
        event.current_buffer.reset()
    else:
        event.app.exit(exception=Interrupted())
