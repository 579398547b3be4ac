"""The A2A client: any agent behind a server, in each version and dialect, as an AgentClient.

``RemoteAgent.connect(url, token)`` is all that most programs need.
"""

from isthmus.a2a.client.remote_agent import RemoteAgent

__all__ = ["RemoteAgent"]
