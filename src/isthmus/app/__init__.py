"""Programs assembled from the other packages: the agent, the server, the companion. The commands are in ``cli``."""
