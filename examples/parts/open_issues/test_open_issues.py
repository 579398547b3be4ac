from pathlib import Path

import pytest

from isthmus.agent.part import PartTurn
from isthmus.tools.port.tool_set import ToolScope
from parts.open_issues.open_issues import OpenIssues

pytestmark = pytest.mark.anyio


async def test_the_model_is_told_of_open_issues_alone(tmp_path: Path) -> None:
    (tmp_path / "ISSUES.md").write_text("- [ ] The bell is silent\n- [x] The door is open\n", "utf-8")
    note = await OpenIssues().at_prompt(PartTurn(ToolScope(tmp_path, "c", "t"), "s"))
    assert note == "Open issues in ISSUES.md, for your information:\n- The bell is silent"


async def test_without_issues_there_is_no_note(tmp_path: Path) -> None:
    assert await OpenIssues().at_prompt(PartTurn(ToolScope(tmp_path, "c", "t"), "s")) is None
