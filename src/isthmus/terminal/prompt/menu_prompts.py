"""Menus of prompt_toolkit: the choices of a question, and numbered lines above a line that is typed.

A single key chooses at once; the arrows mark a line, and Enter chooses that. Imports prompt_toolkit, so import this
module only to prompt.
"""

from collections.abc import Callable, Sequence

from prompt_toolkit.data_structures import Size
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from isthmus.terminal.questions.marking import Marking
from isthmus.terminal.questions.questions import CallQuestion
from isthmus.terminal.screen.blocks import brief_choice_lines, choice_lines
from isthmus.terminal.screen.wrapping import hanging_of, word_rows
from isthmus.terminal.signals import Interrupted

YES_AND_NO = "yn"
OTHER_ROWS = 2
"""Number of rows that the line of the answer, and the empty one above the choices, take."""
DIGITS = 9
"""Maximum number of lines of which a digit alone chooses one."""
KEYS_ABOVE = "a key above, or an arrow key and Enter"
TOO_SMALL = "the window is too small to answer"


class ChoicePrompt:
    """The choices below a question, fitted to the window whenever they are drawn. ``note`` stands above the prompt."""

    def __init__(self, question: CallQuestion, glyph: str, note: str, size: Callable[[], Size]) -> None:
        self._question = question
        self._glyph = glyph
        self._note = note
        self._beside = ""
        self._size = size
        self._marking = Marking(len(question.choices))
        self._keys = [choice.key for choice in question.choices]

    def message(self) -> StyleAndTextTuples:
        """Return the choices and the prompt below them."""
        # The size is looked at for each drawing: choices that the window cuts could not be chosen.
        note = [("class:quiet", f"  {row}\n") for row in self._note_rows()]
        beside = [("class:quiet", f"  {self._beside}")] if self._beside else []
        return [*self._fitting(), *note, *beside, ("class:prompt", f"  {self._glyph} ")]

    def everything(self) -> StyleAndTextTuples:
        """Return the choices with their descriptions."""
        return _classed(choice_lines(self._question, self._size().columns, self._marking.at, self._glyph))

    @property
    def is_whole(self) -> bool:
        """Whether the window has room for the choices with their descriptions."""
        return self._whole() is not None

    @property
    def is_too_small(self) -> bool:
        """Whether the window has no room for the choices, not even for their names."""
        return self._whole() is None and self._brief() is None

    def key_bindings(self) -> KeyBindings:
        """Return keys that answer at once if every choice has a single one; else a number is typed."""
        keys = KeyBindings()
        keys.add("escape")(_cancel)
        _add_arrows(keys, self._marking)
        keys.add("enter")(self._enter)
        if all(len(key) == 1 for key in self._keys):
            keys.add(Keys.Any)(self._key)
            keys.add(Keys.BracketedPaste)(self.refuse)
        return keys

    def refuse(self, event: KeyPressEvent | None = None) -> None:
        """Say which keys there are."""
        note, is_whole = self._note, self.is_whole
        self._note = f"one of {', '.join(self._keys)}, or an arrow key and Enter"
        if is_whole and not self.is_whole:
            # The words about the keys must not take the place of what the answers cover.
            self._note, self._beside = note, KEYS_ABOVE
        if event is not None:
            event.app.output.bell()

    def _enter(self, event: KeyPressEvent) -> None:
        buffer, at = event.current_buffer, self._marking.at
        if self.is_too_small:
            buffer.reset()
            event.app.output.bell()
        elif buffer.text:
            buffer.validate_and_handle()
        elif at is not None:
            event.app.exit(result=self._keys[at])
        else:
            self.refuse(event)

    def _key(self, event: KeyPressEvent) -> None:
        if event.data in (*self._keys, *YES_AND_NO) and not self.is_too_small:
            event.app.exit(result=event.data)
        else:
            self.refuse(event)

    def _note_rows(self) -> Sequence[str]:
        return word_rows(self._note, self._size().columns - 3) if self._note else ()

    def _whole(self) -> StyleAndTextTuples | None:
        """Return the choices with their descriptions, below an empty line; None if the window has too few rows."""
        shown = self.everything()
        rows = sum(fragment[1].count("\n") for fragment in shown)
        return [("", "\n"), *shown] if rows + len(self._note_rows()) + OTHER_ROWS <= self._size().rows else None

    def _brief(self) -> StyleAndTextTuples | None:
        rows = self._size().rows - len(self._note_rows()) - OTHER_ROWS
        found = brief_choice_lines(self._question, self._size().columns, rows, self._marking.at, self._glyph)
        return None if found is None else _classed(found)

    def _fitting(self) -> StyleAndTextTuples:
        if (whole := self._whole()) is not None:
            return whole
        if (brief := self._brief()) is not None:
            return brief
        return [("class:quiet", f"  {TOO_SMALL}\n")]


class LinePrompt:
    """Lines above a line that is typed after ``prompt``; the first ``choices`` of them are numbered from 1.

    ``is_at_once``: a digit as the first key chooses its line, if there are not more than nine.
    """

    def __init__(
        self,
        lines: Sequence[str],
        prompt: str,
        glyph: str,
        size: Callable[[], Size],
        choices: int = 0,
        *,
        is_at_once: bool = True,
    ) -> None:
        self._lines = lines
        self._prompt = prompt
        self._glyph = glyph
        self._size = size
        self._marking = Marking(choices)
        self._digits = [str(number) for number in range(1, choices + 1)] if is_at_once and choices <= DIGITS else []

    def message(self) -> StyleAndTextTuples:
        """Return the lines, of which one may be marked, and the prompt."""
        rows = menu_rows(self._lines, self._size().columns, self._marking.at, self._glyph)
        return [("", "\n"), *(("class:quiet", f"{row}\n") for row in rows), ("class:prompt", f"  {self._prompt}")]

    def key_bindings(self) -> KeyBindings:
        """Return the keys of the menu; none without choices."""
        keys = KeyBindings()
        if self._marking.count:
            keys.add("escape")(_cancel)
            _add_arrows(keys, self._marking)
            keys.add("enter")(self._enter)
            for digit in self._digits:
                keys.add(digit)(self._digit)
        return keys

    def _enter(self, event: KeyPressEvent) -> None:
        if self._marking.at is not None and not event.current_buffer.text:
            event.app.exit(result=str(self._marking.at + 1))
        else:
            event.current_buffer.validate_and_handle()

    def _digit(self, event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.insert_text(event.data)
        else:
            event.app.exit(result=event.data)


def menu_rows(lines: Sequence[str], columns: int, marked: int | None = None, glyph: str = "") -> list[str]:
    """Return lines in rows that a window of this width has room for, with ``glyph`` before the marked one."""
    room = columns - 3
    rows: list[str] = []
    for at, line in enumerate(lines):
        first, *more = word_rows(line, room, hanging_of(line, room))
        rows += [f"{glyph if at == marked else ' '} {first}", *(f"  {row}" for row in more)]
    return rows


def _add_arrows(keys: KeyBindings, marking: Marking) -> None:
    def up(_: KeyPressEvent) -> None:
        marking.up()

    def down(_: KeyPressEvent) -> None:
        marking.down()

    keys.add("up")(up)
    keys.add("down")(down)


def _cancel(event: KeyPressEvent) -> None:
    event.app.exit(exception=Interrupted())


def _classed(fragments: Sequence[tuple[str, str]]) -> StyleAndTextTuples:
    """Return fragments with the names of our styles as Toolkit's classes."""
    return [(f"class:{style}" if style else "", text) for style, text in fragments]
