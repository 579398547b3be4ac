"""Whether a project's settings and .env files count at the start: what the editor says that has the folder open, else
what the user's own file says.

The editor is asked only where it makes a difference, since connecting to it takes time that each start would take.
"""

from collections.abc import Mapping
from pathlib import Path

from isthmus.mcp_host.config.folder_trust import FolderTrust, file_trust
from isthmus.settings import Settings, SettingsError, load_settings
from isthmus.settings.env_files import LoadedEnvironment, load_environment


def trust_for_settings(folder: Path, home: Path, environment: Mapping[str, str], *, ide: bool | None) -> FolderTrust:
    """Return which folders count as trusted at the start of a program in `folder`.

    ``ide``: whether an editor may be used, as the options say it; None: as the user's settings do. Blocks.

    Raises:
        SettingsError: a settings file is not JSON, or a value has the wrong type.
    """
    by_file = file_trust(home)
    untrusted = _loaded(folder, home, environment, is_trusted=False)
    uses_ide = ide if ide is not None else untrusted[0].ide_enabled is not False
    if not uses_ide or not _makes_a_difference(untrusted, folder, home, environment):
        return by_file
    from isthmus.app.editor_directory import trust_of_editor
    from isthmus.app.event_loop import run

    said = run(trust_of_editor(folder, environment))
    if said is None:
        return by_file
    return lambda place: said if place == folder else by_file(place)


def _makes_a_difference(
    untrusted: tuple[Settings, LoadedEnvironment], folder: Path, home: Path, environment: Mapping[str, str]
) -> bool:
    try:
        return _loaded(folder, home, environment, is_trusted=True) != untrusted
    except SettingsError:
        return True  # only a trusted folder's keys are looked into


def _loaded(
    folder: Path, home: Path, environment: Mapping[str, str], *, is_trusted: bool
) -> tuple[Settings, LoadedEnvironment]:
    settings = load_settings(folder, home, environment, is_trusted=is_trusted)
    local = None if settings.ignores_local_env else folder
    return settings, load_environment(
        environment, home, local, lambda place: is_trusted and place == folder, settings.excluded_variables
    )
