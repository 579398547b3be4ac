"""Calls the user back: the terminal's bell, the window's title, and a desktop notification where the terminal has one.

The texts name the folder and say that somebody asks or is done, and nothing of what: a notification is seen by others.
Everything here is a control sequence that moves no cursor. Not for outputs that are not a terminal, or a dumb one.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from isthmus.text.visible import visible_line, with_ellipsis

LONG_SECONDS = 10.0
"""Time of work after which the end of a turn calls the user."""
LONGEST_FOLDER = 60
"""Maximum number of characters of the folder's name in a title."""
ITERM_STYLE = frozenset({"iTerm.app", "WezTerm", "ghostty"})
"""Values of TERM_PROGRAM of terminals that show OSC 9 as a notification."""
ITERM_STYLE_TERMS = ("xterm-kitty", "xterm-ghostty", "wezterm")
RXVT_STYLE_TERMS = ("foot", "rxvt-unicode")
"""Beginnings of TERM of terminals that show OSC 777 as a notification."""


class CallsBy(Enum):
    """Ways to call the user that the settings allow (``isthmus.terminal.attention``)."""

    ALL = "all"
    """The bell, the title and notifications."""
    BELL = "bell"
    NONE = "none"


@dataclass(slots=True)
class Attention:
    """Writes through ``write``. ``variables`` are the environment's, which tell the terminal's kind."""

    write: Callable[[str], None]
    variables: Mapping[str, str]
    folder: str = ""
    calls_by: CallsBy = CallsBy.ALL
    _has_title: bool = False

    def begin(self) -> None:
        """Give the window its title."""
        if self.calls_by is CallsBy.ALL:
            self._has_title = True
            self.write("\x1b[22;2t")  # keeps the former title
            self._title("")

    def end(self) -> None:
        """Give the window its former title back."""
        if self._has_title:
            self._has_title = False
            self.write("\x1b]2;\x1b\\\x1b[23;2t")

    def asked(self) -> None:
        """Call the user to a question."""
        self._title("? ")
        self._call(f"A question waits in {self._name}")

    def answered(self) -> None:
        """Show that no question waits."""
        self._title("")

    def ended(self, seconds: float) -> None:
        """Call the user to the end of a turn that worked for these seconds, if that was long."""
        if seconds >= LONG_SECONDS:
            self._call(f"The work in {self._name} is done")

    @property
    def _name(self) -> str:
        return with_ellipsis(visible_line(self.folder.rstrip("/").rpartition("/")[2]), LONGEST_FOLDER) or "Isthmus"

    def _title(self, sign: str) -> None:
        if self._has_title:
            self.write(f"\x1b]2;{sign}{self._name} - isthmus\x1b\\")

    def _call(self, text: str) -> None:
        if self.calls_by is not CallsBy.NONE:
            self.write("\a")
        if self.calls_by is CallsBy.ALL:
            self.write(notification(text.replace(";", ","), self.variables))


def notification(text: str, variables: Mapping[str, str]) -> str:
    """Return the sequence that shows ``text`` on the desktop; empty if the terminal is not known for one."""
    term = variables.get("TERM", "")
    if variables.get("TMUX") or variables.get("STY"):
        return ""
    if variables.get("TERM_PROGRAM") in ITERM_STYLE or term.startswith(ITERM_STYLE_TERMS):
        return f"\x1b]9;{text}\x1b\\"
    if term.startswith(RXVT_STYLE_TERMS):
        return f"\x1b]777;notify;Isthmus;{text}\x1b\\"
    return ""
