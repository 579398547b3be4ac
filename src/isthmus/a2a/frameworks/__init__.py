"""Agents of pydantic-ai and graphs of LangGraph, served by one line: ``serve(host(agent), Hosting(name="..."))``.

Clients see texts, thoughts, calls and files as they come, and answer what the framework asks. The state is in the
journal of the server, so tasks survive ``kill -9`` and go on in any server that has the journal.
"""

from collections.abc import Callable
from typing import Any

from isthmus.agent.hosted import AgentPort
from isthmus.agent.session.session import Session

EXPECTED = (
    "expected an agent of pydantic-ai (pip install 'isthmus[pydantic-ai]'), or a graph of LangGraph, compiled or not"
    " (pip install 'isthmus[langgraph]')"
)


def host(
    agent: object,
    *,
    deps: Callable[[Session], Any] | None = None,
    input: Callable[[Session], Any] | None = None,  # noqa: A002 - LangGraph's word
    context: Callable[[Session], Any] | None = None,
) -> AgentPort:
    """Return an agent of a framework as ``serve`` and ``asgi_application`` take it.

    Args:
        agent: A pydantic-ai agent, or a LangGraph graph: compiled, a ``StateGraph`` builder, or an ``@entrypoint``.
        deps: For pydantic-ai: makes the dependencies of a run from the session.
        input: For LangGraph: makes the input of the graph from the session, whose ``message`` is the user's. A graph
            whose state has ``messages`` needs none.
        context: For LangGraph: makes the context of a run from the session.

    Raises:
        TypeError: the object is neither, or an argument is for the other framework.
        ImportError: the framework is too old.
    """
    kinds = {(each.__module__.partition(".")[0], each.__name__) for each in type(agent).__mro__}
    if ("pydantic_ai", "AbstractAgent") in kinds:
        if input is not None or context is not None:
            raise TypeError("host() got input= or context=, which are for LangGraph; for pydantic-ai there is deps=")
        from isthmus.a2a.frameworks.pydantic_ai_host import PydanticAIAgent

        return PydanticAIAgent(agent, deps)  # pyright: ignore[reportArgumentType] - it was checked by name above
    if kinds & {("langgraph", "Pregel"), ("langgraph", "StateGraph")}:
        if deps is not None:
            raise TypeError("host() got deps=, which is for pydantic-ai; for LangGraph there are input= and context=")
        from isthmus.a2a.frameworks.langgraph_host import LangGraphAgent

        return LangGraphAgent(agent, input, context)  # pyright: ignore[reportArgumentType] - it was checked by name above
    if hasattr(agent, "run") and not isinstance(agent, type):
        raise TypeError(
            f"host() got {agent!r}; {EXPECTED}. An agent with a run() of your own needs no host(): serve it"
        )
    called = " itself; call it first" if isinstance(agent, type) else ""
    raise TypeError(f"host() got {agent!r}{called}; {EXPECTED}")
