"""The next request of a session to a model whose beginning is fixed, and its size. Pure.

Not here: how the beginning is made, see :mod:`isthmus.agent.coding.model_requests`.
"""

from isthmus.agent.session.session import Session
from isthmus.agent.session.size import estimate_tokens, messages_tokens, tool_tokens
from isthmus.models.port.base import ChatModel, Effort, ModelRequest, key_of


def next_request(session: Session, model: ChatModel, effort: Effort | None, *, may_ask: bool) -> ModelRequest:
    """Return the session's next request to a model that has been asked before.

    ``effort`` is the amount of thinking without a choice in the session; ``may_ask``: a user can be asked.

    Raises:
        KeyError: the session has no beginning for that model yet.
    """
    key = key_of(model)
    prefix = session.prefixes[key]
    return ModelRequest(
        system=prefix.system,
        messages=tuple(session.messages),
        effort=Effort(session.choices.effort) if session.choices.effort is not None else effort,
        tools=prefix.tools,
        conversation=session.key,
        is_interactive=may_ask and session.subagent is None,
        refused=session.refused_media.get(key, frozenset()),
    )


def request_tokens(session: Session, request: ModelRequest) -> int:
    """Return the tokens of the session's next request: those measured for the last one, plus an estimate of the rest.

    If nothing was measured since the last compaction, everything is estimated, including the prompt and the tools.
    """
    if (measured := session.conversation.tokens) is not None:
        return measured
    tools = sum(tool_tokens(tool.name, tool.description, tool.parameters) for tool in request.tools)
    return estimate_tokens(request.system) + tools + messages_tokens(session.messages)
