"""A session: the conversation and its state, folded from events, and the turn that emits them.

Agents of other authors import :class:`Session` from here.
"""

from isthmus.agent.session.session import Session

__all__ = ["Session"]
