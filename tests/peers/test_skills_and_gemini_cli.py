"""Skills of the user: the real Gemini CLI is the judge of which are offered, and how; the whole program uses one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.headless_gemini import RunHere, gemini_settings, run_gemini_cli
from support.isthmus_program import InProcess
from support.scripted_wire import Call, Reply, Say

TEXT = "---\nname: {name}\ndescription: How to {name} things.\n---\nSay ABRACADABRA. See reference.md.\n"


@pytest.fixture
def skills() -> Path:
    """Return the user's folder of skills: one of them is disabled, another broken."""
    folder = Path.home() / ".gemini" / "skills"
    for name in ("conjure", "vanish", "broken"):
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text("no" if name == "broken" else TEXT.format(name=name), "utf-8")
    (folder / "conjure" / "reference.md").write_text("the reference of conjuring", "utf-8")
    gemini_settings({"skills": {"disabled": ["vanish"]}})
    return folder


def replies(skills: Path) -> list[Reply]:
    return [
        Reply.of(Call("activate_skill", {"name": "conjure"})),
        Reply.of(Call("read_file", {"file_path": str(skills / "conjure" / "reference.md")})),
        Reply.of(Call("read_file", {"file_path": str(skills / "vanish" / "SKILL.md")})),
        Reply.of(Say("done")),
    ]


def offered(request: Any) -> Sequence[str]:
    """Return the names of skills in the schema of the tool that gives one."""
    (tools,) = request["tools"]
    (tool,) = [tool for tool in tools["functionDeclarations"] if tool["name"] == "activate_skill"]
    schema = tool.get("parametersJsonSchema") or tool["parameters"]
    return [name for name in schema["properties"]["name"]["enum"] if name in ("conjure", "vanish", "broken")]


def check(requests: Sequence[Any]) -> None:
    assert offered(requests[0]) == ["conjure"]
    assert "Say ABRACADABRA" in json.dumps(requests[1]["contents"])
    assert "the reference of conjuring" in json.dumps(requests[2]["contents"])


@pytest.mark.comparison
def test_gemini_cli_offers_the_same_skill_and_gives_its_text(skills: Path, workspace: Path) -> None:
    done, requests = run_gemini_cli(workspace, "--approval-mode", "yolo", "-p", "go", replies=replies(skills))
    assert done.returncode == 0, done.stderr
    check(requests)


def test_a_skill_is_used_and_its_files_are_read(skills: Path, run_here: RunHere, isthmus_here: InProcess) -> None:
    status, _, errors, requests = run_here("-p", "go", replies=replies(skills))
    assert status == 0, errors
    check(requests)
    assert "outside the workspace" in json.dumps(requests[3]["contents"])
    _, listed, _ = isthmus_here("-p", "/skills")
    assert listed.splitlines() == [
        "- conjure: How to conjure things.",
        f"  {skills / 'conjure'}",
        f"Note: {skills / 'broken' / 'SKILL.md'} is not used: expected front matter: a line ---, name: and"
        " description:, and another line ---, at the top of the file",
    ]
