"""The state of a session that no event tells, as its agent sees it after all events."""

from isthmus.agent.session import Session
from isthmus.client import SessionStatus
from isthmus.development_tool import merge_agent_settings
from isthmus.encoding.codec import JsonObject
from isthmus.engine.runner import Runner
from isthmus.engine.task_run import ObservableAgent


async def session_state(
    runner: Runner, user: str, context_id: str | None, workspace: str, settings: JsonObject | None
) -> SessionStatus:
    """Return the state of a session with its AgentSettings, changed by ``settings``; reads the whole session."""
    if not isinstance(runner.agent, ObservableAgent):
        return SessionStatus()
    session = Session(context_id or "", user=user)
    events = () if context_id is None else await runner.journal.session(context_id, user)
    for task_id, delivery in events:
        session.apply(delivery.event, task_id, delivery.at)
    session.settings = merge_agent_settings(session.settings, {**(settings or {}), "workspace_path": workspace})
    session.workspace = workspace
    return await runner.agent.status(session)
