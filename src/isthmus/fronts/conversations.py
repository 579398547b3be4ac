"""Conversations for the user: a list, short ids, "latest". Each is the session of a contextId, with its tasks.

All data comes from ``AgentClient.tasks``, most recently changed first.
"""

from collections.abc import Sequence

from isthmus.client import AgentClient, TaskNotFound, TaskSnapshot
from isthmus.events import TaskState
from isthmus.fronts.session_names import LATEST, MIN_PREFIX
from isthmus.record import record


@record
class Conversation:
    """One conversation; ``tasks`` are oldest first and not empty."""

    context_id: str
    tasks: tuple[TaskSnapshot, ...]

    @property
    def title(self) -> str:
        """Beginning of the first prompt, in one line."""
        return next((" ".join(task.title.split()) for task in self.tasks if task.title.strip()), "(no prompt)")

    @property
    def updated_at(self) -> float:
        """Time of the last change in Unix seconds."""
        return max(task.updated_at for task in self.tasks)

    @property
    def state(self) -> TaskState:
        """State of a waiting task, else of a running one, else of the last one."""
        states = [task.state for task in self.tasks]
        if TaskState.INPUT_REQUIRED in states:
            return TaskState.INPUT_REQUIRED
        return next((state for state in states if not state.is_terminal), states[-1])

    @property
    def state_text(self) -> str:
        """The same for users, who see that the work waits for the network."""
        return next((task.state_text for task in self.tasks if task.state is self.state), str(self.state))

    @property
    def unfinished(self) -> tuple[TaskSnapshot, ...]:
        """Tasks that are waiting for the user or running, oldest first."""
        return tuple(task for task in self.tasks if not task.state.is_terminal)


async def list_sessions(agent: AgentClient, workspace: str | None = None, limit: int = 1000) -> list[Conversation]:
    """Return the sessions among the last ``limit`` tasks, most recently changed first.

    ``workspace`` (an absolute path) limits them to that folder's. The tasks of subagents belong to the session that
    began them, and are not listed.
    """
    grouped: dict[str, list[TaskSnapshot]] = {}
    for task in await agent.tasks(limit):
        if not task.parent and (workspace is None or task.workspace == workspace):
            grouped.setdefault(task.context_id, []).append(task)
    sessions = [Conversation(context_id, _oldest_first(tasks)) for context_id, tasks in grouped.items()]
    return sorted(sessions, key=lambda session: session.updated_at, reverse=True)


async def find_session(agent: AgentClient, wanted: str, workspace: str | None = None) -> Conversation:
    """Return the session that ``wanted`` names: ``latest`` (of the workspace), or an id or its prefix.

    Raises:
        TaskNotFound: no session matches, or several do; the message says what to do.
    """
    if wanted == LATEST:
        here = await list_sessions(agent, workspace)
        if not here:
            where = f" in {workspace}" if workspace else ""
            raise TaskNotFound(f"there is no session{where} to resume; start one, or give the id of another")
        return here[0]
    everywhere = await list_sessions(agent)
    matching = [session for session in everywhere if _is_named(session, wanted)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        ids = ", ".join(session.context_id for session in matching[:5])
        raise TaskNotFound(f"{wanted!r} matches {len(matching)} sessions ({ids}); give more of the id")
    raise TaskNotFound(
        f"no session has the id {wanted!r}; expected latest or an id (at least {MIN_PREFIX} characters of it) "
        "from --list-sessions"
    )


def _is_named(session: Conversation, wanted: str) -> bool:
    ids = [session.context_id, *(task.task_id for task in session.tasks)]
    return any(name == wanted or (len(wanted) >= MIN_PREFIX and name.startswith(wanted)) for name in ids)


def _oldest_first(tasks: Sequence[TaskSnapshot]) -> tuple[TaskSnapshot, ...]:
    return tuple(sorted(tasks, key=lambda task: (task.created_at, task.updated_at)))
