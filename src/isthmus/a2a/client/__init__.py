"""The A2A client: an AgentClient for any agent behind a server, in each version and dialect.

Most programs need only ``RemoteAgent.connect(url, token)``.
"""

from isthmus.a2a.client.remote_agent import RemoteAgent

__all__ = ["RemoteAgent"]
