"""Everything of a server that is the same for every agent: for ``isthmus serve`` and for agents of other authors."""
