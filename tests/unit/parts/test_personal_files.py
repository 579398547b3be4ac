"""The skills and subagents of a session: whose files count, what the settings switch off, and changes of the files."""

from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.agent.personal_part import PersonalFiles
from isthmus.parts.personal_files import PersonalFilesOnDisk
from isthmus.settings import Settings
from isthmus.tools.port.tool_set import ToolScope

pytestmark = pytest.mark.anyio


def write(folder: Path, name: str) -> None:
    """Write a skill and a subagent of that name."""
    for path in (folder / f".gemini/skills/{name}/SKILL.md", folder / f".gemini/agents/{name}.md"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"---\nname: {name}\ndescription: d\n---\nDo it.", "utf-8")


@pytest.fixture
def files(tmp_path: Path) -> PersonalFilesOnDisk:
    """Return the files of a user with a folder that is trusted, and one that is not."""
    write(tmp_path / "home", "own")
    write(tmp_path / "trusted", "project")
    write(tmp_path / "strange", "project")
    return PersonalFilesOnDisk(tmp_path / "home", Settings(), lambda folder: folder.name == "trusted")


def names(found: PersonalFiles) -> tuple[set[str], set[str]]:
    """Return the names of the skills, and of the subagents that are not built in."""
    own = {each.name for each in found.subagents.definitions if each.source != "built in"}
    return {skill.name for skill in found.skills.skills}, own


async def test_a_projects_files_count_where_the_user_trusts_it(files: PersonalFilesOnDisk, tmp_path: Path) -> None:
    both, own = {"own", "project"}, {"own"}
    assert names(await files.of(ToolScope(tmp_path / "trusted"))) == (both, both)
    assert names(await files.of(ToolScope(tmp_path / "strange"))) == (own, own)


async def test_other_users_have_the_built_in_subagents_alone(files: PersonalFilesOnDisk, tmp_path: Path) -> None:
    found = await files.of(ToolScope(tmp_path / "trusted", user="alice"))
    assert names(found) == (set(), set())
    assert found.subagents.definitions


@pytest.mark.parametrize("user", ["", "alice"])
async def test_the_settings_switch_skills_and_subagents_off(
    files: PersonalFilesOnDisk, tmp_path: Path, user: str
) -> None:
    scope = ToolScope(tmp_path / "trusted", user=user)
    no_skills = await replace(files, settings=Settings(uses_skills=False)).of(scope)
    assert (no_skills.skills.skills, bool(no_skills.subagents.definitions)) == ((), True)
    no_subagents = await replace(files, settings=Settings(uses_subagents=False)).of(scope)
    assert (bool(no_subagents.skills.skills), no_subagents.subagents.definitions) == (not user, ())
    neither = Settings(uses_skills=False, uses_subagents=False)
    assert await replace(files, settings=neither).of(scope) == PersonalFiles()


async def test_a_changed_file_counts_for_the_next_task(files: PersonalFilesOnDisk, tmp_path: Path) -> None:
    scope = ToolScope(tmp_path / "strange")
    await files.of(scope)
    write(tmp_path / "home", "later")
    assert names(await files.of(scope)) == ({"own", "later"}, {"own", "later"})
    (tmp_path / "home/.gemini/skills/own/SKILL.md").unlink()
    assert names(await files.of(scope)) == ({"later"}, {"own", "later"})
