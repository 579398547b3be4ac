"""The engine: an agent in process, over the journal.

It makes tasks, takes answers by compare-and-set, runs segments while somebody works, and lets any number of
subscribers follow. A task that waits for a user is only rows: no thread, no asyncio task, no lease. Deliberately not
here: what the agent does, and any wire.
"""

from isthmus.agent.session import Session
from isthmus.client import AgentClient, UserLimits
from isthmus.development_tool import AgentSettings
from isthmus.engine.open_questions import OpenQuestions
from isthmus.engine.runner import EngineOptions, Runner
from isthmus.engine.task_run import Agent
from isthmus.engine.user_tasks import UserTasks
from isthmus.engine.workspaces import WorkspaceRule
from isthmus.journal.base import Journal


class Engine(UserTasks):
    """Runs an agent's tasks in this process; itself the AgentClient of the local user, whose name is empty."""

    def __init__(self, agent: Agent, journal: Journal, options: EngineOptions | None = None) -> None:
        super().__init__(Runner(agent, journal, options or EngineOptions()))

    @property
    def questions(self) -> OpenQuestions:
        """The questions that wait for a user."""
        return self._runner.questions

    @property
    def journal(self) -> Journal:
        """The journal of the tasks, for push notifications. Closed with the engine."""
        return self._runner.journal

    async def settings_of(self, task_id: str) -> AgentSettings | None:
        """Return the AgentSettings of a task's session; costs a fold of the session."""
        row = await self._runner.journal.task(task_id)
        return None if row is None else (await self._runner.fold(row, Session(row.context_id))).settings

    async def start(self) -> None:
        """Take over what is to be taken over, and look after leases from now on."""
        await self._runner.start()

    def for_user(
        self, user: str, limits: UserLimits | None = None, workspaces: WorkspaceRule | None = None
    ) -> AgentClient:
        """Return the agent as ``user`` has it: the tasks and sessions of others are not there.

        ``workspaces``, when given, stands in place of the engine's own rule. Closing it closes nothing.
        """
        return UserTasks(self._runner, user, limits, workspaces)

    async def aclose(self) -> None:
        """Stop here: what runs is interrupted and is taken over at the next start; what waits, waits."""
        await self._runner.aclose()
