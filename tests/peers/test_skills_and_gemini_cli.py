"""Skills of the user: the real Gemini CLI is the judge of which are offered, and how; the whole program uses one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from support.gemini_wire import GeminiWire
from support.headless_gemini import gemini_settings, run_gemini_cli
from support.isthmus_program import isthmus
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


def test_gemini_cli_offers_the_same_skill_and_gives_its_text(skills: Path, workspace: Path) -> None:
    done, requests = run_gemini_cli(workspace, "--approval-mode", "yolo", "-p", "go", replies=replies(skills))
    assert done.returncode == 0, done.stderr
    assert offered(requests[0]) == ["conjure"]
    assert "Say ABRACADABRA" in json.dumps(requests[1]["contents"])
    assert "the reference of conjuring" in json.dumps(requests[2]["contents"])


def test_a_skill_is_used_and_its_files_are_read(skills: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with GeminiWire(replies(skills)) as wire:
        monkeypatch.setenv("GEMINI_API_KEY", "key")
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", wire.base_url)
        done = isthmus("-p", "go", folder=workspace)
        requests = [request.json for request in wire.model_requests]
        listed = isthmus("-p", "/skills", folder=workspace)
    assert done.returncode == 0, done.stderr
    assert offered(requests[0]) == ["conjure"]
    assert "Say ABRACADABRA" in json.dumps(requests[1]["contents"])
    assert "the reference of conjuring" in json.dumps(requests[2]["contents"])
    assert "outside the workspace" in json.dumps(requests[3]["contents"])
    assert listed.stdout.splitlines() == [
        "- conjure: How to conjure things.",
        f"  {skills / 'conjure'}",
        f"Note: {skills / 'broken' / 'SKILL.md'} is not used: expected front matter: a line ---, name: and"
        " description:, and another line ---, at the top of the file",
    ]
