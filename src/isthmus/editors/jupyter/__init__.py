"""A Jupyter server or kernel as an editor of the companion."""
