"""The colours of the terminal front: the terminal's own, or fixed ones for a light or a dark ground.

Every fixed colour has a contrast of at least 4.5 on usual grounds, also where a terminal with 256 colours rounds it. In
them a change adds in blue and removes in orange, which differ for every kind of colour vision. Pure.
"""

from collections.abc import Mapping
from enum import StrEnum

from isthmus.record import record


class ColourTheme(StrEnum):
    """Theme by its name in the settings (``isthmus.terminal.theme``)."""

    AUTO = "auto"
    LIGHT = "light"
    DARK = "dark"
    NONE = "none"


DESCRIPTIONS: Mapping[ColourTheme, str] = {
    ColourTheme.AUTO: "the terminal's own colours",
    ColourTheme.LIGHT: "for a light ground: blue adds, orange removes",
    ColourTheme.DARK: "for a dark ground: blue adds, orange removes",
    ColourTheme.NONE: "no colours; code and links stay as the model wrote them",
}

STYLES: Mapping[str, str] = {
    "strong": "bold",
    "heading": "bold",
    "code": "cyan",
    "fence": "dim",
    "quiet": "dim",
    "thought": "dim italic",
    "tool": "bold",
    "good": "green",
    "bad": "red",
    "ask": "bold yellow",
    "notice": "yellow",
    "added": "green",
    "removed": "red",
    "number": "dim",
    "prompt": "bold cyan",
    "link": "underline",
    "keyword": "magenta",
    "string": "green",
    "comment": "dim",
    "name": "blue",
    "literal": "cyan",
}
"""Styles by name, in the terminal's own colours."""


@record
class _Palette:
    """Colours as ``#rrggbb``."""

    quiet: str
    blue: str
    orange: str
    green: str
    red: str
    yellow: str
    violet: str
    cyan: str

    def styles(self) -> Mapping[str, str]:
        """Return the styles with these colours."""
        return {
            "strong": "bold",
            "heading": "bold",
            "code": self.cyan,
            "fence": self.quiet,
            "quiet": self.quiet,
            "thought": f"italic {self.quiet}",
            "tool": "bold",
            "good": self.green,
            "bad": self.red,
            "ask": f"bold {self.yellow}",
            "notice": self.yellow,
            "added": self.blue,
            "removed": self.orange,
            "number": self.quiet,
            "prompt": f"bold {self.cyan}",
            "link": "underline",
            "keyword": self.violet,
            "string": self.green,
            "comment": self.quiet,
            "name": self.blue,
            "literal": self.cyan,
        }


_LIGHT = _Palette("#50545a", "#0a4fa3", "#8c3b00", "#07605c", "#b0261c", "#6f4800", "#7a2a8c", "#0a5a7a")
_DARK = _Palette("#aeb4ba", "#8fc3ff", "#ffb47a", "#62cbc1", "#ff9a8e", "#e9b955", "#d7a6ef", "#7fd0e8")


def styles(theme: ColourTheme) -> Mapping[str, str]:
    """Return the style of each name, as rich writes it."""
    match theme:
        case ColourTheme.LIGHT:
            return _LIGHT.styles()
        case ColourTheme.DARK:
            return _DARK.styles()
        case ColourTheme.AUTO | ColourTheme.NONE:
            return STYLES


def prompt_styles(theme: ColourTheme) -> Mapping[str, str]:
    """Return the styles of the prompt line, as prompt_toolkit writes them."""
    match theme:
        case ColourTheme.AUTO:
            return {"prompt": "bold ansicyan", "quiet": "ansibrightblack"}
        case ColourTheme.NONE:
            return {"prompt": "bold", "quiet": ""}
        case ColourTheme.LIGHT | ColourTheme.DARK:
            fixed = styles(theme)
            return {name: fixed[name] for name in ("prompt", "quiet")}
