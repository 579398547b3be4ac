"""The budget of a run: the whole program with -p, and what it prints."""

import json
from pathlib import Path

import pytest

from support.isthmus_program import InProcess

SCRIPT = """
name: practice
price: 1000
scenarios:
  - prompt: 'write it'
    replies:
      - call: {name: write_file, arguments: {file_path: new.txt, content: "made\\n"}}
      - text: Written.
"""


def test_a_run_ends_at_its_budget_after_its_calls(isthmus_here: InProcess, tmp_path: Path, workspace: Path) -> None:
    script = tmp_path / "practice.yaml"
    script.write_text(SCRIPT, "utf-8")
    options = ("-m", f"scripted:{script}", "--workspace", str(workspace), "--data-dir", str(tmp_path / "data"), "-y")
    status, output, errors = isthmus_here(*options, "-p", "write it", "-o", "json", "--max-budget-usd", "0.50")
    result = json.loads(output)
    assert (status, result["error"]["type"], result["error"]["code"]) == (59, "BudgetUsedUp", 59)
    assert "and $0.50 is its budget (--max-budget-usd). It ended here, and what was done is kept" in errors
    assert result["stats"]["total_cost_usd"] > 0.5
    assert (workspace / "new.txt").read_text("utf-8") == "made\n"
    status, output, _ = isthmus_here(*options, "-p", "write it", "--max-budget-usd", "500")
    assert (status, output) == (0, "Written.\n")
    status, _, errors = isthmus_here(*options, "-p", "write it", "--max-budget-usd", "five")
    assert status == 42
    assert "'five' is not an amount of money; expected US dollars, e.g. 2.50" in errors


@pytest.mark.parametrize("key", ["turn", "session", "day"])
def test_a_budget_of_the_settings_ends_the_work(
    isthmus_here: InProcess, tmp_path: Path, workspace: Path, key: str
) -> None:
    script, settings = tmp_path / "practice.yaml", Path.home() / ".gemini" / "settings.json"
    script.write_text(SCRIPT, "utf-8")
    settings.parent.mkdir(exist_ok=True)
    settings.write_text(json.dumps({"isthmus": {"budget": {key: 0.5}}}), "utf-8")
    options = ("-m", f"scripted:{script}", "--workspace", str(workspace), "--data-dir", str(tmp_path / "data"), "-y")
    status, _, errors = isthmus_here(*options, "-p", "write it")
    assert status == 59
    assert f"isthmus.budget.{key}" in errors


def test_another_agent_cannot_be_limited_and_that_is_said(isthmus_here: InProcess, tmp_path: Path) -> None:
    options = ("--agent", "no-agent --acp", "--trust-agent", "--data-dir", str(tmp_path / "data"))
    status, _, errors = isthmus_here("serve", *options, "-m", "demo", "--port", "0", "--max-budget-usd", "1")
    assert status == 42
    assert "--max-budget-usd cannot be used with --agent" in errors
