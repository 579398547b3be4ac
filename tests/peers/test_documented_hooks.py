"""The examples of Gemini CLI's documentation, unchanged, from the installed package: each does here what it says there.

``block-secrets.sh`` is in ``test_hooks_and_gemini_cli.py``, where Gemini CLI itself runs it too.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from isthmus.agent.approval.policy import ApprovalMode, Policy
from isthmus.agent.approval.restricted_tools import restrict
from isthmus.events import TaskState
from isthmus.parts.hook_processes import HookProcesses
from isthmus.settings import load_folder_rules, load_settings
from isthmus.tools.builtin import builtin_tools
from support.agent_harness import AgentHarness
from support.gemini_wire import GeminiWire
from support.programs import node_package, require
from support.scripted_wire import Call, Reply, Say

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]


def page(name: str) -> str:
    """Return a page on hooks as the package has it."""
    return (node_package("@google/gemini-cli") / "bundle" / "docs" / "hooks" / name).read_text("utf-8")


def block(text: str, heading: str, language: str) -> str:
    """Return the first code behind a heading."""
    found = re.compile(rf"{re.escape(heading)}.*?```{language}\n(.*?)```", re.DOTALL).search(text)
    assert found is not None, heading
    return found[1]


@pytest.fixture
def wire() -> Iterator[GeminiWire]:
    with GeminiWire() as wire:
        yield wire


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a project with the settings and scripts of the documentation's workflow assistant."""
    require("node")
    text = page("writing-hooks.md")
    hooks = tmp_path / "project" / ".gemini" / "hooks"
    hooks.mkdir(parents=True)
    (hooks.parent / "memory").mkdir()
    (hooks.parent / "settings.json").write_text(block(text, "### Configuration (`.gemini/settings.json`)", "json"))
    for name, script in re.findall(r"#### \d+\. .*?\(`(\w[\w-]*\.js)`\)\n\n```javascript\n(.*?)```", text, re.DOTALL):
        (hooks / name).write_text(script, "utf-8")
    assert {"security.js", "validate.js"} <= {path.name for path in hooks.iterdir()}
    return tmp_path / "project"


def harness(project: Path, wire: GeminiWire) -> AgentHarness:
    rules = load_folder_rules(project, project.parent / "home", {}).trusted
    tools = restrict(builtin_tools(), rules.tools, rules.policies, rules.permissions)
    return AgentHarness(
        project, wire, Policy(ApprovalMode.YOLO), tools=replace(tools, hooks=rules.hooks), hook_programs=HookProcesses()
    )


async def test_the_security_check_blocks_a_file_with_a_key_and_no_other(project: Path, wire: GeminiWire) -> None:
    agent = harness(project, wire)
    contents = {"a": "SECRET_KEY = 1", "b": "nothing"}
    wire.add(
        Reply.of(*(Call("write_file", {"file_path": name, "content": text}) for name, text in contents.items())),
        Reply.of(Say("Summary: done")),
    )
    assert (await agent.prompt("go")).state is TaskState.COMPLETED
    assert (not (project / "a").exists(), (project / "b").exists()) == (True, True)
    assert "Found SECRET_KEY in content" in agent.told()


async def test_the_check_of_answers_makes_the_agent_go_on_until_there_is_a_summary(
    project: Path, wire: GeminiWire
) -> None:
    agent = harness(project, wire)
    wire.add(Reply.of(Say("All done.")), Reply.of(Say("Summary: done")))
    assert (await agent.prompt("go")).state is TaskState.COMPLETED
    assert len(wire.model_requests) == 2
    assert "Your response is missing a Summary section. Please add one." in agent.told()


def test_all_hooks_of_the_example_that_might_refuse_something_run(project: Path) -> None:
    assert load_settings(project, project.parent / "home", {}, is_trusted=True).guards == ()


async def test_the_recorder_has_each_request_and_answer(project: Path, wire: GeminiWire) -> None:
    wire.add(Reply.of(Say("Summary: done")))
    await harness(project, wire).prompt("do it")
    (recorded,) = (project / ".gemini" / "memory" / "session.jsonl").read_text("utf-8").splitlines()
    entry = json.loads(recorded)
    assert entry["request"]["messages"][0]["content"].startswith("do it")
    assert entry["response"]["candidates"][0]["content"]["parts"] == ["Summary: done"]


@pytest.mark.parametrize(("prompt", "is_chosen"), [("read the file", True), ("go", False)])
async def test_the_filter_of_tools_chooses_those_for_the_prompt(
    tmp_path: Path, wire: GeminiWire, prompt: str, is_chosen: bool
) -> None:
    require("node")
    script = tmp_path / "project" / ".gemini" / "hooks" / "filter-tools.js"
    script.parent.mkdir(parents=True)
    script.write_text(block(page("writing-hooks.md"), "### RAG-based Tool Filtering", "javascript"), "utf-8")
    entry = {"matcher": "*", "hooks": [{"type": "command", "command": "node .gemini/hooks/filter-tools.js"}]}
    (tmp_path / "home" / ".gemini").mkdir(parents=True)
    settings = json.dumps({"hooks": {"BeforeToolSelection": [entry]}})
    (tmp_path / "home" / ".gemini" / "settings.json").write_text(settings, "utf-8")
    wire.add(Reply.of(Say("done")))
    agent = harness(tmp_path / "project", wire)
    await agent.prompt(prompt)
    calling = agent.body().get("toolConfig", {}).get("functionCallingConfig", {})
    chosen = {"write_todos", "read_file", "list_directory"}
    assert set(calling.get("allowedFunctionNames", ())) == (chosen if is_chosen else set())
    offered = {tool["name"] for tool in agent.body()["tools"][0]["functionDeclarations"]}
    assert offered > chosen  # the list of tools stays as it is in the provider's cache


async def test_the_example_of_exit_codes_blocks_a_tool_if_its_check_fails(tmp_path: Path, wire: GeminiWire) -> None:
    script = tmp_path / "project" / ".gemini" / "hooks" / "check.sh"
    script.parent.mkdir(parents=True)
    checks = block(page("best-practices.md"), "### Check exit codes", "bash")
    script.write_text(checks, "utf-8")
    script.chmod(0o755)
    entry = {
        "matcher": "write_file",
        "hooks": [{"type": "command", "command": "$GEMINI_PROJECT_DIR/.gemini/hooks/check.sh"}],
    }
    (script.parent.parent / "settings.json").write_text(json.dumps({"hooks": {"BeforeTool": [entry]}}), "utf-8")
    agent = harness(tmp_path / "project", wire)
    wire.add(Reply.of(Call("write_file", {"file_path": "a", "content": "b"})), Reply.of(Say("done")))
    await agent.prompt("go")
    assert not (tmp_path / "project" / "a").exists()
    assert "Critical validation failure" in agent.told()


async def test_the_first_example_logs_each_tool_and_blocks_none(tmp_path: Path, wire: GeminiWire) -> None:
    project = tmp_path / "project"
    project.mkdir()
    shown = block(page("writing-hooks.md"), "### Step 1: Create your hook script", "bash")
    found = re.search(r"log-tools\.sh << 'EOF'\n(.*?)EOF\n", shown, re.DOTALL)
    assert found is not None
    (project / ".gemini" / "hooks").mkdir(parents=True)
    (project / ".gemini" / "hooks" / "log-tools.sh").write_text(found[1], "utf-8")
    entry = {"matcher": "*", "hooks": [{"type": "command", "command": "bash .gemini/hooks/log-tools.sh"}]}
    (project / ".gemini" / "settings.json").write_text(json.dumps({"hooks": {"BeforeTool": [entry]}}), "utf-8")
    agent = harness(project, wire)
    wire.add(Reply.of(Call("run_shell_command", {"command": "touch a"})), Reply.of(Say("done")))
    await agent.prompt("go")
    assert (project / "a").exists()
    assert "Tool executed: run_shell_command" in (project / ".gemini" / "tool-log.txt").read_text("utf-8")
