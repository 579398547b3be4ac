"""Finds skills: folders with a ``SKILL.md``, of the user and, where the user trusts the folder, of the project.

A later folder overrides an earlier one by the name of the skill. An unusable skill is reported and does not affect the
others. Not here: the tool that gives a skill to the model.
"""

import os
from collections.abc import Collection, Sequence
from itertools import islice
from pathlib import Path

from isthmus.agent.skills.skill_file import InstalledSkill, read_skill
from isthmus.files.atomic import read_regular
from isthmus.record import record
from isthmus.settings.trust.agreements import new_items
from isthmus.settings.trust.reading import SKILL_FOLDERS, skill_item

FILE = "SKILL.md"
MAXIMUM_SKILLS = 200
"""Maximum number of entries of one folder of skills that are looked at."""
MAXIMUM_BYTES = 256 * 1024
"""Maximum size of a SKILL.md in bytes."""
MAXIMUM_FILES = 100
"""Maximum number of further files of a skill that are listed."""


@record
class FoundSkills:
    """The skills of a session by name, and reports about those that are not used."""

    skills: tuple[InstalledSkill, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def offered(self) -> tuple[InstalledSkill, ...]:
        """Skills that the model may use by itself."""
        return tuple(skill for skill in self.skills if skill.is_offered)


def find_skills(
    home: Path | None, project: Path | None, disabled: Collection[str] = (), others: Sequence[Path] = ()
) -> FoundSkills:
    """Return the skills of a user whose home folder is ``home``, and of ``project``; None leaves them out.

    ``disabled`` are names that the user has switched off. ``others`` are further folders of skills, which count least.
    Blocking; call it in a thread.
    """
    found: dict[str, InstalledSkill] = {}
    problems: list[str] = []
    seen: set[Path] = set()
    for folder in others:
        _read_folder(folder, None, "", found, problems)
    for top, is_project in ((home, False), (project, True)):
        for name in SKILL_FOLDERS if top is not None else ():
            path = os.path.join(top or Path(), name)  # noqa: PTH118 - each turn comes here; pathlib is slow
            if not os.path.lexists(path):
                continue
            folder = _real(path)
            if folder not in seen:
                seen.add(folder)
                _read_folder(folder, top if is_project else None, name, found, problems)
    names = {name.casefold() for name in disabled}
    kept = [skill for name, skill in sorted(found.items()) if name.casefold() not in names]
    return FoundSkills(tuple(kept), tuple(problems))


def files_of(skill: InstalledSkill) -> Sequence[str]:
    """Return the paths of the skill's other files, relative to its folder; symbolic links are not followed."""
    found: list[str] = []
    for current, folders, names in os.walk(skill.folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            path = Path(current) / name
            if not name.startswith(".") and path != skill.folder / FILE and not path.is_symlink():
                found.append(path.relative_to(skill.folder).as_posix())
            if len(found) >= MAXIMUM_FILES:
                return found
    return found


def _read_folder(
    folder: Path, project: Path | None, place: str, found: dict[str, InstalledSkill], problems: list[str]
) -> None:
    """Read a folder; ``place`` is its path in ``project``, if it is a project's."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in islice(entries, MAXIMUM_SKILLS + 1))
    except OSError:
        return
    if len(names) > MAXIMUM_SKILLS:
        problems.append(f"{folder}: only {MAXIMUM_SKILLS} skills are used")
    del names[MAXIMUM_SKILLS:]
    new = {item.name for item in new_items((skill_item(place, name) for name in names), project)} if project else ()
    for name in names:
        path = _real(folder / name / FILE)
        if not path.is_file():
            continue
        if name in new:
            problems.append(f"{folder / name / FILE} is not used: it is new since you trusted {project}")
            continue
        if project is not None and not path.is_relative_to(_real(project)):
            problems.append(f"{folder / name / FILE} is not used: it leads out of the project")
            continue
        try:
            text = read_regular(path, MAXIMUM_BYTES).decode("utf-8")
            skill = read_skill(text, path.parent, is_of_project=project is not None)
        except (OSError, ValueError) as error:
            reason = error.strerror or error if isinstance(error, OSError) else error
            problems.append(f"{folder / name / FILE} is not used: {reason}")
            continue
        found[skill.name] = skill


def _real(path: Path | str) -> Path:
    return Path(os.path.realpath(path))
