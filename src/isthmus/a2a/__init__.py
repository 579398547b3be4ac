"""A2A with the development-tool extension (spec 2): the wire, a server of any agent, and a client of any server."""
