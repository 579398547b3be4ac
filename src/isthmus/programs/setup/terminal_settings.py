"""The settings files as the terminal front uses them: the theme, and the lines of ``/settings``. Blocking."""

import os
import sys
from dataclasses import replace
from pathlib import Path

from isthmus.encoding.jsonc_edit import set_member
from isthmus.programs.process.logs import Redaction, secrets_of
from isthmus.programs.setup.setup import Setup, settings_notices, unused_settings
from isthmus.record import record
from isthmus.settings import Settings, SettingsError, load_settings
from isthmus.settings.edit_file import change_file
from isthmus.settings.in_force import SettingInForce
from isthmus.settings.keys import THEME
from isthmus.settings.sources import read_sources, user_settings_path
from isthmus.terminal.screen.themes import ColourTheme
from isthmus.text.visible import visible_line

WIDEST = 60
"""Maximum width of the column before the names of files, in characters."""


def theme_of(settings: Settings) -> ColourTheme:
    """Return the theme that the settings name."""
    return ColourTheme(settings.theme or ColourTheme.AUTO)


def theme_of_user() -> ColourTheme:
    """Return the theme of the user's files, for a front without an agent of its own; a problem is said on stderr."""
    try:
        files = read_sources(Path.home(), Path.home(), os.environ, is_trusted=False)
        return ColourTheme(files.read(THEME) or ColourTheme.AUTO)
    except SettingsError as error:
        sys.stderr.write(f"isthmus: {visible_line(str(error))}\n")
        return ColourTheme.AUTO


def keep_theme(theme: ColourTheme) -> str:
    """Write the theme into the user's settings file; return a line that says so.

    Raises:
        SettingsFileError: the file was not changed.
        SettingsError: a settings file cannot be read.
    """
    path = user_settings_path(Path.home())
    change_file(path, lambda text: set_member(text, THEME.name.split("."), theme.value))
    files = read_sources(Path.home(), Path.home(), os.environ, is_trusted=False)
    first = next((file for file in files.of(THEME) if file.get(THEME.name) is not None), None)
    if first is not None and first.path != path:
        return f"Kept in {path}; but {first.path} counts before it at the next start."
    return f"Kept in {path}."


@record
class ShownSettings:
    """The settings files, the settings in force, and notes: what has changed since the start, and what is not used."""

    files: tuple[Path, ...]
    in_force: tuple[SettingInForce, ...]
    notes: tuple[str, ...]


def shown_settings(setup: Setup) -> ShownSettings:
    """Return the settings that are in force with their files, without secrets, and what is not used.

    A file that has changed since the start is named; only a theme counts at once.
    """
    settings = setup.settings
    now = settings
    changes: list[str] = []
    try:
        now = load_settings(setup.workspace, Path.home(), os.environ, is_trusted=settings.is_trusted)
    except SettingsError as error:
        changes.append(f"The files have changed since the start, and the next start would fail: {error}")
    begun = [item for item in settings.in_force if item.key != THEME.name]
    if [item for item in now.in_force if item.key != THEME.name] != begun:
        changes.append("The files have changed since the start; the changes count from the next start on.")
    theme = [item for item in now.in_force if item.key == THEME.name]
    redacted = Redaction(secrets_of(setup.environment))
    return ShownSettings(
        tuple(now.files),
        tuple(replace(item, value=redacted(item.value)) for item in (*begun, *theme)),
        tuple(map(redacted, (*changes, *settings_notices(settings), *unused_settings(settings)))),
    )


def settings_lines(setup: Setup) -> tuple[str, ...]:
    """Return the lines of ``/settings``: see :func:`shown_settings`."""
    shown = shown_settings(setup)
    rows = [(f"  {item.key} = {item.value}", item.path) for item in shown.in_force]
    width = min(max((len(text) for text, _ in rows), default=0), WIDEST)
    return (
        *([f"Settings file: {path}" for path in shown.files] or ["There is no settings file."]),
        *(["In force; options of the command line count before them:"] if rows else []),
        *(f"{text:<{width}}  {path}" for text, path in rows),
        "All other keys have their defaults. /about shows the model and the approval mode of this session.",
        *shown.notes,
    )
