"""The terminal's own commands about itself: ``/theme``, ``/settings`` and ``/editor``."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from isthmus.errors import IsthmusError
from isthmus.terminal.interactive.editing import editor_line
from isthmus.terminal.interactive.interactive_options import InteractiveOptions
from isthmus.terminal.screen.themes import DESCRIPTIONS, ColourTheme

if TYPE_CHECKING:
    from isthmus.terminal.prompt.prompting import Prompter
    from isthmus.terminal.screen.render import TaskRenderer
    from isthmus.terminal.screen.screen import Screen

NAMES = frozenset({"theme", "settings", "editor"})
"""Names of the commands; a command of the agent with the same name takes precedence."""
_CHOICES = tuple(ColourTheme)
_EXPECTED = f"expected one of {', '.join(_CHOICES)}"


class OwnCommands:
    """Carries out the commands.

    ``ask_line`` reads a line, which may be empty, below others that are choices. ``show_ide`` shows the editor that
    the session uses.
    """

    def __init__(
        self,
        options: InteractiveOptions,
        screen: "Screen",
        renderer: "TaskRenderer",
        prompter: "Prompter",
        ask_line: Callable[[Sequence[str], str, int], Awaitable[str]],
        show_ide: Callable[[], Awaitable[None]],
    ) -> None:
        self._options = options
        self._screen = screen
        self._renderer = renderer
        self._prompter = prompter
        self._ask_line = ask_line
        self._show_ide = show_ide
        self._theme = options.theme
        self._use(options.theme)

    async def run(self, text: str) -> None:
        """Carry out a command, as it was typed."""
        name, _, argument = text.removeprefix("/").partition(" ")
        match name:
            case "theme":
                await self._choose_theme(argument.strip())
            case "settings":
                await self._show_settings()
            case _:
                self._renderer.quiet(editor_line())
                await self._show_ide()

    def _use(self, theme: ColourTheme) -> ColourTheme:
        """Use a theme from now on; return the one that the terminal can show."""
        self._theme = theme
        shown = self._screen.use_theme(theme)
        self._prompter.use_theme(shown)
        return shown

    async def _choose_theme(self, name: str) -> None:
        if not name:
            lines = [
                f"{number}  {'*' if theme is self._theme else ' '} {theme:<6} {DESCRIPTIONS[theme]}"
                for number, theme in enumerate(_CHOICES, 1)
            ]
            name = (await self._ask_line(lines, "theme, or a number: ", len(lines))).strip()
        if not name:
            return
        if name.isdecimal() and 1 <= int(name) <= len(_CHOICES):
            name = _CHOICES[int(name) - 1]
        try:
            theme = ColourTheme(name)
        except ValueError:
            self._renderer.error(f"Unknown theme {name}; {_EXPECTED}.")
            return
        shown = self._use(theme)
        self._screen.show_sample()
        lines = [f"Theme: {theme}, {DESCRIPTIONS[theme]}."]
        if shown is not theme and (limit := self._screen.colour_limit) is not None:
            lines.append(limit)
        keep = self._options.keep_theme
        if keep is not None:
            try:
                lines.append(await asyncio.to_thread(keep, theme))
            except IsthmusError as error:
                lines.append(f"It holds for this run only: {error}")
        self._renderer.quiet(*lines)

    async def _show_settings(self) -> None:
        if self._options.settings_lines is None:
            self._renderer.quiet("The agent runs elsewhere, so its settings are not known here. /about may tell more.")
            return
        try:
            self._renderer.quiet(*await asyncio.to_thread(self._options.settings_lines))
        except IsthmusError as error:
            self._renderer.error(str(error))
