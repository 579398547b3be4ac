"""Trust in a project's settings and .env files at the start, by the editor that has the folder open or by file.

The editor is asked only if that makes a difference, because connecting to it would slow down each start.
"""

from collections.abc import Mapping
from pathlib import Path

from isthmus.mcp_host.config.folder_trust import FolderTrust, file_trust
from isthmus.settings import Settings, SettingsError, load_settings
from isthmus.settings.env_files import LoadedEnvironment, load_environment
from isthmus.settings.trust.first_sight import with_records


def trust_for_settings(folder: Path, home: Path, environment: Mapping[str, str], *, ide: bool | None) -> FolderTrust:
    """Return a check whether a folder counts as trusted when a program starts in `folder`.

    ``ide``: whether the options allow an editor; None leaves it to the user's settings. Blocking; call it in a thread.

    Raises:
        SettingsError: a settings file is not JSON, or a value has the wrong type.
    """
    by_file = file_trust(home)
    untrusted = _loaded(folder, home, environment, is_trusted=False)
    uses_ide = ide if ide is not None else untrusted[0].ide_enabled is not False
    if not uses_ide or not _makes_a_difference(untrusted, folder, home, environment):
        return by_file
    from isthmus.parts.editor.directory import trust_of_editor
    from isthmus.programs.process.event_loop import run_loop

    by_editor = run_loop(trust_of_editor(folder, environment))
    if by_editor is None:
        return by_file
    return with_records(lambda place: by_editor if place == folder else by_file(place), home)


def _makes_a_difference(
    untrusted: tuple[Settings, LoadedEnvironment], folder: Path, home: Path, environment: Mapping[str, str]
) -> bool:
    try:
        return _loaded(folder, home, environment, is_trusted=True) != untrusted
    except SettingsError:
        return True  # the keys are checked only in a trusted folder


def _loaded(
    folder: Path, home: Path, environment: Mapping[str, str], *, is_trusted: bool
) -> tuple[Settings, LoadedEnvironment]:
    settings = load_settings(folder, home, environment, is_trusted=is_trusted)
    local = None if settings.ignores_local_env else folder
    return settings, load_environment(
        environment, home, local, lambda place: is_trusted and place == folder, settings.excluded_variables
    )
