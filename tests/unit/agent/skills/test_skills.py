"""Skills: SKILL.md folders as Gemini CLI and Claude Code have them."""

from pathlib import Path

import pytest

from isthmus.agent.skills.activate_skill import ActivateSkill
from isthmus.agent.skills.finding import find_skills
from isthmus.agent.skills.skill_file import MAXIMUM_DESCRIPTION, read_skill
from isthmus.tools.port.failure import ToolFailure
from support.tool_calls import said, success_of, tool_context

pytestmark = pytest.mark.anyio

PDF = """---
name: pdf
description: Fills in PDF forms.
  Use it for every form.
license: Apache-2.0
allowed-tools: Bash(python *)
---

# Forms

Run scripts/fill.py; references/fields.md lists the fields.
"""


def add_skill(top: Path, name: str, text: str = PDF, folder: str = ".gemini/skills") -> Path:
    path = top / folder / name
    path.mkdir(parents=True)
    (path / "SKILL.md").write_text(text, "utf-8")
    return path


def test_a_skill_is_its_front_matter_and_its_instructions(tmp_path: Path) -> None:
    skill = read_skill(PDF, tmp_path)
    assert (skill.name, skill.description) == ("pdf", "Fills in PDF forms. Use it for every form.")
    assert skill.instructions.startswith("# Forms\n\nRun scripts/fill.py")
    assert read_skill(PDF.replace("\n", "\r\n"), tmp_path).description == skill.description
    assert not read_skill(PDF.replace("license:", "disable-model-invocation: true\nlicense:"), tmp_path).is_offered
    assert read_skill(PDF.replace("name: pdf\n", ""), tmp_path / "forms").name == "forms"
    long = read_skill(PDF.replace("Use it", "Use it " * 1000), tmp_path)
    assert len(long.description) == MAXIMUM_DESCRIPTION


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("# No front matter", "expected front matter"),
        ("---\nname: a\n", "expected front matter"),
        ("---\n- a\n---\nx", "expected name: and description:"),
        ("---\nname: [a\n---\nx", "line 3: the front matter is not YAML"),
        ("---\nname: a b\ndescription: x\n---\nx", "name: expected at most 64 letters"),
        ("---\nname: ../../etc\ndescription: x\n---\nx", "name: expected"),
        ("---\nname: a\ndescription: {}\n---\nx", "description: expected a text, received dict"),
        ("---\nname: a\n---\nx", "description: expected a text that says when"),
        ("---\nname: a\ndescription: x\n---\n", "expected instructions"),
        ("---\nname: a\n#" + "x" * 20_000 + "\n---\nx", "expected front matter"),
    ],
)
def test_an_unusable_skill_is_an_error_that_says_why(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("(", r"\(")):
        read_skill(text, tmp_path)


def test_skills_are_found_where_both_programs_keep_them(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (".claude/skills", ".gemini/skills", ".agents/skills"):
        name = folder.split("/")[0].strip(".")
        add_skill(home, name, PDF.replace("name: pdf", f"name: {name}"), folder)
    add_skill(
        project, "claude", PDF.replace("name: pdf", "name: claude").replace("Fills", "Here fills"), ".claude/skills"
    )
    add_skill(home, "broken", "no front matter")
    (home / ".gemini/skills/readme.txt").write_text("not a skill")
    found = find_skills(home, project, ["AGENTS"])
    assert [(skill.name, skill.is_of_project) for skill in found.skills] == [("claude", True), ("gemini", False)]
    (problem,) = found.problems
    assert problem.startswith(f"{home}/.gemini/skills/broken/SKILL.md is not used: expected front matter")
    assert [skill.is_of_project for skill in find_skills(home, None).skills] == [False] * 3


def test_a_project_leads_to_no_files_of_others(tmp_path: Path) -> None:
    project, others = tmp_path / "project", tmp_path / "others"
    add_skill(others, "secret")
    (project / ".gemini").mkdir(parents=True)
    (project / ".gemini" / "skills").symlink_to(others / ".gemini" / "skills")
    found = find_skills(None, project)
    assert found.skills == ()
    assert "leads out of the project" in found.problems[0]
    # The user may link to their own.
    assert [skill.name for skill in find_skills(project, None).skills] == ["pdf"]


async def test_the_model_gets_the_instructions_and_the_files_of_a_skill(tmp_path: Path) -> None:
    folder = add_skill(tmp_path, "pdf")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "fill.py").write_text("print()")
    (folder / "link.md").symlink_to("/etc/passwd")
    tool = ActivateSkill(find_skills(tmp_path, None).offered)
    assert "- pdf: Fills in PDF forms. Use it for every form." in tool.description
    assert tool.parameters["properties"]["name"]["enum"] == ["pdf"]
    result = said(await success_of(tool, tool_context(tmp_path), name="pdf"))
    assert result.startswith('<activated_skill name="pdf">\n<instructions>\n# Forms')
    assert f"<available_resources>\n{folder}/scripts/fill.py\n</available_resources>" in result
    with pytest.raises(ToolFailure, match="expected one of pdf; received 'other'"):
        await success_of(tool, tool_context(tmp_path), name="other")
