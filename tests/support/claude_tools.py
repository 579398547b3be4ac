"""A companion around an editor with one Claude client, without a socket: tools are called as the server calls them."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from isthmus.ide.claude.session import ClaudeSession
from isthmus.ide.claude.tools import call_tool, offered_tools
from isthmus.ide.companion import Companion
from isthmus.ide.control.questions import ClientQuestion
from isthmus.ide.editor import Editor
from isthmus.ide.mcp.mcp_peer import CallTool, CallToolResult
from isthmus.ide.options import CompanionLimits, CompanionOptions
from isthmus.ide.reviews.review import DiffReview
from support.editor_deadlines import PATIENT_LIMITS

_numbers = count()


@dataclass(slots=True)
class ToolUser:
    """One client. The methods take the text of results apart as real clients read it."""

    companion: Companion
    session: ClaudeSession = field(init=False)

    def __post_init__(self) -> None:
        self.session = ClaudeSession(f"client{next(_numbers)}", offered_tools(self.companion))
        self.companion.attach(self.session)

    async def call(self, name: str, **arguments: object) -> CallToolResult:
        """Call a tool; a call that takes longer than 30 s fails the test."""
        return await asyncio.wait_for(call_tool(self.companion, self.session, CallTool(1, name, arguments)), 30)

    def start(self, name: str, **arguments: object) -> "asyncio.Task[CallToolResult]":
        """Start a call of a tool that waits for the user."""
        return asyncio.create_task(self.call(name, **arguments))

    async def text(self, name: str, **arguments: object) -> str:
        """Call a tool that succeeds with one text, and return it."""
        result = await self.call(name, **arguments)
        assert not result.is_error, result
        (block,) = result.content
        return block["text"]

    async def json(self, name: str, **arguments: object) -> Any:
        """Call a tool that succeeds with JSON, and return it."""
        return json.loads(await self.text(name, **arguments))

    async def error(self, name: str, **arguments: object) -> str:
        """Call a tool that fails, and return its message."""
        result = await self.call(name, **arguments)
        assert result.is_error, result
        (block,) = result.content
        return block["text"]

    async def review(self) -> DiffReview:
        """Wait until the user is asked to review an edit, and return the review."""
        (review, *_) = await self.companion.queue.wait(30)
        return review

    async def question(self) -> ClientQuestion:
        """Wait until the user is asked a question, and return it."""
        (question, *_) = await self.companion.asking.wait(30)
        return question


@asynccontextmanager
async def tool_user(
    editor: Editor, options: CompanionOptions | None = None, limits: CompanionLimits = PATIENT_LIMITS
) -> AsyncGenerator[ToolUser]:
    """Yield a client of a companion that follows `editor`."""
    companion = Companion(editor, options, limits=limits)
    following = asyncio.create_task(companion.run())
    try:
        yield ToolUser(companion)
    finally:
        following.cancel()
        await asyncio.wait({following}, timeout=30)
