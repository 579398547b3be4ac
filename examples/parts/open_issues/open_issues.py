"""A part of the agent that tells the model the open issues of the file ISSUES.md in the workspace.

An issue is a line ``- [ ] text``; one that is done is ``- [x] text``.
"""

import asyncio
from pathlib import Path

from isthmus.agent.part import PartBase, PartTurn
from isthmus.parts.packages import PartPlace

FILE = "ISSUES.md"
MAXIMUM_ISSUES = 50


class OpenIssues(PartBase):
    """Part that tells the model the open issues at each prompt of the user."""

    name = "open_issues"

    async def at_prompt(self, turn: PartTurn) -> str | None:
        """Return the open issues, or None if there are none or a subagent works."""
        if turn.is_of_subagent:
            return None
        issues = await asyncio.to_thread(open_issues, turn.scope.workspace / FILE)
        if not issues:
            return None
        shown = issues[:MAXIMUM_ISSUES]
        lines = [f"Open issues in {FILE}, for your information:", *(f"- {issue}" for issue in shown)]
        if len(issues) > len(shown):
            lines.append(f"and {len(issues) - len(shown)} more")
        return "\n".join(lines)


def open_issues(path: Path) -> list[str]:
    """Return the texts of the open issues in a file; none if it cannot be read."""
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [line[len("- [ ]") :].strip() for line in lines if line.startswith("- [ ]")]


def make(place: PartPlace) -> OpenIssues:
    """Make the part. It keeps no files of its own in ``place``."""
    del place
    return OpenIssues()
