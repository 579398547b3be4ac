"""Finds subagents: the built-in ones, the user's files and, where the user trusts the folder, the project's.

A later folder overrides an earlier one by the name of the subagent. An unusable file is reported and does not affect
the others. Not here: the tool that begins a subagent.
"""

import os
from collections.abc import Collection, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from isthmus.agent.subagents.definition import SubagentDefinition, read_definition
from isthmus.files.atomic import read_regular
from isthmus.record import record
from isthmus.settings.trust.agreements import new_items
from isthmus.settings.trust.reading import SUBAGENT_FOLDERS, subagent_item

BUILT_IN = "built in"
MAXIMUM_FILES = 100
"""Maximum number of files of one folder that are read."""
MAXIMUM_BYTES = 256 * 1024
"""Maximum size of a file in bytes."""
_BUILT_IN_FOLDER = Path(__file__).with_name("builtin")


@record
class FoundSubagents:
    """The subagents of a session, by name, and reports about files that are not used."""

    definitions: tuple[SubagentDefinition, ...] = ()
    problems: tuple[str, ...] = ()


def find_subagents(
    home: Path | None, project: Path | None, disabled: Collection[str] = (), others: Sequence[Path] = ()
) -> FoundSubagents:
    """Return the built-in subagents, those of a user whose home folder is ``home``, and those of ``project``.

    ``disabled`` are names that the user has switched off. ``others`` are further folders of subagents, which count less
    than the user's and the project's. Blocking; call it in a thread.
    """
    found = {definition.name: definition for definition in built_in()}
    problems: list[str] = []
    seen: set[Path] = set()
    for folder in others:
        _read_folder(folder, None, "", found, problems)
    for top, is_project in ((home, False), (project, True)):
        for name in SUBAGENT_FOLDERS if top is not None else ():
            path = os.path.join(top or Path(), name)  # noqa: PTH118 - each turn comes here; pathlib is slow
            if not os.path.lexists(path) or (folder := Path(os.path.realpath(path))) in seen:
                continue
            seen.add(folder)
            _read_folder(folder, top if is_project else None, name, found, problems)
    kept = tuple(definition for name, definition in sorted(found.items()) if name not in disabled)
    return FoundSubagents(kept, tuple(problems))


@cache
def built_in() -> tuple[SubagentDefinition, ...]:
    """Return the subagents that need no file of the user."""
    return tuple(
        read_definition(path.read_text("utf-8"), path.stem, BUILT_IN) for path in sorted(_BUILT_IN_FOLDER.glob("*.md"))
    )


def _read_folder(
    folder: Path, project: Path | None, place: str, found: dict[str, SubagentDefinition], problems: list[str]
) -> None:
    """Read a folder; ``place`` is its path in ``project``, if it is a project's."""
    try:
        with os.scandir(folder) as entries:
            files = (entry.name for entry in entries if entry.name.endswith(".md") and not entry.name.startswith("_"))
            names = sorted(islice(files, MAXIMUM_FILES + 1))
    except OSError:
        return
    if len(names) > MAXIMUM_FILES:
        problems.append(f"{folder}: only {MAXIMUM_FILES} files of subagents are used")
    del names[MAXIMUM_FILES:]
    items = (subagent_item(place, name.removesuffix(".md")) for name in names)
    new = {f"{item.name}.md" for item in new_items(items, project)} if project else ()
    for name in names:
        if name in new:
            problems.append(f"{folder / name} is not used: it is new since you trusted {project}")
            continue
        path = Path(os.path.realpath(folder / name))
        if project is not None and not path.is_relative_to(os.path.realpath(project)):
            problems.append(f"{folder / name} is not used: it leads out of the project")
            continue
        try:
            text = read_regular(path, MAXIMUM_BYTES).decode("utf-8")
            definition = read_definition(text, path.stem, str(path))
        except (OSError, ValueError) as error:
            reason = error.strerror or error if isinstance(error, OSError) else error
            problems.append(f"{path} is not used: {reason}")
            continue
        found[definition.name] = definition
        if definition.unused:
            problems.append(f"{path}: these keys are not used: {', '.join(definition.unused)}")
