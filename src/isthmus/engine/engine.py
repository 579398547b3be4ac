"""The engine: an agent in this process, whose tasks are in the journal.

It creates tasks, takes answers by compare-and-set, runs the segments of working tasks and serves any number of
subscribers. A task that waits for a user is only rows: no thread, no asyncio task, no lease. Not here: the agent's own
work, see `isthmus.agent`, and protocols, see `isthmus.a2a`.
"""

import contextlib
from collections.abc import Mapping, Sequence
from functools import cached_property

from typing_extensions import override

from isthmus.agent.approval.session_policy import check_agent_settings
from isthmus.agent.session.session import Session
from isthmus.agent.session.spending import Spending
from isthmus.agent.subagents.child_tasks import ChildTasks
from isthmus.client import AgentClient, TaskNotCancelable, TaskNotFound, TaskQuery, UserLimits
from isthmus.development_tool import AgentSettings
from isthmus.engine.child_tasks import EngineChildTasks
from isthmus.engine.followers.open_questions import OpenQuestions
from isthmus.engine.forking import MAXIMUM_TASKS, fork_session
from isthmus.engine.port.agents import Agent
from isthmus.engine.port.options import EngineOptions
from isthmus.engine.port.workspaces import WorkspaceRule
from isthmus.engine.runs.runner import Runner
from isthmus.engine.users.day_use import DayUse
from isthmus.engine.users.user_tasks import UserTasks
from isthmus.errors import IsthmusError
from isthmus.events import Command, Prompt
from isthmus.journal.port.base import Journal

DELETED_AT_ONCE = 100
"""Maximum number of tasks of a session that are deleted in one step."""


class Engine(UserTasks):
    """Runs an agent's tasks in this process; itself the AgentClient of the local user, whose name is empty."""

    def __init__(self, agent: Agent, journal: Journal, options: EngineOptions | None = None) -> None:
        options = options or EngineOptions()
        super().__init__(Runner(agent, journal, options), brings_programs=options.brings_programs)

    @property
    def runner(self) -> Runner:
        """Runner of the tasks that are at work here, of all users: to wait for them, and to interrupt them."""
        return self._runner

    @property
    def questions(self) -> OpenQuestions:
        """Questions that are waiting for a user."""
        return self._runner.questions

    @property
    def journal(self) -> Journal:
        """Journal of the tasks, for push notifications; closed with the engine."""
        return self._runner.journal

    @property
    def is_draining(self) -> bool:
        """Whether no more work is begun here; what comes in waits for other processes."""
        return self._runner.is_draining

    @property
    def running(self) -> int:
        """Number of tasks at work here, subagents' tasks too."""
        return self._runner.running

    @property
    def slots(self) -> int | None:
        """Number of tasks that run here at once, without subagents' tasks; None for any number."""
        return self._runner.slots.limit

    @cached_property
    def day_use(self) -> DayUse:
        """Use of models by each user's tasks today."""
        return DayUse(self.journal)

    @property
    def spending(self) -> Spending:
        """Budgets of the users whose tasks run here."""
        return self._runner.spending

    @property
    def child_tasks(self) -> ChildTasks:
        """Tasks of subagents, for the agent that begins them."""
        return EngineChildTasks(self._runner)

    async def settings_of(self, task_id: str) -> AgentSettings | None:
        """Return the AgentSettings of a task's session; reads the whole session."""
        row = await self._runner.journal.task(task_id)
        return None if row is None else (await self._runner.sessions.fold(row, Session(row.context_id))).settings

    async def start(self) -> None:
        """Take over the tasks of ended processes, and keep leases from now on."""
        await self._runner.start()

    def for_user(
        self, user: str, limits: UserLimits | None = None, workspaces: WorkspaceRule | None = None
    ) -> AgentClient:
        """Return the agent as ``user`` sees it, without the tasks and sessions of other users.

        ``workspaces``, when given, replaces the engine's own rule. Closing the returned client has no effect.
        """
        return UserTasks(self._runner, user, limits, workspaces)

    def for_owner_here(self) -> AgentClient:
        """Return the agent as the local user sees it, who may bring MCP servers that are commands.

        Only for a client that is known to be this user's, on this machine. Closing it has no effect.
        """
        return UserTasks(self._runner, brings_programs=True)

    async def delete_session(self, context_id: str) -> None:
        """Delete all tasks of a session of the local user, with their files; those that work or wait are cancelled.

        Raises:
            TaskNotCancelable: a task does not stop; what had ended before is deleted.
            JournalError: not all could be removed; the next start completes it.
        """
        query = TaskQuery(DELETED_AT_ONCE, context_id)
        while tasks := (await self.list_tasks(query)).tasks:
            for task in tasks:
                if not task.state.is_terminal:
                    with contextlib.suppress(TaskNotCancelable, TaskNotFound):
                        await self.cancel(task.task_id)
            ids = [task.task_id for task in tasks]
            if not await self._runner.retention.delete(ids):
                raise TaskNotCancelable(f"tasks of session {context_id[:100]} do not stop: {', '.join(ids)}; try again")
        await self._journal.removal.erase()

    async def fork_session(self, context_id: str, new_context_id: str) -> None:
        """Copy a session of the local user, all of whose tasks have ended, under another contextId.

        Raises:
            TaskNotFound: there is no such session.
            InvalidRequest: a task has not ended, or there are too many.
            JournalError: not all could be copied.
        """
        found = (await self.list_tasks(TaskQuery(MAXIMUM_TASKS + 1, context_id))).tasks
        tasks = sorted((task for task in found if not task.parent), key=lambda task: task.created_at)
        try:
            await fork_session(self._runner, "", tasks, context_id, new_context_id)
        except BaseException:
            with contextlib.suppress(IsthmusError):
                await self.delete_session(new_context_id)  # what was copied of it
            raise

    async def further_folders(self, task_ids: Sequence[str]) -> Mapping[str, Sequence[str]]:
        """Return the further folders that the AgentSettings of tasks' first messages name, by task, if any."""
        found: dict[str, Sequence[str]] = {}
        for task_id in task_ids:
            for delivery in await self.journal.events(task_id, 0, 1):
                settings = delivery.event.settings if isinstance(delivery.event, Prompt | Command) else None
                if settings is not None and (named := check_agent_settings(settings).additional_directories):
                    found[task_id] = named
        return found

    @override
    async def aclose(self) -> None:
        """Interrupt the running tasks, which the next start takes over; waiting tasks keep waiting."""
        await self._runner.aclose()
