"""A session after all its events, and its state that no event tells, as its agent sees it."""

from dataclasses import replace

from isthmus.agent.session.session import Session
from isthmus.development_tool import merge_agent_settings
from isthmus.encoding.codec import JsonObject
from isthmus.engine.port.agents import ObservableAgent
from isthmus.engine.runs.runner import Runner
from isthmus.session_status import US_DOLLARS, Cost, SessionStatus
from isthmus.text.money import in_dollars


async def folded_session(
    runner: Runner, user: str, context_id: str | None, workspace: str, settings: JsonObject | None
) -> Session:
    """Return a session, or a new one for None, with its AgentSettings, changed by ``settings``; reads all of it."""
    session = Session(context_id or "", user=user)
    events = () if context_id is None else await runner.journal.session(context_id, user)
    for task_id, delivery in events:
        session.apply(delivery.event, task_id, delivery.at)
    session.choices.settings = merge_agent_settings(session.settings, {**(settings or {}), "workspace_path": workspace})
    session.workspace = workspace
    return session


async def session_state(
    runner: Runner, user: str, context_id: str | None, workspace: str, settings: JsonObject | None
) -> SessionStatus:
    """Return the state of a session as :func:`folded_session` returns it; empty if the agent does not tell it."""
    if not isinstance(runner.agent, ObservableAgent):
        return SessionStatus()
    status = await runner.agent.status(await folded_session(runner, user, context_id, workspace, settings))
    limit = runner.spending.limits.session
    return status if limit is None else replace(status, cost_limit=Cost(in_dollars(limit), US_DOLLARS))
