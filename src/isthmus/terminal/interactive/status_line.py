"""The line below the prompt: mode, model, context used, cached share, cost, tokens, branch, editor, waiting questions.

Only what is known is shown; if the terminal is narrow, the least important parts are left out, whole. Reads the branch
from git's files, runs nothing.
"""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from isthmus.client import AgentClient, CommandScope, SessionStatusProvider
from isthmus.errors import IsthmusError
from isthmus.events import TaskState
from isthmus.session_status import US_DOLLARS, SessionStatus
from isthmus.task_view import ModelUsage
from isthmus.text.money import from_dollars, show_dollars
from isthmus.text.units import show_count, show_tokens
from isthmus.text.visible import visible_line, with_ellipsis
from isthmus.worktrees.checked_out import branch_of

REFRESH_SECONDS = 5.0
"""Maximum time to ask the agent for the state of the session."""
RECENT_TASKS = 50
"""Number of tasks among which waiting questions are counted."""
LONGEST_NAME = 32
"""Maximum number of characters of a model or branch."""


@dataclass(slots=True)
class StatusLine:
    """Facts that are known now. ``scope`` returns the scope of the session; ``mode`` the name of its approval mode."""

    agent: AgentClient
    scope: Callable[[], CommandScope]
    mode: Callable[[], str | None]
    dot: str
    workspace: str | None = None
    model: str = ""
    editor: str = ""
    tokens: int = 0
    branch: str = ""
    waiting: int = 0
    status: SessionStatus = field(default_factory=SessionStatus)
    changed: Callable[[], None] = lambda: None
    _refreshing: "asyncio.Task[None] | None" = None

    def add_usage(self, models: Iterable[tuple[str, ModelUsage]]) -> None:
        """Count the tokens of a turn; its last model is the present one."""
        for name, usage in models:
            self.model = name
            self.tokens += usage.input_tokens + usage.output_tokens

    def text(self, width: int) -> str:
        """Return the line in at most ``width`` characters."""
        parts = [part for part in self._parts() if part]
        line = ""
        for part in parts:
            longer = f"{line} {self.dot} {part}" if line else part
            if len(longer) <= width:
                line = longer
        return line

    def _parts(self) -> tuple[str, ...]:
        used, window = self.status.context_tokens, self.status.context_window
        context = f"context {used / window:.0%} used" if used is not None and window else ""
        cached = f"{self.status.cached_share:.0%} cached" if self.status.cached_share is not None else ""
        waiting = f"{show_count(self.waiting, 'question')} waiting in other sessions" if self.waiting else ""
        return (
            self.mode() or "",
            waiting,
            _short(self.model),
            context,
            cached,
            _money(self.status),
            _short(self.branch),
            _short(self.editor),
            f"{show_tokens(self.tokens)} tokens" if self.tokens else "",
        )

    def refresh_soon(self) -> None:
        """Look for changes in the background, unless that is being done."""
        if self._refreshing is None or self._refreshing.done():
            self._refreshing = asyncio.ensure_future(self._refresh())

    async def aclose(self) -> None:
        """Stop looking."""
        if self._refreshing is not None:
            self._refreshing.cancel()
            await asyncio.gather(self._refreshing, return_exceptions=True)

    async def _refresh(self) -> None:
        self.branch = branch_of(Path(self.workspace)) if self.workspace else ""
        with suppress(IsthmusError, TimeoutError):
            async with asyncio.timeout(REFRESH_SECONDS):
                scope = self.scope()
                if isinstance(self.agent, SessionStatusProvider):
                    self.status = await self.agent.session_status(scope)
                tasks = await self.agent.tasks(RECENT_TASKS)
                asked = [task for task in tasks if task.state is TaskState.INPUT_REQUIRED and not task.parent]
                self.waiting = sum(len(task.pending) for task in asked if task.context_id != scope.context_id)
        self.changed()


def _short(name: str) -> str:
    return with_ellipsis(visible_line(name), LONGEST_NAME)


def _money(status: SessionStatus) -> str:
    """Return what the session has cost; empty for nothing, and where nothing is known of it."""
    cost = status.cost
    if cost is None or (not cost.amount and cost.currency == US_DOLLARS):
        return "cost unknown" if status.unpriced_models else ""
    more = " and more" if status.unpriced_models else ""
    if cost.currency == US_DOLLARS:
        return f"{show_dollars(from_dollars(cost.amount))}{more}"
    amount = "<0.01" if 0 < cost.amount < 0.01 else f"{cost.amount:.2f}"
    return f"{amount} {_short(cost.currency)}{more}"
