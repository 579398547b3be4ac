"""Themes of the terminal: what can be read, what colours mean, and what a terminal can show."""

import io
from itertools import pairwise

import pytest
from rich.color import Color, ColorSystem
from rich.style import Style
from rich.text import Text

from isthmus.terminal.screen.screen import Screen
from isthmus.terminal.screen.themes import STYLES, ColourTheme, prompt_styles, styles

LEAST_CONTRAST = 4.5
GROUNDS = {
    ColourTheme.LIGHT: ("#ffffff", "#fafafa", "#fdf6e3", "#eee8d5"),
    ColourTheme.DARK: ("#000000", "#1e1e1e", "#002b36", "#282a36", "#2e3440"),
}
"""Usual grounds of light and dark terminals; some are those of Solarized, Dracula and Nord."""
FIXED = (ColourTheme.LIGHT, ColourTheme.DARK)


def luminance(colour: Color) -> float:
    def linear(part: int) -> float:
        share = part / 255
        return share / 12.92 if share <= 0.03928 else ((share + 0.055) / 1.055) ** 2.4

    red, green, blue = colour.get_truecolor()
    return 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue)


def contrast(one: Color, other: Color) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", FIXED)
@pytest.mark.parametrize("system", [ColorSystem.TRUECOLOR, ColorSystem.EIGHT_BIT])
def test_every_colour_can_be_read_on_usual_grounds(theme: ColourTheme, system: ColorSystem) -> None:
    colours = {name: Style.parse(style).color for name, style in styles(theme).items()}
    for name, colour in colours.items():
        for ground in GROUNDS[theme]:
            if colour is not None:
                ratio = contrast(colour.downgrade(system), Color.parse(ground))
                assert ratio >= LEAST_CONTRAST, (name, ground, ratio)


@pytest.mark.parametrize("theme", FIXED)
def test_blue_adds_and_orange_removes(theme: ColourTheme) -> None:
    def parts(name: str) -> tuple[int, int, int]:
        colour = Style.parse(styles(theme)[name]).color
        assert colour is not None
        return colour.get_truecolor()

    assert all(low < high for low, high in pairwise(parts("added")))
    assert all(high > low for high, low in pairwise(parts("removed")))


@pytest.mark.parametrize("theme", ColourTheme)
def test_every_theme_has_every_style(theme: ColourTheme) -> None:
    assert styles(theme).keys() == STYLES.keys()
    assert prompt_styles(theme).keys() == {"prompt", "quiet"}


def drawn(theme: ColourTheme, monkeypatch: pytest.MonkeyPatch, **variables: str) -> tuple[str, ColourTheme, str | None]:
    """Return an added line in a theme, the theme that is shown, and why that is another one."""
    for name in ("NO_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    screen = Screen(output := io.StringIO(), is_terminal=True, width=60)
    shown = screen.use_theme(theme)
    screen.block("diff", [Text("+ x", "added")])
    return output.getvalue(), shown, screen.colour_limit


def test_a_theme_is_drawn_in_its_own_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    many = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
    assert drawn(ColourTheme.AUTO, monkeypatch, **many)[0] == "\x1b[32m+ x\x1b[0m\n"
    assert drawn(ColourTheme.LIGHT, monkeypatch, **many) == (
        "\x1b[38;2;10;79;163m+ x\x1b[0m\n", ColourTheme.LIGHT, None
    )  # fmt: skip
    assert drawn(ColourTheme.DARK, monkeypatch, TERM="xterm-256color")[0] == "\x1b[38;5;117m+ x\x1b[0m\n"


@pytest.mark.parametrize("theme", ColourTheme)
def test_no_theme_colours_anything_where_no_color_is_set(theme: ColourTheme, monkeypatch: pytest.MonkeyPatch) -> None:
    text, shown, limit = drawn(theme, monkeypatch, TERM="xterm-256color", NO_COLOR="1")
    assert (text, shown) == ("+ x\n", ColourTheme.NONE)
    assert "NO_COLOR" in str(limit)


def test_the_theme_none_colours_nothing_and_another_one_does_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    screen = Screen(output := io.StringIO(), is_terminal=True, width=60)
    for theme in (ColourTheme.NONE, ColourTheme.DARK, ColourTheme.NONE, ColourTheme.AUTO):
        screen.use_theme(theme)
        screen.block("diff", [Text("+ x", "added")])
    plain, dark, again, own = output.getvalue().splitlines()
    assert (plain, again, own) == ("+ x", "+ x", "\x1b[32m+ x\x1b[0m")
    assert dark != own


@pytest.mark.parametrize("theme", FIXED)
def test_a_terminal_of_16_colours_keeps_its_own(theme: ColourTheme, monkeypatch: pytest.MonkeyPatch) -> None:
    text, shown, limit = drawn(theme, monkeypatch, TERM="xterm")
    assert (text, shown) == ("\x1b[32m+ x\x1b[0m\n", ColourTheme.AUTO)
    assert "256 colours" in str(limit)
