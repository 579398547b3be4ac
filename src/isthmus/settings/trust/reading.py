"""Reads the items of a project's files that count only in a folder that the user trusts. Blocks.

A file that cannot be read has no items; its consumer reports it. Not here: what was agreed to
(:mod:`isthmus.settings.trust.agreements`).
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path

from isthmus.files.atomic import read_regular
from isthmus.settings.env_files import ENV_FILES, PROJECT_VARIABLES, parse_env, variable_item
from isthmus.settings.settings_file import SettingsError, read_values
from isthmus.settings.sources import user_settings_path
from isthmus.settings.trust.forms import CLAUDE_SETTINGS, MCP_FILE, SETTINGS, form_of
from isthmus.settings.trust.items import ItemKind, ProjectItem, distinct

COMMANDS = ".gemini/commands"
SKILL_FOLDERS = (".claude/skills", ".gemini/skills", ".agents/skills")
"""Folders of skills; later ones override earlier ones."""
SUBAGENT_FOLDERS = (".claude/agents", ".gemini/agents")
"""Folders of subagents; later ones override earlier ones."""
MAXIMUM_FILES = 500
"""Maximum number of commands, skills or subagents that are looked at in one folder, and of folders of commands."""
MAXIMUM_FILE_BYTES = 256 * 1024
"""Maximum size in bytes of a custom command."""

_SHELL = b"!{"
"""Beginning of a shell command in a custom command."""


def project_items(project: Path, home: Path) -> tuple[ProjectItem, ...]:
    """Return all items of the files in ``project``, each once. The user's own files have none.

    ``home`` is the user's home folder; a project there has the user's own settings.
    """
    return tuple(distinct(item for read in _READERS for item in read(project, home)))


def skill_item(folder: str, name: str) -> ProjectItem:
    """Return the item of a skill by the name of its folder in one of `SKILL_FOLDERS`; its text may change."""
    return ProjectItem(ItemKind.SKILL, folder, name, None)


def subagent_item(folder: str, name: str) -> ProjectItem:
    """Return the item of a subagent by the name of its file in one of `SUBAGENT_FOLDERS`; its text may change."""
    return ProjectItem(ItemKind.SUBAGENT, folder, name, None)


def command_item(project: Path, path: Path, content: bytes) -> ProjectItem | None:
    """Return the item of a custom command if it runs the shell, otherwise None."""
    if _SHELL not in content:
        return None
    file = path.relative_to(project).as_posix()
    name = path.relative_to(project / COMMANDS).with_suffix("").as_posix().replace("/", ":")
    return ProjectItem(ItemKind.COMMAND, file, name, content.decode("utf-8", "replace"))


def _of_settings(project: Path, home: Path) -> Iterator[ProjectItem]:
    own = {os.path.realpath(user_settings_path(home)), os.path.realpath(home / ".claude" / "settings.json")}
    for file in (SETTINGS, *CLAUDE_SETTINGS, MCP_FILE):
        if os.path.realpath(project / file) in own:
            continue
        values: Mapping[str, object] | None = None
        with suppress(SettingsError, ValueError):
            values = read_values(project / file)
        yield from form_of(file, project, home).items(values or {})


def _of_commands(project: Path, home: Path) -> Iterator[ProjectItem]:
    if os.path.realpath(project / COMMANDS) == os.path.realpath(home / COMMANDS):
        return
    for path in islice(_toml_files(project / COMMANDS), MAXIMUM_FILES):
        with suppress(OSError):
            item = command_item(project, path, read_regular(path, MAXIMUM_FILE_BYTES))
            if item is not None:
                yield item


def _toml_files(folder: Path) -> Iterator[Path]:
    for current, folders, names in islice(os.walk(folder), MAXIMUM_FILES):
        folders.sort()
        yield from (Path(current) / name for name in sorted(names) if name.endswith(".toml"))


def _of_variables(project: Path, home: Path) -> Iterator[ProjectItem]:
    file = next((name for name in ENV_FILES if (project / name).exists()), None)
    if file is None or project == home:
        return
    with suppress(OSError, UnicodeDecodeError):
        given = parse_env(read_regular(project / file, MAXIMUM_FILE_BYTES).decode("utf-8-sig"))
        yield from (variable_item(file, name, given[name]) for name in PROJECT_VARIABLES if given.get(name))


def _of_skills(project: Path, home: Path) -> Iterator[ProjectItem]:
    for folder in SKILL_FOLDERS:
        names = [name for name in _entries(project / folder, home / folder) if (project / folder / name).is_dir()]
        yield from (skill_item(folder, name) for name in names)


def _of_subagents(project: Path, home: Path) -> Iterator[ProjectItem]:
    for folder in SUBAGENT_FOLDERS:
        names = [name for name in _entries(project / folder, home / folder) if name.endswith(".md")]
        yield from (subagent_item(folder, name.removesuffix(".md")) for name in names)


def _entries(folder: Path, own: Path) -> list[str]:
    """Return the names of the entries of a project's folder; none if it is the user's own."""
    if os.path.realpath(folder) == os.path.realpath(own):
        return []
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in islice(entries, MAXIMUM_FILES))
    except OSError:
        return []


_READERS = (_of_settings, _of_commands, _of_variables, _of_skills, _of_subagents)
