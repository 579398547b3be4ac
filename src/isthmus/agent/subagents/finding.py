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

FOLDERS = (".claude/agents", ".gemini/agents")
"""Folders of subagents below the user's home, and below a project; the later one overrides the earlier one."""
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
        _read_folder(folder, None, found, problems)
    for top, is_project in ((home, False), (project, True)):
        for name in FOLDERS if top is not None else ():
            folder = Path(os.path.realpath((top or Path()) / name))
            if folder in seen:
                continue
            seen.add(folder)
            _read_folder(folder, top if is_project else None, found, problems)
    kept = tuple(definition for name, definition in sorted(found.items()) if name not in disabled)
    return FoundSubagents(kept, tuple(problems))


@cache
def built_in() -> tuple[SubagentDefinition, ...]:
    """Return the subagents that need no file of the user."""
    return tuple(
        read_definition(path.read_text("utf-8"), path.stem, BUILT_IN) for path in sorted(_BUILT_IN_FOLDER.glob("*.md"))
    )


def _read_folder(folder: Path, project: Path | None, found: dict[str, SubagentDefinition], problems: list[str]) -> None:
    try:
        with os.scandir(folder) as entries:
            files = (entry.name for entry in entries if entry.name.endswith(".md") and not entry.name.startswith("_"))
            names = sorted(islice(files, MAXIMUM_FILES + 1))
    except OSError:
        return
    if len(names) > MAXIMUM_FILES:
        problems.append(f"{folder}: only {MAXIMUM_FILES} files of subagents are used")
    for name in names[:MAXIMUM_FILES]:
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
