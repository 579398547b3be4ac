"""Sockets on which Isthmus serves: connections without a token never keep a user out.

:class:`~isthmus.listeners.listener.Listener` accepts connections for any asyncio protocol;
:class:`~isthmus.listeners.http_server.HttpServer` serves HTTP on it. A server reports that a connection has shown its
token.
"""
