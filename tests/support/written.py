"""A companion that records what agents write, with any editor."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from isthmus.ide.editor import Editor
from isthmus.ide.options import CompanionOptions
from isthmus.ide.written_changes.written_changes import WrittenChanges
from support.claude_cli import claude_cli
from support.companion import running_host
from support.waiting import eventually_async


@asynccontextmanager
async def recording(editor: Editor, workspace: Path) -> AsyncGenerator[WrittenChanges]:
    """Yield what a companion of an editor records, once an agent is attached."""
    async with running_host(editor, CompanionOptions(folders=(str(workspace),))) as (host, _, _), claude_cli(workspace):
        assert host.companion is not None
        written = host.companion.written

        async def follows() -> bool:
            return (await written.listing())["following"]

        await eventually_async(follows, what="the companion follows the workspace")
        yield written
