"""Programs put together out of the rooms below: the agent, the server, the companion. The commands are in ``cli``."""
