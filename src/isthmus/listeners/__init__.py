"""Accepting connections so that those without a token never keep a user out: shared by every server of Isthmus.

:class:`~isthmus.listeners.listener.Listener` accepts and passes connections on to any asyncio protocol. Deliberately
not here: HTTP, WebSockets and tokens; a server reports that a connection has shown its token.
"""
