"""Custom commands and files that permission rules close."""

from pathlib import Path

import pytest

from isthmus.events import TaskState
from isthmus.settings.rules.permissions import PathFolders, parse_rule
from isthmus.settings.rules.rule_decision import RuleDecision
from support.command_harness import OpenHarness
from unit.agent.commands.custom.test_custom_commands import project, write

pytestmark = pytest.mark.anyio


async def test_a_file_that_a_permission_rule_closes_is_not_put_into_a_prompt(
    open_harness: OpenHarness, tmp_path: Path
) -> None:
    folders = PathFolders(tmp_path.resolve() / "workspace", tmp_path, (tmp_path,))
    rule = parse_rule("Read(secrets/**)", RuleDecision.DENY, "permissions.deny", folders)
    async with open_harness(permissions=(rule,)) as harness:
        (harness.workspace / "secrets").mkdir()
        (harness.workspace / "secrets" / "key").write_text("xyzzy")
        write(project(harness), "read", "@{secrets/key}")
        write(project(harness), "list", "@{secrets}")
        ran = await harness.run("/read")
        assert (ran.state, ran.end.reason) == (TaskState.FAILED, "permission_denied")
        assert "'Read(secrets/**)' in permissions.deny forbids it" in (ran.end.error or "")
        await harness.run("/list")
        assert "key" not in harness.last_user_text()


async def test_a_file_that_holds_secrets_is_not_put_into_a_prompt(open_harness: OpenHarness) -> None:
    async with open_harness() as harness:
        (harness.workspace / ".env").write_text("KEY=hunter2")
        write(project(harness), "read", "@{.env}")
        ran = await harness.run("/read")
        assert (ran.state, ran.end.reason) == (TaskState.FAILED, "private_file")
        assert "may hold secrets" in (ran.end.error or "")
